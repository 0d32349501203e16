//! The layout of one file, and of all files of a recording.

mod dynamic;

use std::collections::HashMap;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

use cold_model::layout::{FileLayout, FrameName, Layouts, Section, Segment, Symbol};
use cold_model::recording::{FileIdx, FileKind, Recording};
use object::{Object as _, ObjectSection as _, ObjectSegment as _};

use crate::demangle::demangle;
use crate::elf::{Image, Object, RawSymbol, RawSymbols, build_id_of, raw_symbols};
use crate::occurs::Occurs;
use crate::{Error, debug_file, identity, lines, occurs};

/// Most sections and segments of a file that are listed; `-ffunction-sections` objects have thousands,
/// linked programs below 50.
const MAX_SECTIONS: usize = 10_000;
/// Most files that are read at once: debug information of one may take 256 MiB of memory.
const READERS: usize = 4;

/// Where to look for what is not in the files themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Directories with separate debug files, as gdb's `debug-file-directory`.
    pub debug_directories: Vec<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { debug_directories: vec!["/usr/lib/debug".into()] }
    }
}

/// Reads the layouts of the ELF files that `recording` names and that still are the recorded files, and
/// names the frames of its stacks, several files at once where there are processors for that.
///
/// Symbols are those that share a page with a touch, fill, stall or frame. `progress` is told how many
/// files are done, of how many. What cannot be read is in `missing`, with the reason.
pub fn layouts(recording: &Recording, options: &Options, mut progress: impl FnMut(usize, usize)) -> Layouts {
    let occurring: Vec<(FileIdx, Occurs)> = occurs::of(recording).into_iter().collect();
    let all = occurring.len();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = |told: &mut dyn FnMut(usize)| {
        let mut read = Vec::new();
        while let Some((file, occurs)) = occurring.get(next.fetch_add(1, Ordering::Relaxed)) {
            told(done.load(Ordering::Relaxed));
            read.push((*file, of_row(recording, *file, occurs, options)));
            done.fetch_add(1, Ordering::Relaxed);
        }
        read
    };
    // Others may have read everything before this thread takes its first.
    progress(0, all);
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(READERS);
    let read: Vec<(FileIdx, Row)> = std::thread::scope(|scope| {
        // This thread works, too: where the kernel refuses others, alone.
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, || work(&mut |_| ())).ok();
        let workers: Vec<_> = (1..threads).filter_map(start).collect();
        let own = work(&mut |done| progress(done, all));
        // What a worker has read must not be missing unsaid.
        let read = |w: ScopedJoinHandle<'_, _>| w.join().unwrap_or_else(|panic| resume_unwind(panic));
        workers.into_iter().map(read).chain([own]).flatten().collect()
    });
    progress(all, all);
    let mut layouts = Layouts::default();
    for (file, row) in read {
        match row {
            Row::Read(layout, names) => {
                if layout.symbols_from.is_empty() {
                    let why = "stripped, and no debug file for it is installed";
                    layouts.missing.insert(file, why.to_owned());
                }
                layouts.frames.extend(names);
                layouts.files.insert(file, layout);
            }
            Row::Missing(why) => drop(layouts.missing.insert(file, why)),
            Row::Nothing => {}
        }
    }
    layouts
}

/// What became of one file of a recording.
enum Row {
    Read(FileLayout, Names),
    /// It should be an ELF file, and cannot be read.
    Missing(String),
    /// It is none, and need not be one.
    Nothing,
}

fn of_row(recording: &Recording, file: FileIdx, occurs: &Occurs, options: &Options) -> Row {
    let Some(row) = recording.files.get(file as usize) else { return Row::Nothing };
    if row.kind != FileKind::Regular && row.kind != FileKind::Memory {
        return Row::Nothing;
    }
    let read = || {
        if row.deleted {
            return Err("deleted while it was in use".to_owned());
        }
        let path = row.place().ok_or("its path is not known")?;
        let Some(image) = open(&path, occurs.program)? else { return Ok(None) };
        let object = image.parse().map_err(|e| e.to_string())?;
        identity::same(row, &image.meta, build_id_of(&object).as_deref())?;
        Ok(Some(read_file(&object, &image.path, occurs, options)))
    };
    match read() {
        Ok(Some((layout, names))) => Row::Read(layout, names),
        Err(why) if occurs.program => Row::Missing(why),
        Ok(None) | Err(_) => Row::Nothing,
    }
}

