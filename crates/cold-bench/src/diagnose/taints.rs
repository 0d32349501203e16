//! Tainted runs in one sentence: how many, and for which reasons how often.

use std::collections::BTreeSet;

use cold_model::Shown as _;
use cold_model::bench::{Ending, Run, Taint, most_first, with_bytes};
use cold_model::figures;
use cold_model::{Bytes, Nanos};

use super::{Severity, held_by};

/// Processes named in a sentence; all of them are in the JSON.
const NAMED: usize = 3;

/// Sums up the taints of a series' runs; none when there are none.
pub(super) fn summary(runs: &[&Run], counted: usize) -> Option<(Severity, String)> {
    let tainted = runs.len() - counted;
    if tainted == 0 {
        return None;
    }
    let mut kinds: Vec<(&'static str, Vec<&Taint>)> = Vec::new();
    for taint in runs.iter().flat_map(|r| &r.taints) {
        match kinds.iter_mut().find(|(kind, _)| *kind == taint.kind()) {
            Some((_, all)) => all.push(taint),
            None => kinds.push((taint.kind(), vec![taint])),
        }
    }
    kinds.sort_by_key(|(_, all)| std::cmp::Reverse(all.len()));
    let reasons: Vec<String> =
        kinds.iter().map(|(_, all)| format!("{} ({})", reason(all), all.len())).collect();
    let severity = if counted == 0 {
        Severity::Error
    } else if 2 * tainted > runs.len() {
        Severity::Warning
    } else {
        Severity::Info
    };
    let verb = if tainted == 1 { "does" } else { "do" };
    let end = if counted == 0 { "; no run counts" } else { "" };
    Some((
        severity,
        format!(
            "{tainted} of {} {verb} not count (tainted): {}{end}",
            super::count(runs.len(), "run"),
            reasons.join(", ")
        ),
    ))
}

/// The taint in words, as part of a list; with the runs' largest figure where several are summed up.
pub fn words(taint: &Taint) -> String {
    reason(&[taint])
}

fn reason(all: &[&Taint]) -> String {
    let largest_bytes = || Bytes(all.iter().map(|t| amount(t)).max().unwrap_or(0));
    let largest = || all.iter().map(|t| amount(t)).max().unwrap_or(0);
    let percent = || {
        all.iter()
            .map(|t| {
                if let Taint::Steal { percent } | Taint::BusyMachine { percent } = t { *percent } else { 0.0 }
            })
            .fold(0.0, f64::max)
    };
    let up_to = if all.len() > 1 { "up to " } else { "" };
    let Some(first) = all.first() else { return String::new() };
    match first {
        Taint::NotCold { .. } => format!("{up_to}{} stayed cached{}", largest_bytes(), holders(all)),
        Taint::NotWarm { .. } => format!("{up_to}{} of the files were not cached", largest_bytes()),
        Taint::NotPrefetched { .. } => format!("the launcher did not follow the plan: {}", whys(all)),
        Taint::NotSet { .. } => format!("its setting could not be made: {}", whys(all)),
        Taint::NotRestored { missing, extra, files } => format!(
            "the snapshot was not restored exactly ({missing} missing, {extra} too many, {files} files not the same)"
        ),
        Taint::CachesDropped { .. } => "caches were dropped by another process".into(),
        Taint::PagesReclaimed { .. } => format!("{up_to}{} pages were reclaimed", largest()),
        Taint::Refaults { .. } => {
            format!("{up_to}{} pages had to be read again after they were reclaimed", largest())
        }
        Taint::ForeignReads { .. } => {
            format!("other processes read {up_to}{}{}", largest_bytes(), readers(all))
        }
        Taint::Steal { .. } => {
            format!("the hypervisor took {up_to}{} of the CPU time", figures::percent(percent()))
        }
        Taint::FileSetChanged { path } => format!("{} changed", path.shown()),
        Taint::Failed { ending } => match ending {
            Ending::Code(code) => format!("the command failed with code {code}"),
            Ending::Signal(signal) => format!("signal {signal} killed the command"),
            Ending::Ended => "the command had to be ended".into(),
            Ending::TimedOut => "the command did not end in time".into(),
        },
        Taint::TimedOut { .. } => format!("not ready within {}", Nanos(largest())),
        Taint::BusyMachine { .. } => {
            format!("other processes used {up_to}{} of the CPUs", figures::percent(percent()))
        }
    }
}

fn amount(taint: &Taint) -> u64 {
    match taint {
        Taint::NotCold { bytes, .. } | Taint::NotWarm { bytes } | Taint::ForeignReads { bytes, .. } => {
            bytes.0
        }
        Taint::NotRestored { missing, extra, .. } => missing.0 + extra.0,
        Taint::CachesDropped { times } => *times,
        Taint::PagesReclaimed { pages } | Taint::Refaults { pages } => *pages,
        Taint::TimedOut { limit } => limit.0,
        Taint::Steal { .. }
        | Taint::BusyMachine { .. }
        | Taint::FileSetChanged { .. }
        | Taint::NotPrefetched { .. }
        | Taint::NotSet { .. }
        | Taint::Failed { .. } => 0,
    }
}

/// Each reason once.
fn whys(all: &[&Taint]) -> String {
    let why = |t: &&Taint| match t {
        Taint::NotPrefetched { why } | Taint::NotSet { why } => Some(why.clone()),
        _ => None,
    };
    let each: BTreeSet<String> = all.iter().filter_map(why).collect();
    each.into_iter().collect::<Vec<_>>().join("; ")
}

/// Who is known to hold what stayed, e.g. ` (held by a[1] 64.0 MiB, b[2] 1.5 MiB, …)`.
fn holders(all: &[&Taint]) -> String {
    let held = all.iter().filter_map(|t| match t {
        Taint::NotCold { holders, held, .. } => Some(with_bytes(held, holders)),
        _ => None,
    });
    held_by(&most_first(held.flatten(), Bytes::max), NAMED).map_or_else(String::new, |by| format!(" ({by})"))
}

/// Processes that read beside, those that read most first in each run, e.g. ` (among them a[1], b[2], …)`.
fn readers(all: &[&Taint]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for t in all {
        let Taint::ForeignReads { readers, .. } = t else { continue };
        for name in readers {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    let more = if names.len() > NAMED { ", …" } else { "" };
    names.truncate(NAMED);
    if names.is_empty() { String::new() } else { format!(" (among them {}{more})", names.join(", ")) }
}
