//! In which order starts entered a program's functions: what a trace of first entries tells.
//!
//! Filled by `cold_sys::observe::entries`, with tables that `cold-symbols` reads; stored by `cold-recording`; made
//! into order files by `cold-layout`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::bench::Ending;
use crate::{Nanos, path_text};

/// A part of a file that is mapped executable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// Where it lies in the file, in bytes.
    pub offset: u64,
    /// Bytes that the file has of it.
    pub bytes: u64,
    /// Address that the file states for its first byte.
    pub address: u64,
}

/// A function of a traced file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// Address of its first instruction, as the file states it.
    pub address: u64,
    /// Its length in bytes; 0 when it is not known.
    pub bytes: u64,
    /// Its names as the symbol tables have them, the best first; none in a stripped file.
    pub names: Vec<String>,
    /// Who knows it: `symtab`, `debug_file`, `eh_frame`, `dynsym`.
    pub sources: Vec<String>,
}

impl Function {
    /// Its best name.
    pub fn name(&self) -> Option<&str> {
        self.names.first().map(String::as_str)
    }
}

/// How a program is linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Linked {
    /// At a fixed address, with a dynamic loader.
    Fixed,
    /// At any address, with a dynamic loader.
    Pie,
    /// At a fixed address, without a loader.
    Static,
    /// At any address, relocating itself.
    StaticPie,
    /// A shared library.
    Library,
}

/// A file whose functions were traced, with all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedFile {
    /// As the kernel named it when it was mapped.
    #[serde(with = "path_text")]
    pub path: PathBuf,
    /// Build-id in hexadecimal.
    pub build_id: Option<String>,
    /// How it is linked.
    pub linked: Linked,
    /// Made by Go's linker, which describes functions by a table of its own.
    pub is_go: bool,
    /// Its executable parts, by address.
    pub texts: Vec<Text>,
    /// By address, each address once.
    pub functions: Vec<Function>,
}

impl TracedFile {
    /// Where the instruction at `address` lies in the file.
    pub fn offset_of(&self, address: u64) -> Option<u64> {
        self.texts.iter().find_map(|t| {
            let inside = address.checked_sub(t.address).filter(|inside| *inside < t.bytes)?;
            t.offset.checked_add(inside)
        })
    }

    /// The function that holds the byte at `offset` of the file, by its index.
    pub fn function_at(&self, offset: u64) -> Option<usize> {
        let address = self.texts.iter().find_map(|t| {
            let inside = offset.checked_sub(t.offset).filter(|inside| *inside < t.bytes)?;
            t.address.checked_add(inside)
        })?;
        let n = self.functions.partition_point(|f| f.address <= address).checked_sub(1)?;
        let function = self.functions.get(n)?;
        (address - function.address < function.bytes.max(1)).then_some(n)
    }
}

/// The first time that any thread of a start entered a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstEntry {
    /// Since the exec of the program.
    pub at: Nanos,
    /// Id of the process.
    pub pid: u32,
    /// Id of the thread.
    pub tid: u32,
    /// Index of the file.
    pub file: u32,
    /// Index of the function in that file.
    pub function: u32,
}

/// A process that died in a way that breakpoints in code which reads or copies itself would explain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crash {
    /// Id of the process.
    pub pid: u32,
    /// The signal that killed it.
    pub signal: i32,
    /// Where it was: a function, or a file and an offset, or outside of all files.
    pub place: String,
    /// The function whose copy it executed, with its file: the code was copied with a breakpoint in it.
    pub copied: Option<String>,
    /// What `--exclude` takes to leave out the code in question, where that is known.
    pub exclude: Option<String>,
}

