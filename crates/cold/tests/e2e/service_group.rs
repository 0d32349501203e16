//! `cold service`: to whose control group the pages of a served start are charged.

pub(crate) mod root {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::PathBuf;
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    use cold_sys::cgroup::Hierarchies;
    use cold_sys::procfs::ProcFs;
    use cold_testbed::needs_root;
    use rustix::process::Signal;
    use serde_json::Value;

    use crate::service::root::Served;
    use crate::support::*;

    /// By whom memory is charged, as a service sees it.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum By {
        /// Whoever does here.
        Machine,
        /// Version 2.
        V2,
        Nobody,
    }

    /// A control group of version 2, and one by which version 1 charges memory where it does; what programs in them leave.
    struct Group(PathBuf, Option<PathBuf>);

    impl Group {
        fn new(name: &str) -> Self {
            let found = Hierarchies::find(&ProcFs::default()).unwrap();
            let name = format!("cold-e2e-{name}-{}", std::process::id());
            let made = |root: &PathBuf| {
                let dir = root.join(&name);
                fs::create_dir(&dir).unwrap();
                dir
            };
            Self(made(&found.v2.unwrap().at), found.v1.get("memory").map(|v1| made(&v1.at)))
        }
        /// A program that begins in it.
        fn start(&self, words: &[String]) -> Child {
            let enter = "echo $$ >\"$0\"; echo $$ >\"$1\"; shift; exec \"$@\"";
            let procs = |dir: &PathBuf| dir.join("cgroup.procs");
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", enter]).arg(procs(&self.0));
            shell.arg(self.1.as_ref().map_or("/dev/null".into(), procs)).args(words);
            shell.stdout(Stdio::null()).spawn().unwrap()
        }
        fn dirs(&self) -> impl Iterator<Item = &PathBuf> {
            [Some(&self.0), self.1.as_ref()].into_iter().flatten()
        }
        /// The names of the processes in it.
        fn names(&self) -> BTreeSet<String> {
            let procs = |dir: &PathBuf| fs::read_to_string(dir.join("cgroup.procs")).unwrap();
            let name = |pid: &str| ProcFs::default().comm(pid.parse().ok()?).ok();
            let procs: Vec<_> = self.dirs().map(procs).collect();
            procs.iter().flat_map(|procs| procs.lines()).filter_map(name).collect()
        }
        /// Bytes of cached pages that are charged to it.
        fn cached(&self) -> u64 {
            let stat = |dir: &PathBuf| fs::read_to_string(dir.join("memory.stat")).ok();
            let stat = self.dirs().find_map(stat).expect("somebody charges memory");
            let field = |name: &str| stat.lines().find_map(|line| line.strip_prefix(name)?.parse().ok());
            field("total_cache ").or_else(|| field("file ")).unwrap()
        }
        /// Runs a program in it to its end; who was seen in it meanwhile.
        fn run(&self, words: &[String]) -> BTreeSet<String> {
            let mut child = self.start(words);
            let mut seen = BTreeSet::new();
            while child.try_wait().unwrap().is_none() {
                seen.append(&mut self.names());
                std::thread::sleep(Duration::from_millis(1));
            }
            seen
        }
    }

    impl Drop for Group {
        fn drop(&mut self) {
            // Nobody may stay in it.
            for dir in self.dirs() {
                until("the group is empty", || fs::remove_dir(dir).ok());
            }
        }
    }

    /// A service whose plan reads for some tenths of a second.
    fn served(by: By) -> Served {
        let mut s = Served::new();
        s.w.read_pieces_in_vain(32 << 20, 128);
        begin(&mut s, by, &[]);
        s
    }

    fn begin(s: &mut Served, by: By, options: &[&str]) {
        let found = Hierarchies::find(&ProcFs::default()).unwrap();
        let told = s.w.place.path("controllers");
        fs::write(&told, if by == By::V2 { "cpu memory io" } else { "cpu io" }).unwrap();
        let real = found.v2.unwrap().at.join("cgroup.controllers");
        let v1 = found.v1.get("memory").filter(|_| by == By::Nobody);
        let unmount = v1.map_or(String::new(), |v1| format!("; umount --lazy {}", v1.at.display()));
        let hidden = format!("mount --bind {} {}{unmount}", told.display(), real.display());
        let around = |run: Cold| match by {
            By::Machine => run,
            By::V2 | By::Nobody => run.after(&hidden).by("unshare", &["--mount", "--"]),
        };
        s.begin_by(around, &[&["--no-learn", "--no-keep", "--control-every", "0"], options].concat());
    }

    fn charged(s: &Served) -> Value {
        s.status()["service"]["charged"].clone()
    }

    fn evict(s: &Served) {
        s.w.evict();
        let huge = s.w.slow.mount_point().join("huge");
        s.w.place.cold(["cache", "evict", huge.to_str().unwrap()]).run().expect(0);
    }

    #[test]
    fn a_start_is_read_in_the_programs_own_control_group_and_nobody_stays_there() {
        needs_root!();
        let _machine = together();
        begins_in_its_group_and_nobody_stays(By::V2);
    }

    #[test]
    fn its_pages_are_charged_to_that_group_by_the_kernel_that_is_here() {
        needs_root!();
        let _machine = together();
        begins_in_its_group_and_nobody_stays(By::Machine);
    }

    fn begins_in_its_group_and_nobody_stays(by: By) {
        let mut s = served(by);
        let group = Group::new(&format!("own-{by:?}"));
        attempts(|| {
            evict(&s);
            let before = group.cached();
            let seen = s.counted("followed", || group.run(&s.w.program()));
            let told = charged(&s);
            check(seen.contains("cold-reader"), || format!("{seen:?}, {told}"))?;
            // By the kernel, which may have taken pages back.
            let cached = group.cached().saturating_sub(before);
            let mean = told["own_bytes"].as_u64().unwrap() / told["own_starts"].as_u64().unwrap().max(1);
            let by_kernel = by != By::Machine || cached > 1 << 20 && cached > mean / 2;
            check(by_kernel, || format!("{cached} bytes are charged to the group, {told}"))
        });
        let told = charged(&s);
        let own = told["own_bytes"].as_u64().unwrap();
        let asked = s.status()["service"]["bytes"].as_u64().unwrap();
        assert!(told["own_starts"].as_u64().unwrap() > 0 && own > 1 << 20 && own <= asked, "{told}");
        let text = s.cold(&["status"]).run().expect(0).stdout;
        assert!(text.contains("charged to the programs' own control groups"), "{text}");
        until("nobody is in the group", || group.names().is_empty().then_some(()));
        // A service that is killed takes its helpers along, and who makes them; the program goes on.
        let waits = ["sh".to_owned(), "-c".into(), "\"$@\"; exec sleep 600".into(), "sh".into()];
        let words: Vec<_> = waits.into_iter().chain(s.w.program()).collect();
        attempts(|| {
            evict(&s);
            let mut program = group.start(&words);
            let reads = (0..1000).any(|_| {
                std::thread::sleep(Duration::from_micros(500));
                group.names().contains("cold-reader")
            });
            let service = s.service.take().unwrap();
            service.kill(Signal::KILL);
            drop(service);
            until("no helper is there", || (!group.names().contains("cold-reader")).then_some(()));
            let lives = program.try_wait().unwrap().is_none();
            program.kill().unwrap();
            program.wait().unwrap();
            assert!(lives, "the program goes on");
            begin(&mut s, by, &[]);
            check(reads, || "no helper was seen in it".to_owned())
        });
        s.end();
    }

    /// As systemd does it: listens, and starts its arguments behind the path once somebody connects.
    const ACTIVATE: &str = "import os, select, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind(sys.argv[1])
