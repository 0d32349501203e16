//! From what the user typed to something that can be executed, checked before anything is done.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cold_model::Shown as _;
use cold_sys::search;

use crate::{Error, Result};

/// How a command line becomes a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shell {
    /// Split into words as a shell would and executed directly.
    None,
    /// Given to this shell's `-c`.
    Program(String),
}

/// Splits a command line, or wraps it for the shell; finds the program.
pub fn from_line(line: &str, shell: &Shell) -> Result<(PathBuf, Vec<OsString>)> {
    let argv: Vec<OsString> = match shell {
        Shell::None => shlex::split(line)
            .filter(|words| !words.is_empty())
            .ok_or_else(|| Error::Program {
                program: format!("{line:?}"),
                reason: "the command line is empty or a quote is not closed".into(),
            })?
            .into_iter()
            .map(Into::into)
            .collect(),
        Shell::Program(shell) => {
            // As hyperfine: the shell itself may have arguments ("bash --norc").
            let mut words = shlex::split(shell).filter(|w| !w.is_empty()).ok_or_else(|| Error::Program {
                program: format!("{shell:?}"),
                reason: "no shell is named".into(),
            })?;
            words.extend(["-c".to_owned(), line.to_owned()]);
            words.into_iter().map(Into::into).collect()
        }
    };
    from_argv(argv)
}

/// Finds the program of ready-made arguments.
pub fn from_argv(argv: Vec<OsString>) -> Result<(PathBuf, Vec<OsString>)> {
    let first = argv.first().map(OsString::as_os_str).unwrap_or_default();
    Ok((find(first, std::env::var_os("PATH").as_deref())?, argv))
}

/// The file that executing `name` means, searched along `path` (the value of PATH) as execvp(3) does.
fn find(name: &OsStr, path: Option<&OsStr>) -> Result<PathBuf> {
    let fail = |reason: String| Error::Program { program: name.to_string_lossy().into_owned(), reason };
    if name.is_empty() {
        return Err(fail("no command is given".into()));
    }
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return match executable(&path) {
            Ok(()) => Ok(path),
            Err(reason) => Err(fail(reason)),
        };
    }
    if let Some(found) = search::find(name, path, Path::new("")) {
        return Ok(found);
    }
    let seen = search::candidates(name, path).filter(|file| file.is_file());
    let mut reasons = seen.filter_map(|file| Some(format!("{} {}", file.shown(), executable(&file).err()?)));
    Err(fail(reasons.next().unwrap_or_else(|| "no such command in PATH".into())))
}

fn executable(path: &Path) -> std::result::Result<(), String> {
    let meta = path.metadata().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        _ => e.to_string(),
    })?;
    if !meta.is_file() {
        return Err(format!("is a {}, not a program", cold_sys::open::kind_of(&meta)));
    }
    if meta.permissions().mode() & 0o111 == 0 {
        return Err("is not executable (chmod +x?)".into());
    }
    if !search::may_execute(path) {
        return Err("may not be executed by this user, or lies on a file system mounted with noexec".into());
    }
    Ok(())
}

/// Arguments as one line a person can read and a shell can run.
pub fn line_of(argv: &[OsString]) -> String {
    let quoted: Vec<String> = argv
        .iter()
        .map(|a| {
            let text = a.to_string_lossy();
            shlex::try_quote(&text).map_or_else(|_| text.to_string(), std::borrow::Cow::into_owned)
        })
        .collect();
    quoted.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str, shell: &Shell) -> Vec<String> {
        let (_, argv) = from_line(line, shell).expect("found");
        argv.into_iter().map(|a| a.into_string().expect("utf-8")).collect()
    }

    #[test]
    fn words_and_shells() {
        assert_eq!(words("sh -c 'a b' \"c\"", &Shell::None), ["sh", "-c", "a b", "c"]);
        assert_eq!(words("x | y", &Shell::Program("sh -e".into())), ["sh", "-e", "-c", "x | y"]);
    }

    #[test]
    fn what_cannot_be_executed_says_why() {
        let why = |line: &str| from_line(line, &Shell::None).expect_err(line).to_string();
        assert_eq!(why("no-such-command-here x"), "no-such-command-here: no such command in PATH");
        assert_eq!(why("/etc/passwd"), "/etc/passwd: is not executable (chmod +x?)");
        assert_eq!(why("/tmp"), "/tmp: is a directory, not a program");
        assert_eq!(why("./missing"), "./missing: no such file");
        assert!(why("'open").contains("quote is not closed"));
    }

    #[test]
    fn a_line_reads_back() {
        let argv: Vec<OsString> = ["python3", "-c", "import json; x='1'"].map(Into::into).to_vec();
        let line = line_of(&argv);
        assert_eq!(shlex::split(&line).expect("splits"), ["python3", "-c", "import json; x='1'"]);
    }

    #[test]
    fn without_path_programs_are_looked_up_where_exec_will_look() {
        assert_eq!(find(OsStr::new("sh"), None).unwrap(), Path::new("/bin/sh"));
    }
}
