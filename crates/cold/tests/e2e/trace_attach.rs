//! `cold trace --attach` and `--all`: what runs already has its files, threads and children, and the
//! recording says truthfully what it is.

pub(crate) mod root {
    use std::collections::BTreeSet;
    use std::fs;

    use cold_model::bench::Ending;
    use cold_model::recording::manifest::EndedBy;
    use cold_model::recording::tables::Began;
    use cold_model::recording::{LookupKind, Recording};
    use cold_testbed::needs_root;
    use rustix::process::Signal;

    use crate::support::*;
    use crate::trace::recorded;

    /// A process with a second thread and a child, which go on touching and opening what they found before;
    /// and which starts programs, whose ends it notices late.
    const SERVICE: &str = "
import mmap, os, sys, threading, time
os.chdir(sys.argv[1])
data = open('data', 'rb', buffering=0); gone = open('gone', 'rb', buffering=0); os.unlink('gone')
go = threading.Event(); named = threading.Event(); null = os.open('/dev/null', os.O_WRONLY)
def touch():
    m = mmap.mmap(data.fileno(), 0, prot=mmap.PROT_READ); m[0]; m.close()
def thread():
    open(f'/proc/self/task/{threading.get_native_id()}/comm', 'w').write('toucher'); named.set()
    go.wait()
    while True: touch(); os.pread(gone.fileno(), 1, 0); time.sleep(0.02)
def child(parent):
    while os.getppid() == parent:
        touch(); open('sub/relative').close(); time.sleep(0.02)
        try: open('sub/missing')
        except OSError: pass
    os._exit(0)
threading.Thread(target=thread, daemon=True).start(); named.wait()
own = os.getpid()
if os.fork() == 0: child(own)
go.set(); print('on', flush=True)
while True:
    touch(); pid = os.fork()
    if pid == 0: os.dup2(null, 1); os.execv('/bin/cat', ['cat', 'sub/relative'])
    time.sleep(0.05); os.waitpid(pid, 0)";

    fn service(place: &Sandbox) -> Other {
        place.file("data", 64 * PAGE as usize);
        place.file("gone", PAGE as usize);
        let _ = fs::create_dir(place.path("sub"));
        fs::write(place.path("sub/relative"), "x").unwrap();
        let python = ["-i", "PATH=/only/here", "LD_LIBRARY_PATH=/and/here", "/usr/bin/python3", "-S", "-c"];
        let directory = place.path(".").canonicalize().unwrap();
        Other::start("/usr/bin/env", &[&python[..], &[SERVICE, directory.to_str().unwrap()]].concat(), "on")
    }

    /// Threads of the service that touched its file.
    fn touchers(r: &Recording, file: &str) -> BTreeSet<(u32, u32)> {
        let index = r.files.iter().position(|f| f.path.as_deref() == Some(file));
        let touches = r.touches.iter().flatten().filter(|t| Some(t.file as usize) == index);
        touches.map(|t| (t.pid, t.tid)).collect()
    }

    fn known(r: &Recording, service: &Other, place: &Sandbox) {
        let pid = service.pid();
        let of = |how| r.processes.iter().filter(move |p| p.how == how && p.in_tree);
        assert!(of(Began::Existing).any(|p| p.pid == pid), "{:?}", r.processes);
        let started = |p: &cold_model::recording::Process| p.parent == pid && p.name == "cat";
        assert!(of(Began::Exec).any(started), "{:?}", r.processes);
        // Each process once, whether it was surveyed, or its fork was seen, or both.
        let mut born: Vec<u32> = r.processes.iter().filter(|p| p.how != Began::Exec).map(|p| p.pid).collect();
        born.sort_unstable();
        assert!(born.windows(2).all(|w| w[0] != w[1]), "{:?}", r.processes);
        let data = place.path("data").canonicalize().unwrap();
        let who = touchers(r, data.to_str().unwrap());
        let told = || {
            let names = r.files.iter().filter_map(|f| f.path.as_deref()).filter(|p| p.contains("data"));
            let rows = r.touches.iter().flatten().filter(|t| t.pid == pid).count();
            format!(
                "tier {}, {rows} touches, {:?}, {:?}",
                r.manifest.tier,
                names.collect::<Vec<_>>(),
                r.manifest.lost
            )
        };
        assert!(who.contains(&(pid, pid)), "{who:?} of {pid}: {}", told());
        // A cat of this moment may have been there, too, with a smaller number where they begin again.
        let mut children = of(Began::Existing).filter(|p| p.parent == pid).map(|p| p.pid);
        let child = children.find(|c| who.contains(&(*c, *c)));
        let child = child.unwrap_or_else(|| panic!("the child among {who:?}: {:?}", r.processes));
        assert!(who.iter().any(|(p, tid)| *p == pid && tid != p), "its second thread: {who:?}");
        let toucher = r.threads.iter().find(|t| t.pid == pid && t.tid != pid).map(|t| t.name.as_str());
        assert_eq!(toucher, Some("toucher"), "{:?}", r.threads);
        assert!(r.mappings.iter().flatten().any(|m| m.pid == child), "the child's mappings");
    }

