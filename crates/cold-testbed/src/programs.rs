//! Finding the testbed's programs from the tests of any crate.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The path of `cold-subject`, the program with known behaviour (`cold-subject --help`).
///
/// # Panics
/// If it can neither be built nor found.
pub fn subject() -> PathBuf {
    let found = program("cold-subject");
    assert!(found.is_ok(), "{found:?}");
    found.unwrap_or_default()
}

/// The path of `cold-launch`, brought up to date as the others are; it lies beside `cold`.
///
/// # Panics
/// If it can neither be built nor found.
pub fn launcher() -> PathBuf {
    let found = program("cold-launch");
    assert!(found.is_ok(), "{found:?}");
    found.unwrap_or_default()
}

/// The path of one of this crate's programs, beside the running test. Under `cargo test` they are
/// built first, once per process: the tests of another crate do not bring them up to date themselves.
pub(crate) fn program(name: &str) -> std::io::Result<PathBuf> {
    static BUILT: OnceLock<Result<(), String>> = OnceLock::new();
    let me = std::env::current_exe()?;
    // target/[TRIPLE/]PROFILE/deps/test-HASH, target/[TRIPLE/]PROFILE/program
    let dir = me.parent().unwrap_or(Path::new("/"));
    let dir = if dir.ends_with("deps") { dir.parent().unwrap_or(dir) } else { dir };
    let path = dir.join(name);
    if let Some(cargo) = std::env::var_os("CARGO") {
        BUILT.get_or_init(|| build(&cargo, dir)).clone().map_err(std::io::Error::other)?;
    }
    if path.is_file() {
        return Ok(path);
    }
    Err(std::io::Error::other(format!("{} is missing: cargo build -p cold-testbed --bins", path.display())))
}

fn build(cargo: &std::ffi::OsStr, dir: &Path) -> Result<(), String> {
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--package", "cold-testbed", "--package", "cold-launch", "--bins"]);
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    if dir.ends_with("release") {
        command.arg("--release");
    }
    let output = command.output().map_err(|e| format!("cargo build: {e}"))?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// Writes a program of these bytes that everybody may execute, by another process: what a test beside this forks
/// meanwhile would hold a file of ours open for writing, and then nobody can execute it (`ETXTBSY`).
///
/// # Panics
/// Where it cannot be written.
pub fn executable(path: &Path, bytes: impl AsRef<[u8]>) {
    let mut shell = Command::new("sh");
    shell.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut shell = shell.spawn().expect("sh starts");
    let mut input = shell.stdin.take().expect("piped");
    input.write_all(bytes.as_ref()).expect("taken");
    drop(input);
    assert!(shell.wait().expect("ends").success(), "cannot write {}", path.display());
}
