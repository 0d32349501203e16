//! What lies where in an executable file: the input for reports by section and symbol.
//!
//! Filled by `cold-symbols`, which reads files; used by `cold-analyze`, which does not.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;

use crate::order::TracedFile;
use crate::pages::Runs;
use crate::path_text;
use crate::recording::{FileIdx, Frame};

/// A loadable segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Bytes in the file.
    pub bytes: u64,
    /// Virtual address of its first byte, as the program header has it: before relocation.
    pub address: u64,
    /// `r--`, `r-x`, `rw-`.
    pub access: String,
}

/// A section with bytes in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Name (`.text`).
    pub name: String,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Bytes in the file.
    pub bytes: u64,
    /// Virtual address; 0 when it is not loaded.
    pub address: u64,
}

/// A function or object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Demangled name; as the symbol table has it where it cannot be demangled.
    pub name: String,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Bytes; 0 where the table does not say.
    pub bytes: u64,
}

/// One file's layout.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileLayout {
    /// Loadable segments, by offset.
    pub segments: Vec<Segment>,
    /// Sections with bytes in the file, by offset.
    pub sections: Vec<Section>,
    /// Symbols, by offset, without duplicates at one offset.
    pub symbols: Vec<Symbol>,
    /// Where the symbols come from (`.symtab`, `/usr/lib/debug/…`, `.dynsym only`); empty: none.
    pub symbols_from: String,
    /// Facts for the advice: relative relocations (`R_*_RELATIVE`) in plain form, and whether the file
    /// has them packed (`DT_RELR`).
    pub relative_relocations: u64,
    /// The dynamic section has `DT_RELR`: relative relocations are packed.
    pub relr: bool,
    /// Libraries it needs directly: names in `DT_NEEDED`, in the order of the dynamic section.
    pub needed: Vec<String>,
    /// `DT_RPATH` or `DT_RUNPATH`, split, as written.
    pub run_path: Vec<String>,
}

/// One function of a frame; a frame with inlined calls has several, innermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameName {
    /// Demangled function name.
    pub function: String,
    /// Source file, where known.
    pub source: Option<String>,
    /// Source line, where known.
    pub line: Option<u32>,
    /// Inlined into the next one.
    pub inlined: bool,
}

/// In which order starts entered a file's functions, by traces of the same build (`cold layout trace`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traced {
    /// The file, with all functions that the first of the traces knows.
    pub file: TracedFile,
    /// One per trace, what counts most first; at least one.
    pub scenarios: Vec<TracedScenario>,
}

impl Traced {
    /// The first trace of this command; else of its arguments, where the program was called by another path.
    pub fn of_command(&self, command: &[OsString]) -> Option<&TracedScenario> {
        let words: Vec<String> = command.iter().map(path_text::encode).collect();
        let apart = |words: &'_ [String]| {
            let (program, arguments) = words.split_first()?;
            Some((path_text::base(program).to_owned(), arguments.to_vec()))
        };
        let same = |s: &&TracedScenario| s.command == words;
        let same_arguments = |s: &&TracedScenario| apart(&s.command) == apart(&words);
        self.scenarios.iter().find(same).or_else(|| self.scenarios.iter().find(same_arguments))
    }
}

/// What one trace tells of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedScenario {
    /// Name of the scenario that was traced.
    pub name: String,
    /// The command that was traced, words as in [`crate::path_text`].
    pub command: Vec<String>,
    /// The directory that holds it.
    pub from: PathBuf,
    /// Indices of functions of [`Traced::file`], each once, in the order of first entries.
    pub entered: Vec<u32>,
    /// Pages of the file's data that processes of the start had written to when they ended; `None`: not told.
    pub written: Option<Runs>,
}

/// Everything known about the files of one recording.
#[derive(Debug, Clone, Default)]
pub struct Layouts {
    /// Per file of the recording.
    pub files: BTreeMap<FileIdx, FileLayout>,
    /// Names of frames.
    pub frames: HashMap<Frame, Vec<FrameName>>,
    /// Why a file has no layout, or its symbols are missing (`not on this machine`, `build-id differs`).
    pub missing: BTreeMap<FileIdx, String>,
    /// First entries of functions, where traces of the same build were at hand.
    pub traced: BTreeMap<FileIdx, Traced>,
}
