//! `cold diagnose` of starts on a slow disk: causes that the disk makes certain are named with their remedies.

mod root {
    use std::path::Path;

    use cold_model::Bytes;
    use cold_probe::device::{DeviceEffort, load_or_measure};
    use cold_testbed::disk::{Preset, SlowDisk};
    use cold_testbed::need_root;
    use serde_json::Value;

    use crate::support::*;

    /// Where root's measurements of disks are kept.
    const STATE: &str = "/var/lib/coldstart";

    fn diagnosed(place: &Sandbox, command: &[&str]) -> Value {
        diagnosed_for("8s", place, command)
    }

    fn diagnosed_for(time: &str, place: &Sandbox, command: &[&str]) -> Value {
        let args = ["diagnose", "--evict", "files", "--for", time, "--json", "--"];
        place.cold(args.iter().chain(command)).run().finished().json()
    }

    fn remedy<'a>(told: &'a Value, id: &str) -> Option<&'a Value> {
        told["remedies"].as_array().unwrap_or_else(|| panic!("{told}")).iter().find(|r| r["id"] == id)
    }

    #[test]
    fn files_on_a_slow_disk_are_offered_a_faster_one_that_was_measured() {
        if !need_root() {
            return;
        }
        let _machine = together();
        let place = Sandbox::new();
        // A disk that was measured, as one is for a plan of a program on it.
        let fast = load_or_measure(&place.path("."), Path::new(STATE), DeviceEffort::Quick);
        assert!(fast.is_ok(), "{fast:?}");
        let slow = SlowDisk::create(Preset::Cloud, Bytes(256 << 20)).unwrap();
        let data = data(slow.mount_point().join("data"), 48 * MIB);
        // 4.7 MiB: what is needed of the program lies on the other disk and is less.
        let pages: Vec<String> = (0..1200).map(|i| (i * 7919 % 12_000).to_string()).collect();
        let command = [&place.subject(), "touch-mapped", data.to_str().unwrap(), &pages.join(",")];
        attempts(|| {
            let told = diagnosed(&place, &command);
            let all = told["recorded_cold"].as_u64().unwrap();
            let offer = remedy(&told, "faster_disk");
            check(offer.is_some(), || format!("no offer: {told}"))?;
            let (offer, why) = (offer.unwrap(), offer.unwrap()["why"].as_str().unwrap());
            assert!(why.contains("was measured") && why.contains("/data"), "{why}");
            // 1200 pages of a disk that takes 0.7 ms for a read are most of the start.
            check(offer["predicted"].as_u64().is_some_and(|saved| saved * 2 > all), || offer.to_string())
        });
    }

    #[test]
    fn a_large_file_that_is_read_whole_and_used_a_little_comes_first() {
        if !need_root() {
            return;
        }
        let _machine = together();
        let place = Sandbox::new();
        let slow = SlowDisk::create(Preset::Cloud, Bytes(128 << 20)).unwrap();
        // A quarter of a second by that disk's bandwidth alone, which no plan shortens.
        let model = data(slow.mount_point().join("model.bin"), 32 * MIB);
        let reads = "import sys; open(sys.argv[1], 'rb').read()[5000]";
        let command = ["/usr/bin/python3", "-S", "-c", reads, model.to_str().unwrap()];
        attempts(|| {
            let told = diagnosed(&place, &command);
            let all = told["recorded_cold"].as_u64().unwrap();
            // What is waited for are reads, though their buffer is touched for the first time meanwhile.
            let time = |kind: &str| {
                let rows = told["reasons"].as_array().unwrap().iter();
                let of_model = |file: &&Value| file[0].as_str().is_some_and(|p| p.ends_with("/model.bin"));
                let row = rows.filter(|r| r["kind"] == kind).flat_map(|r| r["files"].as_array().unwrap());
                row.filter(of_model).filter_map(|file| file[1].as_u64()).sum::<u64>()
            };
            assert_eq!(time("disk_fault"), 0, "nothing maps it: {told}");
            check(time("disk_read") * 3 > all, || format!("{} of {all}: {told}", time("disk_read")))?;
            let first = &told["remedies"][0];
            check(first["id"] == "read_less", || told.to_string())?;
            assert!(first["why"].as_str().is_some_and(|why| why.contains("model.bin (32.0 MiB)")), "{first}");
            // It is most of what the start waits for and works at; beside it there is only an interpreter.
            check(first["predicted"].as_u64().is_some_and(|t| t * 2 > all), || format!("{first} of {all}"))
        });
    }

    #[test]
    fn a_file_that_is_read_whole_in_small_pieces_is_asked_for_whole_and_that_is_tried() {
        if !need_root() {
            return;
        }
        let _machine = alone();
        let place = Sandbox::new();
        let slow = SlowDisk::create(Preset::Cloud, Bytes(128 << 20)).unwrap();
        // 600 pages, each once and none behind the last one: 0.7 ms for each, where one request has 128 of them.
        let data = data(slow.mount_point().join("index"), 600 * 4096);
        let pieces: Vec<String> = (0..600).map(|i| format!("{}:4096", i * 389 % 600 * 4096)).collect();
        let program = place.subject();
        let mut command = vec![program.as_str(), "read-ranges", data.to_str().unwrap()];
        command.extend(pieces.iter().map(String::as_str));
        attempts(|| {
            // Advice has a quarter of the time that is left to measure, and two rounds at least are a figure.
            let told = diagnosed_for("40s", &place, &command);
            let all = told["recorded_cold"].as_u64().unwrap();
            let advice = remedy(&told, "advise_whole").unwrap_or_else(|| panic!("{}", told["remedies"]));
            assert_eq!(advice["price"], "code", "{advice}");
            // 420 ms of waits become 19 ms of a disk of 125 MiB/s.
            let predicted = advice["predicted"].as_u64().unwrap();
            check(predicted * 2 > all, || format!("{predicted} of {all}"))?;
            // In a busy moment no start may count: then this is done again. What it saved is much.
            let measured = &advice["measured"];
            let (ratio, saves) = (&measured["factor"]["ratio"], &measured["saves"]);
            check(ratio.as_f64().is_some_and(|r| r < 0.7), || measured.to_string())?;
            check(saves.as_i64().is_some_and(|saved| saved > 100_000_000), || measured.to_string())
        });
    }

    #[test]
    fn what_lies_all_over_a_disk_with_heads_is_offered_one_piece() {
        if !need_root() {
            return;
        }
        let _machine = together();
        let place = Sandbox::new();
        // Smaller ones get blocks of 1 KiB, which are not moved.
        let slow = SlowDisk::create(Preset::Hdd, Bytes(512 << 20)).unwrap();
        let data = data(slow.mount_point().join("data"), 96 * MIB);
        // Further apart than a disk of 100 MB/s reads while its heads move; the program itself lies on another disk, and is
        // more bytes than all of them.
        let pages: Vec<String> = (0..40).map(|i| (i * 7919 % 24_000).to_string()).collect();
        let command = [&place.subject(), "touch-mapped", data.to_str().unwrap(), &pages.join(",")];
        attempts(|| {
            let told = diagnosed(&place, &command);
            let all = told["recorded_cold"].as_u64().unwrap();
            let plan = remedy(&told, "prefetch_plan").unwrap_or_else(|| panic!("{told}"));
            // In a busy moment a plan that is tried may seem to harm, and then nothing is offered beside it.
            let offer = remedy(&told, "arrange_blocks");
            check(offer.is_some(), || format!("no offer: {told}"))?;
            let (offer, why) = (offer.unwrap(), offer.unwrap()["why"].as_str().unwrap());
            assert!(why.starts_with("The disk reads it in "), "{why}");
            // 40 ways of the heads, 5 ms and more each, are what is left by the plan.
            check(offer["predicted"].as_u64().is_some_and(|saved| saved > 80_000_000), || {
                format!("{offer} of {all}, {plan}")
            })
        });
    }
}