s.listen()
select.select([s], [], [])
os.dup2(s.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1')
os.execv(sys.argv[2], sys.argv[2:])";

    #[test]
    fn a_service_that_may_make_no_helpers_has_them_made_and_goes_on_without() {
        needs_root!();
        let _machine = together();
        let mut s = served(By::Machine);
        s.end();
        let group = Group::new("reader");
        let socket = s.w.place.text("reader");
        let reader = s.w.place.cold(["service", "reader"]);
        let reader = reader.by("/usr/bin/python3", &["-c", ACTIVATE, &socket]).start();
        until("it listens", || fs::metadata(&socket).ok());
        begin(&mut s, By::Machine, &["--reader", &socket]);
        attempts(|| {
            evict(&s);
            let seen = s.counted("followed", || group.run(&s.w.program()));
            let told = charged(&s);
            let is_own = seen.contains("cold-reader") && told["own_starts"].as_u64().unwrap() > 0;
            check(is_own, || format!("{seen:?}, {told}"))
        });
        s.end();
        // It ends with its service; the next finds nobody.
        reader.end().expect(0);
        begin(&mut s, By::Machine, &["--reader", &socket]);
        evict(&s);
        s.counted("followed", || group.run(&s.w.program()));
        let told = charged(&s);
        assert_eq!(
            (&told["own_starts"], &told["service"]["nobody makes helpers"]),
            (&0.into(), &1.into()),
            "{told}"
        );
        let ran = s.end();
        assert!(ran.stderr.contains("nothing is read in programs' own control groups"), "{}", ran.stderr);
        // Without systemd there is nothing to take.
        let ran = s.w.place.cold(["service", "reader"]).run().expect(1);
        assert!(ran.stderr.contains("coldstart-reader.socket"), "{}", ran.stderr);
    }

    #[test]
    fn where_nobody_charges_memory_that_is_said() {
        needs_root!();
        let _machine = together();
        let mut s = served(By::Nobody);
        let group = Group::new("other");
        evict(&s);
        let seen = s.counted("followed", || group.run(&s.w.program()));
        assert!(!seen.contains("cold-reader"), "{seen:?}");
        let told = charged(&s);
        assert_eq!(told["own_starts"], 0, "{told}");
        assert_eq!(told["service"]["control groups do not charge memory here"], 1, "{told}");
        s.end();
        // A service in the program's own group needs no helper.
        begin(&mut s, By::Machine, &[]);
        evict(&s);
        s.counted("followed", || s.faults(0));
        let (told, asked) = (charged(&s), s.status()["service"]["bytes"].clone());
        assert_eq!((&told["own_starts"], &told["own_bytes"]), (&1.into(), &asked), "{told}");
        s.end();
    }
}