    #[test]
    fn what_was_open_before_has_its_path_and_who_ran_before_is_followed() {
        needs_root!();
        let _machine = together();
        let place = Sandbox::new();
        let service = service(&place);
        let pid = service.pid().to_string();
        for tier in ["auto", "C", "D"] {
            let args = ["trace", "--attach", &pid, "--tier", tier, "--duration", "1.5", "-o", "p.cold"];
            let ran = place.cold(args.iter().chain(&["--overwrite"])).run().expect(0);
            assert!(
                ran.stdout.contains("recorded for ") && ran.stdout.contains("asked for"),
                "{}",
                ran.stdout
            );
            assert!(!ran.stdout.contains("ready: "), "it has none: {}", ran.stdout);
            let r = recorded(&place, "p.cold");
            known(&r, &service, &place);
            let m = &r.manifest;
            assert_eq!((m.ended_by, &m.ending, &m.ready), (Some(EndedBy::Duration), &None, &None));
            let paths: Vec<_> = m.search_paths.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            assert_eq!(
                paths,
                [("LD_LIBRARY_PATH", "/and/here"), ("PATH", "/only/here")],
                "the service's own"
            );
            assert_eq!(m.directory, place.path(".").canonicalize().unwrap());
            assert!(m.command.first().is_some_and(|c| c == "/usr/bin/python3"), "{:?}", m.command);
            assert_eq!(m.lost_events(), 0, "{:?}", m.lost);
            if tier == "auto" && r.lookups.is_some() {
                by_events(&r, &place);
            } else {
                assert!(r.fills.is_some(), "of the files that it has open");
            }
        }
    }

    /// What only the tiers with lookups tell.
    fn by_events(r: &Recording, place: &Sandbox) {
        let path = |name: &str| place.path(".").canonicalize().unwrap().join(name).display().to_string();
        let gone = r.files.iter().find(|f| f.path.as_deref() == Some(&path("gone")));
        assert!(gone.is_some_and(|f| f.deleted), "deleted before the recording began: {:?}", r.files);
        for (name, there) in [("sub/relative", true), ("sub/missing", false)] {
            let found = r.lookups.iter().flatten().find(|l| {
                l.kind == LookupKind::Open
                    && l.path.as_deref() == Some(&path(name))
                    && (l.result >= 0) == there
            });
            assert!(found.is_some(), "{name} below the directory it was in: {:?}", r.lookups);
        }
    }

    /// Waits until processes are followed: those that already run are entered after that.
    pub(crate) fn recording(place: &Sandbox, name: &str) {
        let log = place.path(name).join("events.log");
        let entered = |log: &[u8]| log.windows(SURVEYED.len()).any(|bytes| bytes == SURVEYED);
        until("it records", || fs::read(&log).is_ok_and(|log| entered(&log)).then_some(()));
    }
    const SURVEYED: &[u8] = b"{\"existing\":{";

    #[test]
    fn the_end_is_the_processs_own_or_ctrl_c() {
        needs_root!();
        let place = Sandbox::new();
        let (script, end) = ("echo on; until [ -e \"$0\" ]; do sleep 0.01; done; exit 7", place.path("end"));
        let short = Other::start("/bin/sh", &["-c", script, end.to_str().unwrap()], "on");
        let pid = short.pid().to_string();
        // No --duration, and the end of somebody else's process is no failure of ours.
        let started = place.cold(["trace", "--attach", &pid, "-o", "e.cold"]).start();
        recording(&place, "e.cold");
        fs::write(end, "").unwrap();
        let ran = started.end().expect(0);
        assert!(ran.stdout.contains("until the process ended"), "{}", ran.stdout);
        let r = recorded(&place, "e.cold");
        let m = &r.manifest;
        assert_eq!(m.ended_by, Some(EndedBy::Exit));
        let of_pid = |pid: u32| r.processes.iter().filter(move |p| p.pid == pid);
        assert!(
            m.tier > cold_model::recording::manifest::Tier::B || m.ending == Some(Ending::Code(7)),
            "{:?}, lost {:?}, {:?}",
            m.ending,
            m.lost,
            of_pid(short.pid()).collect::<Vec<_>>()
        );
        let ran = place.cold(["trace", "--attach", &pid, "-o", "z.cold"]).run().expect(2);
        assert!(ran.stderr.contains("has ended already"), "a zombie: {}", ran.stderr);

        let service = service(&place);
        let pid = service.pid().to_string();
        let started = place.cold(["trace", "--attach", &pid, "-o", "c.cold"]).start_as_job();
        recording(&place, "c.cold");
        started.kill(Signal::INT);
        let ran = started.end().expect(0);
        assert!(ran.stdout.contains("until it was interrupted"), "{}", ran.stdout);
        assert_eq!(recorded(&place, "c.cold").manifest.ended_by, Some(EndedBy::Interrupt));
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
        let thread = tasks.map(|t| t.file_name()).find(|t| t != pid.as_str()).unwrap();
        let ran = place.cold(["trace", "--attach", thread.to_str().unwrap()]).run().expect(2);
        assert!(ran.stderr.contains(&format!("is a thread of process {pid}")), "{}", ran.stderr);
    }

    #[test]
    fn everybody_is_followed_but_the_recorder() {
        needs_root!();
        let _machine = together();
        let place = Sandbox::new();
        let service = service(&place);
        for tier in ["auto", "C"] {
            let args = ["trace", "--all", "--tier", tier, "--duration", "1.5", "-o", "m.cold", "--overwrite"];
            let started = place.cold(args).start();
            let own = started.pid().as_raw_nonzero().get().cast_unsigned();
            let ran = started.end().expect(0);
            assert!(ran.stdout.starts_with("the whole machine\n  recorded for "), "{}", ran.stdout);
            let r = recorded(&place, "m.cold");
            known(&r, &service, &place);
            assert!(r.processes.iter().all(|p| p.pid != own || !p.in_tree), "{own}: {:?}", r.processes);
            assert!(r.touches.iter().flatten().all(|t| t.pid != own), "its own touches");
            assert!(r.manifest.search_paths.is_empty() && r.manifest.command.is_empty(), "nobody's");
        }
        let ran = place.cold(["trace", "--all", "--tier", "D", "-o", "d.cold"]).run().expect(1);
        assert!(ran.error().contains("tier D cannot be used"), "{}", ran.stderr);
    }
}
