//! Wrong command lines: one clear line, the right code, and nothing was started.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use crate::support::*;

/// Runs `cold bench` with these flags on a command that leaves a trace; there must be none.
#[track_caller]
fn refused(place: &Sandbox, flags: &[&str], code: i32, says: &str) {
    let trace = place.text("trace");
    let script = place.script("run", &format!("echo x >> {trace}"));
    let ran = place.cold([&["bench", "-r", "1"], flags, &["--", &script]].concat()).run().expect(code);
    assert!(ran.error().contains(says), "{flags:?}: {}", ran.stderr);
    assert_eq!((ran.stdout.as_str(), place.lines("trace").len()), ("", 0), "{flags:?}");
    assert_eq!(place.temporary(), [] as [std::path::PathBuf; 0]);
}

#[test]
fn a_command_that_cannot_be_started_is_named() {
    let place = Sandbox::new();
    fs::write(place.path("plain"), "text").unwrap();
    fs::set_permissions(place.path("plain"), PermissionsExt::from_mode(0o644)).unwrap();
    let setup = ["bench", "--setup", &format!("touch {}", place.text("trace")), "--"];
    for program in ["no-such-command-at-all", &place.text("absent"), &place.text("plain"), "/"] {
        let ran = place.cold(setup.iter().chain(&[program])).run().expect(2);
        assert!(ran.error().contains(program), "{}", ran.stderr);
    }
    let ran = place.cold(["bench"]).run().expect(2);
    assert!(ran.error().contains("no command"), "{}", ran.stderr);
    let ran = place.cold(["bench", "true 'unclosed"]).run().expect(2);
    assert!(ran.error().contains("true 'unclosed"), "{}", ran.stderr);
    assert!(!place.path("trace").exists());
}

#[test]
fn wrong_values_are_named() {
    let place = Sandbox::new();
    for (flags, says) in [
        (&["--states", "cold,lukewarm"][..], "lukewarm"),
        (&["--states", "cold,cold"], "twice"),
        (&["--ready", "stdout:("], "bad regular expression"),
        (&["--ready", "port:70000"], "65535"),
        (&["--ready", "soon"], "soon"),
        (&["--ready", "http://example.org/"], "example.org"),
        (&["--margin", "much"], "much"),
        (&["--timeout=-1"], "-1"),
        (&["--disk-limit", "iops=many"], "iops=many"),
        (&["--fail-if", "cold.median >"], "cold.median >"),
        (&["--fail-if", "light.median > 1s"], "light"),
        (&["--plot", "picture.bmp"], ".svg or .html"),
        (&["--plot", "/no/such/dir/p.svg"], "/no/such/dir"),
        (&["--export-json", "/no/such/dir/o.json"], "/no/such/dir"),
        (&["--export-csv", "/no/such/dir/o.csv"], "/no/such/dir"),
        (&["--export-markdown", "/no/such/dir/o.md"], "/no/such/dir"),
        (&["--json", "--export-json", "-"], "standard output"),
        (&["-n", "a", "-n", "b"], "name"),
        (&["-p", "true", "-p", "true"], "--prepare"),
        (&["-P", "x", "1", "3", "-D", "0"], "step"),
        (&["-P", "x", "1", "2", "-P", "y", "1", "2"], "once"),
        (&["-L", "x", "1,2", "-L", "x", "3"], "x"),
    ] {
        refused(&place, flags, 2, says);
    }
}

#[test]
fn contradictions_are_refused() {
    let place = Sandbox::new();
    for flags in [
        &["--min-runs", "3"][..],
        &["--precision", "2%"],
        &["-N", "--shell", "sh"],
        &["--step-size", "1"],
        &["--evict", "nothing"],
        &["-L", "x", "1,2", "-P", "y", "1", "2"],
    ] {
        let ran = place.cold([&["bench", "-r", "1"], flags, &["--", "true"]].concat()).run().expect(2);
        assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
    }
    let ran = place.cold(["bench", "true", "--", "true"]).run().expect(2);
    assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
}

#[test]
fn what_already_holds_cannot_tell_when_a_command_is_ready() {
    let place = Sandbox::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    refused(&place, &["--ready", &format!("port:{port}")], 1, &format!("port {port} is already open"));
    fs::write(place.path("there"), "").unwrap();
    refused(&place, &["--ready", &format!("file:{}", place.text("there"))], 1, "already exists");
}

#[test]
fn a_baseline_must_be_ours() {
    let place = Sandbox::new();
    let file = place.text("base.json");
    for (text, says) in [
        (r#"{"results": [{"command": "x", "mean": 1.0, "times": [1.0]}]}"#, "hyperfine"),
        (r#"{"schema": "coldstart.bench/99"}"#, "coldstart.bench/99"),
        (r#"{"schema": "coldstart.bench/1"}"#, "damaged"),
        ("{}", "no \"schema\""),
        ("not json", "not JSON"),
    ] {
        fs::write(&file, text).unwrap();
        refused(&place, &["--baseline", &file], 2, says);
    }
    refused(&place, &["--baseline", &place.text("absent.json")], 2, "absent.json");
    refused(&place, &["--fail-if", "cold.median > 1.1x"], 2, "baseline");
}

#[test]
fn a_snapshot_that_cannot_be_read_is_named_before_anything_starts() {
    let place = Sandbox::new();
    let file = place.text("state.snap");
    for (bytes, says) in
        [(None, "state.snap"), (Some(&b"garbage"[..]), "state.snap"), (Some(b""), "state.snap")]
    {
        if let Some(bytes) = bytes {
            fs::write(&file, bytes).unwrap();
        }
        refused(&place, &["--states", &format!("snapshot={file}")], 1, says);
    }
    // A damaged copy of a real one.
    place.cold(["cache", "save", &file, &place.subject()]).run().expect(0);
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    fs::write(&file, bytes).unwrap();
    refused(&place, &["--states", &format!("snapshot={file}")], 1, "state.snap");
    place.cold(["cache", "restore", &file]).run().expect(1).error();
}

mod root {
    use super::*;

    use cold_testbed::{need, need_root};

    #[test]
    fn a_program_without_a_block_device_cannot_be_limited() {
        if !need_root() || !need(std::path::Path::new("/dev/shm").is_dir(), "/dev/shm") {
            return;
        }
        let place = Sandbox::new();
        let shm = tempfile::tempdir_in("/dev/shm").unwrap();
        let program = shm.path().join("cold-subject");
        fs::copy(place.path("cold-subject"), &program).unwrap();
        let args = ["--disk-limit", "iops=100", "-r", "1", "--", program.to_str().unwrap(), "sleep", "1"];
        let started = place.bench(args).start();
        let pid = started.pid();
        let ran = started.end().expect(5);
        assert!(ran.error().contains("tmpfs"), "{}", ran.stderr);
        assert_eq!(cgroups(pid), [] as [std::path::PathBuf; 0]);
        assert_eq!(place.temporary(), [] as [std::path::PathBuf; 0]);
    }
}
