//! Relative relocations in plain form, which `DT_RELR` packs.

use cold_model::recording::FileIdx;
use cold_model::{Bytes, Nanos};

use super::{Facts, few};
use crate::model::{Suggestion, SuggestionId};
use crate::sections::pages_of;

/// `Elf64_Rela`: 24 bytes per relocation.
const PLAIN: u64 = 24;
/// `Elf64_Relr`: 8 bytes for up to 63 neighbours; one relocation in 8 bytes where they lie apart. Measured
/// on a Rust program: 495 kB became 9 kB, 1 in 55; a third of that is promised here.
const PACKED_PART: u64 = 18;
/// Plain relocations below this many bytes, or this part of what was read, are not worth a relink.
const LEAST: u64 = 64 << 10;
const LEAST_PART: f64 = 0.01;

struct Plain {
    file: FileIdx,
    saved: u64,
    count: u64,
    stall: Nanos,
}

pub(super) fn rule(f: &Facts<'_, '_>) -> Option<Suggestion> {
    let mut files: Vec<Plain> = f.cx.layouts.files.keys().filter_map(|&file| plain(f, file)).collect();
    files.sort_by_key(|p| std::cmp::Reverse(p.saved));
    let saved: u64 = files.iter().map(|p| p.saved).sum();
    let read = f.headline.read.value().map_or(0, |b| b.0);
    if saved < LEAST || (saved as f64) < LEAST_PART * read as f64 {
        return None;
    }
    let stall: Nanos = files.iter().map(|p| p.stall).sum();
    let count: u64 = files.iter().map(|p| p.count).sum();
    Some(Suggestion {
        read_ahead: None,
        id: SuggestionId::Relr,
        what: "Link with -z pack-relative-relocs (glibc 2.36, binutils 2.38 or LLVM 15 and later)."
            .to_string(),
        why: format!(
            "{} files hold {count} relative relocations of 24 bytes each in plain form.",
            files.len()
        ),
        saves_bytes: Some(Bytes(saved)),
        saves_requests: None,
        saves_time: Some(stall).filter(|t| t.0 > 0),
        estimate: format!(
            "the part of .rela.dyn that was read and holds them, less the 1/{PACKED_PART} that packed ones \
             take; time: the stalls in that section, scaled alike"
        ),
        files: few(files.iter().map(|p| p.file)),
    })
}

fn plain(f: &Facts<'_, '_>, file: FileIdx) -> Option<Plain> {
    let layout = f.cx.layouts.files.get(&file)?;
    if layout.relr {
        return None;
    }
    let section = layout.sections.iter().find(|s| s.name == ".rela.dyn")?;
    let bytes = layout.relative_relocations.saturating_mul(PLAIN).min(section.bytes);
    let pages = pages_of(section.offset, section.bytes, f.cx.page);
    let read = f.cx.bytes(f.cx.usage.get(file as usize)?.read.and(&pages).pages()).0.min(bytes);
    let saved = read - read / PACKED_PART;
    let in_it = |w: &&crate::waits::Wait<'_>| {
        w.stall.file == Some(file) && w.stall.page.is_some_and(|p| pages.contains(p))
    };
    let stall: Nanos = f.cx.waits.iter().filter(in_it).map(crate::waits::Wait::length).sum();
    let part = saved as f64 / section.bytes.max(1) as f64;
    let stall = Nanos((stall.0 as f64 * part) as u64);
    (saved > 0).then_some(Plain { file, saved, count: layout.relative_relocations, stall })
}