/// How a traced start went, and what tracing it took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartFacts {
    /// How the command ended.
    pub ending: Ending,
    /// Processes of the tree.
    pub processes: u64,
    /// Threads beside the first of each process.
    pub threads: u64,
    /// From the exec to the end of the tree, under tracing, nanoseconds.
    pub duration_ns: u64,
    /// What reading of its files took where their functions begin, nanoseconds; 0 also in traces of an earlier version.
    #[serde(default)]
    pub reading_ns: u64,
    /// Breakpoints that were set, in all processes.
    pub planted: u64,
    /// What setting them took, nanoseconds.
    pub planting_ns: u64,
    /// Stops at breakpoints: more than entries, because forked processes and threads that arrive together stop too.
    pub stops: u64,
    /// What the tracer did at these stops, without the switches to it and back, nanoseconds.
    pub handling_ns: u64,
    /// Processes that breakpoints may have killed.
    pub crashes: Vec<Crash>,
    /// Remarks for the reader: what could not be traced, and why.
    pub notes: Vec<String>,
    /// What processes had written to of files' data when they ended; `None`: a trace of an earlier version.
    #[serde(default)]
    pub written: Option<Vec<Written>>,
}

/// Pages of a file that a start wrote to, through private mappings that are not executable: each became a copy. Those of
/// a process that executed another program, or was killed, are not seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Index of the file.
    pub file: u32,
    /// Runs of its pages, each once: first page and number of pages.
    pub pages: Vec<(u64, u64)>,
}

/// One traced start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedStart {
    /// Files with executable code that the tree mapped.
    pub files: Vec<TracedFile>,
    /// In the order of time, each function at most once.
    pub entries: Vec<FirstEntry>,
    /// How it went.
    pub facts: StartFacts,
}

/// Traced starts of one scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// Name of the scenario that was traced.
    pub scenario: String,
    /// The command line, with words as [`path_text`] writes them.
    pub command: Vec<String>,
    /// The kernel's release.
    pub kernel: String,
    /// Files with executable code that a start mapped and that have functions.
    pub files: Vec<TracedFile>,
    /// One per start; entries refer to `files`.
    pub repeats: Vec<Repeat>,
}

/// One start of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeat {
    /// In the order of time, each function at most once.
    pub entries: Vec<FirstEntry>,
    /// How it went.
    pub facts: StartFacts,
}

impl Trace {
    /// Adds a start. A file that changed since the start before counts as another.
    pub fn add(&mut self, start: TracedStart) {
        let mut number = Vec::with_capacity(start.files.len());
        for file in start.files {
            let known = self.files.iter().position(|f| *f == file);
            let at = known.unwrap_or_else(|| {
                self.files.push(file);
                self.files.len() - 1
            });
            number.push(u32::try_from(at).unwrap_or(u32::MAX));
        }
        let moved = |e: FirstEntry| Some(FirstEntry { file: *number.get(e.file as usize)?, ..e });
        let entries = start.entries.into_iter().filter_map(moved).collect();
        let mut facts = start.facts;
        for written in facts.written.iter_mut().flatten() {
            written.file = number.get(written.file as usize).copied().unwrap_or(u32::MAX);
        }
        self.repeats.push(Repeat { entries, facts });
    }

    /// The file and function of an entry.
    pub fn function(&self, entry: &FirstEntry) -> Option<(&TracedFile, &Function)> {
        let file = self.files.get(entry.file as usize)?;
        Some((file, file.functions.get(entry.function as usize)?))
    }
}

/// How a start is traced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tracing {
    /// Code that gets no breakpoints.
    pub exclude: Vec<Exclude>,
    /// Goes on in processes that handle SIGTRAP, though they may lose their handler by that.
    pub own_traps: bool,
}

/// What of a program is not to be traced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exclude {
    /// A file, by its whole path or its last part; `None`: any.
    file: Option<String>,
    code: Code,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Code {
    All,
    /// Names, `*` at an end stands for anything.
    Named(String),
    /// Addresses as the file states them.
    Range(u64, u64),
}

