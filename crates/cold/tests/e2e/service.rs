//! `cold service`: starts that nobody wraps, and whatever happens to the service meanwhile.

#[test]
fn without_root_it_says_what_is_missing() {
    let place = crate::support::Sandbox::for_all();
    let state = place.text("state");
    let command = place.cold(["service", "run", "--state", &state]);
    let command = if rustix::process::geteuid().is_root() { command.by_nobody() } else { command };
    let ran = command.run().expect(1);
    assert!(ran.error().contains("needs root") && ran.error().contains("by which process"), "{ran:?}");
    assert!(ran.stderr.contains("cold prefetch install"), "{}", ran.stderr);
    assert!(!place.path("state").exists(), "nothing was made");
}

#[test]
fn nothing_is_known_without_a_service_and_a_history() {
    let place = crate::support::Sandbox::new();
    let (state, store) = (place.text("state"), place.text("plans"));
    let at = ["--state", &state, "--store", &store];
    let run = |words: &[&str]| place.cold([&["service"], words, &at].concat()).run();
    let status = run(&["status", "--json"]).expect(0).json();
    assert_eq!((&status["service"], &status["saved"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    assert!(status["bytes_in_vain"]["unknown"].is_string(), "unknown, and never 0: {status}");
    assert!(run(&["status"]).expect(0).stdout.contains("no service runs"));
    assert!(run(&["pause"]).expect(1).error().contains("no service runs"));
    assert!(run(&["why", "nobody"]).expect(1).error().contains("nothing is known of nobody"));
    assert!(run(&["forget", "nobody"]).expect(1).error().contains("no start of nobody"));
    run(&["forget"]).expect(0);
}

pub(crate) mod root {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;
    use std::time::{Duration, Instant};

    use cold_plan::Store;
    use cold_sys::procfs::ProcFs;
    use cold_testbed::disk::{FileSystem, Options, Preset};
    use cold_testbed::{beside_readers, needs_root};
    use rustix::process::Signal;
    use serde_json::Value;

    use crate::prefetch::root::World;
    use crate::support::*;

    /// Runs its arguments behind the first as the user of that number, and prints how many faults of theirs waited for a
    /// disk.
    const FAULTS: &str = "import resource, subprocess, sys
subprocess.run(sys.argv[2:], check=True, stdout=subprocess.DEVNULL, user=int(sys.argv[1]))
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_majflt)";

    /// A world with a plan, and a service in it.
    pub(crate) struct Served {
        pub(crate) w: World,
        pub(crate) service: Option<Started>,
    }

    impl Served {
        pub(crate) fn new() -> Self {
            let w = World::new(Preset::Cloud);
            w.learn();
            Self { w, service: None }
        }
        fn at(&self) -> [String; 4] {
            ["--state".into(), self.w.place.text("state"), "--store".into(), self.w.store()]
        }
        pub(crate) fn cold(&self, words: &[&str]) -> Cold {
            let words = ["service"].iter().chain(words).map(|w| (*w).to_owned());
            self.w.place.cold(words.chain(self.at()).collect::<Vec<_>>())
        }
        /// Learns nothing: beside this test others start programs.
        pub(crate) fn begin(&mut self, options: &[&str]) {
            self.begin_learning(&[&["--no-learn"], options].concat());
        }
        pub(crate) fn begin_learning(&mut self, options: &[&str]) {
            self.begin_by(|run| run, options);
        }
        /// As `around` has the command be started.
        pub(crate) fn begin_by(&mut self, around: impl FnOnce(Cold) -> Cold, options: &[&str]) {
            self.service = Some(around(self.cold(&[&["run"], options].concat())).start());
            until("the service answers", || (!self.status()["service"].is_null()).then_some(()));
        }
        pub(crate) fn end(&mut self) -> Ran {
            let service = self.service.take().unwrap();
            service.kill(Signal::TERM);
            service.end().expect(0)
        }
        pub(crate) fn status(&self) -> Value {
            self.cold(&["status", "--json"]).run().expect(0).json()
        }
        fn count(&self, what: &str) -> u64 {
            self.status()["service"][what].as_u64().unwrap_or(0)
        }
        /// A cold start, wrapped by nothing; its faults that waited for the disk.
        pub(crate) fn start(&self) -> u64 {
            self.start_as(0)
        }
        /// A start of this user.
        pub(crate) fn start_as(&self, user: u32) -> u64 {
            self.w.evict();
            self.faults(user)
        }
        /// Of a start with the cache as it is.
        pub(crate) fn faults(&self, user: u32) -> u64 {
            let out = Command::new("/usr/bin/python3")
                .args(["-c", FAULTS, &user.to_string()])
                .args(self.w.program())
                .output()
                .unwrap();
            assert!(out.status.success(), "{out:?}");
            String::from_utf8(out.stdout).unwrap().trim().parse().unwrap()
        }
        /// What `act` gives, once the service has counted it.
        pub(crate) fn counted<T>(&self, what: &str, act: impl FnOnce() -> T) -> T {
            let before = self.count(what);
            let made = act();
            until("it is counted", || (self.count(what) > before).then_some(()));
            made
        }
        pub(crate) fn starts_until(&self, what: &str, n: u64) {
            for _ in 0..60 {
                if self.count(what) >= n {
                    return;
                }
                let seen = self.count("followed") + self.count("controls");
                self.start();
                let end = Instant::now() + Duration::from_secs(20);
                while self.count("followed") + self.count("controls") == seen && Instant::now() < end {
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
            panic!("never {n} {what}: {}", self.status());
        }
    }

    #[test]
    fn a_start_that_nobody_wraps_is_read_ahead_before_it_faults() {
        needs_root!();
        let _machine = together();
        let mut s = Served::new();
        let plain = s.start();
        assert!(plain >= 5, "six groups of pages far from each other: {plain}");
        s.begin(&["--control-every", "0"]);
        attempts(|| {
            let faults = s.counted("followed", || s.start());
            check(faults * 2 <= plain, || format!("{faults} faults waited, {plain} without a service"))
        });
        let status = s.status();
        let begins = &status["service"]["begins"];
        assert!(begins["median_ns"].as_f64().unwrap() > 0.0, "{status}");
        assert_eq!(
            (&status["history"]["problem"], &status["service"]["overflows"]),
            (&Value::Null, &0.into())
        );
        let program = &status["programs"][0];
        assert!(
            program["followed"].as_u64().unwrap() > 0 && program["saved"].is_null(),
            "no controls: {status}"
        );
        let ran = s.end();
        assert!(ran.stderr.contains("following 1 plan on"), "{}", ran.stderr);
        let later = s.status();
        assert!(later["service"].is_null(), "{later}");
        assert_eq!(later["programs"][0]["followed"], program["followed"], "the history stays");
    }

    /// It is told twice, by the script and by what executes it, which has the script's plan among its own.
    #[test]
    fn a_start_of_a_script_is_one_start() {
        needs_root!();
        let _machine = together();
        let mut s = Served::new();
        // Nobody else's starts are told as ones of this interpreter.
        let (script, interpreter) = (s.w.place.path("script"), s.w.place.path("interpreter"));
        fs::copy("/usr/bin/python3", &interpreter).unwrap();
        let work = "import sys\nopen(sys.argv[1], 'rb').read()\n";
        fs::write(&script, format!("#!{} -S\n{work}", interpreter.display())).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let words = [script.to_str().unwrap().to_owned(), s.w.data.to_str().unwrap().to_owned()];
        let learn = ["prefetch", "learn", "--evict", "files", "--starts", "2", "--store"].map(str::to_owned);
        let learn = learn.into_iter().chain([s.w.store(), "--".to_owned()]).chain(words.clone());
        s.w.place.cold(learn.collect::<Vec<_>>()).run().expect(0);
        s.begin(&["--control-every", "0", "--no-keep"]);
        let start = || {
            s.w.evict();
            assert!(Command::new(&words[0]).arg(&words[1]).status().unwrap().success());
        };
        for n in 1..=3 {
            s.counted("followed", start);
            let service = &s.status()["service"];
            let told =
                (&service["followed"], &service["planned"], service["skipped"].as_object().unwrap().len());
            assert_eq!(told, (&n.into(), &n.into(), 0), "{service}");
        }
        s.end();
    }

    /// By where the program lies: what is not chosen is heard of and left alone.
    #[test]
    fn only_and_except_choose_programs() {
        needs_root!();
        let _machine = together();
        let mut s = Served::new();
        let (here, other) = (s.w.place.text(""), "/usr/lib".to_owned());
        let none: [&[&str]; 3] =
            [&["--only", &other], &["--except", &here], &["--only", &here, "--except", &here]];
        for options in none {
            s.begin(&[&["--control-every", "0"], options].concat());
            s.start();
            let status = s.status();
            let service = &status["service"];
            assert_eq!(
                (&service["plans"], &service["planned"]),
                (&0.into(), &0.into()),
                "{options:?}: {status}"
            );
            s.end();
        }
        let some: [&[&str]; 2] = [&["--only", &here], &["--except", &other]];
        for options in some {
            s.begin(&[&["--control-every", "0"], options].concat());
            assert_eq!(s.status()["service"]["plans"], 1, "{options:?}");
            s.starts_until("followed", 1);
            s.end();
        }
        // What it has done is a log of starts.
        let log = s.cold(&["replay", "--json", "--room", "64Mi"]).run().expect(0).json();
        assert!(
            log["policies"][0]["starts"].as_u64().unwrap() >= 2 && log["emptied"].as_u64().unwrap() >= 1,
            "{log}"
        );
    }

    #[test]
    fn controls_tell_what_is_saved_and_why_tells_what_was_done() {
        needs_root!();
        let _machine = together();
        let mut s = Served::new();
        s.begin(&["--control-every", "2"]);
        s.starts_until("controls", 2);
        s.starts_until("followed", 2);
        let status = s.status();
        assert!(status["saved"]["ns"].is_f64(), "{status}");
        let why = s.cold(&["why", "cold-subject", "--json"]).run().expect(0).json();
        let whats: Vec<&str> =
            why["starts"].as_array().unwrap().iter().map(|s| s["what"].as_str().unwrap()).collect();
        assert!(whats.contains(&"control") && whats.contains(&"followed"), "{why}");
        for start in why["starts"].as_array().unwrap() {
            let read = start["bytes"].as_u64().unwrap() > 0;
            assert_eq!(read, start["what"] == "followed", "a control reads nothing: {start}");
        }
        let text = s.cold(&["status"]).run().expect(0).stdout;
        assert!(text.contains("running for") && text.contains("cold-subject"), "{text}");
        assert!(s.cold(&["why", "cold-subject"]).run().expect(0).stdout.contains("control"));
        s.cold(&["pause"]).run().expect(0);
        let (followed, looked) = (s.count("followed"), s.count("looked"));
        s.start();
        assert_eq!((s.count("followed"), s.count("looked")), (followed, looked), "paused");
        s.cold(&["resume"]).run().expect(0);
        s.starts_until("followed", followed + 1);
        let gone = s.cold(&["forget", "cold-subject"]).run().expect(0).stdout;
        assert!(gone.contains("forgotten; plans stay"), "{gone}");
        assert_eq!(s.status()["programs"], Value::Array(Vec::new()));
        assert_eq!(Store::at(s.w.store()).list().unwrap().plans.len(), 1);
        s.end();
    }

    #[test]
    fn there_is_one_service_and_the_next_begins_where_a_killed_one_ended() {
        needs_root!();
        let _machine = together();
        let mut s = Served::new();
        s.begin(&["--control-every", "0"]);
        let second = s.cold(&["run"]).run().expect(1);
        assert!(second.error().contains("another service runs already"), "{second:?}");
        s.starts_until("followed", 1);
        // What is killed loses at most what it had not written down yet.
        s.status();
        let killed = s.service.take().unwrap();
        killed.kill(Signal::KILL);
        assert_eq!(killed.end().code(), 137);
        assert!(s.status()["service"].is_null());
        assert!(s.start() > 0, "programs start without it");
        s.begin(&["--control-every", "0"]);
        assert!(s.status()["programs"][0]["followed"].as_u64().unwrap() >= 1, "the history goes on");
        s.starts_until("followed", 1);
        s.end();
    }

    #[test]
    fn a_stopped_service_holds_up_no_start_and_no_unmounting() {
        needs_root!();
        let _machine = together();
        let mut s = Served::new();
        let disk = cold_testbed::SlowDisk::create(Preset::Fast, cold_model::Bytes(64 << 20)).unwrap();
        let there = disk.mount_point().join("program");
        fs::copy(cold_testbed::subject(), &there).unwrap();
        sync(&there);
        s.begin(&["--control-every", "0"]);
        let mounted = disk.mount_point().to_str().unwrap().to_owned();
        until("the disk is watched", || {
            let watched = s.status()["service"]["watched"].clone();
            let watched = watched.as_array()?.clone();
            watched
                .iter()
                .any(|w| w["mount_point"] == mounted.as_str() && w["problem"].is_null())
                .then_some(())
        });
        s.service.as_ref().unwrap().kill(Signal::STOP);
        let began = Instant::now();
        for _ in 0..50 {
            // What it says of its arguments does not matter: it was executed.
            Command::new(&there).output().unwrap();
        }
        assert!(began.elapsed() < PATIENCE, "held up: {:?}", began.elapsed());
        disk.unmount().expect("a stopped service keeps it busy");
        s.service.as_ref().unwrap().kill(Signal::CONT);
        s.starts_until("followed", 1);
        s.end();
    }

    #[test]
    fn without_a_history_that_can_be_written_starts_are_followed_all_the_same() {
        needs_root!();
        let _machine = together();
        let mut s = Served::new();
        let state = s.w.place.path("state");
        // A damaged one.
        fs::create_dir(&state).unwrap();
        fs::set_permissions(&state, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        fs::write(
            state.join("history.db"),
            "no database, but long enough to have the header of one".repeat(9),
        )
        .unwrap();
        let before = fs::read(state.join("history.db")).unwrap();
        s.begin(&["--control-every", "0"]);
        s.starts_until("followed", 1);
        let problem = s.status()["history"]["problem"].as_str().unwrap().to_owned();
        assert!(problem.contains("move it away"), "{problem}");
        s.end();
        assert_eq!(fs::read(state.join("history.db")).unwrap(), before, "it is not ours to mend");
        fs::remove_dir_all(&state).unwrap();
        // A full disk.
        let _full = Mounted::new(state.clone(), &["-t", "tmpfs", "-o", "size=256k,mode=700", "none"]);
        let _ = fs::write(state.join("filler"), vec![1; 1 << 20]);
        s.begin(&["--control-every", "0"]);
        s.starts_until("followed", 1);
        let problem = s.status()["history"]["problem"].as_str().unwrap().to_owned();
        assert!(problem.contains("full"), "{problem}");
        s.end();
    }

    /// Their files have another file system number than their root: events cannot name them by handle.
    #[test]
    fn programs_on_btrfs_subvolumes_are_followed_and_those_of_overlays_heard_of() {
        needs_root!();
        let _machine = together();
        let w = World::new(Preset::Fast);
        let options = Options::new(Preset::Fast, cold_model::Bytes(300 << 20), FileSystem::Btrfs);
        let disk = cold_testbed::SlowDisk::with(&options).unwrap();
        let whole = disk.mount_point().to_str().unwrap().to_owned();
        run("btrfs", &["subvolume", "create", &format!("{whole}/sub")]);
        let device = disk.info().device.to_str().unwrap().to_owned();
        let below = Mounted::new(w.place.path("volume"), &["-t", "btrfs", "-o", "subvol=sub", &device]);
        let program = w.place.path("volume/cold-subject");
        fs::copy(cold_testbed::subject(), &program).unwrap();
        sync(&program);
        let data = w.data.to_str().unwrap().to_owned();
        let argv = [program.to_str().unwrap(), "touch-mapped", "--random", &data, "0-15"];
        let store = w.store();
        let learn = ["prefetch", "learn", "--evict", "files", "--starts", "1", "--store", &store, "--"];
        w.place.cold([&learn[..], &argv].concat()).run().expect(0);
        for name in ["lower", "upper", "work"] {
            fs::create_dir(w.place.path(name)).unwrap();
        }
        let [lower, upper, work] = ["lower", "upper", "work"].map(|name| w.place.text(name));
        let layers = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        let over = Mounted::new(w.place.path("layers"), &["-t", "overlay", "-o", &layers, "overlay"]);
        let mut s = Served { w, service: None };
        s.begin(&["--control-every", "0"]);
        let status = s.status();
        for name in ["volume", "layers"] {
            let at = s.w.place.text(name);
            let watched = status["service"]["watched"].as_array().unwrap();
            // Of several mounts of a file system one is enough.
            let is = watched.iter().any(|w| {
                w["problem"].is_null()
                    && (w["mount_point"] == at.as_str()
                        || (name == "volume" && w["mount_point"] == whole.as_str()))
            });
            assert!(is, "{name}: {status}");
        }
        let out = s.counted("planned", || Command::new(argv[0]).args(&argv[1..]).output().unwrap());
        assert!(out.status.success(), "{out:?}");
        drop((over, below));
        s.end();
    }

    #[test]
    fn damaged_plans_are_told_and_new_ones_are_followed_from_the_next_second_on() {
        needs_root!();
        let _machine = together();
        let mut s = Served::new();
        let store = Store::at(s.w.store());
        let plan = store.list().unwrap().plans.remove(0).plan;
        let path = store.path_of(&plan.key);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        s.begin(&["--control-every", "0"]);
        assert_eq!((s.count("plans"), s.status()["service"]["refused"].as_array().unwrap().len()), (0, 1));
        store.save(&plan).unwrap();
        until("the plan is followed", || (s.count("plans") == 1).then_some(()));
        s.starts_until("followed", 1);
        let off = cold_plan::Plan { standing: cold_plan::plan::Standing::Off("a reason".into()), ..plan };
        store.save(&off).unwrap();
        until("the plan is off", || (s.count("plans") == 0).then_some(()));
        let status = s.status();
        assert_eq!(status["off"][0]["why"], "a reason", "{status}");
        s.end();
    }

    /// What all scenarios share is asked for before it is known which one this is: those requests are the service's own,
    /// not others', even where tasks have waited for disks all the time.
    #[test]
    fn what_is_read_before_the_arguments_are_known_makes_no_disk_busy() {
        needs_root!();
        let _machine = together();
        let mut s = Served::new();
        let huge = s.w.read_in_vain(3 << 20);
        let store = Store::at(s.w.store());
        let mut other = store.list().unwrap().plans.remove(0).plan;
        "other".clone_into(&mut other.key.scenario);
        store.save(&other).unwrap();
        s.begin(&["--control-every", "0"]);
        beside_readers(&data(s.w.slow.mount_point().join("others"), 4 << 20), 1, || {
            until("tasks have waited for a disk half of the time", || {
                let waits = ProcFs::default().pressure("io").unwrap().some.avg10;
                (waits >= 50.0).then_some(())
            });
            // The service looks once in a second.
            std::thread::sleep(Duration::from_secs(2));
            attempts(|| {
                let before = s.count("followed");
                // A program that has to be read itself has no arguments for some milliseconds.
                s.w.place
                    .cold(["cache", "evict", &s.w.place.subject(), huge.to_str().unwrap()])
                    .run()
                    .expect(0);
                s.start();
                let end = Instant::now() + Duration::from_secs(10);
                while s.count("followed") == before && Instant::now() < end {
                    std::thread::sleep(Duration::from_millis(20));
                }
                check(s.count("followed") > before, || format!("{}", s.status()["service"]["skipped"]))
            });
        });
        let why = s.cold(&["why", "cold-subject", "--json"]).run().expect(0).json();
        assert!(why["starts"][0]["bytes"].as_u64().unwrap() > 0, "{why}");
        s.end();
    }
}
