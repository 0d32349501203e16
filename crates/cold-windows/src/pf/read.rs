//! From bytes to the model; every count is held against its block.

use std::borrow::Cow;

use super::layout::{INFORMATION, Layout};
use super::{File, Name, Page, Prefetch, Version, Volume};
use crate::bytes::Input;
use crate::{Error, Result, xpress};

const WHAT: &str = "a prefetch file";
/// How a compressed one begins.
const PACKED: &[u8] = b"MAM";
/// Behind the version of an expanded one.
const SIGNATURE: &[u8] = b"SCCA";
/// Honest files expand to at most nine times their size; what announces more than this wants memory.
const MOST_TIMES: u64 = 64;
/// Offsets of pages count sectors since version 23.
const SECTOR: u64 = 512;

const fn damaged(at: u64, why: &'static str) -> Error {
    Error::Damaged { what: WHAT, at, why }
}

/// Whether these are the first bytes of a prefetch file, compressed or not.
pub fn is_prefetch(bytes: &[u8]) -> bool {
    bytes.starts_with(PACKED) || bytes.get(4..8) == Some(SIGNATURE)
}

/// The expanded file: what was compressed is expanded, what was not is as it is.
///
/// # Errors
/// [`Error`] where it is no prefetch file, or cannot be expanded.
pub fn image(file: &[u8]) -> Result<Cow<'_, [u8]>> {
    let b = Input::new(file);
    if !file.starts_with(PACKED) {
        return Ok(Cow::Borrowed(file));
    }
    let format = b.u8(3, WHAT)?;
    if format & 15 != 4 {
        return Err(damaged(3, "compressed in a way that is not XPRESS with Huffman codes"));
    }
    let size = u64::from(b.u32(4, WHAT)?);
    // Bit 7: a CRC-32 stands before the data. No public file has one, so what it covers is not known.
    let data = if format & 0x80 == 0 { 8 } else { 12 };
    let data = b.part(data, (file.len() as u64).saturating_sub(data), WHAT)?.all();
    if size > MOST_TIMES * data.len() as u64 {
        return Err(damaged(4, "it announces more than its data can hold"));
    }
    xpress::expand(data, size as usize).map(Cow::Owned)
}

/// A block that a header names.
fn block<'a>(b: Input<'a>, at: u64, what: &'static str) -> Result<Input<'a>> {
    b.part(b.u32(at, WHAT)?.into(), b.u32(at + 4, WHAT)?.into(), what)
}

fn units(bytes: &[u8]) -> Vec<u16> {
    bytes.chunks_exact(2).map(|c| u16::from_le_bytes([c[0], c[1]])).collect()
}

/// Bytes of a block that names may still fill: several may not share them, so that memory stays that of the file.
struct Room(u64);

impl Room {
    fn take(&mut self, bytes: u64) -> Result<()> {
        self.0 =
            self.0.checked_sub(bytes).ok_or_else(|| damaged(INFORMATION, "names overlap in their block"))?;
        Ok(())
    }
}

pub(super) fn prefetch(image: &[u8]) -> Result<Prefetch> {
    let b = Input::new(image);
    let number = b.u32(0, WHAT)?;
    if b.part(4, 4, WHAT)?.all() != SIGNATURE {
        return Err(damaged(4, "it has no signature of one"));
    }
    let version = Layout::find(number, b.u32(INFORMATION, WHAT)?)
        .ok_or_else(|| damaged(0, "a version that is not known"))?;
    let layout = Layout::of(version);
    let (slots, count) = layout.run_times;
    let run_times = (0..count).map(|n| b.u64(slots + 8 * n, WHAT).map(|t| (t != 0).then_some(t)));
    let executable = units(b.part(16, 60, WHAT)?.all());
    let end = executable.iter().position(|u| *u == 0).unwrap_or(executable.len());
    Ok(Prefetch {
        version,
        size: b.u32(12, WHAT)?,
        executable: Name(executable[..end].to_vec()),
        hash: b.u32(76, WHAT)?,
        boot: b.u32(80, WHAT)? & 1 != 0,
        run_times: run_times.collect::<Result<_>>()?,
        run_count: b.u32(layout.run_count, WHAT)?,
        threshold: b.u32(layout.threshold, WHAT)?,
        directories: layout.directories.map(|at| b.u32(at, WHAT)).transpose()?,
        hash_string: hash_string(b, layout)?,
        files: files(b, version, layout)?,
        volumes: volumes(b, layout)?,
    })
}

fn hash_string(b: Input<'_>, layout: Layout) -> Result<Option<Name>> {
    let Some(at) = layout.hash_string else { return Ok(None) };
    let (offset, size) = (b.u32(at, WHAT)?, b.u32(at + 4, WHAT)?);
    if offset == 0 {
        return Ok(None);
    }
    // The size counts its NUL, and sometimes what happens to stand behind that.
    let units = units(b.part(offset.into(), size.into(), "the hashed string")?.all());
    Ok(Some(Name(units.into_iter().take_while(|u| *u != 0).collect())))
}

