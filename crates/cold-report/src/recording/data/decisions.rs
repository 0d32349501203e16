//! What was decided to read before it was needed: by the kernel's windows, and by calls of the program.

use std::collections::BTreeMap;

use cold_analyze::Window;
use cold_model::Nanos;
use cold_model::recording::{FileIdx, ReadaheadKind};
use serde_json::{Value, json};

use super::{MOST_ROWS, Numbers, short};

/// Windows of the start's own processes up to ready, by size: the next power of two, in pages.
pub(super) fn windows(numbers: &Numbers<'_>) -> Value {
    #[derive(Default)]
    struct Size {
        decisions: u64,
        pages: u64,
        limit: u32,
        kinds: BTreeMap<&'static str, u64>,
    }
    let recording = numbers.view.recording;
    let window = Window::of(recording);
    let mut sizes: BTreeMap<u64, Size> = BTreeMap::new();
    for r in recording.readahead.iter().flatten() {
        // A read that missed is first told without a window, then again with what was decided.
        if !r.in_tree || r.window_pages == 0 || !window.holds(r.at) {
            continue;
        }
        let pages = u64::from(r.window_pages);
        let kind = match r.kind {
            ReadaheadKind::Sync => "a read missed",
            ReadaheadKind::Async => "a read came near the end",
            ReadaheadKind::Order => "with large folios",
            ReadaheadKind::Unbounded => "plain",
        };
        let size = sizes.entry(pages.next_power_of_two()).or_default();
        size.decisions += 1;
        size.pages += pages;
        size.limit = size.limit.max(r.limit_pages);
        *size.kinds.entry(kind).or_default() += 1;
    }
    sizes
        .into_iter()
        .map(|(size, s)| {
            json!({
                "size": size, "decisions": s.decisions, "pages": s.pages, "limit": s.limit, "kinds": s.kinds,
            })
        })
        .collect()
}

/// Calls that asked for pages up to ready, by call and file, the longest first.
pub(super) fn advice(numbers: &Numbers<'_>) -> Value {
    #[derive(Default)]
    struct Calls {
        count: u64,
        bytes: Option<u64>,
        time: u64,
        failed: u64,
        first: u64,
    }
    let recording = numbers.view.recording;
    let window = Window::of(recording);
    let mut by: BTreeMap<(&str, Option<FileIdx>), Calls> = BTreeMap::new();
    for call in recording.advice.iter().flatten().filter(|c| window.holds(c.at)) {
        let since = call.at.saturating_sub(numbers.start).0;
        let row = by.entry((&call.call, call.file)).or_insert(Calls {
            first: since,
            bytes: Some(0),
            ..Calls::default()
        });
        row.count += 1;
        row.bytes = row.bytes.filter(|_| call.bytes > 0).map(|b| b.saturating_add(call.bytes));
        row.time = row.time.saturating_add(call.ended.saturating_sub(call.at).0);
        row.failed += u64::from(call.result < 0);
        row.first = row.first.min(since);
    }
    let mut rows: Vec<_> = by.into_iter().collect();
    rows.sort_by_key(|(_, c)| std::cmp::Reverse(c.time));
    rows.iter()
        .take(MOST_ROWS)
        .map(|((call, file), c)| {
            json!({
                "call": short(call), "file": file.and_then(|f| numbers.file(f)), "calls": c.count, "bytes": c.bytes,
                "time": Nanos(c.time), "failed": c.failed, "first": Nanos(c.first),
            })
        })
        .collect()
}
