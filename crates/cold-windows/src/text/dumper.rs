//! Rows of `xperf -a dumper`: a name, a time in microseconds, and the columns that a line of the header gives them.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::cells::{number, process, split};
use super::{GatheredText, Lines};
use crate::Result;
use crate::etl::{ImagePayload, Phase, ProcessPayload, Source, ThreadPayload};
use crate::evidence::{Builder, FileRead, Named, RawFault, RawRead, System};

/// First line of the header.
pub(super) const BEGIN: &str = "BeginHeader";
/// Title of the second column of every kind of row.
pub(super) const TIME: &str = "TimeStamp";
const PROCESS: &str = "Process Name ( PID)";
/// A column that is written as it is, commas and quotes included.
const COMMAND: &str = "Command Line";

/// Titles without their blanks, in lower case: they differ in both between versions.
fn key(title: &str) -> String {
    title.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect()
}

/// Columns of one kind of row.
struct Columns {
    places: HashMap<String, usize>,
    count: usize,
}

impl Columns {
    fn of(titles: &[String]) -> Self {
        let places = titles.iter().enumerate().map(|(n, title)| (key(title), n)).collect();
        Self { places, count: titles.len() }
    }
}

/// A row with its columns.
struct DumperRow<'a> {
    columns: &'a Columns,
    cells: &'a [String],
}

impl DumperRow<'_> {
    /// The cell of the first of these titles that there is. A command line takes the commas that are in it.
    fn cell(&self, titles: &[&str]) -> Option<String> {
        let place = titles.iter().find_map(|title| self.columns.places.get(&key(title)))?;
        let command = self.columns.places.get(&key(COMMAND)).copied().unwrap_or(usize::MAX);
        let more = self.cells.len().saturating_sub(self.columns.count);
        if *place == command {
            return Some(self.cells.get(*place..=place + more)?.join(","));
        }
        let place = if *place > command { place + more } else { *place };
        self.cells.get(place).cloned()
    }

    fn number(&self, titles: &[&str]) -> Option<u64> {
        number(&self.cell(titles)?)
    }

    fn small(&self, titles: &[&str]) -> Option<u32> {
        self.number(titles)?.try_into().ok()
    }

    /// A time or a duration, microseconds in the file, as ns.
    fn time(&self, titles: &[&str]) -> Option<i64> {
        let us = i64::try_from(self.number(titles)?).ok()?;
        us.checked_mul(1000)
    }

    fn process(&self) -> Option<(String, u32)> {
        let cell = self.cell(&[PROCESS])?;
        process(&cell).map(|(name, pid)| (name.to_owned(), pid))
    }
}

/// What is known while rows are read.
#[derive(Default)]
struct DumperState {
    builder: Builder,
    pids: HashSet<u32>,
    system: System,
    lost: BTreeMap<String, u64>,
    last: i64,
}

impl DumperState {
    /// A process that a row names was there before the trace, where no row tells that it began.
    fn seen(&mut self, at: i64, name: &str, pid: u32) {
        if self.pids.insert(pid) {
            self.builder.process(at, &described(Phase::Before, pid, 0, name, String::new()));
        }
    }

    /// Reads a row; `None` where a cell that it needs is missing or no number.
    fn row(&mut self, kind: &str, row: &DumperRow<'_>) -> Option<()> {
        let at = row.time(&[TIME])?;
        self.last = self.last.max(at);
        match kind {
            "P-Start" | "P-End" | "P-DCStart" | "P-DCEnd" => self.process(at, kind, row),
            "T-Start" | "T-End" | "T-DCStart" | "T-DCEnd" => {
                let (name, pid) = row.process()?;
                self.seen(at, &name, pid);
                let tid = row.small(&["ThreadID"])?;
                self.builder.thread(at, &ThreadPayload { phase: phase(kind), pid, tid });
                Some(())
            }
            "I-Start" | "I-DCStart" => {
                let (name, pid) = row.process()?;
                self.seen(at, &name, pid);
                let base = row.number(&["BaseAddr", "ImageBase", "Base"])?;
                let end = row.number(&["EndAddr", "End"]).map(|end| end.saturating_sub(base));
                let size = end.or_else(|| row.number(&["ImageSize", "Size"]))?;
                let name = row.cell(&["FileName", "Image"])?;
                self.builder.image(at, &ImagePayload { phase: phase(kind), pid, base, size, name });
                Some(())
            }
            "DiskRead" => self.disk(at, row),
            "HardFault" => self.fault(at, row),
            "FileIoRead" => self.file_read(at, row),
            _ => {
                let (object, name) = (row.number(&["FileObject"])?, row.cell(&["FileName"])?);
                self.builder.name(at, object, &name);
                Some(())
            }
        }
    }

    fn process(&mut self, at: i64, kind: &str, row: &DumperRow<'_>) -> Option<()> {
        let (name, pid) = row.process()?;
        let parent = row.small(&["ParentPID"])?;
        let mut told = described(phase(kind), pid, parent, &name, row.cell(&[COMMAND]).unwrap_or_default());
        told.status = row.small(&["Status", "ExitCode"]).unwrap_or(0).cast_signed();
        self.pids.insert(pid);
        self.builder.process(at, &told);
        Some(())
    }

