//! `cold trace`: usage, endings, and what an ordinary user gets.

use std::fs;

use cold_model::recording::Recording;
use rustix::process::Signal;

use crate::support::*;

/// The recording that a run has left.
pub(crate) fn recorded(place: &Sandbox, name: &str) -> Recording {
    cold_recording::read(&place.path(name)).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn wrong_usage_is_found_before_anything_is_done() {
    let place = Sandbox::for_all();
    fs::create_dir(place.path("there.cold")).unwrap();
    fs::write(place.path("there.cold/recording.json"), "{}").unwrap();
    fs::create_dir(place.path("other")).unwrap();
    fs::write(place.path("other/precious"), "x").unwrap();
    for (args, says) in [
        (&["trace"][..], "required"),
        (&["trace", "--", "no-such-program"], "no such command"),
        (&["trace", "-o", "there.cold", "--", "true"], "exists"),
        (&["trace", "-o", "other", "--overwrite", "--", "true"], "more than a recording"),
        (&["trace", "-o", "no/where.cold", "--", "true"], "no directory"),
        (&["trace", "--buffer", "lots", "--", "true"], "--buffer"),
        (&["trace", "--tier", "E", "--", "true"], "E"),
        (&["trace", "--ready", "nonsense:", "--", "true"], "nonsense"),
        (&["trace", "--attach", "999999999"], "no process"),
        (&["trace", "--attach", "1", "--all"], "cannot be used"),
        (&["trace", "--attach", "1", "--ready", "port:80"], "cannot be used"),
        (&["trace", "--all", "--state", "cold"], "cannot be used"),
        (&["trace", "--duration", "1", "--", "true"], "cannot be used"),
    ] {
        let ran = place.cold(args).run().expect(2);
        assert!(ran.stderr.contains(says), "{args:?}: {}", ran.stderr);
    }
    assert_eq!(fs::read_to_string(place.path("other/precious")).unwrap(), "x");
    assert!(!place.path("true.cold").exists());
}

#[test]
fn a_failing_command_is_recorded_and_its_code_told() {
    let place = Sandbox::for_all();
    let args = ["trace", "--state", "as-is", "-o", "f.cold", "--", "sh", "-c", "exit 7"];
    let ran = place.cold(args).run().expect(1);
    assert!(ran.stderr.contains("exit code 7"), "{}", ran.stderr);
    let m = recorded(&place, "f.cold").manifest;
    assert_eq!(m.ending, Some(cold_model::bench::Ending::Code(7)));
    assert!(m.complete && m.state.wanted == "as found".into(), "{:?}", m.state);
    let ignored = ["trace", "--state", "as-is", "--ignore-failure", "--overwrite"];
    place.cold(ignored.iter().chain(&args[3..])).run().expect(0);
    // Without a name: after the program, and never over another one.
    for name in ["true.cold", "true-2.cold"] {
        place.cold(["trace", "--state", "as-is", "--", "true"]).run().expect(0);
        recorded(&place, name);
    }
}

#[test]
fn ctrl_c_ends_the_command_and_keeps_the_recording() {
    let place = Sandbox::for_all();
    let subject = place.subject();
    let args = ["trace", "--state", "as-is", "-o", "i.cold", "--", &subject, "sleep", "600000"];
    let started = place.cold(args).start_as_job();
    until("it sleeps", || {
        place.processes().iter().any(|p| p.ends_with("sleep 600000 ") && !p.contains("trace")).then_some(())
    });
    started.kill(Signal::INT);
    started.end().expect(130);
    let m = recorded(&place, "i.cold").manifest;
    assert!(m.ready.is_some_and(|r| r.value().is_none()), "never ready");
    assert_eq!(place.processes(), [] as [String; 0]);
}

#[test]
fn a_start_that_cannot_be_made_leaves_no_recording() {
    let place = Sandbox::for_all();
    let file = place.script("fails", "exit 3");
    let ran = place.cold(["trace", "--evict", "files", "-o", "n.cold", "--", &file]).run().expect(1);
    assert!(ran.error().contains("exit code 3"), "{}", ran.stderr);
    assert!(!place.path("n.cold").exists());
}

mod root {
    use cold_model::recording::manifest::Tier;
    use cold_testbed::needs_root;

    use super::*;
    use crate::user::root::{as_nobody, home_of_nobody};

    #[test]
    fn an_ordinary_user_gets_tier_d_and_is_told_what_is_unknown() {
        needs_root!();
        let place = Sandbox::for_all();
        let out = place.path("home/u.cold");
        let out = out.to_str().unwrap();
        let args = ["trace", "--evict", "files", "-o", out, "--", "/usr/bin/python3", "-S", "-c", "pass"];
        as_nobody(&place, &args).run().expect(0);
        let r = cold_recording::read(out.as_ref()).unwrap();
        assert_eq!(r.manifest.tier, Tier::D);
        assert!(r.fills.is_none() && r.device_reads.is_none(), "absent, not empty");
        let text = as_nobody(&place, &["report", out]).run().expect(0).stdout;
        assert!(text.contains("tier D") && text.contains("unknown"), "{text}");
    }

    /// One allowance for the buffers of all CPUs: the first ones must not take everything.
    #[test]
    fn where_no_memory_may_be_locked_the_buffers_are_smaller() {
        needs_root!();
        let place = Sandbox::for_all();
        let out = home_of_nobody(&place).join("u.cold");
        let path = out.to_str().unwrap();
        let args = [
            "trace",
            "--tier",
            "c",
            "--evict",
            "files",
            "-o",
            path,
            "--",
            "/usr/bin/python3",
            "-S",
            "-c",
            "pass",
        ];
        let mut cold = place.cold(args).env("HOME", place.path("home"));
        cold.use_program(&place.path("cold"));
        // Nobody else has this number: the allowance is a user's, not a process'.
        let ids = ["--reuid=60123", "--regid=60123", "--clear-groups"];
        let capabilities = ["--inh-caps=+perfmon", "--ambient-caps=+perfmon"];
        cold.by("setpriv", &[&ids[..], &capabilities].concat()).after("ulimit -l 0").run().expect(0);
        let r = cold_recording::read(&out).unwrap();
        assert_eq!(r.manifest.tier, Tier::C);
        assert!(r.touches.is_some_and(|t| t.len() > 100));
    }

    #[test]
    fn where_perf_events_are_refused_files_and_their_cached_pages_are_recorded() {
        needs_root!();
        let place = Sandbox::for_all();
        let nobody = |args: &[&str]| as_nobody(&place, args).without_perf_events().run();
        let home = home_of_nobody(&place);
        let out = home.join("u.cold");
        let out = out.to_str().unwrap();
        // A program of its own: of other users' files the kernel does not tell which pages are cached.
        let subject = home.join("subject");
        fs::copy(cold_testbed::subject(), &subject).unwrap();
        std::os::unix::fs::chown(&subject, Some(65534), Some(65534)).unwrap();
        let program = [subject.to_str().unwrap(), "sleep", "1"];
        attempts(|| {
            let args = ["trace", "--evict", "files", "-o", out, "--overwrite", "--"];
            let ran = nobody(&[&args[..], &program].concat()).expect(0);
            let r = cold_recording::read(out.as_ref()).unwrap();
            assert_eq!(r.manifest.tier, Tier::D);
            assert!(
                r.touches.is_none() && r.stalls.is_none() && r.device_reads.is_none(),
                "absent, not empty"
            );
            assert!(ran.stdout.contains("perf events are refused"), "{}", ran.stdout);
            assert!(ran.stdout.contains("needed unknown"), "{}", ran.stdout);
            for said in [" 0 processes", "at most"] {
                assert!(!ran.stdout.contains(said), "nothing was seen, which bounds nothing: {}", ran.stdout);
            }
            let file = r.files.iter().position(|f| f.path.as_deref() == Some(program[0])).unwrap();
            let mut fills = r.fills.iter().flatten();
            check(fills.any(|f| f.file as usize == file), || {
                format!("it stayed cached: {:?}", r.manifest.state)
            })
        });
        let text = nobody(&["report", out]).expect(0).stdout;
        assert!(text.contains("perf events are refused"), "{text}");
        // Neither events nor files: nothing would be recorded, so that is said before anything is started.
        let none = home.join("n.cold");
        let args = ["trace", "--state", "as-is", "-o", none.to_str().unwrap(), "--"];
        let ran = nobody(&[&args[..], &program].concat()).expect(1);
        assert!(ran.error().contains("nothing can be recorded"), "{}", ran.stderr);
        assert!(!none.exists());
    }

    /// Identifiers of all BPF programs of the machine, asked of the kernel by a witness of its own.
    fn programs() -> std::collections::BTreeSet<u32> {
        let script = "
import ctypes, struct
bpf = ctypes.CDLL(None, use_errno=True).syscall; last = 0
while True:
    attr = ctypes.create_string_buffer(struct.pack('III', last, 0, 0), 120)
    if bpf(321, 11, attr, 120): break
    last = struct.unpack_from('I', attr, 4)[0]; print(last)";
        let out = std::process::Command::new("/usr/bin/python3").args(["-c", script]).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let text = String::from_utf8(out.stdout).unwrap();
        text.split_whitespace().map(|n| n.parse().unwrap()).collect()
    }

    /// Whether this process holds a BPF program.
    fn holds_programs(pid: rustix::process::Pid) -> bool {
        let infos = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
        infos.map(|i| fs::read_to_string(i.path()).unwrap_or_default()).any(|t| t.contains("prog_id:"))
    }

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Phase {
        /// The programs are loaded, the command waits to be released.
        Loading,
        /// The command is over, the recording is put together and written.
        Assembling,
    }

    #[test]
    fn kill_9_before_the_release_and_after_the_end() {
        needs_root!();
        let _machine = alone();
        let _settings = exactly();
        for phase in [Phase::Loading, Phase::Assembling] {
            attempts(|| killed(phase));
        }
    }

    fn killed(phase: Phase) -> Result<(), String> {
        let place = Sandbox::new();
        let (window, before) = (Window::read(&place), programs());
        let (subject, file) = (place.subject(), place.text("small"));
        place.file("small", 64 * PAGE as usize);
        let program = [&*subject, "counted-faults", &file, "5000", "40"];
        let args = ["trace", "--evict", "files", "--exact-need", "-o", "k.cold", "--"];
        let started = place.cold(args.iter().chain(&program)).start_as_job();
        until("it loads its programs", || holds_programs(started.pid()).then_some(()));
        let during = programs();
        if phase == Phase::Assembling {
            until("it lets them go", || (!holds_programs(started.pid())).then_some(()));
        }
        started.kill(Signal::KILL);
        let ran = started.end();
        check(ran.code() == 128 + 9, || format!("{phase:?}: it was over before: {}", ran.stderr))?;
        until("the tree has ended", || place.processes().is_empty().then_some(()));
        place.cold(["doctor", "--repair", "--json"]).run().expect(0);
        assert_eq!(Window::read(&place), window, "{phase:?}: put back");
        assert_eq!(place.temporary(), [] as [std::path::PathBuf; 0], "{phase:?}");
        until("no program is left", || {
            programs().intersection(&during).all(|id| before.contains(id)).then_some(())
        });
        let ran = place.cold(["report", "--no-symbols", "k.cold"]).run();
        if phase == Phase::Assembling {
            let told = ran.stderr.contains("incomplete") && ran.stdout.contains("INCOMPLETE");
            // Written in full before the kill came.
            let done = ran.code() == 0 && !ran.stdout.contains("INCOMPLETE");
            check(!done, || "the recording was complete".into())?;
            assert!(ran.code() == 0 && told, "{}: {} {}", ran.code(), ran.stdout, ran.stderr);
        } else if ran.code() != 0 {
            // Nothing had happened yet: that is said in one line.
            assert_eq!(ran.code(), 1, "{}", ran.stderr);
            ran.error();
        }
        Ok(())
    }

    #[test]
    fn after_kill_9_settings_are_back_no_program_is_left_and_the_log_is_readable() {
        needs_root!();
        let _machine = alone();
        let _settings = exactly();
        let place = Sandbox::new();
        let window = || Window::read(&place);
        let (before, programs_before) = (window(), programs());
        let subject = place.subject();
        let data = place.file("data", MIB);
        // The observed start must end by itself; the second one hangs.
        let log = place.text("log");
        let text = format!(
            "echo x >> {log}; test $(wc -l < {log}) -lt 2 || {{ {subject} touch-mapped {} 0,9; exec {subject} sleep 600000; }}",
            data.display()
        );
        let script = place.script("hangs", &text);
        let args = ["trace", "--evict", "files", "--exact-need", "-o", "k.cold", "--", &script];
        let started = place.cold(args).start_as_job();
        until("it hangs", || place.processes().iter().any(|p| p.ends_with("sleep 600000 ")).then_some(()));
        assert_ne!(window(), before, "exact need changes a setting");
        let during = programs();
        // Of it nothing comes any more. What did is written when nothing comes from others either, which read and
        // write on the same disks, and after a second at the latest.
        std::thread::sleep(std::time::Duration::from_millis(1500));
        started.kill(Signal::KILL);
        started.end().expect(128 + 9);
        until("the supervisor ends the tree", || place.processes().is_empty().then_some(()));
        until("the supervisor puts it back", || (window() == before).then_some(()));
        assert_ne!(during, programs_before, "programs were loaded");
        until("no program of ours is left", || {
            programs().intersection(&during).all(|id| programs_before.contains(id)).then_some(())
        });
        assert_eq!(place.temporary(), [] as [std::path::PathBuf; 0]);
        let ran = place.cold(["report", "--no-symbols", "k.cold"]).run().expect(0);
        assert!(ran.stderr.contains("incomplete"), "{}", ran.stderr);
        assert!(ran.stdout.contains("INCOMPLETE"), "{}", ran.stdout);
        let json = place.cold(["report", "--no-symbols", "--json", "k.cold"]).run().expect(0).json();
        let file = json["files"].as_array().unwrap().iter().find(|f| f["path"] == data.to_str().unwrap());
        assert_eq!(file.map(|f| f["needed"].as_u64() >= Some(PAGE)), Some(true), "{file:?}");
    }

    /// The settings that `--exact-need` may change.
    #[derive(Debug, PartialEq, Eq)]
    struct Window {
        mounts: usize,
        fault_around: Option<String>,
        read_ahead: Vec<(String, String)>,
    }

    impl Window {
        fn read(_place: &Sandbox) -> Self {
            let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
            // Also where it is mounted nowhere: then it is reached without a mount that others see.
            let root = cold_sys::kernelfs::DEBUGFS.root(&cold_sys::procfs::ProcFs::default());
            let fault_around = root.ok().and_then(|root| {
                let fd = std::os::fd::AsRawFd::as_raw_fd(&root);
                fs::read_to_string(format!("/proc/self/fd/{fd}/fault_around_bytes")).ok()
            });
            let mut read_ahead = Vec::new();
            for disk in fs::read_dir("/sys/block").unwrap().flatten() {
                let file = disk.path().join("queue/read_ahead_kb");
                // Test disks of other tests come and go.
                let name = disk.file_name().to_string_lossy().into_owned();
                if !name.starts_with("loop") {
                    read_ahead.push((name, fs::read_to_string(file).unwrap_or_default()));
                }
            }
            read_ahead.sort();
            Self { mounts: mounts.matches(" debugfs ").count(), fault_around, read_ahead }
        }
    }
}
