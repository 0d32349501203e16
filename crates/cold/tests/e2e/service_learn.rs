//! `cold service` learns by itself: who started cold is recorded at its next start, and has a plan at the third.

mod root {
    use std::collections::BTreeSet;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;
    use std::time::{Duration, Instant};

    use cold_plan::Store;
    use cold_testbed::disk::Preset;
    use cold_testbed::needs_root;
    use rustix::process::Signal;
    use serde_json::Value;

    use crate::prefetch::root::{World, touched};
    use crate::service::root::Served;
    use crate::support::*;

    impl Served {
        fn learning(&self, what: &str) -> Value {
            self.status()["service"]["learning"][what].clone()
        }
        /// Starts it cold until the service has noticed that, and waits for its next start.
        fn noticed(&self) {
            self.noticed_as(0);
        }
        /// The same with starts of this user.
        fn noticed_as(&self, user: u32) {
            attempts(|| {
                self.start_as(user);
                let end = Instant::now() + Duration::from_secs(20);
                let noticed = || self.learning("armed") == true && self.learning("waiting")[0].is_object();
                while !noticed() && Instant::now() < end {
                    std::thread::sleep(Duration::from_millis(50));
                }
                check(noticed(), || self.status().to_string())
            });
        }
        /// Starts it cold until something has come of a recorded start.
        fn taught(&self) {
            until("a start was recorded", || {
                if self.learning("armed") == true {
                    self.start();
                }
                let tried = self.learning("learnt") == 1 || self.learning("waiting")[0]["why"].is_string();
                tried.then_some(())
            });
        }
        /// A service learns this program; the store that its plan is in, which is followed.
        fn learns(&mut self, only: &str) -> Store {
            attempts(|| {
                self.begin_learning(&["--control-every", "0", "--only", only]);
                self.noticed();
                self.learnt_it()
            });
            until("it is followed", || (self.status()["service"]["plans"] == 1).then_some(()));
            Store::at(self.w.store())
        }
        /// Starts it until its plan is learnt; a service that has learnt nothing of it is ended. On a busy machine too much of
        /// a start may have passed when the recorder comes.
        fn learnt_it(&mut self) -> Result<(), String> {
            self.taught();
            let waiting = self.learning("waiting");
            check(self.learning("learnt") == 1, || {
                self.end();
                waiting.to_string()
            })
        }
    }

    /// Nobody asks for it: a cold start is noticed, the next one recorded, the third read ahead.
    #[test]
    fn what_nobody_has_learnt_is_learnt_by_its_own_starts() {
        needs_root!();
        let _machine = together();
        let mut s = Served { w: World::for_all(Preset::Cloud), service: None };
        let plain = s.start();
        let data = s.w.data.to_str().unwrap().to_owned();
        let only = s.w.place.text("cold-subject");
        attempts(|| {
            s.begin_learning(&["--control-every", "0", "--only", &only]);
            s.noticed();
            let waiting = s.learning("waiting");
            assert_eq!(waiting[0]["executable"], only.as_str(), "{waiting}");
            let why = s.cold(&["why", "cold-subject"]).run().expect(0).stdout;
            assert!(why.contains("its next start is recorded"), "{why}");
            s.learnt_it()
        });
        until("it is followed", || (s.status()["service"]["plans"] == 1).then_some(()));
        let plan = Store::at(s.w.store()).list().unwrap().plans.remove(0).plan;
        let file = plan.files.iter().position(|f| f.path.to_str() == Some(&data)).expect("the data");
        let ranges = plan.ranges.iter().filter(|r| r.file as usize == file);
        let pages: BTreeSet<u64> =
            ranges.flat_map(|r| r.first_page..r.first_page + u64::from(r.pages)).collect();
        // What it touches in the moment before the recorder comes may be missing; nothing else is there.
        assert!(pages.len() >= 100 && pages.is_subset(&touched()), "{:?}", plan.ranges);
        attempts(|| {
            let faults = s.counted("followed", || s.start());
            check(faults * 2 <= plain, || format!("{faults} faults waited, {plain} without a plan"))
        });
        assert_eq!(s.learning("waiting"), Value::Array(Vec::new()));
        // That nothing else is needed for this user is known, so nothing of it is recorded again.
        let parts = Store::at(s.w.store()).private(&plan.key).unwrap();
        assert_eq!(parts.iter().map(|part| part.user).collect::<Vec<_>>(), [0], "{parts:?}");
        // Of a plan that reads a file which nobody needs a recorded start tells that.
        s.w.read_in_vain(1 << 20);
        let check = || s.status()["programs"][0]["check"].clone();
        until("its plan was checked", || {
            s.counted("followed", || s.start());
            // What is cached when the recording is evaluated tells what faults mapped.
            std::thread::sleep(Duration::from_secs(2));
            (check()["unneeded"].as_u64() >= Some(1 << 20)).then_some(())
        });
        let (checked, status) = (check(), s.status());
        let needed = checked["planned"].as_u64().unwrap() - checked["unneeded"].as_u64().unwrap();
        assert!(
            needed >= 100 * PAGE && needed <= checked["planned"].as_u64().unwrap() - (1 << 20),
            "{checked}"
        );
        let (vain, of) = (&status["bytes_in_vain"], &status["bytes_checked"]);
        assert!(vain.as_u64().unwrap() > 0 && vain.as_u64() < of.as_u64(), "{status}");
        assert!(s.cold(&["status"]).run().expect(0).stdout.contains("read in vain: about"));
        assert_eq!(s.learning("waiting"), Value::Array(Vec::new()), "nothing is to be learnt");
        s.end();
    }

