//! Which plan a running process has, by what it was given.
//!
//! The start is told before the process has its new memory: until then `/proc/PID/cmdline` is that of the program
//! before. So first the executable is looked at, and an empty command line means "not yet".

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cold_launch::may_hang;
use cold_plan::plan::Key;
use cold_plan::scenario::{self, Command};
use cold_sys::procfs::Mount;

/// Most bytes that are read of a command line or an environment.
const MOST: u64 = 256 << 10;

/// What a process was given.
#[derive(Debug)]
pub(crate) enum Given {
    /// It has not become the program yet.
    NotYet,
    /// The plan of its arguments, if there were one, has this key.
    Plan(Box<Key>),
    /// That cannot be told.
    Unknown,
}

/// Of a process that was heard to execute `executable`, perhaps by executing `script`.
pub(crate) fn given(pid: i32, executable: &Path, script: Option<&Path>, mounts: &[Mount]) -> Given {
    let (Some(is), Ok(wanted)) = (exe_of(pid), executable.metadata()) else { return Given::NotYet };
    if is != (wanted.dev(), wanted.ino()) {
        return Given::NotYet;
    }
    let words = words(&read(pid, "cmdline"));
    if words.is_empty() {
        return Given::NotYet;
    }
    let key = key(pid, words, executable, script, mounts);
    key.map_or(Given::Unknown, |key| Given::Plan(Box::new(key)))
}

/// Device and inode of what it executes; `None` when it has ended, or is not ours to look at.
fn exe_of(pid: i32) -> Option<(u64, u64)> {
    let meta = std::fs::metadata(format!("/proc/{pid}/exe")).ok()?;
    Some((meta.dev(), meta.ino()))
}

fn key(
    pid: i32,
    words: Vec<OsString>,
    executable: &Path,
    script: Option<&Path>,
    mounts: &[Mount],
) -> Option<Key> {
    let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    if may_hang(mounts, &cwd)
        || words.iter().any(|w| is_path(w) && may_hang(mounts, cwd.join(w).components().as_path()))
    {
        return None;
    }
    let argv = match script {
        Some(script) => script_words(words, &cwd, script)?,
        None => program_words(words, executable),
    };
    let path = variable(&read(pid, "environ"), b"PATH=").map(|path| local(&path, mounts));
    scenario::find(&Command { argv: &argv, cwd: &cwd, path: path.as_deref() }, None).ok()
}

fn is_path(word: &OsStr) -> bool {
    word.as_bytes().first() == Some(&b'/')
}

/// The words of a program: by its path where it was called by its own name, so that it is not searched for.
fn program_words(mut words: Vec<OsString>, executable: &Path) -> Vec<OsString> {
    if let Some(first) = words.first_mut() {
        // A login shell's name begins with a dash (login(1)).
        let called = first.as_bytes().strip_prefix(b"-").unwrap_or(first.as_bytes());
        let name = Path::new(OsStr::from_bytes(called)).file_name();
        if name == executable.file_name() {
            executable.as_os_str().clone_into(first);
        }
    }
    words
}

/// The words of a script, which the kernel has put behind those of its interpreter: `INTERPRETER [ARGUMENT] SCRIPT …`.
fn script_words(words: Vec<OsString>, cwd: &Path, script: &Path) -> Option<Vec<OsString>> {
    let is_script = |word: &OsString| std::fs::canonicalize(cwd.join(word)).is_ok_and(|path| path == script);
    let at = (1..=2).find(|at| words.get(*at).is_some_and(is_script))?;
    Some(words.into_iter().skip(at).collect())
}

/// The script that a process executes by executing it itself, found among its words by `is_it`; the kernel has put it
/// behind the interpreter.
pub(crate) fn script(pid: i32, mounts: &[Mount], is_it: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    let words = words(&read(pid, "cmdline"));
    let paths = words.into_iter().skip(1).take(2).map(|word| cwd.join(word));
    let mut local =
        paths.filter(|path| !may_hang(mounts, path)).filter_map(|p| std::fs::canonicalize(p).ok());
    local.find(|path| is_it(path))
}

