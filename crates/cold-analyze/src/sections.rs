//! Use by ELF section.

use std::collections::HashMap;

use cold_model::layout::{FileLayout, Section};
use cold_model::recording::{FileIdx, StallCause};
use cold_model::{Bytes, Nanos};

use crate::context::Context;
use crate::model::SectionUse;
use cold_model::pages::Runs;

/// Pages that hold at least one of the bytes.
pub(crate) fn pages_of(offset: u64, bytes: u64, page: u64) -> Runs {
    Runs::one(offset / page..offset.saturating_add(bytes).div_ceil(page))
}

/// The ELF and program headers have bytes before the first section, but no section of their own.
const HEADERS: &str = "ELF headers";

/// A part of a file that pages are charged to.
struct SectionPart<'a> {
    name: &'a str,
    offset: u64,
    bytes: u64,
    /// In a segment that programs map.
    loaded: bool,
    /// Pages that hold bytes of it; for what is not loaded, only those that no segment maps: a fault on a
    /// page they share is never for its sake.
    pages: Runs,
}

/// The parts by offset: headers, then sections.
fn parts(layout: &FileLayout, page: u64) -> Vec<SectionPart<'_>> {
    let ranges = layout.segments.iter().map(|s| pages_of(s.offset, s.bytes, page));
    let mapped = ranges.fold(Runs::default(), |all, r| all.or(&r));
    // Object files have no segments and no addresses.
    let loaded = |s: &Section| s.address != 0 || layout.segments.is_empty();
    let headers = layout.sections.first().filter(|s| s.offset > 0 && mapped.contains(0));
    let headers = headers.map(|s| SectionPart {
        name: HEADERS,
        offset: 0,
        bytes: s.offset,
        loaded: true,
        pages: pages_of(0, s.offset, page),
    });
    let sections = layout.sections.iter().map(|s| {
        let (all, loaded) = (pages_of(s.offset, s.bytes, page), loaded(s));
        let pages = if loaded { all } else { all.minus(&mapped) };
        SectionPart { name: &s.name, offset: s.offset, bytes: s.bytes, loaded, pages }
    });
    headers.into_iter().chain(sections).collect()
}

/// Sections of files that were needed or read, the files' order kept, sections by offset.
pub(crate) fn sections(cx: &Context<'_>) -> Vec<SectionUse> {
    let mut waits: HashMap<FileIdx, Vec<Stalled>> = HashMap::new();
    for w in &cx.waits {
        if let (Some(file), Some(page)) = (w.stall.file, w.stall.page) {
            let by_headers = matches!(w.stall.cause, StallCause::Read | StallCause::Exec);
            waits.entry(file).or_default().push(Stalled { page, length: w.length(), by_headers });
        }
    }
    let mut out = Vec::new();
    for (&file, layout) in &cx.layouts.files {
        let Some(usage) = cx.usage.get(file as usize) else { continue };
        if usage.needed.is_empty() && usage.read.is_empty() {
            continue;
        }
        let parts = parts(layout, cx.page);
        let stalls = stall_per_part(&parts, waits.get(&file).map_or(&[][..], Vec::as_slice), cx.page);
        for (part, stall) in parts.iter().zip(stalls) {
            out.push(SectionUse {
                file,
                segment: segment(layout, part),
                section: part.name.to_owned(),
                size: Bytes(part.bytes),
                needed: cx.bytes(usage.needed.and(&part.pages).pages()),
                read: cx.bytes(usage.read.and(&part.pages).pages()),
                stall,
            });
        }
    }
    out
}

fn segment(layout: &FileLayout, part: &SectionPart<'_>) -> String {
    if !part.loaded {
        return "not loaded".to_owned();
    }
    let holds = |s: &&cold_model::layout::Segment| {
        s.offset <= part.offset && part.offset < s.offset.saturating_add(s.bytes)
    };
    layout.segments.iter().find(holds).map_or_else(String::new, |s| format!("LOAD {}", s.access))
}

/// A wait for a page.
struct Stalled {
    page: u64,
    length: Nanos,
    /// By a call: the kernel and the loader read the headers so, sections are mapped.
    by_headers: bool,
}

/// Charges each wait to the part that has most of its page; parts that are loaded go first.
fn stall_per_part(parts: &[SectionPart<'_>], waits: &[Stalled], page_bytes: u64) -> Vec<Nanos> {
    let mut out = vec![Nanos(0); parts.len()];
    for w in waits {
        if w.by_headers && w.page == 0 && parts.first().is_some_and(|p| p.name == HEADERS) {
            out[0] += w.length;
            continue;
        }
        let from = w.page.saturating_mul(page_bytes);
        let to = from.saturating_add(page_bytes);
        let overlap =
            |p: &SectionPart<'_>| p.offset.saturating_add(p.bytes).min(to).saturating_sub(p.offset.max(from));
        // Parts are sorted by offset; those before the first that ends behind `from` cannot overlap.
        let best = parts
            .iter()
            .enumerate()
            .skip_while(|(_, p)| p.offset.saturating_add(p.bytes) <= from)
            .take_while(|(_, p)| p.offset < to)
            .max_by_key(|(i, p)| (overlap(p) > 0, p.loaded, overlap(p), std::cmp::Reverse(*i)));
        if let Some((i, _)) = best.filter(|(_, p)| overlap(p) > 0) {
            out[i] += w.length;
        }
    }
    out
}

#[cfg(test)]
mod tests;
