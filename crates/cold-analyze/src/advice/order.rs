//! Code that is needed is scattered over what is read.

use cold_model::figures::plural;
use cold_model::recording::FileIdx;
use cold_model::{Bytes, Nanos, path_text};

use super::{Facts, few, worth};
use crate::model::{FirstEntries, OrderGain, Suggestion, SuggestionId};
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

/// With figures where a trace of first entries says what an order would bring; else from what is read and not needed.
pub(super) fn rule(f: &Facts<'_, '_>) -> Option<Suggestion> {
    by_trace(f).or_else(|| by_pages(f))
}

/// What the model predicts of the program that gains most.
fn by_trace(f: &Facts<'_, '_>) -> Option<Suggestion> {
    let gains = f.found.first_entries.iter().filter(|e| e.is_program).filter_map(|e| {
        let gain = e.predicted.filter(|g| g.ordered.read < g.today.read)?;
        Some((e, gain, worth(f, saved(e, &gain))?))
    });
    let (entries, gain, saved) = gains.max_by_key(|(e, _, saved)| (*saved, std::cmp::Reverse(e.file)))?;
    let program = f.cx.path(entries.file);
    let name = path_text::base(&program);
    let order = format!("{name}.txt");
    let traces: Vec<String> = entries.from.iter().map(|dir| dir.to_string_lossy().into_owned()).collect();
    let words = ["cold", "layout", "order"].into_iter().chain(traces.iter().map(String::as_str));
    let make = line(words.chain(["--file", &program, "-o", &order]));
    let held_back = if entries.same_command { "" } else { ", not the recorded command" };
    let (today, ordered) = (gain.today, gain.ordered);
    Some(Suggestion {
        read_ahead: None,
        id: SuggestionId::OrderCode,
        what: format!(
            "Link {} in the order in which its starts enter functions: {make}, then cold layout link --order {} -- \
             and the build's command.",
            name,
            line([order.as_str()])
        ),
        why: format!(
            "The traced start {} ({}{held_back}) touches {} of code, for which {} in {} are predicted; linked in \
             the order {}, and {} in {}.",
            entries.scenario,
            plural(entries.entered, "function"),
            plural(today.pages, "page"),
            today.read,
            plural(today.requests, "request"),
            plural(ordered.pages, "page"),
            ordered.read,
            plural(ordered.requests, "request"),
        ),
        saves_bytes: Some(today.read - ordered.read),
        saves_requests: Some(today.requests.saturating_sub(ordered.requests)).filter(|n| *n > 0),
        saves_time: Some(saved),
        estimate: format!(
            "the model of the recorded kernel reads the code of {} functions as it is linked, and in the order; of the \
             stalls in the code the same part is saved as of its bytes or its requests, whichever is less; cold layout \
             predict has the figures of each scenario",
            entries.entered
        ),
        files: vec![entries.file],
    })
}

/// The part of the stalls in its code that goes with the bytes and the requests.
fn saved(entries: &FirstEntries, gain: &OrderGain) -> Nanos {
    let part = |today: u64, ordered: u64| today.saturating_sub(ordered) as f64 / today.max(1) as f64;
    let bytes = part(gain.today.read.0, gain.ordered.read.0);
    let requests = part(gain.today.requests, gain.ordered.requests);
    Nanos((entries.stall.0 as f64 * bytes.min(requests)) as u64)
}

/// Words as a shell takes them.
fn line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.into_iter().collect();
    // A word with a NUL byte cannot be typed at all.
    shlex::try_join(words.iter().copied()).unwrap_or_else(|_| words.join(" "))
}

/// Which pages of code were read for nothing: no trace is at hand.
fn by_pages(f: &Facts<'_, '_>) -> Option<Suggestion> {
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
    let is_command = !f.cx.recording.manifest.command.is_empty();
    let traced = if is_command { f.headline.subject.as_str() } else { "COMMAND" };
    Some(Suggestion {
        read_ahead: None,
        id: SuggestionId::OrderCode,
        what: format!(
            "Link the functions that a start uses next to each other: cold layout trace -- {traced} finds out their \
             order, and cold layout predict what it would bring."
        ),
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
