//! `cold diagnose`: a cause that only this machine can take away is named with its remedy: files on a slower disk than
//! need be.

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
        let args = ["diagnose", "--evict", "files", "--for", "8s", "--json", "--"];
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
}
