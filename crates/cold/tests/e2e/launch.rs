//! `cold launch` with something to say and nowhere to say it: the program starts.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::*;

/// `cold launch` of a script that says "ran" and ends with 7, whose plan cannot be used.
struct Scene {
    place: Sandbox,
    words: Vec<String>,
}

impl Scene {
    fn new() -> Self {
        let place = Sandbox::new();
        let script = place.script("program", "echo ran; exit 7");
        let store = cold_plan::Store::at(place.path("store"));
        std::fs::create_dir(store.directory()).expect("made");
        let argv = [OsString::from(&script)];
        let path = std::env::var_os("PATH");
        let command = cold_plan::scenario::Command { argv: &argv, cwd: "/".as_ref(), path: path.as_deref() };
        let key = cold_plan::scenario::find(&command, None).expect("a key");
        std::fs::write(store.path_of(&key), "no plan").expect("written");
        let words = ["launch", "--store", &place.text("store"), "--", &script].map(str::to_owned).to_vec();
        Self { place, words }
    }

    /// Behind these words of a shell, which end with the command.
    fn starts(&self, shell: &str, stderr: Option<Stdio>) {
        let mut command = Command::new("sh");
        command.args(["-c", shell, "sh"]).arg(env!("CARGO_BIN_EXE_cold")).args(&self.words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr.unwrap_or_else(Stdio::piped));
        let out = command.output().expect("sh");
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        assert_eq!((out.status.code(), &*said), (Some(7), "ran\n"), "{shell}: {out:?}");
    }
}

#[test]
fn launch_starts_the_program_whatever_has_become_of_standard_error() {
    let scene = Scene::new();
    for shell in ["exec \"$@\"", "exec \"$@\" 2>&-", "exec \"$@\" 2>/dev/full", "exec \"$@\" 0<&- 2>&-"] {
        scene.starts(shell, None);
    }
    let log = scene.place.text("log");
    scene.starts(&format!("ulimit -f 0; exec \"$@\" 2>{log}"), None);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    scene.starts("exec \"$@\"", Some(writer.into()));
    // Full, and nobody reads.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    rustix::io::ioctl_fionbio(&writer, true).expect("set");
    let mut writer = File::from(std::os::fd::OwnedFd::from(writer));
    while writer.write(&[b'x'; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).expect("set");
    scene.starts("exec \"$@\"", Some(writer.into()));
    drop(reader);
}

#[test]
fn launch_finds_the_program_of_a_name_as_shells_do() {
    let scene = Scene::new();
    // No interpreter is named: the shell's business, as with env and nohup.
    let plain = scene.place.path("plain");
    cold_testbed::executable(&plain, "echo \"$1\"; exit 5\n");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cold"));
    command.args(["launch", "--", "plain", "word"]);
    command.env("PATH", format!("/nonexistent:{}:/usr/bin:/bin", scene.place.text("")));
    let out = command.output().expect("cold");
    assert_eq!((out.status.code(), &*out.stdout), (Some(5), &b"word\n"[..]), "{out:?}");
}