fn files(b: Input<'_>, version: Version, layout: Layout) -> Result<Vec<File>> {
    let (at, count) = (b.u32(INFORMATION, WHAT)?, b.u32(INFORMATION + 4, WHAT)?);
    let table = b.table(at.into(), count.into(), layout.file, "the table of files")?;
    let records = (b.u32(INFORMATION + 8, WHAT)?, u64::from(b.u32(INFORMATION + 12, WHAT)?));
    let pages = b.table(records.0.into(), records.1, layout.record, "the table of pages")?;
    let strings = block(b, INFORMATION + 16, "the names of files")?;
    let (mut room, mut left) = (Room(strings.len() as u64), records.1);
    let mut out = Vec::with_capacity(count as usize);
    for n in 0..u64::from(count) {
        let entry = table.part(n * layout.file, layout.file, "a file")?;
        let (first, pages_of) = (entry.u32(0, WHAT)?, u64::from(entry.u32(4, WHAT)?));
        left = left.checked_sub(pages_of).ok_or_else(|| {
            damaged(u64::from(at) + n * layout.file, "its files have more pages than there are")
        })?;
        let part =
            pages.table(u64::from(first) * layout.record, pages_of, layout.record, "a file's pages")?;
        // Version 17 has neither the pages to prefetch nor a reference.
        let old = version == Version::V17;
        let name_at = if old { 8 } else { 12 };
        let characters = 2 * u64::from(entry.u32(name_at + 4, WHAT)?);
        room.take(characters)?;
        let name = strings.part(entry.u32(name_at, WHAT)?.into(), characters, "a file's name")?;
        out.push(File {
            name: Name(units(name.all())),
            flags: entry.u32(name_at + 8, WHAT)?,
            to_prefetch: (!old).then(|| entry.u32(8, WHAT)).transpose()?,
            reference: (!old).then(|| entry.u64(24, WHAT)).transpose()?,
            pages: part.all().chunks_exact(layout.record as usize).map(|r| page(r, version)).collect(),
        });
    }
    Ok(out)
}

/// A record of `layout.record` bytes.
fn page(r: &[u8], version: Version) -> Page {
    let u32_at = |at: usize| u32::from_le_bytes([r[at], r[at + 1], r[at + 2], r[at + 3]]);
    match version {
        Version::V17 => {
            let bits = u32_at(8);
            let (used, prefetched) = ((bits >> 3) as u8, Some((bits >> 11) as u8));
            Page { offset: u32_at(4).into(), flags: (bits & 7) as u8, used, prefetched, phases: None }
        }
        Version::V23 | Version::V26 => Page {
            offset: u64::from(u32_at(4)) * SECTOR,
            flags: r[8],
            used: r[10],
            prefetched: Some(r[11]),
            phases: None,
        },
        Version::V30First | Version::V30 | Version::V31 => {
            let phases = u32_at(4) >> 8;
            let used = (0..8).filter(|n| phases >> (3 * n) & 7 != 7).fold(0, |used, n| used | 1 << n);
            let offset = u64::from(u32_at(0)) * SECTOR;
            Page { offset, flags: r[4], used, prefetched: None, phases: Some(phases) }
        }
    }
}

fn volumes(b: Input<'_>, layout: Layout) -> Result<Vec<Volume>> {
    let what = "the volumes";
    let (at, count) = (b.u32(INFORMATION + 24, WHAT)?, u64::from(b.u32(INFORMATION + 28, WHAT)?));
    let all = b.part(at.into(), b.u32(INFORMATION + 32, WHAT)?.into(), what)?;
    let table = all.table(0, count, layout.volume, what)?;
    let mut room = Room(all.len() as u64);
    let mut out = Vec::new();
    for n in 0..count {
        let entry = table.part(n * layout.volume, layout.volume, "a volume")?;
        let characters = 2 * u64::from(entry.u32(4, WHAT)?);
        room.take(characters)?;
        let (offset, size) = (entry.u32(20, WHAT)?, entry.u32(24, WHAT)?);
        let references = all.part(offset.into(), size.into(), "a volume's references")?;
        room.take(references.len() as u64)?;
        let (references_version, references) = self::references(references)?;
        let directories = directories(all, entry.u32(28, WHAT)?.into(), entry.u32(32, WHAT)?, &mut room)?;
        out.push(Volume {
            device: Name(units(all.part(entry.u32(0, WHAT)?.into(), characters, "a volume's path")?.all())),
            created: entry.u64(8, WHAT)?,
            serial: entry.u32(16, WHAT)?,
            references_version,
            references,
            directories,
        });
    }
    Ok(out)
}

/// Version and references; version 3 has eight more bytes before them.
fn references(part: Input<'_>) -> Result<(u32, Vec<u64>)> {
    let what = "a volume's references";
    if part.is_empty() {
        return Ok((0, Vec::new()));
    }
    let (version, count) = (part.u32(0, what)?, part.u32(4, what)?);
    let list = part.table(if version >= 3 { 16 } else { 8 }, count.into(), 8, what)?;
    let number = |c: &[u8]| c.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
    Ok((version, list.all().chunks_exact(8).map(number).collect()))
}

/// Names one behind the other: a count of characters, the characters, a NUL.
fn directories(all: Input<'_>, mut at: u64, count: u32, room: &mut Room) -> Result<Vec<Name>> {
    let what = "a directory's name";
    let mut out = Vec::new();
    for _ in 0..count {
        let characters = 2 * u64::from(all.u16(at, what)?);
        room.take(characters + 4)?;
        out.push(Name(units(all.part(at + 2, characters, what)?.all())));
        at += characters + 4;
    }
    Ok(out)
}
