//! Traced first entries on disk: `NAME.order/` with `order.json` and the tables `functions` and `entries`.
//!
//! Written as a recording is: tables whole and without names until all are there, `order.json` last. A directory
//! without it is unfinished.

use std::path::{Path, PathBuf};
use std::{fs, io};

use cold_model::order::{FirstEntry, Function, Linked, Repeat, StartFacts, Text, Trace, TracedFile};
use cold_model::path_text;
use serde::{Deserialize, Serialize};

use crate::manifest::Tables;
use crate::schema::tables::order::{ENTRIES, EntryRow, FUNCTIONS, FunctionRow};
use crate::schema::{Source, Visitor};
use crate::write::{self, PRIVATE};
use crate::{Error, Result, document};

/// Name of the manifest.
const NAME: &str = "order.json";
const FORMAT: &str = "coldstart-order";
/// Version that is written, and the latest that is read.
const VERSION: u32 = 1;
/// Largest manifest that is read.
const MOST: u64 = 64 << 20;

#[derive(Serialize, Deserialize)]
pub(crate) struct Document {
    format: String,
    version: u32,
    scenario: String,
    command: Vec<String>,
    kernel: String,
    repeats: Vec<StartFacts>,
    files: Vec<FileFacts>,
    tables: Tables,
}

/// A file without its functions.
#[derive(Serialize, Deserialize)]
struct FileFacts {
    #[serde(with = "path_text")]
    path: PathBuf,
    build_id: Option<String>,
    linked: Linked,
    is_go: bool,
    texts: Vec<Text>,
}

/// Writes `trace` into the directory `dir`, which must not be there, or be empty, or (with `overwrite`) hold traced
/// entries. It is for its owner alone, as a recording.
///
/// # Errors
/// What the kernel said, or what is in the way.
pub fn write(dir: &Path, trace: &Trace, overwrite: bool) -> Result<()> {
    match write::make(dir) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => replaceable(dir, overwrite)?,
        Err(e) => return Err(Error::io("create", dir)(e)),
    }
    write::remove(&dir.join(NAME))?;
    let used: Vec<bool> = used(trace);
    let (functions, first) = functions(trace, &used);
    let mut writer = write::Files::new(dir, PRIVATE);
    writer.table(&FUNCTIONS, &functions)?;
    writer.table(&ENTRIES, &entries(trace, &first))?;
    let tables = writer.commit()?;
    let files = trace.files.iter().map(|f| FileFacts {
        path: f.path.clone(),
        build_id: f.build_id.clone(),
        linked: f.linked,
        is_go: f.is_go,
        texts: f.texts.clone(),
    });
    let document = Document {
        format: FORMAT.to_owned(),
        version: VERSION,
        scenario: trace.scenario.clone(),
        command: trace.command.clone(),
        kernel: trace.kernel.clone(),
        repeats: trace.repeats.iter().map(|r| r.facts.clone()).collect(),
        files: files.collect(),
        tables,
    };
    let path = dir.join(NAME);
    let mut bytes = serde_json::to_vec_pretty(&document)
        .map_err(|e| Error::Inconsistent { why: format!("the manifest cannot be written: {e}") })?;
    bytes.push(b'\n');
    cold_sys::whole::write(&path, PRIVATE, &bytes).map_err(Error::io("write", &path))
}

fn replaceable(dir: &Path, overwrite: bool) -> Result<()> {
    let no = |why: String| Err(Error::NotReplaced { path: dir.to_owned(), why });
    let meta = fs::symlink_metadata(dir).map_err(Error::io("stat", dir))?;
    if !meta.is_dir() {
        return no(format!("it is a {}, not traced entries", cold_sys::open::kind_of(&meta)));
    }
    if let Some(why) = cold_sys::place::distrust(&meta, &[cold_sys::caps::effective_user()]) {
        return no(why);
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::io("list", dir))? {
        names.push(entry.map_err(Error::io("list", dir))?.file_name());
    }
    let ours = [NAME, "functions.parquet", "entries.parquet"];
    if names.iter().any(|n| ours.iter().all(|o| n != o)) {
        return no("it holds files that traced entries do not have".to_owned());
    }
    if names.is_empty() || overwrite {
        return Ok(());
    }
    Err(Error::Exists { path: dir.to_owned() })
}

/// Which files have a function that was entered.
fn used(trace: &Trace) -> Vec<bool> {
    let mut used = vec![false; trace.files.len()];
    for entry in trace.repeats.iter().flat_map(|r| &r.entries) {
        if let Some(used) = used.get_mut(entry.file as usize) {
            *used = true;
        }
    }
    used
}

