//! What daily use says of a plan: one record of 64 bytes per start, appended by the launcher
//! (docs/formats/plan.md, history).
//!
//! Append-only and bounded: above twice [`KEPT`] records the older ones go. A reader skips what is
//! damaged; records that are appended while another process shortens the file can be lost.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;

use crate::plan::tagged;
use crate::store::{Error, Result, trusted};

/// Records that stay when a history is shortened.
pub const KEPT: usize = 4096;
/// Bytes of a record.
pub const RECORD: usize = 64;
/// First bytes of every record; the last one is the version.
const MAGIC: [u8; 4] = *b"CLH1";
/// A longer file is no history of this program.
const MAX_BYTES: u64 = 4 * (KEPT * RECORD) as u64;

/// One start through a launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// When it was launched, nanoseconds since 1970.
    pub when_ns: u64,
    /// Which plan, by [`crate::format::View::id`]: each save has another.
    pub plan: u64,
    /// What the launcher did.
    pub kind: LaunchKind,
    /// How fast the program went; `None` where nobody watched it.
    pub mark: Option<Mark>,
    /// Bytes of the reads issued.
    pub bytes: u64,
    /// Calls of `readahead` that the launcher made.
    pub requests: u32,
    /// The program came to the mark before everything was issued.
    pub late: bool,
}

/// What the launcher did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LaunchKind {
    /// It issued the plan.
    Prefetched,
    /// The plan would have been issued, and was not, to compare.
    Control,
    /// It issued nothing.
    Skipped(Skip),
}

tagged! {
    /// Why a launcher issued nothing.
    pub enum Skip {
        /// What the plan names was in the cache already.
        Warm = 1,
        /// Too little memory free, or tasks wait for memory.
        Memory = 2,
        /// The disk is busy: tasks wait for it already.
        DiskBusy = 3,
        /// Too many of its files have changed.
        Stale = 4,
        /// The plan is switched off, or the user asked for a plain start.
        Disabled = 5,
        /// Another launcher issues the same plan right now.
        Busy = 6,
        /// The plan was refused: damaged, another owner, over a budget.
        Refused = 7,
        /// The deadline passed before anything was issued.
        Deadline = 8,
    }
}

impl Skip {
    /// The reason in words, for the sentence "the launcher issued nothing: …".
    pub fn words(self) -> &'static str {
        match self {
            Self::Warm => "its files were cached already",
            Self::Memory => "too little memory was free",
            Self::DiskBusy => "the disk was busy",
            Self::Stale => "too many of its files had changed",
            Self::Disabled => "the plan is switched off",
            Self::Busy => "another start was following it",
            Self::Refused => "the plan was refused",
            Self::Deadline => "the deadline had passed",
        }
    }
}

/// The time that the program took for a fixed amount of its own work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// From the exec until it had used `cpu_ns`, or to its exit, nanoseconds.
    pub wall_ns: u64,
    /// CPU time of the started process that was waited for ([`crate::plan::Learnt::own_cpu_ns`]).
    pub cpu_ns: u64,
    /// It ended before.
    pub exited: bool,
    /// It came to rest before: a program that goes on after it is ready, and does nothing until it is asked.
    pub rested: bool,
}

/// The kind of a record that adds its mark to a start entered before.
const MARK: u8 = 4;

/// Offsets in a record.
mod at {
    pub(super) const KIND: usize = 4;
    pub(super) const SKIP: usize = 5;
    pub(super) const FLAGS: usize = 6;
    pub(super) const WHEN: usize = 8;
    pub(super) const PLAN: usize = 16;
    pub(super) const WALL: usize = 24;
    pub(super) const CPU: usize = 32;
    pub(super) const BYTES: usize = 40;
    pub(super) const REQUESTS: usize = 48;
    pub(super) const CRC: usize = 60;
}

/// Bits of the flags.
mod flag {
    pub(super) const MARK: u8 = 1;
    pub(super) const EXITED: u8 = 2;
    pub(super) const LATE: u8 = 4;
    pub(super) const RESTED: u8 = 8;
}

