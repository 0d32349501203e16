//! Answers in Markdown, for the page of a CI job or a comment on a change; and their words.

use std::fmt::Write as _;

use cold_model::figures::plural;
use cold_model::{Bytes, Shown as _};

use crate::answer::{Asked, Culprit, Culprits, GateResult, News, Outcome};

/// Names per gate; the documents for programs have more.
const NAMED: usize = 5;
/// Frames of a stack that are shown: those nearest to the call.
const FRAMES: usize = 4;

/// The document: a table of the gates, then the names behind each failed one.
pub fn summary(title: &str, results: &[GateResult]) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "### {}\n\n| | gate | of | observed |\n|---|---|---|---|", escaped(title));
    for r in results {
        let observed = match &r.outcome {
            Outcome::Inconclusive { reason, .. } if r.observed.is_empty() => reason,
            _ => &r.observed,
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} |",
            word(&r.outcome),
            escaped(&r.gate),
            escaped(&r.command),
            escaped(observed)
        );
    }
    for r in results.iter().filter(|r| r.outcome != Outcome::Pass) {
        let _ = writeln!(out, "\n**{}**\n", escaped(&line(r)));
        for detail in details(r) {
            let _ = writeln!(out, "- {}", escaped(&detail));
        }
    }
    out
}

/// Pass, fail or inconclusive.
pub fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "pass",
        Outcome::Fail => "fail",
        Outcome::Inconclusive { .. } => "inconclusive",
    }
}

/// A gate's answer in one line, without its first word.
pub fn line(r: &GateResult) -> String {
    let what = match &r.outcome {
        Outcome::Pass => "does not hold".to_owned(),
        Outcome::Fail => "holds".to_owned(),
        Outcome::Inconclusive { reason, runs_needed } => {
            let more = runs_needed.map(|n| format!("; about {n} more rounds would decide"));
            format!("cannot be decided: {reason}{}", more.unwrap_or_default())
        }
    };
    let observed = match r.observed.as_str() {
        "" => r.command.clone(),
        observed => format!("{}: {observed}", r.command),
    };
    format!("'{}' {what} [{observed}]", r.gate)
}

/// What a failed gate is about, a line each.
pub fn details(r: &GateResult) -> Vec<String> {
    let mut out: Vec<String> = r.news.as_ref().map(news).into_iter().collect();
    if let Some(c) = &r.culprits {
        out.extend(culprits(c));
    }
    out
}

fn news(news: &News) -> String {
    let (new, what, amount): (_, _, fn(u64) -> String) = match news {
        News::Files(new) => {
            let files = plural(new.count, "file");
            (new, format!("{files} not used before, {} in all", Bytes(new.amount)), |n| Bytes(n).to_string())
        }
        News::Misses(new) => {
            let lookups = plural(new.amount, "failed lookup");
            let directories = plural(new.count, "directory");
            (new, format!("{lookups} more in {directories}"), |n| n.to_string())
        }
    };
    let named = new.largest.iter().take(NAMED);
    let names: Vec<String> = named.map(|(path, n)| format!("{} ({})", path.0.shown(), amount(*n))).collect();
    format!("{what}: {}{}", names.join(", "), rest(new.count, names.len()))
}

fn rest(count: u64, named: usize) -> String {
    match count.saturating_sub(named as u64) {
        0 => String::new(),
        n => format!(" and {n} more"),
    }
}

fn culprits(c: &Culprits) -> Vec<String> {
    let named = c.largest.iter().take(NAMED);
    // "directories", "libraries", "files": what ends in -ies ends in -y alone.
    let single =
        c.of.strip_suffix("ies").map_or_else(|| c.of.trim_end_matches('s').to_owned(), |s| format!("{s}y"));
    let mut out = vec![format!("{}, {}:", plural(c.count, &single), c.why)];
    out.extend(named.map(|culprit| one(c, culprit)));
    let more = rest(c.count, out.len() - 1);
    if !more.is_empty() {
        out.push(more.trim_start().to_owned());
    }
    out
}

fn one(all: &Culprits, c: &Culprit) -> String {
    let show = |n: u64| all.unit.show(n as f64);
    let mut text = match c.before {
        Some(before) => format!("{} ({}, before {})", c.name, show(c.amount), show(before)),
        None => format!("{} ({})", c.name, show(c.amount)),
    };
    if let Some(Asked { process, pid, stack }) = &c.asked {
        let _ = write!(text, ", asked for by {process} (process {pid})");
        if !stack.is_empty() {
            let shown = &stack[stack.len().saturating_sub(FRAMES)..];
            let _ = write!(text, " in {}", shown.join(" > "));
        }
    }
    text
}

/// One line of text that Markdown and HTML take for nothing else.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.shown().to_string().chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' | '~' | '@' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unit;

    #[test]
    fn names_and_who_asked_are_told() {
        let asked = Asked { process: "app".into(), pid: 7, stack: vec!["a`main".into(), "libc`open".into()] };
        let culprit = |name: &str, amount, before| Culprit {
            name: name.into(),
            amount,
            before,
            asked: (before.is_none()).then(|| asked.clone()),
        };
        let all = vec![culprit("/old|one", 8, Some(7)), culprit("/new", 4096, None)];
        let mut r = GateResult::new("needed > +0", "a.cold", "more".into(), Outcome::Fail);
        r.culprits = Culprits::of("files", "new or grown", Unit::Bytes, all);
        let text = summary("a.cold", &[r]);
        assert!(text.contains("- 2 files, new or grown:"), "{text}");
        let new = "- /new (4.00 KiB), asked for by app (process 7) in a\\`main &gt; libc\\`open\n";
        assert!(text.contains(new), "{text}");
        assert!(text.contains("/old\\|one (8 B, before 7 B)"), "{text}");
    }

    #[test]
    fn every_answer_has_its_row() {
        let unknown = Outcome::Inconclusive { reason: "no table".into(), runs_needed: Some(3) };
        let r = GateResult::new("read > 1B", "a", String::new(), unknown);
        let text = summary("t", &[r]);
        assert!(text.contains("| inconclusive | read &gt; 1B | a | no table |"), "{text}");
        assert!(text.contains("about 3 more rounds"), "{text}");
    }
}