    /// A file that only some may read is in no plan that everybody may, and read ahead for whoever was recorded all the
    /// same, unless it is left out.
    #[test]
    fn private_files_are_in_no_plan_and_read_for_the_user_who_needs_them() {
        needs_root!();
        let _machine = together();
        let mut s = Served { w: World::for_all(Preset::Cloud), service: None };
        let plain = s.start();
        let only = s.w.place.text("cold-subject");
        fs::set_permissions(&s.w.data, fs::Permissions::from_mode(0o600)).unwrap();
        let store = s.learns(&only);
        let plan = store.list().unwrap().plans.remove(0).plan;
        let has_it = |plan: &cold_plan::Plan| plan.files.iter().any(|f| f.path == s.w.data);
        assert!(!has_it(&plan), "{:?}", plan.files);
        let parts = store.private(&plan.key).unwrap();
        assert!(parts.len() == 1 && parts[0].user == 0 && has_it(&parts[0].plan), "{parts:?}");
        assert_eq!(store.private_of(&plan.key).metadata().unwrap().permissions().mode() & 0o777, 0o600);
        attempts(|| {
            let faults = s.counted("followed", || s.start());
            check(faults * 2 <= plain, || format!("{faults} faults waited, {plain} without a plan"))
        });
        s.end();
        let except = s.w.data.parent().unwrap().to_str().unwrap().to_owned();
        s.begin(&["--control-every", "0", "--except", &except]);
        let faults = s.start();
        assert!(faults * 2 > plain, "{faults} faults waited, {plain} without a plan");
        s.end();
    }