impl Record {
    /// The record as it is appended to a history, its checksum included.
    pub fn encode(&self) -> [u8; RECORD] {
        let kind = match self.kind {
            LaunchKind::Prefetched => (1, 0),
            LaunchKind::Control => (2, 0),
            LaunchKind::Skipped(why) => (3, why.byte()),
        };
        self.encode_as(kind)
    }

    fn encode_as(&self, (kind, skip): (u8, u8)) -> [u8; RECORD] {
        let mut out = [0; RECORD];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        let mark = self.mark.unwrap_or(Mark { wall_ns: 0, cpu_ns: 0, exited: false, rested: false });
        let set = |yes: bool, bit: u8| if yes { bit } else { 0 };
        let flags = set(self.mark.is_some(), flag::MARK)
            | set(mark.exited, flag::EXITED)
            | set(mark.rested, flag::RESTED)
            | set(self.late, flag::LATE);
        put(0, &MAGIC);
        put(at::KIND, &[kind, skip, flags]);
        put(at::WHEN, &self.when_ns.to_le_bytes());
        put(at::PLAN, &self.plan.to_le_bytes());
        put(at::WALL, &mark.wall_ns.to_le_bytes());
        put(at::CPU, &mark.cpu_ns.to_le_bytes());
        put(at::BYTES, &self.bytes.to_le_bytes());
        put(at::REQUESTS, &self.requests.to_le_bytes());
        let crc = crc32fast::hash(&out[..at::CRC]);
        out[at::CRC..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// The record of a start in these bytes; `None` for anything else.
    pub fn decode(bytes: &[u8; RECORD]) -> Option<Self> {
        match Entry::decode(bytes)? {
            Entry::Start(record) => Some(record),
            Entry::Mark(_) => None,
        }
    }
}

/// What the bytes of a record say.
enum Entry {
    Start(Record),
    /// Only moment, plan and mark of it mean something.
    Mark(Record),
}

impl Entry {
    fn decode(bytes: &[u8; RECORD]) -> Option<Self> {
        let crc = u32::from_le_bytes(*bytes.last_chunk()?);
        if !bytes.starts_with(&MAGIC) || crc != crc32fast::hash(&bytes[..at::CRC]) {
            return None;
        }
        let u64_at = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let flags = bytes[at::FLAGS];
        let kind = match (bytes[at::KIND], bytes[at::SKIP]) {
            (2, 0) => LaunchKind::Control,
            (3, why) => LaunchKind::Skipped(Skip::from_byte(why)?),
            (1 | MARK, 0) => LaunchKind::Prefetched,
            _ => return None,
        };
        let (wall_ns, cpu_ns) = (u64_at(at::WALL)?, u64_at(at::CPU)?);
        let (exited, rested) = (flags & flag::EXITED != 0, flags & flag::RESTED != 0);
        let mark = Mark { wall_ns, cpu_ns, exited, rested };
        let record = Record {
            when_ns: u64_at(at::WHEN)?,
            plan: u64_at(at::PLAN)?,
            kind,
            mark: (flags & flag::MARK != 0).then_some(mark),
            bytes: u64_at(at::BYTES)?,
            requests: u32::from_le_bytes(*bytes.get(at::REQUESTS..)?.first_chunk()?),
            late: flags & flag::LATE != 0,
        };
        Some(if bytes[at::KIND] == MARK { Self::Mark(record) } else { Self::Start(record) })
    }
}

/// Appends a record to the history at `path` (see [`crate::Store::history_of`]), creating the file where it is
/// missing, and the directory where it is the usual one.
pub fn append(path: &Path, record: &Record) -> Result<()> {
    append_bytes(path, &record.encode())
}

/// Appends the mark of a start that is in the history already, as [`append`] does.
pub fn append_mark(path: &Path, record: &Record) -> Result<()> {
    append_bytes(path, &Record { bytes: 0, requests: 0, ..*record }.encode_as((MARK, 0)))
}

fn append_bytes(path: &Path, bytes: &[u8; RECORD]) -> Result<()> {
    let mut file = open_or_create(path)?;
    // One write: with O_APPEND it lands in one piece behind what others append.
    file.write_all(bytes).map_err(|e| Error::io("write", path, e))?;
    let length = file.metadata().map_err(|e| Error::io("stat", path, e))?.len();
    if length >= 2 * (KEPT * RECORD) as u64 { shorten(path, &file) } else { Ok(()) }
}

/// Whether one more record could be appended to the history at `path`, as far as can be known beforehand: the
/// file is there or could be made, its room on the disk is set aside, and no limit forbids it.
pub fn can_grow(path: &Path) -> bool {
    let Ok(file) = open_or_create(path) else { return false };
    let Ok(end) = file.metadata().map(|meta| meta.len()) else { return false };
    if end.saturating_add(RECORD as u64) > cold_sys::exec::file_size_limit() {
        return false;
    }
    match rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, end, RECORD as u64) {
        Ok(()) => true,
        // A file system that sets nothing aside (NFS 4.1, FUSE) says at least whether it is full.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => rustix::fs::fstatvfs(&file).is_ok_and(|fs| fs.f_bavail > 0),
        Err(_) => false,
    }
}

/// All readable records, the oldest first; none where there is no history.
pub fn read(path: &Path) -> Result<Vec<Record>> {
    match open(path, false) {
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        other => Ok(parse(&content(path, &other?)?)),
    }
}

/// The records of starts in these bytes, each with its mark, also where that was appended later. After damage the
/// next one is found by its first bytes.
pub fn parse(mut bytes: &[u8]) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::with_capacity(bytes.len() / RECORD);
    while let Some(chunk) = bytes.first_chunk() {
        let entry = Entry::decode(chunk);
        match entry {
            Some(Entry::Start(record)) => records.push(record),
            Some(Entry::Mark(mark)) => {
                let same = |r: &&mut Record| (r.when_ns, r.plan) == (mark.when_ns, mark.plan);
                if let Some(start) = records.iter_mut().rev().find(same) {
                    (start.mark, start.late) = (mark.mark, mark.late);
                }
            }
            None => {}
        }
        // Behind damage, the next record begins where its first bytes are.
        let damaged = || bytes.windows(MAGIC.len()).skip(1).position(|w| w == MAGIC).map(|n| n + 1);
        let next = if entry.is_some() { Some(RECORD) } else { damaged() };
        bytes = next.and_then(|n| bytes.get(n..)).unwrap_or_default();
    }
    records
}

