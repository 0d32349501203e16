//! Tables as WPA and `wpaexporter` write them: one line of titles, one row per disk read or hard fault.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::cells::{billionths, number, process, split};
use super::{GatheredText, Lines};
use crate::etl::{Phase, ProcessPayload, Source, ThreadPayload};
use crate::evidence::{Builder, Named, RawFault, RawRead, System};
use crate::{Error, Result};

/// What a column of a table tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// `name.exe (1234)`.
    Process,
    /// Thread that asked or faulted.
    Thread,
    /// Path of the file.
    Path,
    /// First byte on the disk: the row is a disk read.
    DiskOffset,
    /// First byte in the file: the row is a hard fault.
    FileOffset,
    /// Bytes that were read.
    Size,
    /// When it began; its title may say the unit, `(s)`, `(ms)`, `(µs)`; seconds where it says none.
    Begin,
    /// When it was complete.
    End,
    /// How long it took.
    Took,
    /// Number of the disk.
    Disk,
    /// `Read`, `Write` or `Flush`: only reads are taken.
    Kind,
}

impl Field {
    /// All, with the name that a mapping gives them and WPA's own titles, without units, blanks and in lower case.
    const ALL: [(Self, &'static str, &'static [&'static str]); 11] = [
        (Self::Process, "process", &["process", "issuingprocess", "processname"]),
        (Self::Thread, "thread", &["threadid", "issuingthreadid", "thread"]),
        (Self::Path, "path", &["pathname", "path", "filename", "filepath"]),
        (Self::DiskOffset, "disk-offset", &["minoffset", "diskoffset"]),
        (Self::FileOffset, "file-offset", &["byteoffset", "readoffset", "fileoffset"]),
        (Self::Size, "size", &["size", "iosize", "bytecount"]),
        (Self::Begin, "begin", &["inittime", "starttime", "initiatedtime"]),
        (Self::End, "end", &["completetime", "endtime", "completiontime"]),
        (Self::Took, "took", &["iotime", "duration", "elapsedtime"]),
        (Self::Disk, "disk", &["disk", "disknumber"]),
        (Self::Kind, "type", &["iotype", "type"]),
    ];

    /// The names that a mapping knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().map(|(_, name, _)| *name)
    }
}

/// Titles of columns by what they tell, where they are not WPA's own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Map(BTreeMap<Field, String>);

impl Map {
    /// Adds `FIELD=TITLE`.
    ///
    /// # Errors
    /// Where it has no such form or names no field, in words.
    pub fn add(&mut self, text: &str) -> std::result::Result<(), String> {
        let (name, title) = text.split_once('=').ok_or_else(|| format!("{text:?} is not FIELD=TITLE"))?;
        let field = Field::ALL.iter().find(|(_, known, _)| *known == name.trim());
        let names = || Field::names().collect::<Vec<_>>().join(", ");
        let (field, ..) = field.ok_or_else(|| format!("{name:?} is no field: there are {}", names()))?;
        self.0.insert(*field, title.trim().to_owned());
        Ok(())
    }
}

/// A title without its unit and blanks, in lower case.
fn key(title: &str) -> String {
    let bare = title.split_once('(').map_or(title, |(bare, _)| bare);
    bare.chars().filter(|c| !c.is_whitespace() && *c != '\u{feff}').flat_map(char::to_lowercase).collect()
}

/// Nanoseconds in the unit that a title says.
fn unit(title: &str) -> i128 {
    let inner = title.rsplit_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or("s");
    match inner.trim() {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        _ => 1_000_000_000,
    }
}

/// Where each field stands, with the unit of its times.
struct Columns {
    places: HashMap<Field, (usize, i128)>,
    separator: char,
}

impl Columns {
    fn of(line: &str, map: &Map) -> std::result::Result<Self, &'static str> {
        let separator = [';', '\t'].into_iter().find(|c| line.contains(*c)).unwrap_or(',');
        let titles = split(line, separator);
        let mut places = HashMap::new();
        for (field, _, known) in Field::ALL {
            let place = match map.0.get(&field) {
                Some(title) => titles.iter().position(|t| t.trim() == title),
                None => known.iter().find_map(|k| titles.iter().position(|t| key(t) == *k)),
            };
            if let Some(place) = place {
                places.insert(field, (place, unit(&titles[place])));
            }
        }
        let has = |field| places.contains_key(&field);
        if !has(Field::Process) || !has(Field::Size) {
            return Err("no column is the process, or the size: name them (--map process=TITLE)");
        }
        let tells_end = has(Field::End) || has(Field::Begin) && has(Field::Took);
        if !tells_end {
            return Err("no column tells when a row was complete: name it (--map end=TITLE)");
        }
        if !has(Field::DiskOffset) && !has(Field::FileOffset) {
            return Err("no column is an offset: name it (--map disk-offset=TITLE, or file-offset=TITLE)");
        }
        Ok(Self { places, separator })
    }

