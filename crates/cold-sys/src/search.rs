//! From a command's name to the file that is executed: PATH as `execvp` searches it, `#!` as the kernel reads it.
//!
//! [`crate::exec`] searches by itself, along [`DEFAULT_PATH`] too: it allocates nothing, and asks by executing.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD};

/// Searched where PATH is not set, as glibc has it; the rules for a plan's key have the same.
pub const DEFAULT_PATH: &str = "/bin:/usr/bin";
/// Bytes of a script that the kernel looks at (`BINPRM_BUF_SIZE`).
pub const SHEBANG_BYTES: usize = 256;

/// The files that `name`, which has no slash, can mean along `path`, the value of PATH. An empty entry is the
/// working directory, where relative ones begin.
pub fn candidates(name: &OsStr, path: Option<&OsStr>) -> impl Iterator<Item = PathBuf> {
    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH));
    path.as_bytes().split(|b| *b == b':').map(move |dir| Path::new(OsStr::from_bytes(dir)).join(name))
}

/// What `execvp` would execute, were the working directory `cwd`: `name` itself where it has a slash, whatever it is
/// (executing it says what is wrong with it), else the first of the [`candidates`] that this process may execute.
pub fn find(name: &OsStr, path: Option<&OsStr>, cwd: &Path) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(name.into());
    }
    candidates(name, path).find(|file| may_execute(&cwd.join(file)))
}

/// Whether it is a regular file that this process may execute, with the rights it has now.
pub fn may_execute(file: &Path) -> bool {
    file.is_file() && rustix::fs::accessat(CWD, file, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

/// The interpreter of the script that begins with `head`, and its argument: the rest of the line, which may have
/// blanks within. `None` for what the kernel takes for no script (`load_script` in `fs/binfmt_script.c`).
pub fn shebang(head: &[u8]) -> Option<(&OsStr, &OsStr)> {
    let is_blank = |b: &u8| matches!(b, b' ' | b'\t');
    let head = head.get(..SHEBANG_BYTES).unwrap_or(head);
    let text = head.strip_prefix(b"#!")?;
    let line = text.split(|b| *b == b'\n').next()?;
    let line = line.get(line.iter().position(|b| !is_blank(b))?..)?;
    let end = line.iter().position(|b| is_blank(b) || *b == 0);
    // A name that goes on behind what the kernel looks at is not executed.
    let is_whole = head.len() < SHEBANG_BYTES || text.contains(&b'\n');
    let (interpreter, rest) = line.split_at(end.or(is_whole.then_some(line.len()))?);
    let rest = rest.split(|b| *b == 0).next()?;
    let first = rest.iter().position(|b| !is_blank(b)).unwrap_or(rest.len());
    let last = rest.iter().rposition(|b| !is_blank(b)).map_or(first, |at| at + 1);
    let words = (OsStr::from_bytes(interpreter), OsStr::from_bytes(rest.get(first..last)?));
    (!interpreter.is_empty()).then_some(words)
}

/// The words of a line that have no blank within.
pub fn words(line: &OsStr) -> impl Iterator<Item = OsString> {
    let words = line.as_bytes().split(|b| matches!(b, b' ' | b'\t')).filter(|word| !word.is_empty());
    words.map(|word| OsStr::from_bytes(word).to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    use super::*;

    fn script(path: &Path, text: &[u8], mode: u32) {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn the_first_file_that_may_be_executed_is_found() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["plain", "right", "later", "right/directory"] {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        script(&dir.path().join("plain/it"), b"", 0o644);
        std::fs::create_dir(dir.path().join("plain/directory")).unwrap();
        script(&dir.path().join("right/it"), b"", 0o755);
        script(&dir.path().join("later/it"), b"", 0o755);
        let found = |path: &str| find(OsStr::new("it"), Some(OsStr::new(path)), dir.path());
        assert_eq!(found("none:plain:right:later").unwrap(), Path::new("right/it"), "relative as in PATH");
        assert_eq!(found("none:plain"), None);
        script(&dir.path().join("it"), b"", 0o755);
        assert_eq!(found("none::right").unwrap(), Path::new("it"), "the working directory");
        assert!(!may_execute(&dir.path().join("right/directory")));
    }

    #[test]
    fn a_name_with_a_slash_is_the_file_itself() {
        for name in ["./sh", "/nowhere/sh", "bin/sh"] {
            assert_eq!(find(OsStr::new(name), Some(OsStr::new("/")), Path::new("/")), Some(name.into()));
        }
    }

    #[test]
    fn without_path_the_c_librarys_directories_are_searched() {
        assert_eq!(find(OsStr::new("sh"), None, Path::new("/")).unwrap(), Path::new("/bin/sh"));
    }

    #[test]
    fn a_first_line_is_read_as_the_kernel_reads_it() {
        let read = |head: &[u8]| {
            let words = shebang(head).map(|(i, a)| (i.as_bytes().to_vec(), a.as_bytes().to_vec()));
            words.map(|(i, a)| (String::from_utf8(i).unwrap(), String::from_utf8(a).unwrap()))
        };
        let is = |interpreter: &str, argument: &str| Some((interpreter.to_owned(), argument.to_owned()));
        assert_eq!(read(b"#!/bin/sh\n"), is("/bin/sh", ""));
        assert_eq!(read(b"#! \t/bin/env  -S a  b \t\nrest"), is("/bin/env", "-S a  b"));
        assert_eq!(read(b"#!/bin/sh"), is("/bin/sh", ""), "a file may end there");
        assert_eq!(read(b"#!/bin/sh\r\n"), is("/bin/sh\r", ""), "and so it is not found");
        assert_eq!(read(b"#!/bin/sh\0 -x\n"), is("/bin/sh", ""));
        for none in [&b"#!\n/bin/sh\n"[..], b"#!  \n", b"#! ", b"# !/bin/sh\n", b"\x7fELF", b""] {
            assert_eq!(read(none), None, "{none:?}");
        }
        let long = [&b"#!/"[..], &[b'a'; 300]].concat();
        assert_eq!(read(&long), None, "the name is cut");
        let argument = [&b"#!/bin/sh "[..], &[b'a'; 300]].concat();
        assert_eq!(read(&argument).unwrap().1.len(), SHEBANG_BYTES - 10, "an argument may be cut");
    }

    /// What the rules above are taken from.
    #[test]
    fn the_kernel_agrees() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("script");
        for line in [
            "#!/bin/echo a  b ",
            "#! \t/bin/echo\t-n x",
            "#!/bin/echo",
            "#!/bin/echo\r",
            "#!",
            "#! /bin/echo\0c d",
        ] {
            // By another process: while one that a test beside this forks holds it for writing it is not executed.
            let text = dir.path().join("text");
            std::fs::write(&text, format!("{line}\n")).unwrap();
            assert!(
                Command::new("install").args(["-m", "755"]).args([&text, &path]).status().unwrap().success()
            );
            // Where the kernel refuses it, execvp has a shell run it, which sees a comment.
            let ran = Command::new("/usr/bin/env").arg(&path).output().unwrap();
            let expected = match shebang(line.as_bytes()) {
                Some((interpreter, argument)) if interpreter == "/bin/echo" => {
                    let argument = (!argument.is_empty()).then_some(argument);
                    Command::new(interpreter).args(argument).arg(&path).output().unwrap().stdout
                }
                _ => Vec::new(),
            };
            assert_eq!(ran.stdout, expected, "{line:?}");
        }
    }
}
