//! `cold simulate`: recorded starts under other settings, and which policy this kernel follows.

use std::fs;
use std::time::{Duration, Instant};

use cold_model::recording::manifest::{FORMAT, VERSION};
use cold_model::recording::{FillCause, TouchKind};
use cold_model::sample;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::*;

/// A recording of three faults, of which each brought four pages.
fn small(place: &Sandbox, name: &str) {
    let mut r = sample::empty();
    (r.manifest.format, r.manifest.version) = (FORMAT.to_owned(), VERSION);
    r.manifest.ready = Some(cold_model::Known::Value(sample::ms(100)));
    let file = r.file("/data", 100 * 4096);
    for (at, page) in [(10, 8), (20, 40), (30, 80)] {
        r.touch(at, file, page..page + 1, TouchKind::Fault);
        r.fill(at, file, page..page + 4, FillCause::DemandFault);
        r.request(at, 2, file, page..page + 4);
    }
    cold_recording::write(&place.path(name), &r).unwrap();
}

fn document(place: &Sandbox, args: &[&str]) -> Value {
    place.cold(["simulate"].iter().chain(args).chain(&["--json"])).run().expect(0).json()
}

fn row(document: &Value, disk: usize, wanted: impl Fn(&Value) -> bool) -> &Value {
    let rows = document["disks"][disk]["rows"].as_array().unwrap();
    rows.iter().find(|r| wanted(r)).unwrap_or_else(|| panic!("{document}"))
}

/// What `cold probe pauses --json` writes, as far as it is read.
fn paused(place: &Sandbox, command: &[&str], cooling: &Value) {
    let result = serde_json::json!({"command": command, "found": {"cooling": cooling}});
    let document = serde_json::json!({"format": "coldstart-probe", "experiment": "pauses", "result": result});
    fs::write(place.path("pauses.json"), document.to_string()).unwrap();
}

#[test]
fn waits_cost_by_their_length_what_was_measured_of_the_same_command() {
    let place = Sandbox::for_all();
    small(&place, "r.cold");
    let command = sample::empty().manifest.command;
    let command: Vec<&str> = command.iter().map(|word| word.to_str().unwrap()).collect();
    let law = serde_json::json!({"most_ns": 2_000_000, "sleep_ns": 3_000_000, "work_ns": 1_000_000});
    let reading = |told: &Value| told["disks"][0]["rows"][0]["path_ns"]["reading"].as_u64().unwrap();
    let ask = ["r.cold", "--disk", "hdd", "--policy", "nothing"];
    let usual = document(&place, &ask);
    assert_eq!(usual["cooling"], Value::Null);
    assert!(usual["notes"].to_string().contains("is not known (--pauses)"), "{usual}");
    paused(&place, &command, &law);
    let ask = [&ask[..], &["--pauses", "pauses.json"]].concat();
    let told = document(&place, &ask);
    assert_eq!(told["cooling"], law);
    // Three waits of 5 to 12 ms, behind each of which the program computes for 10 ms and more.
    let more = reading(&told) - reading(&usual);
    assert!((4_800_000..6_000_000).contains(&more), "{more}");
    let refused = |why: &str| {
        let ran = place.cold(["simulate"].iter().chain(&ask)).run().expect(2);
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
    };
    paused(&place, &["another"], &law);
    refused("it is of another command: another");
    paused(&place, &command, &serde_json::json!({"unknown": "long pauses cost no more"}));
    refused("long pauses cost no more");
    fs::write(place.path("pauses.json"), "{}").unwrap();
    refused("it is no document of cold probe pauses");
}

