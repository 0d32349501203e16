//! The programs do what they say.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use cold_sys::procfs::ProcFs;
use cold_testbed::subject;

fn run(arguments: &[&str]) -> Output {
    Command::new(subject()).args(arguments).output().expect("run")
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn it_is_linked_statically() {
    let bytes = fs::read(subject()).expect("read");
    let interpreter = b"/lib64/ld-linux-x86-64.so.2\0";
    assert!(!bytes.windows(interpreter.len()).any(|w| w == interpreter));
}

#[test]
fn it_fails_on_exactly_the_nth_run() {
    let dir = tempfile::tempdir().expect("tempdir");
    let counter = dir.path().join("n");
    let codes: Vec<_> = (0..4)
        .map(|_| run(&["fail-nth", "3", counter.to_str().expect("path"), "--code", "7"]).status.code())
        .collect();
    assert_eq!(codes, [Some(0), Some(0), Some(7), Some(0)]);
}

#[test]
fn the_daemon_outlives_its_parent_and_says_when_it_is_ready() {
    let dir = tempfile::tempdir().expect("tempdir");
    let [ready, until, socket, notify] = ["ready", "until", "socket", "notify"].map(|n| dir.path().join(n));
    let receiver = UnixDatagram::bind(&notify).expect("bind");
    receiver.set_read_timeout(Some(Duration::from_secs(30))).expect("timeout");
    let status = Command::new(subject())
        .args(["daemon", "--seconds", "60", "--notify", "--delay", "50"])
        .args([
            Path::new("--ready-file"),
            &ready,
            Path::new("--until"),
            &until,
            Path::new("--socket"),
            &socket,
        ])
        .env("NOTIFY_SOCKET", &notify)
        .status()
        .expect("run");
    assert!(status.success());
    let mut message = [0; 32];
    let n = receiver.recv(&mut message).expect("READY=1");
    assert_eq!(&message[..n], b"READY=1\n");
    let pid: i32 = fs::read_to_string(&ready).expect("ready file").parse().expect("pid");
    let proc = ProcFs::default();
    let stat = proc.stat(pid).expect("the daemon lives");
    assert_ne!(stat.ppid, std::process::id().cast_signed());
    assert_ne!(stat.session, pid, "a second fork cannot lead the session");
    std::os::unix::net::UnixStream::connect(&socket).expect("it listens");
    fs::write(&until, "").expect("write");
    wait_for("its end", || proc.stat(pid).is_err() || proc.stat(pid).is_ok_and(|s| s.state == 'Z'));
}

#[test]
fn a_marker_comes_before_the_lingering_and_term_can_be_ignored() {
    for (arguments, line) in [
        (&["marker", "ready now", "--linger", "60"][..], "ready now\n"),
        (&["ignore-term"][..], "ignoring\n"),
    ] {
        let mut child =
            Command::new(subject()).args(arguments).stdout(Stdio::piped()).spawn().expect("spawn");
        let mut text = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("stdout"));
        out.read_line(&mut text).expect("read");
        assert_eq!(text, line);
        if arguments[0] == "ignore-term" {
            let pid = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("kill");
            std::thread::sleep(Duration::from_millis(200));
        }
        assert_eq!(child.try_wait().expect("wait"), None);
        child.kill().expect("kill");
        child.wait().expect("wait");
        out.read_to_string(&mut text).expect("end");
    }
}

#[test]
fn holding_maps_the_file_executable() {
    let dir = tempfile::tempdir().expect("tempdir");
    let file = dir.path().join("lib");
    fs::write(&file, vec![1; 40_960]).expect("write");
    let mut child = Command::new(subject())
        .args(["hold", "--exec", file.to_str().expect("path")])
        .stdout(Stdio::piped())
        .spawn()
        .expect("spawn");
    let mut text = String::new();
    BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut text).expect("read");
    let maps = ProcFs::default().maps(child.id().cast_signed()).expect("maps");
    child.kill().expect("kill");
    child.wait().expect("wait");
    let map = maps.iter().find(|m| m.path.as_deref() == Some(&file)).expect("mapped");
    assert_eq!((map.perms, map.end - map.start), (*b"r-xp", 40_960));
}

#[test]
fn memory_and_processes_are_as_asked() {
    let mut child = Command::new(subject())
        .args(["alloc", "64", "--linger", "60"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("spawn");
    let mut text = String::new();
    BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut text).expect("read");
    let peak = ProcFs::default().process_field(child.id().cast_signed(), "status", "VmHWM").expect("status");
    child.kill().expect("kill");
    child.wait().expect("wait");
    // The program itself takes a few MiB.
    assert!((64 << 10..80 << 10).contains(&peak.expect("VmHWM")), "{peak:?} kB");
    assert!(run(&["spawn-tree", "2", "3"]).status.success());
    let dir = tempfile::tempdir().expect("tempdir");
    assert!(run(&["open-files", dir.path().to_str().expect("path"), "12", "--misses", "5"]).status.success());
    assert_eq!(fs::read_dir(dir.path()).expect("list").count(), 12);
    let begin = Instant::now();
    assert!(run(&["spin", "60"]).status.success());
    assert!(begin.elapsed() >= Duration::from_millis(60));
    let file = dir.path().join("f0");
    assert!(run(&["fault-storm", file.to_str().expect("path"), "20"]).status.success());
    assert!(
        run(&["touch-mapped", file.to_str().expect("path"), "1"]).status.code() == Some(101),
        "beyond its end"
    );
}
