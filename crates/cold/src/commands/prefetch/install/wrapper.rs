//! A script that starts a program through the launcher.

use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cold_model::Shown as _;
use cold_sys::search;

use super::files::{self, Piece};
use super::{Override, Result, trust};
use crate::commands::prefetch::launcher::{Call, quoted, unquoted};
use crate::exit::Failure;

/// What a shell replaces by the arguments.
const ARGUMENTS: &str = "$@";
/// Wrappers that start wrappers, before that is called a loop.
const MOST_WRAPPERS: usize = 16;
/// Longer ones are not ours: four paths and some words.
const MOST_BYTES: u64 = 64 << 10;

/// The script at `path` for `program`, or for the next program of its name in PATH.
pub(super) fn make(path: &Path, program: Option<&Path>, call: &Call) -> Result<Override> {
    let path = std::path::absolute(path)?;
    let name = path.file_name().ok_or_else(|| Failure::usage(format!("{}: no file", path.shown())))?;
    let program = match program {
        Some(program) => named(&std::path::absolute(program)?)?,
        None => trust::chosen(next_in_path(Path::new(name), &path)?)?,
    };
    if same(&program, &path) {
        return Err(Failure::usage(format!("{} would start itself", path.shown())));
    }
    let how = named_by(&path);
    let words = [&quoted(&[program.into()])[..], b" \"", ARGUMENTS.as_bytes(), b"\""].concat();
    let body = [&call.shell_lines(&words, b"\n")[..], b"\n"].concat();
    let text = files::sealed("#!/bin/sh\n", &how, None, &body);
    Ok(Override { pieces: vec![Piece { path, text, mode: files::SCRIPT }], next: None })
}

/// The words by which `install` and `uninstall` mean the wrapper at this place.
pub(super) fn named_by(path: &Path) -> String {
    format!("--wrapper {}", cold_bench::command::line_of(&[path.into()]))
}

/// Whether a wrapper of ours is there, edited or not.
pub(super) fn is_one(path: &Path) -> bool {
    text_of_wrapper(path).is_some()
}

/// The program that the user named; where that is a wrapper, the one that it starts.
fn named(program: &Path) -> Result<PathBuf> {
    let meta = program
        .metadata()
        .map_err(|e| Failure::usage(format!("cannot look at the program {}: {e}", program.shown())))?;
    if !can_be_executed(&meta) {
        return Err(Failure::usage(format!("{} is no program that can be started", program.shown())));
    }
    real(program).ok_or_else(|| {
        Failure::usage(format!("{} is a wrapper whose program is not there any more", program.shown()))
            .hint("name the program itself")
    })
}

/// The first program of that name in PATH which is not the script itself. A wrapper in another directory of PATH
/// stands for the program that it starts: two that start each other would never end.
fn next_in_path(name: &Path, script: &Path) -> Result<PathBuf> {
    let path = std::env::var_os("PATH");
    // What a relative directory means changes with the directory that the script is called in.
    let all = search::candidates(name.as_os_str(), path.as_deref()).filter(|file| file.is_absolute());
    let candidates = all.filter(|p| executable(p) && !same(p, script));
    candidates.filter_map(|p| real(&p)).find(|program| !same(program, script)).ok_or_else(|| {
        Failure::usage(format!("there is no other {} in PATH", name.shown())).hint("name it with --program")
    })
}

/// The program behind any number of our wrappers; `None` where they lead nowhere.
fn real(program: &Path) -> Option<PathBuf> {
    let mut program = program.to_owned();
    for _ in 0..MOST_WRAPPERS {
        let Some(text) = text_of_wrapper(&program) else { return Some(program) };
        program = program_of(&text).filter(|p| executable(p))?;
    }
    None
}

/// The text of a script that this command wrote, edited or not.
fn text_of_wrapper(path: &Path) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let (file, _) = cold_sys::open::regular(path, true).ok()?;
    file.take(MOST_BYTES).read_to_end(&mut text).ok()?;
    files::is_marked(&text).then_some(text)
}

/// What a wrapper starts: the word before the arguments at its end.
fn program_of(text: &[u8]) -> Option<PathBuf> {
    let mut words = unquoted(text)?;
    (words.pop()? == ARGUMENTS).then_some(())?;
    words.pop().map(PathBuf::from).filter(|p| p.is_absolute())
}

fn executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| can_be_executed(&meta))
}

fn can_be_executed(meta: &Metadata) -> bool {
    meta.is_file() && meta.permissions().mode() & 0o111 != 0
}

fn same(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(path: &str, program: &str) -> Result<Vec<u8>> {
        let call = Call::to("/usr/bin/cold-launch");
        Ok(make(Path::new(path), Some(Path::new(program)), &call)?.pieces.remove(0).text)
    }

    #[test]
    fn it_starts_the_program_and_never_itself() {
        let text = String::from_utf8(made("/opt/my bin/sh", "/bin/sh").expect("made")).expect("text");
        let body: Vec<&str> = text.lines().filter(|l| !l.starts_with('#')).collect();
        let launch = "[ -x /usr/bin/cold-launch ] && exec /usr/bin/cold-launch -- /bin/sh \"$@\"";
        assert_eq!(body, [launch, "exec /bin/sh \"$@\""]);
        assert!(text.starts_with("#!/bin/sh\n# Written by") && text.contains("--wrapper '/opt/my bin/sh'"));
        assert!(made("/bin/sh", "/bin/sh").is_err());
        assert!(made("/opt/x", "/etc/passwd").is_err(), "cannot be executed");
    }

    #[test]
    fn a_wrapper_tells_its_program_also_one_from_before_there_was_a_way_back() {
        let text = made("/opt/x", "/bin/sh").expect("made");
        assert_eq!(program_of(&text).as_deref(), Some(Path::new("/bin/sh")));
        let old = b"#!/bin/sh\n# Written by `cold prefetch install`.\n# it's\nexec /a/cold-launch -- '/b c/d' \"$@\"\n";
        assert_eq!(program_of(old).as_deref(), Some(Path::new("/b c/d")));
        assert_eq!(program_of(b"#!/bin/sh\nexec /bin/sh -c x\n"), None);
    }
}