#[test]
fn a_recording_from_elsewhere_is_simulated_by_anybody_on_the_disks_that_are_named() {
    let place = Sandbox::for_all();
    small(&place, "r.cold");
    let args = ["r.cold", "--policy", "nothing,whole,exact", "--disk", "hdd,fast"];
    let told = document(&place, &args);
    assert_eq!(told["format"], "coldstart-simulation");
    for disk in [0, 1] {
        let of = |policy: &str| row(&told, disk, |r| r["policy"] == policy);
        assert_eq!(
            (of("nothing")["requests"].as_u64(), of("nothing")["read_bytes"].as_u64()),
            (Some(3), Some(3 * 4096))
        );
        assert_eq!(of("whole")["read_bytes"], 100 * 4096);
        assert_eq!(of("whole")["unused_bytes"], 97 * 4096);
        let exact = row(&told, disk, |r| r["reader"] == "exact");
        assert_eq!((&exact["read_bytes"], &exact["unused_bytes"]), (&Value::from(3 * 4096), &Value::from(0)));
        let today = &told["disks"][disk]["rows"][0];
        assert_eq!((&today["ratio"], &today["reader"]), (&Value::from(1.0), &Value::from("kernel")));
    }
    // Each page is needed once: little room changes nothing.
    assert_eq!(told["memory_bytes"], Value::Null);
    let little = document(&place, &["r.cold", "--disk", "fast", "--policy", "nothing", "--memory", "1Mi"]);
    assert_eq!(
        (&little["memory_bytes"], row(&little, 0, |r| r["policy"] == "nothing")["reread_bytes"].as_u64()),
        (&Value::from(1 << 20), Some(0))
    );
    // Three moves of heads take longer than none.
    let time = |disk: usize| row(&told, disk, |r| r["policy"] == "nothing")["time_ns"].as_u64().unwrap();
    assert!(time(0) > time(1) + 3_000_000, "{} and {}", time(0), time(1));

    let text = place.cold(["simulate"].iter().chain(&args)).run().expect(0).stdout;
    for words in ["REQUESTS", "hdd", "exactly what is needed", "today", "--exact-need"] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let page = ["--html", "a.html", "--svg", "a.svg"];
    place.cold(["simulate"].iter().chain(&args).chain(&page)).run().expect(0);
    let html = fs::read_to_string(place.path("a.html")).unwrap();
    let svg = fs::read_to_string(place.path("a.svg")).unwrap();
    assert!(html.contains("Which pages when") && html.contains(">data<"), "{html}");
    assert!(svg.contains("simulated: ") && svg.ends_with("</svg>\n"), "{svg}");
}

#[test]
fn wrong_usage_says_what_there_is() {
    let place = Sandbox::for_all();
    small(&place, "r.cold");
    for (args, says) in [
        (&["simulate"][..], "required"),
        (&["simulate", "r.cold", "--policy", "solaris"], "linux-6.18"),
        (&["simulate", "r.cold", "--disk", "floppy"], "sata-ssd"),
        (&["simulate", "r.cold", "--read-ahead-kb", "8..4"], "no range"),
        (&["simulate", "r.cold", "--html", "no/where.html"], "no directory"),
        (&["simulate", "r.cold", "--memory", "4Ki"], "1Mi"),
        (&["simulate", "r.cold", "--disk", "measured"], "not on this machine"),
        // Three requests tell nothing of a disk.
        (&["simulate", "r.cold"], "--disk"),
        (&["simulate", "r.cold", "--verify"], "cannot be used"),
        (&["simulate", "--operations", "5"], "required"),
        (&["simulate", "--verify", "--policy", "exact"], "no policy to verify"),
    ] {
        let ran = place.cold(args).run().expect(2);
        assert!(ran.stderr.contains(says), "{args:?}: {}", ran.stderr);
    }
    place.cold(["simulate", "missing.cold", "--disk", "fast"]).run().expect(1);
}

mod root {
    use std::collections::BTreeSet;

    use cold_model::Bytes;
    use cold_model::recording::Recording;
    use cold_testbed::disk::Preset;
    use cold_testbed::ways::PAGES;
    use cold_testbed::{SlowDisk, needs_root};

    use super::*;
    use crate::trace::recorded;

    fn disk() -> SlowDisk {
        let size = Bytes(200 << 20);
        SlowDisk::create(Preset::Fast, size).unwrap()
    }

    /// Ways to read that are no race.
    const WAYS: [&str; 18] = [
        "mapped-in-order",
        "mapped-backwards",
        "mapped-every-64th",
        "mapped-private-written",
        "mapped-random",
        "mapped-sequential",
        "mapped-usual-again",
        "mapped-partly-random",
        "mapped-again",
        "mapped-willneed",
        "mapped-huge",
        "populated",
        "populated-by-advice",
        "preadv",
        "pread-random",
        "pread-sequential",
        "pread-again",
        "pread-ends-early",
    ];

    /// Requests and bytes of the files with this in their names, as the kernel was seen to read them.
    fn read(r: &Recording, file: &str) -> (u64, u64) {
        let is_it = |index: Option<u32>| {
            let path = index.and_then(|i| r.files[i as usize].path.as_deref());
            path.is_some_and(|path| path.contains(file))
        };
        let of_file = r.transfers.iter().flatten().filter(|t| is_it(t.file));
        let pages: u64 = of_file.clone().map(|t| u64::from(t.pages)).sum();
        let requests: BTreeSet<u32> = of_file.map(|t| t.request).collect();
        (requests.len() as u64, pages * PAGE)
    }

