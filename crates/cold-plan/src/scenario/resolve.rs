//! From a command's first word to the file that the kernel executes.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cold_sys::search;

use super::{Command, ScenarioError};

/// Interpreters that are scripts themselves: the kernel follows so many.
const NESTED: usize = 4;

/// A program found.
#[derive(Debug)]
pub(super) struct Program {
    /// Without symbolic links.
    pub(super) path: PathBuf,
    /// By which name it was called.
    pub(super) called: OsString,
    /// Where it will run.
    pub(super) cwd: PathBuf,
    /// The PATH it will have.
    search: Option<OsString>,
}

/// The program that a command runs in the end, `env` looked through, and its arguments.
pub(super) fn program(command: &Command<'_>) -> Result<(Program, Vec<OsString>), ScenarioError> {
    let mut at = SearchContext { cwd: command.cwd.to_owned(), search: command.path.map(OsStr::to_owned) };
    let mut argv = command.argv.to_vec();
    loop {
        let word = argv.first().ok_or(ScenarioError::NoCommand)?.clone();
        let path = at.executable(&word)?;
        let called = Path::new(&word).file_name().unwrap_or(&word).to_owned();
        if called == "env"
            && let Some((inner, place)) = through_env(&argv, &at)
        {
            // Its arguments become fewer each time, so this ends.
            (argv, at) = (inner, place);
            continue;
        }
        let program = Program { path, called, cwd: at.cwd, search: at.search };
        return Ok((program, argv.into_iter().skip(1).collect()));
    }
}

/// The interpreter of a script, without symbolic links; `None` for what is no script.
pub(super) fn shebang(program: &Program) -> Result<Option<PathBuf>, ScenarioError> {
    let place = SearchContext { cwd: program.cwd.clone(), search: program.search.clone() };
    let mut file = program.path.clone();
    for _ in 0..=NESTED {
        let Some((interpreter, argv)) = first_line(&file)? else {
            return Ok((file != program.path).then_some(file));
        };
        let by_env = Path::new(&interpreter).file_name() == Some(OsStr::new("env"));
        file = match by_env.then(|| through_env(&argv, &place)).flatten() {
            Some((inner, place)) => {
                let word = inner.first().ok_or(ScenarioError::NoCommand)?;
                place.executable(word)?
            }
            // The kernel takes it as a path, relative to the working directory.
            None => canonical(&place.cwd.join(&interpreter))?,
        };
    }
    Err(ScenarioError::Nested(program.path.clone()))
}

/// Where and along which PATH names are looked up.
#[derive(Debug, Clone)]
struct SearchContext {
    cwd: PathBuf,
    search: Option<OsString>,
}

impl SearchContext {
    /// As `execvp` finds it: with a slash as it is, else along PATH.
    fn executable(&self, word: &OsStr) -> Result<PathBuf, ScenarioError> {
        match search::find(word, self.search.as_deref(), &self.cwd) {
            Some(file) if !word.is_empty() => canonical(&self.cwd.join(file)),
            _ => Err(ScenarioError::NotFound(word.to_owned())),
        }
    }
}

fn canonical(path: &Path) -> Result<PathBuf, ScenarioError> {
    std::fs::canonicalize(path).map_err(|source| ScenarioError::Io { path: path.to_owned(), source })
}

/// The interpreter of a script and its argument vector; `None` for what is no script, or cannot be read (an
/// executable need not be readable, a script must be). The kernel passes all arguments as one; `env -S` splits it,
/// and to others it does not matter here.
fn first_line(path: &Path) -> Result<Option<(OsString, Vec<OsString>)>, ScenarioError> {
    let io = |source| ScenarioError::Io { path: path.to_owned(), source };
    let Ok((file, _)) = cold_sys::open::regular(path, false) else { return Ok(None) };
    // Without, the kernel reads four pages and marks the second: when the program touches it, the kernel reads ahead
    // from there on, on a disk with a window of 8 MiB 3 MiB of `python3.11`, in front of what is needed sooner.
    let _ = cold_sys::evict::advise_random(&file);
    let mut bytes = Vec::with_capacity(search::SHEBANG_BYTES);
    file.take(search::SHEBANG_BYTES as u64).read_to_end(&mut bytes).map_err(io)?;
    let Some((interpreter, argument)) = search::shebang(&bytes) else { return Ok(None) };
    let argv = std::iter::once(interpreter.to_owned()).chain(search::words(argument));
    Ok(Some((interpreter.to_owned(), argv.collect())))
}

/// The command inside `env …`, and where it is looked up; `None` when there is none, or behind options
/// that this does not know.
fn through_env(argv: &[OsString], at: &SearchContext) -> Option<(Vec<OsString>, SearchContext)> {
    let mut place = at.clone();
    let mut rest = argv.iter().skip(1);
    while let Some(word) = rest.next() {
        let bytes = word.as_bytes();
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let (name, value) = text.split_once('=').map_or((text, None), |(n, v)| (n, Some(v)));
        match (name, value) {
            ("--", None) => {
                let inner: Vec<OsString> = rest.cloned().collect();
                return (!inner.is_empty()).then_some((inner, place));
            }
            ("-i" | "-" | "--ignore-environment", None) => place.search = None,
            ("-0" | "-v" | "--null" | "--debug", None) => {}
            ("-u" | "--unset", value) => {
                let unset = value.map_or_else(|| rest.next().cloned(), |v| Some(v.into()))?;
                if unset == "PATH" {
                    place.search = None;
                }
            }
            ("-C" | "--chdir", value) => {
                let dir = value.map_or_else(|| rest.next().cloned(), |v| Some(v.into()))?;
                place.cwd = place.cwd.join(dir);
            }
            ("-S" | "--split-string", value) => {
                let line = value.map_or_else(|| rest.next().cloned(), |v| Some(v.into()))?;
                let mut inner = vec![argv.first()?.clone()];
                inner.extend(search::words(&line));
                inner.extend(rest.cloned());
                return through_env(&inner, &place);
            }
            _ if bytes.starts_with(b"-") => return None,
            _ if bytes.contains(&b'=') => {
                if let Some(path) = bytes.strip_prefix(b"PATH=") {
                    place.search = Some(OsStr::from_bytes(path).to_owned());
                }
            }
            _ => return Some((std::iter::once(word.clone()).chain(rest.cloned()).collect(), place)),
        }
    }
    None
}
