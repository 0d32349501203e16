//! The program cannot tell that it was launched.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::world::{
    LAUNCHER, MIB, WAITS, Whole, begun, calm, directory, evict, file, gone, helpers, launch, launcher, plan,
    save, text, whole,
};

#[test]
fn exit_codes_signals_and_output_are_the_programs_own() {
    let dir = directory();
    let at = dir.path().join("plan");
    save(&plan(), &at);
    let run = |script: &str| launch(&at, &[], &["sh", "-c", script]);
    let out = run("echo out; echo err >&2; exit 42");
    assert_eq!(
        (out.status.code(), text(&out.stdout), text(&out.stderr)),
        (Some(42), "out\n".into(), "err\n".into())
    );
    assert_eq!(run("kill -TERM $$").status.signal(), Some(15));
    gone(dir.path());
}

#[test]
fn what_cannot_be_executed_is_said_as_shells_say_it() {
    let dir = directory();
    let out = launch(&dir.path().join("none"), &[], &["/nonexistent/program"]);
    assert_eq!(out.status.code(), Some(127));
    let err = text(&out.stderr);
    assert!(err.contains("cannot execute /nonexistent/program"), "{err}");
    let plain = file(&dir.path().join("no-program"), 10);
    let out = launch(&dir.path().join("none"), &[], &[plain.to_str().expect("UTF-8")]);
    assert_eq!(out.status.code(), Some(126), "{out:?}");
}

#[test]
fn nothing_the_program_inherits_is_changed() {
    let Whole { dir, data, at } = whole(4 * MIB, true, |_| {});
    // Signals (SigQ is of all processes of the user), limits, priorities, affinity, scheduling and descriptors,
    // as the program itself sees them.
    let look = "grep -E '^(Sig[^Q]|Shd|Cpus_allowed_list|NoNewPrivs|Seccomp|Threads|State)' /proc/self/status; \
                ionice; nice; ls -l /proc/self/fd | wc -l; ulimit -a; pwd; cat /proc/self/comm";
    for ignore in [false, true] {
        let wrap = if ignore { "trap '' PIPE; exec \"$@\"" } else { "exec \"$@\"" };
        let plain =
            std::process::Command::new("sh").args(["-c", wrap, "x", "sh", "-c", look]).output().expect("sh");
        evict(&data);
        let plan = at.to_str().expect("UTF-8");
        let launched = std::process::Command::new("sh")
            .args(["-c", wrap, "x", LAUNCHER, "--plan", plan, "--", "sh", "-c", look])
            .output()
            .expect("sh");
        assert_eq!(text(&launched.stdout), text(&plain.stdout), "SIGPIPE ignored: {ignore}");
    }
    gone(dir.path());
}

#[test]
fn the_program_has_no_child_that_it_did_not_make() {
    let Whole { dir, data, at } = whole(4 * MIB, false, |_| {});
    evict(&data);
    // The children of a shell that has made none, and the shell's own wait, which must not wait.
    let out = launch(&at, &[], &["sh", "-c", "cat /proc/$$/task/$$/children; wait; echo done"]);
    // cat itself is the one child.
    let first = text(&out.stdout);
    assert_eq!(first.split_whitespace().count(), 2, "{first}");
    gone(dir.path());
}

/// A mark that is never reached keeps the helper watching.
fn watched(plan: &mut cold_plan::Plan) {
    plan.learnt.own_cpu_ns = 3_600_000_000_000;
}

#[test]
fn who_reads_the_programs_pipe_sees_its_end_when_the_program_ends() {
    let Whole { dir, data, at } = whole(4 * MIB, false, watched);
    evict(&data);
    // The shell closes its output and lives on; the helper lives with it.
    let mut child = launcher(&at, &[], &["sh", "-c", "echo x; exec >&- 2>&-; sleep 30"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let began = Instant::now();
    let mut all = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut all).expect("read");
    child.stderr.take().expect("piped").read_to_string(&mut all).expect("read");
    assert_eq!(all, "x\n");
    assert!(began.elapsed() < Duration::from_secs(20), "the pipe was held open");
    child.kill().expect("killed");
    child.wait().expect("waited");
    gone(dir.path());
}

#[test]
fn a_helper_ends_with_its_program() {
    let Whole { dir, data, at } = whole(4 * MIB, false, watched);
    let mark = dir.path().display().to_string();
    cold_testbed::attempts(|| {
        evict(&data);
        let mut child = begun(&mut launcher(&at, &["--verbose", "--wait", "none"], &WAITS));
        let watches = !helpers(&mark).is_empty();
        child.kill().expect("killed");
        let out = child.wait_with_output().expect("waited");
        gone(dir.path());
        calm(&out)?;
        assert!(watches, "a helper watches");
        Ok(())
    });
}