/// Opens the file; `None` when it is not ELF and nothing says that it should be.
fn open(path: &Path, program: bool) -> Result<Option<Image>, String> {
    match Image::open(path) {
        Ok(image) => Ok(Some(image)),
        Err(Error::NotElf { .. }) if !program => Ok(None),
        Err(Error::Open(_)) if !path.exists() => Err("not on this machine".to_owned()),
        Err(e) => Err(e.to_string()),
    }
}

type Names = Vec<(cold_model::recording::Frame, Vec<FrameName>)>;

/// The layout of one parsed file, and the names of its frames.
pub(crate) fn read_file(
    object: &Object<'_>,
    path: &Path,
    occurs: &Occurs,
    options: &Options,
) -> (FileLayout, Names) {
    let mut layout =
        FileLayout { segments: segments(object), sections: sections(object), ..FileLayout::default() };
    dynamic::read(object, &mut layout);
    let debug = debug_file::find(object, path, &options.debug_directories);
    let debug = debug.as_ref().and_then(|image| Some((image, image.parse().ok()?)));
    let (raw, from) =
        best_symbols(object, debug.as_ref().map(|(image, parsed)| (image.path.as_path(), parsed)));
    layout.symbols = symbols(&raw, &layout.segments, occurs);
    layout.symbols_from = from;
    let names = name_frames(
        &layout,
        object,
        debug.as_ref().map(|(image, o)| (image.path.as_path(), o)),
        occurs,
        options,
    );
    (layout, names)
}

/// The fullest table of symbols, and where it is.
fn best_symbols<'a>(object: &Object<'a>, debug: Option<(&Path, &Object<'a>)>) -> (RawSymbols<'a>, String) {
    let own = raw_symbols(object, false);
    if !own.symbols.is_empty() {
        return (own, ".symtab".to_owned());
    }
    if let Some((path, debug)) = debug {
        let separate = raw_symbols(debug, false);
        if !separate.symbols.is_empty() {
            return (separate, path.to_string_lossy().into_owned());
        }
    }
    let dynamic = raw_symbols(object, true);
    let from = if dynamic.symbols.is_empty() { "" } else { ".dynsym only" };
    (dynamic, from.to_owned())
}

pub(crate) fn segments(object: &Object<'_>) -> Vec<Segment> {
    let mut segments: Vec<Segment> = object
        .segments()
        .take(MAX_SECTIONS)
        .map(|s| {
            let (offset, bytes) = s.file_range();
            let flags = match s.flags() {
                object::SegmentFlags::Elf { p_flags, .. } => p_flags.0,
                _ => 0,
            };
            let bit = |mask: u32, letter| if flags & mask == 0 { '-' } else { letter };
            let access = [bit(4, 'r'), bit(2, 'w'), bit(1, 'x')].iter().collect();
            Segment { offset, bytes, address: s.address(), access }
        })
        .collect();
    segments.sort_by_key(|s| (s.offset, s.address));
    segments
}

pub(crate) fn sections(object: &Object<'_>) -> Vec<Section> {
    let mut sections: Vec<Section> = object
        .sections()
        .take(MAX_SECTIONS)
        .filter_map(|s| {
            let (offset, bytes) = s.file_range()?;
            let name = String::from_utf8_lossy(s.name_bytes().ok()?).into_owned();
            (bytes > 0).then(|| Section { name, offset, bytes, address: s.address() })
        })
        .collect();
    sections.sort_by_key(|s| (s.offset, s.bytes));
    sections
}