    /// A start is recorded with exact needs, where the kernel reads page by page; the model then says what the same start
    /// reads as usual, and the kernel is asked: the same requests and the same bytes of every file.
    #[test]
    fn what_an_exact_recording_predicts_is_what_the_usual_start_reads() {
        needs_root!();
        let _machine = alone();
        let _settings = exactly();
        let place = Sandbox::new();
        let disk = disk();
        let dir = disk.mount_point().join("ways");
        fs::create_dir(&dir).unwrap();
        for name in WAYS {
            data(dir.join(name), (PAGES * PAGE) as usize);
        }
        let subject = place.subject();
        let command = ["--evict", "files", "--", &subject, "ways", dir.to_str().unwrap()];
        let trace = |name: &str, flags: &[&str]| {
            let first = ["trace", "--overwrite", "-o", name];
            place.cold(first.iter().chain(flags).chain(&command)).run().expect(0);
            recorded(&place, name)
        };
        attempts(|| {
            trace("exact.cold", &["--exact-need"]);
            let usual = trace("usual.cold", &[]);
            for name in WAYS {
                let file = format!("/{name}");
                let populated = name.starts_with("populated");
                let told =
                    document(&place, &["exact.cold", "--disk", "fast", "--policy", "exact", "--file", &file]);
                assert_eq!(told["exact_need"], true);
                let exact = row(&told, 0, |r| r["reader"] == "exact");
                assert_eq!(exact["files"]["unused_bytes"], 0, "{name}");
                // Whether pages are used that were asked for nobody can tell, so nothing is needed.
                assert_eq!(exact["files"]["read_bytes"] == 0, populated, "{name}");
                let today = &told["disks"][0]["rows"][0]["files"];
                let model = ["requests", "read_bytes"].map(|key| today[key].as_u64().unwrap());
                let kernel = read(&usual, &file);
                // Others may throw pages out meanwhile, and a request that others delay may join the next.
                // What is populated is asked for faster than a disk delivers: windows that wait in its queue become
                // one request, some more and some less.
                let requests = if populated { model[0] } else { kernel.0 };
                if model != [requests, kernel.1] {
                    return Err(format!("{name}: model {model:?}, kernel {kernel:?}"));
                }
            }
            Ok(())
        });
    }

    #[test]
    fn the_policy_of_this_kernel_is_named() {
        needs_root!();
        let _machine = alone();
        let place = Sandbox::new();
        let disk = disk();
        let dir = disk.mount_point().to_str().unwrap();
        let told = attempts(|| {
            let ran =
                place.cold(["simulate", "--verify", "--operations", "2000", "--dir", dir, "--json"]).run();
            if ran.code() == 4 {
                return Err(ran.stderr);
            }
            Ok(ran.expect(0).json())
        });
        let follows = told["follows"].as_array().unwrap();
        assert!(follows.iter().all(|p| p.as_str().unwrap().starts_with("linux-")), "{told}");
        let windows = told["policies"].as_array().unwrap().iter().find(|p| p["policy"] == "windows").unwrap();
        assert!(windows["series_that_differ"].as_u64().unwrap() > 0, "{windows}");
        assert!(fs::read_dir(dir).unwrap().all(|e| e.unwrap().file_name() == "lost+found"), "files are left");
    }

    #[test]
    fn an_interrupted_comparison_tells_what_it_knows_and_leaves_no_file() {
        needs_root!();
        let _machine = alone();
        let place = Sandbox::new();
        let disk = disk();
        let dir = disk.mount_point().to_str().unwrap();
        let command = ["simulate", "--verify", "--operations", "100000000", "--dir", dir, "--json"];
        let started = place.cold(command).start();
        // Its files have no name, and are open while it compares.
        let descriptors = format!("/proc/{}/fd", started.pid());
        let open = || {
            let links = fs::read_dir(&descriptors).into_iter().flatten().flatten();
            links.filter_map(|link| fs::read_link(link.path()).ok()).any(|path| path.starts_with(dir))
        };
        let deadline = Instant::now() + Duration::from_mins(1);
        while !open() {
            assert!(Instant::now() < deadline, "no file was made");
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(500));
        let asked = Instant::now();
        started.kill(Signal::INT);
        let told = started.end().expect(130).json();
        assert!(asked.elapsed() < Duration::from_secs(10), "it goes on for {:?}", asked.elapsed());
        assert_eq!(told["interrupted"], true, "{told}");
        assert!(fs::read_dir(dir).unwrap().all(|e| e.unwrap().file_name() == "lost+found"), "files are left");
    }
}
