//! Stacks, advice and checks, as paragraphs.

use std::collections::BTreeMap;

use cold_analyze::model::{Analysis, Suggestion};
use cold_analyze::{Reason, Topic, short_name};
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
    // What was read and looked up in vain stands in the headline and in tables of its own.
    let told = |r: &Reason| matches!(r.topic, Topic::Waiting | Topic::Elapsed);
    for reason in cold_analyze::story(a).into_iter().filter(told) {
        for (i, line) in wrap(&reason.text, view.columns.saturating_sub(4)).into_iter().enumerate() {
            out.push(format!("  {} {line}", if i == 0 { "•" } else { " " }));
        }
    }
    out
}

/// The stacks, each innermost frame first.
pub(super) fn stacks(a: &Analysis, view: View) -> Vec<String> {
    let mut out = Vec::new();
    let known: Vec<_> = a.stacks.iter().filter(|s| !s.frames.is_empty()).collect();
    for s in known.iter().take(view.few.min(STACKS)) {
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
    let parts = s.savings();
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
    for (i, s) in a.suggestions.iter().take(view.few).enumerate() {
        put(&format!("{}.", i + 1), &format!("{} ({})", s.what, saves(s)), Some(STRONG));
        put("", &s.why, None);
        let names: Vec<String> =
            s.files.iter().filter_map(|f| paths.get(f)).take(NAMED).map(|p| short_name(p)).collect();
        if !names.is_empty() {
            let more = s.files.len().saturating_sub(names.len());
            let more = if more > 0 { format!(" and {} more", count(more as u64)) } else { String::new() };
            put("", &format!("files: {}{more}", names.join(", ")), None);
        }
        if view.details {
            put("", &format!("estimate: {}", s.estimate), Some(FAINT));
        }
    }
    if a.suggestions.len() > view.few {
        let more = plural((a.suggestions.len() - view.few) as u64, "more suggestion");
        put("", &format!("… and {more}, and how each gain was estimated (--details)"), Some(FAINT));
    } else if !view.details && !a.suggestions.is_empty() {
        put("", "How each gain was estimated: --details", Some(FAINT));
    }
    out
}

/// What the recording can be trusted for. What holds is only counted without `details`.
pub(super) fn checks(a: &Analysis, view: View) -> Vec<String> {
    let mut out = Vec::new();
    let hold = a.checks.iter().filter(|c| c.holds == Some(true)).count();
    for c in a.checks.iter().filter(|c| view.details || c.holds != Some(true)) {
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
    if !view.details && hold > 0 {
        let all = plural(a.checks.len() as u64, "check");
        let rest = "--details: all of them, packages, stacks, sections and functions";
        let line = format!("{} of {all} of this recording hold ({rest})", count(hold as u64));
        out.extend(
            wrap(&line, view.columns.saturating_sub(2)).into_iter().map(|l| format!("  {}", paint(FAINT, l))),
        );
    }
    out
}
