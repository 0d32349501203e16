//! Stacks, advice and checks, as paragraphs.

use std::collections::BTreeMap;

use cold_analyze::model::{Analysis, Suggestion};
use cold_analyze::short_name;
use cold_model::recording::FileIdx;

use super::View;
use crate::ui::{BAD, FAINT, GOOD, STRONG, WARN, paint};
use crate::words::{count, plural, wrap};

/// Stacks that are printed in full.
const STACKS: usize = 5;
/// Frames of each, innermost first.
const FRAMES: usize = 10;
/// Files named with a suggestion.
const NAMED: usize = 3;

/// What cost the time, in sentences.
pub(super) fn why(a: &Analysis, view: View) -> Vec<String> {
    let mut out = Vec::new();
    if a.headline.waited.value().is_none() {
        return out;
    }
    // What was read and looked up in vain stands in the headline and in tables of its own.
    for sentence in cold_analyze::story(a).into_iter().take(2) {
        for (i, line) in wrap(&sentence, view.columns.saturating_sub(4)).into_iter().enumerate() {
            out.push(format!("  {} {line}", if i == 0 { "•" } else { " " }));
        }
    }
    out
}

/// The stacks, each innermost frame first.
pub(super) fn stacks(a: &Analysis, view: View) -> Vec<String> {
    let mut out = Vec::new();
    let known: Vec<_> = a.stacks.iter().filter(|s| !s.frames.is_empty()).collect();
    for s in known.iter().take(view.limit.min(STACKS)) {
        let causes: Vec<String> = s.causes.iter().map(|(c, t)| format!("{} {t}", c.word())).collect();
        let head = format!("{} in {} ({})", s.stall, plural(s.stalls, "stall"), causes.join(", "));
        out.push(format!("  {}", paint(STRONG, head)));
        for frame in s.frames.iter().rev().take(FRAMES) {
            out.push(crate::table::cut(format!("      {frame}"), view.table));
        }
        if s.frames.len() > FRAMES {
            out.push(paint(FAINT, format!("      … {} more frames", s.frames.len() - FRAMES)));
        }
    }
    out
}

/// What it saves, in one phrase.
fn saves(s: &Suggestion) -> String {
    let parts: Vec<String> = [
        s.saves_time.map(|t| t.to_string()),
        s.saves_bytes.map(|b| b.to_string()),
        s.saves_requests.map(|n| plural(n, "request")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() { "effect unknown".to_owned() } else { format!("saves {}", parts.join(", ")) }
}

/// The advice, largest effect first.
pub(super) fn suggestions(a: &Analysis, paths: &BTreeMap<FileIdx, &str>, view: View) -> Vec<String> {
    let mut out = Vec::new();
    let mut put = |first: &str, text: &str, style: Option<anstyle::Style>| {
        for (i, line) in wrap(text, view.columns.saturating_sub(5)).into_iter().enumerate() {
            let mark = if i == 0 { first } else { "" };
            let line = style.map_or_else(|| line.clone(), |s| paint(s, &line));
            out.push(format!("{mark:>4} {line}"));
        }
    };
    for (i, s) in a.suggestions.iter().take(view.limit).enumerate() {
        put(&format!("{}.", i + 1), &format!("{} ({})", s.what, saves(s)), Some(STRONG));
        put("", &s.why, None);
        let names: Vec<String> =
            s.files.iter().filter_map(|f| paths.get(f)).take(NAMED).map(|p| short_name(p)).collect();
        if !names.is_empty() {
            let more = s.files.len().saturating_sub(names.len());
            let more = if more > 0 { format!(" and {} more", count(more as u64)) } else { String::new() };
            put("", &format!("files: {}{more}", names.join(", ")), None);
        }
        put("", &format!("estimate: {}", s.estimate), Some(FAINT));
    }
    out
}

/// What the recording can be trusted for.
pub(super) fn checks(a: &Analysis, view: View) -> Vec<String> {
    let mut out = Vec::new();
    for c in &a.checks {
        let (style, word) = match c.holds {
            Some(true) => (GOOD, "holds"),
            Some(false) => (BAD, "FAILS"),
            None => (WARN, "untold"),
        };
        for (i, line) in wrap(&c.what, view.columns.saturating_sub(10)).into_iter().enumerate() {
            let word = if i == 0 { paint(style, format!("{word:6}")) } else { " ".repeat(6) };
            out.push(format!("  {word}  {line}"));
        }
    }
    out
}