    fn cell<'a>(&self, cells: &'a [String], field: Field) -> Option<&'a str> {
        let (place, _) = self.places.get(&field)?;
        cells.get(*place).map(|c| c.trim()).filter(|c| !c.is_empty())
    }

    /// A whole number; the decimal mark and groups are those of the separator.
    fn number(&self, cells: &[String], field: Field) -> Option<u64> {
        let cell = self.cell(cells, field)?;
        let plain = || billionths(cell, self.separator == ';').map(|n| n / 1_000_000_000);
        number(cell).or_else(|| u64::try_from(plain()?).ok())
    }

    fn time(&self, cells: &[String], field: Field) -> Option<i64> {
        let (_, unit) = self.places.get(&field)?;
        let value = billionths(self.cell(cells, field)?, self.separator == ';')?;
        i64::try_from(value * unit / 1_000_000_000).ok()
    }
}

/// Reads a row; `None` where a cell that it needs is missing or no number.
fn row(columns: &Columns, cells: &[String], builder: &mut Builder, pids: &mut HashSet<u32>) -> Option<i64> {
    let took = columns.time(cells, Field::Took);
    let ended =
        columns.time(cells, Field::End).or_else(|| columns.time(cells, Field::Begin)?.checked_add(took?))?;
    let began = columns.time(cells, Field::Begin).or_else(|| ended.checked_sub(took?));
    if columns.cell(cells, Field::Kind).is_some_and(|kind| !kind.to_lowercase().contains("read")) {
        return Some(ended);
    }
    let (name, pid) = process(columns.cell(cells, Field::Process)?)?;
    if pids.insert(pid) {
        let (image, command) = (name.to_owned(), String::new());
        builder.process(
            0,
            &ProcessPayload { phase: Phase::Before, pid, parent: 0, session: 0, status: 0, image, command },
        );
    }
    let tid = columns.number(cells, Field::Thread).and_then(|tid| u32::try_from(tid).ok());
    if let Some(tid) = tid {
        builder.thread(0, &ThreadPayload { phase: Phase::Before, pid, tid });
    }
    let file = columns.cell(cells, Field::Path).map_or(Named::Unknown, Named::Path);
    let bytes = u32::try_from(columns.number(cells, Field::Size)?).ok()?;
    if let Some(offset) = columns.number(cells, Field::FileOffset) {
        let (began, tid) = (began?, tid.unwrap_or(0));
        builder.fault(RawFault { began, ended, offset, bytes, file, tid, pid: Some(pid) });
    } else {
        let offset = Some(columns.number(cells, Field::DiskOffset)?);
        let disk = columns.number(cells, Field::Disk).and_then(|d| u32::try_from(d).ok()).unwrap_or(0);
        builder.read(RawRead { began, completed: ended, disk, offset, bytes, file, tid, pid: Some(pid) });
    }
    Some(ended)
}

pub(super) fn gather<S: Source>(first: &str, mut lines: Lines<S>, map: &Map) -> Result<GatheredText> {
    let columns =
        Columns::of(first, map).map_err(|why| Error::Damaged { what: "a trace in text", at: 0, why })?;
    let (mut builder, mut pids) = (Builder::default(), HashSet::new());
    let (mut rows, mut bad, mut first_bad, mut last) = (0, 0, None, 0);
    while let Some(line) = lines.next_line()? {
        if line.trim().is_empty() {
            continue;
        }
        rows += 1;
        if let Some(at) = row(&columns, &split(&line, columns.separator), &mut builder, &mut pids) {
            last = last.max(at);
        } else {
            bad += 1;
            let why = "a cell that it needs is missing or no number".to_owned();
            first_bad.get_or_insert((lines.number(), why));
        }
    }
    let mut lost = BTreeMap::new();
    if bad > 0 {
        lost.insert("rows that could not be read".to_owned(), bad);
    }
    let mut evidence = builder.finish(System::default(), last, lost);
    evidence.notes.push(
        "A table tells of the rows that were shown when it was exported, and of no process' begin."
            .to_owned(),
    );
    Ok(GatheredText { evidence, rows, bad, first_bad, is_table: true })
}