/// The rows of the functions, and the number of each file's first.
fn functions(trace: &Trace, used: &[bool]) -> (Vec<FunctionRow>, Vec<u32>) {
    let (mut rows, mut first) = (Vec::new(), Vec::new());
    for ((file, is_used), number) in trace.files.iter().zip(used).zip(0..) {
        first.push(u32::try_from(rows.len()).unwrap_or(u32::MAX));
        let path = path_text::encode(&file.path);
        rows.extend(file.functions.iter().filter(|_| *is_used).map(|f| FunctionRow {
            file: number,
            build_id: file.build_id.clone(),
            path: path.clone(),
            address: f.address,
            bytes: f.bytes,
            name: f.name().map(str::to_owned),
            aliases: f.names.iter().skip(1).cloned().collect(),
            sources: f.sources.clone(),
        }));
    }
    (rows, first)
}

fn entries(trace: &Trace, first: &[u32]) -> Vec<EntryRow> {
    let mut rows = Vec::new();
    for (repeat, number) in trace.repeats.iter().zip(0..) {
        for (entry, sequence) in repeat.entries.iter().zip(0..) {
            let (Some((file, f)), Some(first)) = (trace.function(entry), first.get(entry.file as usize))
            else {
                continue;
            };
            rows.push(EntryRow {
                scenario: trace.scenario.clone(),
                repeat: number,
                sequence,
                at: entry.at,
                pid: entry.pid,
                tid: entry.tid,
                function: first.saturating_add(entry.function),
                build_id: file.build_id.clone(),
                path: path_text::encode(&file.path),
                address: f.address,
                bytes: f.bytes,
                name: f.name().map(str::to_owned),
            });
        }
    }
    rows
}

/// Build-ids of the files whose functions `dir` tells of, without reading the tables.
///
/// # Errors
/// As [`read`], of the manifest.
pub fn builds(dir: &Path) -> Result<Vec<String>> {
    Ok(open(dir)?.files.into_iter().filter_map(|f| f.build_id).collect())
}

/// Reads the traced entries in `dir`.
///
/// # Errors
/// As of a recording: not one, unfinished, damaged, of a later version.
pub fn read(dir: &Path) -> Result<Trace> {
    let document = open(dir)?;
    let damaged = |why: &str| Error::damaged(dir, why);
    for name in [FUNCTIONS.name, ENTRIES.name] {
        if !document.tables.contains_key(name) {
            return Err(damaged(&format!("{NAME} does not list the table {name}")));
        }
    }
    let mut tables = crate::read::Files { dir, tables: document.tables };
    let functions = tables.rows(&FUNCTIONS)?.unwrap_or_default();
    let entries = tables.rows(&ENTRIES)?.unwrap_or_default();
    let wrong = functions.iter().find_map(|f| (FUNCTIONS.check)(f, 0));
    if let Some(why) = wrong.or_else(|| entries.iter().find_map(|e| (ENTRIES.check)(e, 0))) {
        return Err(damaged(why));
    }
    let mut files: Vec<TracedFile> = document.files.into_iter().map(FileFacts::empty).collect();
    // Of each row: its file, and its number there.
    let mut places = Vec::with_capacity(functions.len());
    for row in functions {
        let file = files.get_mut(row.file as usize).ok_or_else(|| damaged("a function of no file"))?;
        if file.functions.last().is_some_and(|f| f.address >= row.address) {
            return Err(damaged("functions that are not in the order of their addresses"));
        }
        places.push((row.file, u32::try_from(file.functions.len()).unwrap_or(u32::MAX)));
        let names = row.name.into_iter().chain(row.aliases).collect();
        file.functions.push(Function { address: row.address, bytes: row.bytes, names, sources: row.sources });
    }
    let mut repeats: Vec<Repeat> =
        document.repeats.into_iter().map(|facts| Repeat { entries: Vec::new(), facts }).collect();
    for row in entries {
        let (file, function) =
            *places.get(row.function as usize).ok_or_else(|| damaged("an entry of no function"))?;
        let repeat = repeats.get_mut(row.repeat as usize).ok_or_else(|| damaged("an entry of no start"))?;
        repeat.entries.push(FirstEntry { at: row.at, pid: row.pid, tid: row.tid, file, function });
    }
    let (scenario, command, kernel) = (document.scenario, document.command, document.kernel);
    Ok(Trace { scenario, command, kernel, files, repeats })
}

impl FileFacts {
    fn empty(self) -> TracedFile {
        let Self { path, build_id, linked, is_go, texts } = self;
        TracedFile { path, build_id, linked, is_go, texts, functions: Vec::new() }
    }
}

fn open(dir: &Path) -> Result<Document> {
    let path = dir.join(NAME);
    if let Some(bytes) = document::bytes(&path, MOST)? {
        return parse(&bytes, &path);
    }
    if [FUNCTIONS.name, ENTRIES.name].iter().any(|t| dir.join(format!("{t}.parquet")).exists()) {
        return Err(Error::Unfinished { dir: dir.to_owned() });
    }
    Err(Error::NotARecording { path: dir.to_owned(), why: format!("there is no {NAME} in it") })
}

pub(crate) fn parse(bytes: &[u8], path: &Path) -> Result<Document> {
    document::check(bytes, path, FORMAT, VERSION)?;
    serde_json::from_slice(bytes).map_err(|e| Error::damaged(path, e.to_string()))
}

#[cfg(test)]
mod tests;