impl Exclude {
    /// `FILE:`, `[FILE:]NAME` or `[FILE:]0xFIRST-0xEND`; a `NAME` may begin or end with `*`.
    ///
    /// # Errors
    /// Says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        // Names of C++ and Rust have no single colon when mangled; `a::b` is one that was made readable.
        let (file, code) = match text.rsplit_once(':') {
            Some((file, code)) if !file.ends_with(':') => (Some(file.to_owned()), code),
            Some(_) => return Err("names are those of the symbol table, mangled".to_owned()),
            None => (None, text),
        };
        if file.as_ref().is_some_and(String::is_empty) || file.is_none() && code.is_empty() {
            return Err("neither a file nor a function is named".to_owned());
        }
        let hex = |t: &str| u64::from_str_radix(t.strip_prefix("0x")?, 16).ok();
        let code = match code.split_once('-').and_then(|(a, b)| Some((hex(a)?, hex(b)?))) {
            Some((first, end)) if first < end => Code::Range(first, end),
            Some(_) => return Err("the range of addresses is empty".to_owned()),
            None if code.is_empty() => Code::All,
            None => Code::Named(code.to_owned()),
        };
        Ok(Self { file, code })
    }

    /// Whether it means this function of this file.
    pub fn means(&self, path: &Path, function: &Function) -> bool {
        let is_file = self.file.as_ref().is_none_or(|file| {
            let file = path_text::decode(file);
            path == file || path.file_name() == Some(file.as_os_str())
        });
        is_file
            && match &self.code {
                Code::All => true,
                Code::Named(pattern) => function.names.iter().any(|name| matches(pattern, name)),
                Code::Range(first, end) => (*first..*end).contains(&function.address),
            }
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (None, None) => pattern == name,
        (None, Some(begin)) => name.starts_with(begin),
        (Some(end), None) => name.ends_with(end),
        (Some(_), Some(_)) => name.contains(pattern.trim_matches('*')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(address: u64, name: &str) -> Function {
        let names = if name.is_empty() { vec![] } else { vec!["other".to_owned(), name.to_owned()] };
        Function { address, bytes: 16, names, sources: vec![] }
    }

    #[test]
    fn the_linkage_is_written_in_the_words_that_it_always_had() {
        let all = [Linked::Fixed, Linked::Pie, Linked::Static, Linked::StaticPie, Linked::Library];
        let written = serde_json::to_string(&all).expect("written");
        assert_eq!(written, r#"["fixed","pie","static","static-pie","library"]"#);
        assert_eq!(serde_json::from_str::<Vec<Linked>>(&written).expect("read"), all);
    }

    #[test]
    fn what_is_excluded_is_named_by_file_name_or_address() {
        let libc = Path::new("/usr/lib/libc.so.6");
        let means = |text: &str, address, name: &str| {
            Exclude::parse(text).unwrap().means(libc, &function(address, name))
        };
        assert!(means("libc.so.6:", 1, "") && means("/usr/lib/libc.so.6:", 1, "x"));
        assert!(!means("libc.so:", 1, "x") && !means("/lib/libc.so.6:", 1, "x"));
        assert!(means("memcpy", 1, "memcpy") && !means("memcpy", 1, "memcpy2") && !means("memcpy", 1, ""));
        assert!(means("mem*", 1, "memcpy") && means("*cpy", 1, "memcpy") && means("*mc*", 1, "memcpy"));
        assert!(means("libc.so.6:mem*", 1, "memcpy") && !means("ld.so:mem*", 1, "memcpy"));
        assert!(means("libc.so.6:0x10-0x20", 0x10, "") && !means("0x10-0x20", 0x20, ""));
        for bad in ["", ":", ":x", "0x20-0x10", "std::io"] {
            assert!(Exclude::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn offsets_and_addresses_of_a_file_are_turned_into_each_other() {
        let file = TracedFile {
            path: "/x".into(),
            build_id: None,
            linked: Linked::Pie,
            is_go: false,
            texts: vec![Text { offset: 0x1000, bytes: 0x100, address: 0x2000 }],
            functions: vec![function(0x2010, "a"), function(0x2040, "b")],
        };
        assert_eq!(
            (file.offset_of(0x2010), file.offset_of(0x1fff), file.offset_of(0x2100)),
            (Some(0x1010), None, None)
        );
        assert_eq!(
            (file.function_at(0x100f), file.function_at(0x1010), file.function_at(0x101f)),
            (None, Some(0), Some(0))
        );
        assert_eq!(
            (file.function_at(0x1020), file.function_at(0x1041), file.function_at(0x1100)),
            (None, Some(1), None)
        );
    }
}
