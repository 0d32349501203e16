//! Standard descriptors that are closed, full, or pipes without a reader: the program starts, and finds them
//! as they were.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::subject::{before, close, make, says};
use crate::world::{LAUNCHER, Whole, directory, evict, gone, put, text, whole};

/// What a standard descriptor may be.
#[derive(Debug, Clone, Copy)]
enum State {
    Closed,
    FullDisk,
    NoReader,
    FullPipe,
    ReadOnly,
}

const STATES: [State; 5] =
    [State::Closed, State::FullDisk, State::NoReader, State::FullPipe, State::ReadOnly];

/// A pipe that holds as much as it can, both ends.
fn full_pipe() -> (OwnedFd, OwnedFd) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let writer = OwnedFd::from(writer);
    let flags = rustix::fs::fcntl_getfl(&writer).expect("asked");
    rustix::fs::fcntl_setfl(&writer, flags | rustix::fs::OFlags::NONBLOCK).expect("set");
    let mut file = File::from(writer);
    while file.write(&[b'x'; 4096]).is_ok() {}
    while file.write(b"x").is_ok() {}
    rustix::fs::fcntl_setfl(&file, flags).expect("set");
    (reader.into(), file.into())
}

/// Gives the command this descriptor in this state. What has to stay open meanwhile is returned.
fn put_in(command: &mut Command, fd: i32, state: State) -> Option<OwnedFd> {
    let (stdio, kept): (Stdio, Option<OwnedFd>) = match state {
        State::Closed => {
            before(command, move || close(fd));
            return None;
        }
        State::FullDisk => {
            (OpenOptions::new().read(true).write(true).open("/dev/full").expect("opened").into(), None)
        }
        State::ReadOnly => (File::open("/dev/null").expect("opened").into(), None),
        State::NoReader => (std::io::pipe().expect("a pipe").1.into(), None),
        State::FullPipe => {
            let (reader, writer) = full_pipe();
            (writer.into(), Some(reader))
        }
    };
    match fd {
        0 => command.stdin(stdio),
        1 => command.stdout(stdio),
        _ => command.stderr(stdio),
    };
    kept
}

/// `cold-launch` with something to say: a plan that cannot be used.
fn complains(dir: &Path) -> Command {
    let at = dir.join("plan");
    put(&at, b"no plan");
    let mut launcher = Command::new(LAUNCHER);
    launcher.arg("--plan").arg(at).arg("--verbose").arg("--");
    launcher
}

#[test]
fn the_program_starts_whatever_has_become_of_its_standard_descriptors() {
    let dir = directory();
    let subject = make(dir.path());
    for fd in 0..3 {
        for state in STATES {
            // The program itself would wait for ever, too.
            if fd == 1 && matches!(state, State::FullPipe) {
                continue;
            }
            let run = |mut command: Command| {
                command.arg("word").stdout(Stdio::piped()).stderr(Stdio::piped());
                let kept = put_in(&mut command, fd, state);
                let out = command.output().expect("runs");
                drop(kept);
                out
            };
            let mut launcher = complains(dir.path());
            launcher.arg(&subject);
            let (out, plain) = (run(launcher), run(Command::new(&subject)));
            // Also of the signal by which a program ends that writes to nobody.
            assert_eq!(out.status, plain.status, "{fd} {state:?}: {out:?}");
            assert_eq!(out.stdout, plain.stdout, "{fd} {state:?}");
            assert_eq!(plain.stdout, if fd == 1 { Vec::new() } else { says(&subject, &["word"]) });
        }
    }
}

#[test]
fn closed_descriptors_stay_closed_and_nothing_of_the_launcher_lies_in_their_place() {
    let Whole { dir, data, at } = whole(1 << 20, true, |_| {});
    // By the shell itself: a pipe's ends would be open in it for a moment.
    let look = "echo /proc/self/fd/* >&9";
    for closed in 0..8 {
        let run = |launched: bool| {
            let file = dir.path().join("seen");
            let mut command = if launched {
                evict(&data);
                let mut launcher = Command::new(LAUNCHER);
                launcher.arg("--plan").arg(&at).args(["--verbose", "--", "sh", "-c", look]);
                launcher
            } else {
                let mut plain = Command::new("sh");
                plain.args(["-c", look]);
                plain
            };
            let seen = OwnedFd::from(File::create(&file).expect("made"));
            let raw = seen.as_raw_fd();
            before(&mut command, move || crate::subject::as_number(raw, 9));
            for fd in (0..3).filter(|fd| closed & 1 << fd != 0) {
                before(&mut command, move || close(fd));
            }
            let out = command.output().expect("runs");
            assert!(out.status.success(), "{closed}: {out:?}");
            let mut said = String::new();
            File::open(&file).and_then(|mut f| f.read_to_string(&mut said)).expect("read");
            said
        };
        assert_eq!(run(true), run(false), "closed: {closed:03b}");
    }
    gone(dir.path());
}

#[test]
fn a_message_is_written_where_it_can_be_and_a_result_that_cannot_be_written_is_an_error() {
    let dir = directory();
    let subject = make(dir.path());
    let out = complains(dir.path()).arg(&subject).output().expect("runs");
    assert!(text(&out.stderr).starts_with("cold-launch: no plan followed: "), "{}", text(&out.stderr));
    for (option, state, code) in [
        ("--help", State::FullDisk, Some(1)),
        ("--version", State::Closed, Some(1)),
        ("--help", State::NoReader, Some(0)),
    ] {
        let mut command = Command::new(LAUNCHER);
        command.arg(option).stdout(Stdio::piped()).stderr(Stdio::piped());
        let kept = put_in(&mut command, 1, state);
        let out = command.output().expect("runs");
        drop(kept);
        assert_eq!(out.status.code(), code, "{option} {state:?}: {out:?}");
        assert_eq!(text(&out.stderr).is_empty(), code == Some(0), "{option} {state:?}: {out:?}");
    }
}