/// The directories of a PATH in which a name can be looked up without waiting for a server.
fn local(path: &OsStr, mounts: &[Mount]) -> OsString {
    let dirs = path.as_bytes().split(|b| *b == b':').map(|dir| PathBuf::from(OsStr::from_bytes(dir)));
    let dirs: Vec<Vec<u8>> =
        dirs.filter(|dir| !may_hang(mounts, dir)).map(|dir| dir.into_os_string().into_vec()).collect();
    OsString::from_vec(dirs.join(&b':'))
}

fn read(pid: i32, name: &str) -> Vec<u8> {
    use std::io::Read as _;
    let mut bytes = Vec::with_capacity(4096);
    if let Ok(file) = std::fs::File::open(format!("/proc/{pid}/{name}")) {
        // What ends meanwhile has no words.
        let _ = file.take(MOST).read_to_end(&mut bytes);
    }
    bytes
}

fn words(bytes: &[u8]) -> Vec<OsString> {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    bytes.split(|b| *b == 0).map(|word| OsStr::from_bytes(word).to_owned()).collect()
}

fn variable(environment: &[u8], name: &[u8]) -> Option<OsString> {
    let value = environment.split(|b| *b == 0).find_map(|entry| entry.strip_prefix(name))?;
    Some(OsStr::from_bytes(value).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(words: &[OsString]) -> Vec<&str> {
        words.iter().filter_map(|w| w.to_str()).collect()
    }

    #[test]
    fn words_and_variables_are_read_as_the_kernel_prints_them() {
        assert_eq!(text(&words(b"a\0\0b c\0")), ["a", "", "b c"]);
        assert!(words(b"").is_empty() && words(b"\0").is_empty());
        let environment = b"HOME=/x\0XPATH=/no\0PATH=/bin:/usr/bin\0";
        assert_eq!(variable(environment, b"PATH=").as_deref(), Some(OsStr::new("/bin:/usr/bin")));
        assert_eq!(variable(environment, b"LANG="), None);
    }

    #[test]
    fn a_program_called_by_its_own_name_is_not_searched_for() {
        let of = |first: &str| program_words(vec![first.into(), "-c".into()], Path::new("/bin/bash"));
        assert_eq!(text(&of("bash")), ["/bin/bash", "-c"]);
        assert_eq!(text(&of("-bash")), ["/bin/bash", "-c"]);
        assert_eq!(text(&of("./sh")), ["./sh", "-c"]);
    }

    #[test]
    fn a_scripts_words_begin_with_the_script() {
        let dir = tempfile::tempdir().expect("a directory");
        let script = dir.path().canonicalize().expect("there").join("tool");
        std::fs::write(&script, "#!/bin/sh\n").expect("written");
        let of = |words: &[&str]| {
            script_words(words.iter().map(OsString::from).collect(), script.parent().expect("has"), &script)
        };
        assert_eq!(text(&of(&["/bin/sh", "./tool", "x"]).expect("found")), ["./tool", "x"]);
        assert_eq!(text(&of(&["/bin/sh", "-e", "tool"]).expect("found")), ["tool"]);
        assert_eq!(of(&["/bin/sh", "-e", "-x", "tool"]), None);
    }

    #[test]
    fn the_arguments_of_a_running_process_give_the_key_that_learning_would() {
        let mut child = std::process::Command::new("/bin/sleep").args(["1000"]).spawn().expect("started");
        let pid = child.id().cast_signed();
        let exe = std::fs::canonicalize("/bin/sleep").expect("there");
        let key = (0..1000).find_map(|_| {
            if let Given::Plan(key) = given(pid, &exe, None, &[]) {
                return Some(key);
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
            None
        });
        let other = given(pid, Path::new("/bin/true"), None, &[]);
        child.kill().expect("killed");
        child.wait().expect("waited for");
        let argv: [OsString; 2] = ["sleep".into(), "7".into()];
        let command = Command { argv: &argv, cwd: Path::new("/"), path: Some(OsStr::new("/bin")) };
        let learnt = scenario::find(&command, None).expect("a key");
        let key = key.expect("seen");
        assert_eq!((key.executable, key.scenario), (learnt.executable, learnt.scenario));
        assert!(matches!(other, Given::NotYet), "{other:?}");
    }
}
