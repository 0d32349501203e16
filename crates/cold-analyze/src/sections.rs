//! Use by ELF section.

use std::collections::HashMap;

use cold_model::Nanos;
use cold_model::layout::{FileLayout, Section};
use cold_model::recording::FileIdx;

use cold_model::Bytes;

use crate::context::Context;
use crate::model::SectionUse;
use crate::pages::Runs;

/// Pages that hold at least one of the bytes.
pub(crate) fn pages_of(offset: u64, bytes: u64, page: u64) -> Runs {
    Runs::one(offset / page..offset.saturating_add(bytes).div_ceil(page))
}

/// Sections of files that were needed or read, the files' order kept, sections by offset.
pub(crate) fn sections(cx: &Context<'_>) -> Vec<SectionUse> {
    let mut waits: HashMap<FileIdx, Vec<(u64, Nanos)>> = HashMap::new();
    for w in &cx.waits {
        if let (Some(file), Some(page)) = (w.stall.file, w.stall.page) {
            waits.entry(file).or_default().push((page, w.length()));
        }
    }
    let mut out = Vec::new();
    for (&file, layout) in &cx.layouts.files {
        let Some(usage) = cx.usage.get(file as usize) else { continue };
        if usage.needed.is_empty() && usage.read.is_empty() {
            continue;
        }
        let stalls = stall_per_section(layout, waits.get(&file).map_or(&[][..], Vec::as_slice), cx.page);
        for (section, stall) in layout.sections.iter().zip(stalls) {
            let pages = pages_of(section.offset, section.bytes, cx.page);
            out.push(SectionUse {
                file,
                segment: segment(layout, section),
                section: section.name.clone(),
                size: Bytes(section.bytes),
                needed: cx.bytes(usage.needed.and(&pages).pages()),
                read: cx.bytes(usage.read.and(&pages).pages()),
                stall,
            });
        }
    }
    out
}

fn segment(layout: &FileLayout, section: &Section) -> String {
    let holds = |s: &&cold_model::layout::Segment| {
        s.offset <= section.offset && section.offset < s.offset.saturating_add(s.bytes)
    };
    layout.segments.iter().find(holds).map_or_else(String::new, |s| format!("LOAD {}", s.access))
}

/// Charges each wait to the section that has most of its page.
fn stall_per_section(layout: &FileLayout, waits: &[(u64, Nanos)], page_bytes: u64) -> Vec<Nanos> {
    let mut out = vec![Nanos(0); layout.sections.len()];
    for &(page, length) in waits {
        let (from, to) =
            (page.saturating_mul(page_bytes), (page.saturating_add(1)).saturating_mul(page_bytes));
        let overlap =
            |s: &Section| s.offset.saturating_add(s.bytes).min(to).saturating_sub(s.offset.max(from));
        // Sections are sorted by offset; those before the first that ends behind `from` cannot overlap.
        let best = layout
            .sections
            .iter()
            .enumerate()
            .skip_while(|(_, s)| s.offset.saturating_add(s.bytes) <= from)
            .take_while(|(_, s)| s.offset < to)
            .max_by_key(|(i, s)| (overlap(s), std::cmp::Reverse(*i)));
        if let Some((i, _)) = best.filter(|(_, s)| overlap(s) > 0) {
            out[i] += length;
        }
    }
    out
}

#[cfg(test)]
mod tests;
