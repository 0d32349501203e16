//! Which plan a command line asks for: its executable, its script, its scenario.
//!
//! Only looks names up and reads the first bytes of the executable, as the kernel will. Operands of the
//! command are never looked up: a hanging mount must not hold a start back, and the same words must
//! give the same scenario in every directory. docs/concepts/scenarios.md states the rules for users;
//! they never change, or plans would be lost.

mod interpreters;
mod resolve;
mod shape;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cold_model::Shown as _;
use cold_model::hash::fnv1a64;

use crate::plan::{Identity, Key};
use interpreters::Runs;
use shape::Shape;

/// Longest name of a scenario.
pub const MAX_NAME: usize = 64;

/// A command line as `execvp` gets it, and what it depends on.
#[derive(Debug, Clone, Copy)]
pub struct Command<'a> {
    /// The program and its arguments.
    pub argv: &'a [OsString],
    /// The working directory.
    pub cwd: &'a Path,
    /// The variable PATH, where it is set.
    pub path: Option<&'a OsStr>,
}

/// Why a command line has no key.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// Nothing to start.
    #[error("no command was given")]
    NoCommand,
    /// The program is not there.
    #[error("cannot find the program {}: no executable file of this name in PATH", .0.shown())]
    NotFound(OsString),
    /// It is there and cannot be looked at.
    #[error("cannot look at the program {path}: {source}")]
    Io {
        /// The program, the script or its interpreter, whichever was looked at.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// Scripts that interpret each other without end, as the kernel refuses too.
    #[error("{0} names an interpreter that is a script itself, more than four times in a row")]
    Nested(PathBuf),
    /// Not a name that a user may give.
    #[error("{0:?} is no name of a scenario: 1 to 64 of the characters A-Z a-z 0-9 . _ -")]
    Name(String),
}

/// The key of a command. Its scenario is `scenario` where given, else derived from the arguments.
///
/// The build-id of the identity is left zero: whoever needs it reads the file.
pub fn find(command: &Command<'_>, scenario: Option<&str>) -> Result<Key, ScenarioError> {
    if let Some(name) = scenario {
        check_name(name)?;
    }
    let (program, arguments) = resolve::program(command)?;
    let interpreted = resolve::shebang(&program)?;
    let mut shape = Shape::default();
    let by_name = interpreters::named(&program.called);
    let by_path = || program.path.file_name().and_then(interpreters::named);
    // A script of an interpreter's name is a wrapper of it (pyenv, asdf, nvm): what it is given to run
    // tells its starts apart.
    let runner = if interpreted.is_some() { by_name } else { by_name.or_else(by_path) };
    let (inner, rest) = if let Some(runner) = runner {
        let (runs, used) = runner.runs(&arguments);
        if interpreted.is_some() {
            shape.named(&program.called);
        }
        shape.runs(&runs);
        (script_of(&runs, &program.cwd), arguments.get(used..).unwrap_or_default())
    } else {
        shape.called(&program.called, &program.path);
        (None, &arguments[..])
    };
    let (executable, script) = match interpreted {
        Some(interpreter) => (interpreter, Some(inner.unwrap_or(program.path))),
        None => (program.path, inner),
    };
    let name = match scenario {
        Some(name) => name.to_owned(),
        None => shape.name(rest),
    };
    let meta =
        executable.metadata().map_err(|source| ScenarioError::Io { path: executable.clone(), source })?;
    Ok(Key { identity: Identity::of(&meta, [0; 20]), executable, script, scenario: name })
}

/// The script or archive, without symbolic links; none where it does not exist.
fn script_of(runs: &Runs<'_>, cwd: &Path) -> Option<PathBuf> {
    let canonical = |p: &OsStr| std::fs::canonicalize(cwd.join(p)).ok();
    match runs {
        Runs::Script(path) => canonical(path),
        // Two programs may call their main class the same: the first archive tells them apart.
        Runs::Main { class_path: Some(class_path), .. } => class_path
            .as_bytes()
            .split(|b| *b == b':')
            .filter(|p| !p.is_empty())
            .find_map(|p| canonical(OsStr::from_bytes(p))),
        _ => None,
    }
}

/// Checks a name that a user gives.
pub fn check_name(name: &str) -> Result<(), ScenarioError> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    if (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(fits) {
        Ok(())
    } else {
        Err(ScenarioError::Name(name.to_owned()))
    }
}

/// It is a name that a user can give or that is derived.
pub fn is_valid(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(|b| shape::plain(b) || b == b'~')
}

/// The number in a plan's file name: FNV-1a (64 bit) of executable, zero byte, script (nothing when
/// there is none), zero byte, scenario. Never changes.
pub fn key_hash(key: &Key) -> u64 {
    let script = key.script.as_deref().map(|p| p.as_os_str().as_bytes()).unwrap_or_default();
    fnv1a64(&[key.executable.as_os_str().as_bytes(), b"\0", script, b"\0", key.scenario.as_bytes()])
}

#[cfg(test)]
mod tests;