    /// A user whose starts are cold although they follow the plan is taught once, and has a part beside it; the plan stays.
    #[test]
    fn each_user_has_what_only_they_need_read_ahead() {
        const USER: u32 = 65534;
        needs_root!();
        let _machine = together();
        let mut s = Served { w: World::for_all(Preset::Cloud), service: None };
        let only = s.w.place.text("cold-subject");
        fs::set_permissions(&s.w.data, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::chown(&s.w.data, Some(USER), Some(USER)).unwrap();
        let plain = s.start_as(USER);
        let store = s.learns(&only);
        let plan = || store.list().unwrap().plans.remove(0).plan;
        let parts = || {
            let parts = store.private(&plan().key).unwrap().into_iter();
            parts
                .map(|part| (part.user, part.plan.files.iter().any(|f| f.path == s.w.data)))
                .collect::<Vec<_>>()
        };
        let first = plan();
        assert_eq!(parts(), [(0, true)]);
        attempts(|| {
            s.noticed_as(USER);
            s.start_as(USER);
            let end = Instant::now() + Duration::from_secs(20);
            while parts().len() == 1 && s.learning("waiting")[0]["why"].is_null() && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(50));
            }
            check(parts() == [(USER, true), (0, true)], || s.status().to_string())
        });
        assert_eq!(plan(), first);
        let why = s.cold(&["why", "cold-subject"]).run().expect(0).stdout;
        assert!(
            why.contains("for starts of user 65534: ") && why.contains("for starts of user 0: "),
            "{why}"
        );
        for user in [USER, 0] {
            // The service looks once a second whether there is something new in its store.
            attempts(|| {
                let faults = s.start_as(user);
                check(faults * 2 <= plain, || {
                    format!("{user}: {faults} faults waited, {plain} without a plan")
                })
            });
        }
        s.end();
    }

    /// What is killed leaves nothing behind.
    #[test]
    fn no_recorder_stays() {
        needs_root!();
        let _machine = together();
        let mut s = Served { w: World::for_all(Preset::Cloud), service: None };
        let only = s.w.place.text("cold-subject");
        s.begin_learning(&["--only", &only]);
        s.noticed();
        // Another start than the one that is waited for: its recording is given up, and its threads with it. What that took
        // shows in the CPU time, as the next recorder waits at once.
        let took = || s.learning("cpu_ns").as_u64().unwrap();
        let before = took();
        until("another start came", || {
            Command::new(&only).args(["sleep", "300"]).output().unwrap();
            (took() > before).then_some(())
        });
        until("the next recorder waits", || (s.learning("armed") == true).then_some(()));
        until("nothing records", || {
            let pid = s.status()["service"]["pid"].as_u64().unwrap();
            let names = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
            let names = names.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
            (!names.collect::<String>().contains("cold-perf")).then_some(())
        });
        s.taught();
        let service = s.service.take().unwrap();
        service.kill(Signal::TERM);
        service.end().expect(0);
        assert_eq!(fs::read_dir(s.w.place.path("tmp")).unwrap().count(), 0, "no recording stays");
        s.begin(&[]);
        assert_eq!(s.status()["service"]["learning"], Value::Null);
        s.end();
    }

    /// A recorder that waits already follows one more program from the moment in which that was seen to be cold: whoever
    /// tries what is learnt starts it again at once.
    #[test]
    fn a_program_that_starts_again_as_soon_as_it_was_noticed_is_recorded() {
        needs_root!();
        let _machine = together();
        let mut s = Served { w: World::for_all(Preset::Cloud), service: None };
        let other = s.w.place.text("other-subject");
        fs::copy(s.w.place.text("cold-subject"), &other).unwrap();
        let (here, data) = (s.w.place.text(""), s.w.data.clone());
        // Over within a tenth of a second: what is to be recorded is looked at twice a second besides.
        let start = || {
            let pages = ["touch-mapped", "--random", "--spin-after", "60", data.to_str().unwrap(), "0-31"];
            Command::new(&other).args(pages).status().unwrap()
        };
        attempts(|| {
            s.begin_learning(&["--control-every", "0", "--only", &here]);
            // The recorder waits for this one.
            s.noticed();
            s.w.evict();
            let both = [start(), start()];
            assert!(both.iter().all(std::process::ExitStatus::success), "{both:?}");
            // On a busy machine too much of it may have passed when the recorder comes: then that is told.
            let is_tried = || {
                let waiting = s.learning("waiting");
                let mut waiting = waiting.as_array().unwrap().iter();
                s.learning("learnt") == 1
                    || waiting.any(|w| w["executable"] == other.as_str() && w["why"].is_string())
            };
            let end = Instant::now() + Duration::from_secs(5);
            while !is_tried() && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(50));
            }
            let (tried, status) = (is_tried(), s.status().to_string());
            s.end();
            check(tried, || status)
        });
    }
}