/// Offset in the file of a virtual address that has bytes there.
fn offset_of(segments: &[Segment], address: u64) -> Option<u64> {
    segments.iter().find_map(|s| {
        let inside = address.checked_sub(s.address).filter(|inside| *inside < s.bytes)?;
        s.offset.checked_add(inside)
    })
}

/// Virtual address of an instruction at `offset` in the file. Neighbouring segments share a page of the
/// file; code lies in the executable one.
pub(crate) fn address_of(segments: &[Segment], offset: u64) -> Option<u64> {
    let holds = |s: &&Segment| offset.checked_sub(s.offset).is_some_and(|inside| inside < s.bytes);
    let executable = segments.iter().filter(|s| s.access.ends_with('x')).find(holds);
    let segment = executable.or_else(|| segments.iter().find(holds))?;
    segment.address.checked_add(offset - segment.offset)
}

/// The symbols on pages that occur, by offset, the best name of each offset. Only names of these are looked at: a large
/// library has 200,000 symbols, and a start meets a few thousand.
fn symbols(raw: &RawSymbols<'_>, segments: &[Segment], occurs: &Occurs) -> Vec<Symbol> {
    let mut found: Vec<(u64, &RawSymbol)> =
        raw.symbols.iter().filter_map(|s| Some((offset_of(segments, s.address)?, s))).collect();
    found.sort_unstable_by_key(|(offset, _)| *offset);
    let aliases = || found.chunk_by(|a, b| a.0 == b.0);
    let ends = aliases().skip(1).filter_map(|next| Some(next.first()?.0)).chain([u64::MAX]);
    aliases()
        .zip(ends)
        .filter_map(|(aliases, next)| {
            let (offset, _) = *aliases.first()?;
            let longest = aliases.iter().map(|(_, s)| s.bytes).max()?;
            let end = |bytes| if bytes == 0 { next } else { offset.saturating_add(bytes) };
            if !occurs.any_in(offset, end(longest).max(next)) {
                return None;
            }
            let (_, best) = aliases.iter().min_by(|a, b| raw.preference(a.1, b.1))?;
            // Marks of the ARM assemblers for code and data.
            (occurs.any_in(offset, end(best.bytes)) && !raw.name(best).starts_with(b"$")).then(|| Symbol {
                name: demangle(raw.name(best)),
                offset,
                bytes: best.bytes,
            })
        })
        .collect()
}

/// The symbol that covers `offset`.
fn covering(symbols: &[Symbol], offset: u64) -> Option<&Symbol> {
    let symbol = symbols.get(symbols.partition_point(|s| s.offset <= offset).checked_sub(1)?)?;
    (symbol.bytes == 0 || offset - symbol.offset < symbol.bytes).then_some(symbol)
}

fn name_frames(
    layout: &FileLayout,
    object: &Object<'_>,
    debug: Option<(&Path, &Object<'_>)>,
    occurs: &Occurs,
    options: &Options,
) -> Names {
    if occurs.frames.is_empty() {
        return Vec::new();
    }
    let address = |offset| address_of(&layout.segments, offset);
    let addresses: Vec<u64> = occurs.frames.iter().filter_map(|(_, offset)| address(*offset)).collect();
    let with_lines = if object.section_by_name(".debug_info").is_some() {
        lines::names(object, None, &addresses)
    } else if let Some((path, debug)) = debug {
        let shared = debug_file::shared(debug, path, &options.debug_directories);
        let shared = shared.as_ref().and_then(|image| image.parse().ok());
        lines::names(debug, shared.as_ref(), &addresses)
    } else {
        HashMap::new()
    };
    let name = |(frame, offset): &(cold_model::recording::Frame, u64)| {
        let by_line = address(*offset).and_then(|a| with_lines.get(&a)).cloned();
        let names = by_line.or_else(|| {
            let symbol = covering(&layout.symbols, *offset)?;
            Some(vec![FrameName { function: symbol.name.clone(), source: None, line: None, inlined: false }])
        })?;
        Some((*frame, names))
    };
    occurs.frames.iter().filter_map(name).collect()
}

#[cfg(test)]
mod tests;