fn content(path: &Path, file: &File) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(|e| Error::io("read", path, e))?;
    Ok(bytes)
}

/// To be appended to; with its directory where that is missing.
fn open_or_create(path: &Path) -> Result<File> {
    match open(path, true) {
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            let dir = path.parent().unwrap_or(Path::new("/"));
            // A named store that is gone (a trial that has ended) does not come back for a record.
            if !dir.ends_with(crate::store::USUAL) {
                return Err(Error::io("open", path, source));
            }
            cold_sys::place::create_directory(dir, 0o700).map_err(|e| Error::io("create", dir, e))?;
            open(path, true)
        }
        other => other,
    }
}

/// Opens a history that belongs to this user; a link, a FIFO or somebody else's file is refused.
#[allow(clippy::disallowed_methods, reason = "an append-only file, of which a half record is skipped")]
fn open(path: &Path, write: bool) -> Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .append(write)
        .create(write)
        .mode(0o600)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed())
        .open(path)
        .map_err(|e| Error::io("open", path, e))?;
    let meta = file.metadata().map_err(|e| Error::io("stat", path, e))?;
    if !meta.is_file() {
        return Err(Error::untrusted(path, "it is no regular file".to_owned()));
    }
    trusted(path, &meta, &[rustix::process::geteuid().as_raw()])?;
    Ok(file)
}

/// Leaves the last [`KEPT`] records, unless another process is at it.
fn shorten(path: &Path, file: &File) -> Result<()> {
    if file.try_lock().is_err() {
        return Ok(());
    }
    let records = parse(&content(path, &open(path, false)?)?);
    let last = records.get(records.len().saturating_sub(KEPT)..).unwrap_or_default();
    let bytes: Vec<u8> = last.iter().flat_map(Record::encode).collect();
    cold_sys::whole::write(path, cold_sys::whole::Ownership::Own(0o600), &bytes)
        .map_err(|e| Error::io("shorten", path, e))
}

/// Whether these bytes are a history: they begin as one does, and have a record.
pub(crate) fn is_one(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC) && !parse(bytes).is_empty()
}

#[cfg(test)]
mod tests;
