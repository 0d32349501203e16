//! Scripts of the Response Probe (.SCR, .SCP, .SCT): read, run, and its table of results.
//!
//! A trial is described by three kinds of files. A `.SCR` names the processes, a `.SCP` the threads of one
//! process, a `.SCT` what one thread does. Keywords may be written in either case; `#` begins a comment.
//! File names are those of the scripts' own directory; a backslash separates directories as a slash does.

mod out;
mod parse;
mod run;

use std::path::{Path, PathBuf};

use cold_model::Shown as _;
use cold_sys::open;

use crate::spec::{Act, Mode};
use crate::variate::Normal;

pub use out::table;
pub use parse::{process, script, thread};
pub use run::{Ran, ScriptOptions, run, run_until_it_repeats};

/// Most bytes of a script file.
const LARGEST: u64 = 1 << 20;
/// Most processes of a script, and threads of a process, repetitions included.
pub(crate) const MOST: u64 = 256;

/// A mistake in a script: where, and what.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {why}", path.shown())]
pub struct Mistake {
    /// The `.SCR`, `.SCP` or `.SCT` it is in.
    pub path: PathBuf,
    /// Its line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub why: String,
}

/// A `PROCESS` line of a `.SCR`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessLine {
    /// Line in the `.SCR`, from 1.
    pub line: usize,
    /// Processes that it makes (`REPEAT n`), 1 where it does not say.
    pub repeat: u64,
    /// The `.SCP`.
    pub file: String,
    /// Pages of the data space.
    pub data_pages: u64,
    /// The file whose pages are the code space; `None` for the built-in one (version 2.1).
    pub code_file: Option<String>,
    /// The process's name.
    pub name: Option<String>,
    /// Its priority: I, N, H or R.
    pub class: Option<char>,
}

/// A `THREAD` line of a `.SCP`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadLine {
    /// Line in the `.SCP`, from 1.
    pub line: usize,
    /// Threads that it makes (`REPEAT n`), 1 where it does not say.
    pub repeat: u64,
    /// The `.SCT`.
    pub file: String,
    /// Name of its priority in full (`AboveNormal`), where one is stated.
    pub priority: Option<String>,
}

/// A `.SCT`.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadScript {
    /// Pause before each cycle, milliseconds (`THINKTIME`).
    pub think: Normal,
    /// Turns of action and computing per cycle.
    pub reads: Normal,
    /// Record at which an action begins (`FILESEEK`); unused where `sequential`.
    pub seek: Normal,
    /// Computing after each action, milliseconds (`CPUTIME`).
    pub cpu: Normal,
    /// Number of the data page that computing writes (`DATAPAGE`).
    pub data: Normal,
    /// Number of the code page that computing reads (`CODEPAGE`).
    pub code: Normal,
    /// The file to read or write, as the script names it (`FILEACCESS`).
    pub access: String,
    /// One record after another.
    pub sequential: bool,
    /// How it is reached.
    pub mode: Mode,
    /// Bytes of a record (`RECORDSIZE`); 4096 where it does not say.
    pub record: u64,
    /// What is done.
    pub action: Vec<Act>,
}

/// Everything a script says.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// Where the files that it names are looked for.
    pub directory: PathBuf,
    /// Its processes with their threads.
    pub processes: Vec<(ProcessLine, Vec<(ThreadLine, ThreadScript)>)>,
}

/// The nice value for a process's class and a thread's priority. Windows NT ranks threads from 1 to 31 (normal
/// is 8) and lets the higher one run first; here a rank more is 3 nice values less, which is about twice the
/// share of a busy processor.
pub fn nice(class: Option<char>, priority: Option<&str>) -> i32 {
    let realtime = class == Some('R');
    let base = match class {
        Some('I') => 4,
        Some('H') => 13,
        Some('R') => 24,
        _ => 8,
    };
    let rank = match priority {
        Some("TimeCritical") => 15 + 16 * i32::from(realtime),
        Some("Highest") => base + 2,
        Some("AboveNormal") => base + 1,
        Some("BelowNormal") => base - 1,
        Some("Lowest") => base - 2,
        Some("Idle") => 1 + 15 * i32::from(realtime),
        _ => base,
    };
    (3 * (8 - rank)).clamp(-20, 19)
}

/// Reads a `.SCR` and all files it names.
pub fn load(path: &Path) -> crate::Result<Loaded> {
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned();
    let mut processes = Vec::new();
    for p in script(path, &text(path)?)? {
        let file = find(&directory, &p.file);
        let named = |e: crate::Error| named_by(path, p.line, &e);
        let mut threads = Vec::new();
        for t in process(&file, &text(&file).map_err(named)?)? {
            let of = find(&directory, &t.file);
            let found = text(&of).map_err(|e| named_by(&file, t.line, &e))?;
            threads.push((t, thread(&of, &found)?));
        }
        processes.push((p, threads));
    }
    Ok(Loaded { directory, processes })
}

/// A file that cannot be read is a mistake of the line that names it.
fn named_by(path: &Path, line: usize, e: &crate::Error) -> crate::Error {
    Mistake { path: path.to_owned(), line, why: e.to_string() }.into()
}

fn text(path: &Path) -> crate::Result<String> {
    let (file, meta) = open::regular(path, true)?;
    let Some(bytes) = open::content(&file, LARGEST).map_err(crate::Error::io("read", path))? else {
        let why = format!("it has {} bytes; a script has at most {LARGEST}", meta.len());
        return Err(Mistake { path: path.to_owned(), line: 0, why }.into());
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A name of a script as it lies in the directory: as written, else in whatever case it has there (the
/// scripts come from a file system that made no difference).
pub(crate) fn find(directory: &Path, name: &str) -> PathBuf {
    let name = name.replace('\\', "/");
    let exact = directory.join(&name);
    if exact.exists() {
        return exact;
    }
    let parent = exact.parent().unwrap_or(directory);
    let wanted = exact.file_name().map(|n| n.to_string_lossy().to_lowercase());
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let same = |e: &std::fs::DirEntry| Some(e.file_name().to_string_lossy().to_lowercase()) == wanted;
    entries.into_iter().find(same).map_or(exact, |e| e.path())
}

#[cfg(test)]
mod tests;
