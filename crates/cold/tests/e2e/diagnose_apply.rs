//! `cold diagnose --apply`: the plan that was proved and a launcher for it are installed, followed by the program's name
//! alone, and taken away again.

use crate::support::*;

#[test]
fn nothing_is_measured_where_nobody_could_be_asked() {
    let place = Sandbox::for_all();
    let ran = place.cold(["diagnose", "--apply", "--", "true"]).run().expect(2);
    assert!(ran.error().contains("there is no terminal") && ran.stdout.is_empty(), "{ran:?}");
}

mod root {
    use std::fs;
    use std::process::Command;

    use cold_model::Bytes;
    use cold_testbed::disk::{Preset, SlowDisk};
    use cold_testbed::{launcher, need_root, until};

    use super::*;

    /// Root's state of the machine, which tests leave alone: each of these runs has another one there.
    const STATE: &str = "/var/lib/coldstart";

    struct World {
        place: Sandbox,
        data: String,
        _slow: SlowDisk,
    }

    impl World {
        fn new() -> Self {
            launcher();
            let place = Sandbox::new();
            for dir in ["state", "home", "programs"] {
                fs::create_dir(place.path(dir)).unwrap();
            }
            fs::copy(place.subject(), place.path("programs/app")).unwrap();
            fs::create_dir_all(STATE).unwrap();
            let slow = SlowDisk::create(Preset::Cloud, Bytes(256 << 20)).unwrap();
            let data = data(slow.mount_point().join("data"), 48 * MIB);
            Self { data: data.to_str().unwrap().to_owned(), place, _slow: slow }
        }
        /// A start of the program by its name: 100 pages, each a request of its own.
        fn start(&self) -> Vec<String> {
            let pages: Vec<String> = (0..100).map(|i| (i * 7919 % 12_000).to_string()).collect();
            vec![
                "app".to_owned(),
                "touch-mapped".into(),
                "--random".into(),
                self.data.clone(),
                pages.join(","),
            ]
        }
        /// What a shell does before it becomes a command in a mount namespace of its own: the state is this place's.
        fn bound(&self) -> String {
            format!("mount --bind '{}' {STATE}", self.place.text("state"))
        }
        /// A directory for programs of one's own, then that of the program.
        fn path(&self) -> String {
            let own = self.place.text("home/bin");
            format!("{own}:{}:/usr/bin:/bin:/usr/sbin", self.place.text("programs"))
        }
        fn cold(&self, words: &[&str], command: &[String]) -> Cold {
            let words = words.iter().map(|w| (*w).to_owned()).chain(command.iter().cloned());
            let cold = self.place.cold(words).after(&self.bound()).by("unshare", &["--mount", "--"]);
            cold.env("HOME", self.place.path("home")).env("PATH", self.path())
        }
        /// The program by its name, as a shell starts it.
        fn by_name(&self) {
            let script = self.bound() + "; exec \"$@\"";
            let mut command = Command::new("unshare");
            command.args(["--mount", "--", "/bin/sh", "-c", &script, "sh"]).args(self.start());
            let ran = command.env("PATH", self.path()).output().unwrap();
            assert!(ran.status.success(), "{ran:?}");
        }
        fn apply(&self) -> Ran {
            let words = ["diagnose", "--evict", "files", "--for", "24s", "--apply", "--yes", "--"];
            let mut said = None;
            attempts(|| {
                let ran = self.cold(&words, &self.start()).run().expect(0);
                let proved = ran.stderr.contains("installed the plan");
                check(proved, || format!("not proved: {}{}", ran.stdout, ran.stderr))?;
                said = Some(ran);
                Ok(())
            });
            said.unwrap()
        }
        fn plans(&self) -> Vec<serde_json::Value> {
            let told = self.cold(&["prefetch", "status", "--json"], &[]).run().expect(0).json();
            told["plans"].as_array().unwrap().clone()
        }
        /// What the history of the one plan has of its last starts.
        fn entries(&self) -> Vec<serde_json::Value> {
            self.plans().iter().flat_map(|p| p["last"].as_array().unwrap().clone()).collect()
        }
        /// What was said to undo it, made.
        fn undo(&self, said: &str) {
            let commands = said.lines().filter_map(|l| l.strip_prefix("to undo that: cold "));
            for command in commands {
                let words: Vec<&str> = command.split(' ').collect();
                self.cold(&words, &[]).run().expect(0);
            }
        }
    }

    #[test]
    fn a_plan_and_a_launcher_are_installed_followed_and_undone() {
        if !need_root() {
            return;
        }
        // A plan is installed when it is proved, and that needs quiet.
        let _machine = alone();
        let w = World::new();
        let said = w.apply().stderr;
        let wrapper = w.place.path("home/bin/app");
        assert!(said.contains(&format!("installed the launcher {}", wrapper.display())), "{said}");
        assert_eq!(said.matches("to undo that: ").count(), 2, "{said}");
        // By its name alone, as a shell starts it: cold, and by the plan. Others may read the program meanwhile.
        let program = w.place.text("programs/app");
        attempts(|| {
            let before = w.entries().len();
            w.cold(&["cache", "evict", &w.data, &program], &[]).run().expect(0);
            w.by_name();
            // The helper writes when the program has ended.
            let entered = || Some(w.entries()).filter(|entries| entries.len() > before);
            let entries = until("the start is entered", entered);
            check(entries.iter().any(|entry| entry["what"] == "prefetched"), || format!("{entries:?}"))
        });
        w.undo(&said);
        assert!(!wrapper.exists() && w.plans().is_empty());
    }
}