    fn disk(&mut self, at: i64, row: &DumperRow<'_>) -> Option<()> {
        let (name, pid) = row.process()?;
        self.seen(at, &name, pid);
        let tid = row.small(&["ThreadID"])?;
        self.builder.thread(at, &ThreadPayload { phase: Phase::Before, pid, tid });
        let path = row.cell(&["FileName"]);
        let read = RawRead {
            began: row.time(&["ElapsedTime"]).and_then(|took| at.checked_sub(took)),
            completed: at,
            disk: row.small(&["DiskNum"]).unwrap_or(0),
            offset: row.number(&["ByteOffset"]),
            bytes: row.small(&["IOSize"])?,
            file: named(path.as_deref(), row),
            tid: Some(tid),
            pid: Some(pid),
        };
        self.builder.read(read);
        Some(())
    }

    fn file_read(&mut self, at: i64, row: &DumperRow<'_>) -> Option<()> {
        let (name, pid) = row.process()?;
        self.seen(at, &name, pid);
        let tid = row.small(&["ThreadID"])?;
        self.builder.thread(at, &ThreadPayload { phase: Phase::Before, pid, tid });
        let (offset, bytes) = (row.number(&["ByteOffset"])?, row.small(&["Size"])?);
        let path = row.cell(&["FileName"]);
        let read = FileRead { at, offset, bytes, file: None, tid, pid };
        self.builder.file_read(read, named(path.as_deref(), row));
        Some(())
    }

    fn fault(&mut self, at: i64, row: &DumperRow<'_>) -> Option<()> {
        let (name, pid) = row.process()?;
        self.seen(at, &name, pid);
        let tid = row.small(&["ThreadID"])?;
        self.builder.thread(at, &ThreadPayload { phase: Phase::Before, pid, tid });
        let path = row.cell(&["FileName"]);
        self.builder.fault(RawFault {
            began: at.checked_sub(row.time(&["ElapsedTime"])?)?,
            ended: at,
            offset: row.number(&["ByteOffset"])?,
            bytes: row.small(&["IOSize"])?,
            file: named(path.as_deref(), row),
            tid,
            pid: Some(pid),
        });
        Some(())
    }

    /// `OS Version: 10.0.19043, …, Events Lost: 0, …, Trace Start: 132675686690347142, …, PointerSize: 8, …`
    fn system(&mut self, line: &str) {
        for (name, value) in line.split(',').filter_map(|part| part.split_once(':')) {
            let (name, value) = (name.trim(), value.trim());
            let lost = |what: &str, lost: &mut BTreeMap<String, u64>| {
                if let Some(n) = value.parse().ok().filter(|n| *n > 0) {
                    lost.insert(what.to_owned(), n);
                }
            };
            match name {
                "OS Version" => self.system.build = value.rsplit('.').next().and_then(|b| b.parse().ok()),
                "Events Lost" => lost("events", &mut self.lost),
                "Buffers lost" => lost("buffers", &mut self.lost),
                "Trace Start" => self.system.started = value.parse().ok(),
                _ => {}
            }
        }
    }
}

/// A path that is told, else the file object whose name other rows tell. A table of names says `Unknown`.
fn named<'a>(path: Option<&'a str>, row: &DumperRow<'_>) -> Named<'a> {
    match (path, row.number(&["FileObject"])) {
        (Some(path), _) if !path.is_empty() && !path.eq_ignore_ascii_case("unknown") => Named::Path(path),
        (_, Some(object)) => Named::Object(object),
        _ => Named::Unknown,
    }
}

fn described(phase: Phase, pid: u32, parent: u32, image: &str, command: String) -> ProcessPayload {
    ProcessPayload { phase, pid, parent, session: 0, status: 0, image: image.to_owned(), command }
}

fn phase(kind: &str) -> Phase {
    match kind.split_once('-').map(|(_, what)| what) {
        Some("Start") => Phase::Start,
        Some("End") => Phase::End,
        Some("DCEnd") => Phase::After,
        _ => Phase::Before,
    }
}

/// Kinds of rows that are read.
fn is_read(kind: &str) -> bool {
    matches!(
        kind,
        "P-Start"
            | "P-End"
            | "P-DCStart"
            | "P-DCEnd"
            | "T-Start"
            | "T-End"
            | "T-DCStart"
            | "T-DCEnd"
            | "I-Start"
            | "I-DCStart"
            | "DiskRead"
            | "HardFault"
            | "FileIoRead"
    ) || kind.starts_with("FileName")
}

pub(super) fn gather<S: Source>(first: String, mut lines: Lines<S>) -> Result<GatheredText> {
    let mut columns: HashMap<String, Columns> = HashMap::new();
    let mut state = DumperState::default();
    let (mut rows, mut bad, mut first_bad) = (0, 0, None);
    let mut next = Some(first);
    while let Some(line) = next {
        let cells = split(&line, ',');
        let kind = cells.first().map_or("", String::as_str);
        if cells.get(1).is_some_and(|c| c.eq_ignore_ascii_case(TIME)) {
            columns.insert(kind.to_owned(), Columns::of(&cells));
        } else if line.trim_start().starts_with("OS Version:") {
            state.system(&line);
        } else if is_read(kind) {
            rows += 1;
            let read =
                columns.get(kind).and_then(|columns| state.row(kind, &DumperRow { columns, cells: &cells }));
            if read.is_none() {
                bad += 1;
                let why = if columns.contains_key(kind) {
                    "a cell that it needs is missing or no number"
                } else {
                    "no line of the header names its columns"
                };
                first_bad.get_or_insert((lines.number(), format!("{kind}: {why}")));
            }
        }
        next = lines.next_line()?;
    }
    if bad > 0 {
        state.lost.insert("rows that could not be read".to_owned(), bad);
    }
    let evidence = state.builder.finish(state.system, state.last, state.lost);
    Ok(GatheredText { evidence, rows, bad, first_bad, is_table: false })
}
