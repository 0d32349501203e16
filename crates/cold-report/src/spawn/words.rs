//! Verdicts, causes and parts of a start in words, the same in the terminal and on the page.

use cold_spawn::Cause;
use cold_spawn::cause::What;
use cold_spawn::confirm::Remaining;
use cold_spawn::growth::Class;
use cold_spawn::report::{Confirmation, Part, Series};
use cold_spawn::session::Baseline;
use cold_spawn::verdict::CountOf;

use crate::axis::time;

/// Words for a class.
pub fn class_words(class: Class) -> &'static str {
    match class {
        Class::Constant => "constant",
        Class::Logarithmic => "grows with the logarithm of the number of starts",
        Class::Linear => "grows linearly with the number of starts (the total with its square)",
        Class::Quadratic => "grows with the square of the number of starts (the total with its cube)",
        Class::Step => "changed once, and stays there",
    }
}

/// What distinguishes a series.
pub fn series_words(s: &Series) -> String {
    let mut words = vec![s.method.name().to_owned()];
    if s.cgroup.is_some() {
        words.push("into a cgroup".into());
    }
    if s.jobs > 1 {
        words.push(format!("{} at once", s.jobs));
    }
    if s.parent_bytes > 0 {
        let pages = if s.huge_pages { " of huge pages" } else { "" };
        words.push(format!("parent with {} MiB{pages}", s.parent_bytes >> 20));
    }
    words.join(", ")
}

/// Words for a count of starts.
fn count_words(what: &CountOf) -> String {
    match what {
        CountOf::CallsOf(name) => format!("calls of {name}"),
        CountOf::Calls => "system calls".to_owned(),
        CountOf::CallBytes => "bytes read and written".to_owned(),
        other => other.to_string().replace('_', " "),
    }
}

/// What still grew in a repetition.
pub fn remaining_words(what: &Remaining) -> String {
    match what {
        Remaining::Time => "the time of a start".to_owned(),
        Remaining::Length => "the length that a start has reached".to_owned(),
        Remaining::Cause(name) => name.clone(),
        Remaining::Count(what) => count_words(what),
    }
}

/// Words for a part of a start.
pub fn part_words(part: Part) -> &'static str {
    match part {
        Part::Create => "create",
        Part::Exec => "exec",
        Part::Loading => "loading",
        Part::Own => "own",
    }
}

/// Words for a baseline.
pub fn baseline_words(baseline: Baseline) -> &'static str {
    match baseline {
        Baseline::Create => "a process that exits at once",
        Baseline::EmptyStatic => "an empty static program",
        Baseline::EmptyDynamic => "an empty program with the C library",
    }
}

/// What lengthened, by how much, and what it takes.
pub fn cause_words(c: &Cause) -> String {
    let what = match c.what {
        What::NameScan => format!("{} is searched number by number: now {:.0} names", c.name, c.present),
        What::DirectoryList => format!("{} is listed: now {:.0} bytes of entries", c.name, c.present),
        What::FileRead => format!("{} is read from its beginning: now {:.0} bytes", c.name, c.present),
        What::SearchPath => format!("lookups fail in {}: now {:.0}", c.name, c.present),
        What::Lookups => format!("names are looked up in {}: now {:.0}", c.name, c.present),
    };
    let share = c
        .share
        .map_or(String::new(), |s| format!(" ({} of the start)", cold_model::figures::percent(100.0 * s)));
    let took = if c.ns > 0 { format!(", {}{share}", time(c.ns as f64)) } else { String::new() };
    format!("{what}{took}; {:+.3} per start", c.growth.slope)
}

/// The innermost frames of the code that does it, without those of Rust's own library on the way there.
pub fn code_words(c: &Cause) -> Option<String> {
    const FRAMES: usize = 10;
    let (innermost, others) = c.code.split_last()?;
    let own = |frame: &&String| {
        let function = frame.split_once('`').map_or("", |(_, f)| f).trim_start_matches('<');
        !["std::", "core::", "alloc::"].iter().any(|library| function.starts_with(library))
    };
    let shown: Vec<&String> = others.iter().filter(own).chain([innermost]).collect();
    let from = shown.len().saturating_sub(FRAMES);
    let mut words = if from > 0 { vec!["…"] } else { Vec::new() };
    let mut module = "";
    for frame in &shown[from..] {
        // ``module`function``: the module where it changes.
        match frame.split_once('`') {
            Some((same, function)) if same == module => words.push(function),
            other => {
                module = other.map_or("", |(m, _)| m);
                words.push(frame);
            }
        }
    }
    Some(format!("by {}", words.join(" → ")))
}

/// The counts that grow.
pub fn counts_words(s: &Series) -> Option<String> {
    let growing = s.judged.counts.iter().filter(|c| c.growth.grows());
    let each: Vec<String> = growing
        .map(|c| format!("{} {:.0} ({:+.3} per start)", count_words(&c.what), c.present, c.growth.slope))
        .collect();
    (!each.is_empty()).then(|| format!("what grows: {}", each.join(", ")))
}

/// Why not all was observed.
pub fn not_observed_words(s: &Series) -> Option<String> {
    let why = s.not_observed.as_ref()?;
    Some(match s.observed.len() {
        0 => format!("no start was recorded, so causes are unknown: {why}"),
        n => format!("only {n} starts were recorded: {why}"),
    })
}

/// What became of the repetition: the verdict, and the rest.
pub fn confirmation_words(s: &Series, c: &Confirmation) -> (&'static str, String) {
    if let Some(why) = &c.failed {
        return ("not confirmed, since it could not be tried:", why.clone());
    }
    let dropped = c.dropped.join("; ");
    let known = |ns: Option<f64>| ns.map_or_else(|| "unknown".to_owned(), time);
    let (now, before) = (known(c.median_ns), known(s.times.map(|t| t.p50)));
    let level = format!("{} starts of {now} (median; {before} before)", c.starts);
    if c.vanished {
        return (
            "confirmed:",
            format!("growth vanishes when this is dropped before every start: {dropped}; {level}"),
        );
    }
    let remains = c.remains.join(", ");
    ("not confirmed:", format!("dropping {dropped} does not end it (still there: {remains}); {level}"))
}

#[cfg(test)]
pub(super) mod tests {
    use cold_spawn::growth::{ValueKind, judge_points};

    use super::*;

    pub(in crate::spawn) fn cause(code: &[&str]) -> Cause {
        let points: Vec<(u64, u64)> = (0..20).map(|i| (i, i)).collect();
        let xy: Vec<(f64, f64)> = points.iter().map(|(i, n)| (*i as f64, *n as f64)).collect();
        Cause {
            what: What::NameScan,
            name: "/log/<a>.{n}".into(),
            directory: "/log".into(),
            growth: judge_points(&xy, 20, ValueKind::Exact).expect("enough points"),
            points,
            present: 19.0,
            ns: 2000,
            share: Some(0.25),
            stack: None,
            code: code.iter().map(|f| (*f).to_owned()).collect(),
        }
    }

    #[test]
    fn code_is_told_without_rusts_own_and_modules_where_they_change() {
        let code = ["a`main", "a`find", "a`<std::fs::X as Y>::z", "libc.so.6`stat", "libc.so.6`syscall"];
        let words = code_words(&cause(&code));
        assert_eq!(words.as_deref(), Some("by a`main → find → libc.so.6`stat → syscall"));
        assert_eq!(code_words(&cause(&[])), None);
        let words = cause_words(&cause(&[]));
        assert!(words.ends_with("now 19 names, 2.00 µs (25.0% of the start); +1.000 per start"), "{words}");
    }
}
