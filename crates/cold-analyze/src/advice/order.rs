//! Code that is needed is scattered over what is read.

use cold_model::recording::FileIdx;
use cold_model::{Bytes, Nanos};

use super::{Facts, few, worth};
use crate::model::Suggestion;
use crate::sections::pages_of;

/// Less code than this read is not worth a relink.
const LEAST: u64 = 512 << 10;
/// Needed part of the code below which its order is bad.
const DENSE: f64 = 0.6;
/// Fewer pieces are order already.
const FRAGMENTS: usize = 8;

struct Scattered {
    file: FileIdx,
    read: u64,
    needed: u64,
    fragments: usize,
    stall: Nanos,
}

pub(super) fn rule(f: &Facts<'_, '_>) -> Option<Suggestion> {
    f.headline.needed.value()?;
    let mut files: Vec<Scattered> =
        f.cx.layouts.files.keys().filter_map(|&file| scattered(f, file)).collect();
    files.sort_by_key(|s| std::cmp::Reverse((s.stall, s.read)));
    let saved: Nanos = files
        .iter()
        .map(|s| Nanos((s.stall.0 as f64 * (1.0 - s.needed as f64 / s.read.max(1) as f64)) as u64))
        .sum();
    let saved = worth(f, saved)?;
    let sum = |figure: fn(&Scattered) -> u64| files.iter().map(figure).sum::<u64>();
    let (read, needed) = (sum(|s| s.read), sum(|s| s.needed));
    Some(Suggestion {
        read_ahead: None,
        id: "order_code".to_string(),
        what: "Link the functions that a start uses next to each other (a symbol ordering file).".to_string(),
        why: format!(
            "Of {} of code read, {} was needed, in {} separate pieces.",
            Bytes(read),
            Bytes(needed),
            sum(|s| s.fragments as u64)
        ),
        saves_bytes: Some(Bytes(read - needed)),
        saves_requests: None,
        saves_time: Some(saved),
        estimate:
            "the code read and not needed, and the same part of the stalls in it; by whole pages, functions \
                   not needed on needed pages left out; only for programs that can be linked again"
                .to_string(),
        files: few(files.iter().map(|s| s.file)),
    })
}

fn scattered(f: &Facts<'_, '_>, file: FileIdx) -> Option<Scattered> {
    let usage = f.cx.usage.get(file as usize)?;
    let text = f.cx.layouts.files.get(&file)?.sections.iter().find(|s| s.name == ".text")?;
    let pages = pages_of(text.offset, text.bytes, f.cx.page);
    let needed = usage.needed.and(&pages);
    let read = usage.read.and(&pages).or(&needed);
    let in_text = |w: &&crate::waits::Wait<'_>| {
        w.stall.file == Some(file) && w.stall.page.is_some_and(|p| pages.contains(p))
    };
    let found = Scattered {
        file,
        read: f.cx.bytes(read.pages()).0,
        needed: f.cx.bytes(needed.pages()).0,
        fragments: needed.runs().len(),
        stall: f.cx.waits.iter().filter(in_text).map(crate::waits::Wait::length).sum(),
    };
    let bad = found.read >= LEAST
        && (found.needed as f64) < DENSE * found.read as f64
        && found.fragments >= FRAGMENTS;
    bad.then_some(found)
}
