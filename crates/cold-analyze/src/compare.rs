//! Two recordings beside each other.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use cold_model::recording::Recording;
use cold_model::{Bytes, Known, Nanos};

use crate::model::compare::{
    CausePair, Comparison, Condition, FigurePair, FilePair, Ratio, Side, SideDifference, Unit,
};
use crate::model::{Analysis, FileUse, Headline};

/// What differs from `a` to `b`.
pub fn compare(a: &Recording, a_analysis: &Analysis, b: &Recording, b_analysis: &Analysis) -> Comparison {
    let conditions = conditions(a, b);
    let files = files(a, a_analysis, b, b_analysis);
    Comparison {
        comparable: conditions.iter().all(|c| c.forbids.is_none()),
        conditions,
        headline: figures(&a_analysis.headline, &b_analysis.headline),
        causes: causes(&a_analysis.headline, &b_analysis.headline),
        only_a: files.iter().filter(|f| f.b.is_none()).count() as u64,
        only_b: files.iter().filter(|f| f.a.is_none()).count() as u64,
        files,
    }
}

fn conditions(a: &Recording, b: &Recording) -> Vec<Condition> {
    let (m, n) = (&a.manifest, &b.manifest);
    let around = "needed and unused bytes: one side knows only an upper bound";
    let page = "pages: they have different sizes";
    let lost = "what lost events tell of: on the side with losses a lower bound";
    let bool_text = |yes: bool| if yes { "yes" } else { "no" }.to_string();
    let all: [(&str, String, String, Option<&str>); 13] = [
        ("tier", m.tier.to_string(), n.tier.to_string(), Some("all figures: the tiers do not see the same")),
        ("complete", bool_text(m.complete), bool_text(n.complete), Some("all figures: one ends early")),
        ("losses", losses(a), losses(b), Some(lost)),
        ("page_bytes", m.page_bytes.to_string(), n.page_bytes.to_string(), Some(page)),
        ("exact_need", bool_text(m.exact_need), bool_text(n.exact_need), Some(around)),
        (
            "ready_means",
            m.ready_means.clone(),
            n.ready_means.clone(),
            Some("all figures: ready is another moment"),
        ),
        ("state", m.state.wanted.to_string(), n.state.wanted.to_string(), None),
        ("devices", devices(a), devices(b), None),
        ("read_ahead", read_ahead(a), read_ahead(b), None),
        ("kernel", told(&m.machine.kernel), told(&n.machine.kernel), None),
        ("cpu", m.machine.cpu.clone(), n.machine.cpu.clone(), None),
        ("command", words(a), words(b), None),
        ("environment", told(&m.environment), told(&n.environment), None),
    ];
    all.into_iter()
        .filter(|(_, a, b, _)| a != b)
        .map(|(id, a, b, forbids)| Condition { id: id.into(), a, b, forbids: forbids.map(str::to_string) })
        .collect()
}

/// What a recording leaves empty it does not know.
fn told(text: &str) -> String {
    if text.is_empty() { "unknown".to_owned() } else { text.to_owned() }
}

fn losses(r: &Recording) -> String {
    let lost = r.manifest.lost.values().fold(0u64, |a, n| a.saturating_add(*n));
    if lost == 0 { "none".to_string() } else { format!("{lost} events") }
}

fn words(r: &Recording) -> String {
    let words: Vec<_> = r.manifest.command.iter().map(|w| w.to_string_lossy()).collect();
    words.join(" ")
}

/// The devices that were read from, by model or name.
fn devices(r: &Recording) -> String {
    let used: BTreeSet<_> = r.device_reads.iter().flatten().map(|d| d.dev).collect();
    let name =
        |d: &cold_model::recording::manifest::Device| d.model.clone().unwrap_or_else(|| d.name.clone());
    let names: Vec<_> = r.manifest.devices.iter().filter(|d| used.contains(&d.dev)).map(name).collect();
    named(&names)
}

/// A start that read nothing used no device.
fn named(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn read_ahead(r: &Recording) -> String {
    let used: BTreeSet<_> = r.device_reads.iter().flatten().map(|d| d.dev).collect();
    let devices = r.manifest.devices.iter().filter(|d| used.contains(&d.dev));
    named(&devices.map(|d| format!("{} {}", d.name, d.read_ahead)).collect::<Vec<_>>())
}

fn ratio(part: u64, whole: u64) -> Option<Ratio> {
    let thousandths = (u128::from(part) * 1000 + u128::from(whole) / 2).checked_div(u128::from(whole))?;
    Some(Ratio(u64::try_from(thousandths).unwrap_or(u64::MAX)))
}

fn minus(b: u64, a: u64) -> i64 {
    let limit = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    limit(b).saturating_sub(limit(a))
}

fn figures(a: &Headline, b: &Headline) -> Vec<FigurePair> {
    let figure = |id: &str, what: &str, unit, a: Known<u64>, b: Known<u64>| {
        let both = a.value().copied().zip(b.value().copied());
        FigurePair {
            id: id.into(),
            what: what.into(),
            unit,
            difference: both.map(|(a, b)| minus(b, a)),
            ratio: both.and_then(|(a, b)| ratio(b, a)),
            a,
            b,
        }
    };
    let time = |id, what, f: fn(&Headline) -> &Known<Nanos>| {
        figure(id, what, Unit::Nanos, f(a).clone().map(|n| n.0), f(b).clone().map(|n| n.0))
    };
    let size = |id, what, f: fn(&Headline) -> &Known<Bytes>| {
        figure(id, what, Unit::Bytes, f(a).clone().map(|n| n.0), f(b).clone().map(|n| n.0))
    };
    let count =
        |id, what, f: fn(&Headline) -> &Known<u64>| figure(id, what, Unit::Count, f(a).clone(), f(b).clone());
    vec![
        time("ready", "time to ready", |h| &h.ready),
        time("waited", "waited for storage", |h| &h.waited),
        time("waited_sum", "waits of all tasks", |h| &h.waited_sum),
        time("waited_main", "waits of the main thread", |h| &h.waited_main),
        size("needed", "needed", |h| &h.needed),
        size("read", "read", |h| &h.read),
        size("unused", "read, not needed", |h| &h.unused),
        size("cached", "needed, cached before", |h| &h.cached),
        size("metadata", "metadata read", |h| &h.metadata),
        count("requests", "requests", |h| &h.requests),
        size("mean_request", "mean request", |h| &h.mean_request),
        time("mean_service", "mean time in the device", |h| &h.mean_service),
        time("mean_queueing", "mean time in the queue", |h| &h.mean_queueing),
        count("lookups", "lookups", |h| &h.lookups),
        count("misses", "lookups that found nothing", |h| &h.misses),
        figure("processes", "processes", Unit::Count, a.processes.clone(), b.processes.clone()),
    ]
}

fn causes(a: &Headline, b: &Headline) -> Vec<CausePair> {
    let total = |h: &Headline| h.causes.values().map(|n| n.0).sum::<u64>();
    let (all_a, all_b) = (total(a), total(b));
    let names: BTreeSet<_> = a.causes.keys().chain(b.causes.keys()).copied().collect();
    let of = |h: &Headline, cause| h.causes.get(&cause).copied().unwrap_or_default();
    let mut out: Vec<_> = names
        .into_iter()
        .map(|cause| {
            let (in_a, in_b) = (of(a, cause), of(b, cause));
            let difference = minus(in_b.0, in_a.0);
            let (share_a, share_b) = (ratio(in_a.0, all_a), ratio(in_b.0, all_b));
            CausePair { cause, a: in_a, b: in_b, difference, share_a, share_b }
        })
        .collect();
    out.sort_by_key(|c| std::cmp::Reverse(c.a.max(c.b)));
    out
}

type ByPath<'a> = BTreeMap<(&'a str, usize), (usize, &'a FileUse)>;

/// Files by path and their number among those with the same one.
fn by_path(analysis: &Analysis) -> ByPath<'_> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut out = ByPath::new();
    for (index, f) in analysis.files.iter().enumerate() {
        let n = seen.entry(&f.path).or_default();
        out.insert((&f.path, *n), (index, f));
        *n += 1;
    }
    out
}

fn files(a: &Recording, with_a: &Analysis, b: &Recording, with_b: &Analysis) -> Vec<FilePair> {
    let (of_a, of_b) = (by_path(with_a), by_path(with_b));
    let names: BTreeSet<_> = of_a.keys().chain(of_b.keys()).copied().collect();
    let side = |&(index, f): &(usize, &FileUse)| Side {
        index,
        needed: f.needed,
        read: f.read,
        unused: f.unused,
        stall: f.stall,
        requests: f.requests,
    };
    let mut out: Vec<FilePair> = names
        .into_iter()
        .map(|name| {
            let (x, y) = (of_a.get(&name), of_b.get(&name));
            let changed = x.zip(y).is_some_and(|(x, y)| contents_differ(a, x.1, b, y.1));
            let (side_a, side_b) = (x.map(side), y.map(side));
            let difference = differences(side_a.as_ref(), side_b.as_ref());
            FilePair { path: name.0.to_string(), a: side_a, b: side_b, difference, changed }
        })
        .collect();
    out.sort_by_key(|f| {
        let d = f.difference;
        let size = (d.stall.unsigned_abs(), d.read.unsigned_abs(), d.needed.unsigned_abs());
        (std::cmp::Reverse(size), f.path.clone())
    });
    out
}

/// By build-id where both have one, else by size.
fn contents_differ(a: &Recording, x: &FileUse, b: &Recording, y: &FileUse) -> bool {
    let id = |r: &Recording, f: &FileUse| r.files.get(f.file as usize).and_then(|f| f.build_id.clone());
    match (id(a, x), id(b, y)) {
        (Some(x), Some(y)) => x != y,
        _ => x.size.zip(y.size).is_some_and(|(x, y)| x != y),
    }
}

fn differences(a: Option<&Side>, b: Option<&Side>) -> SideDifference {
    let of = |f: fn(&Side) -> u64| minus(b.map_or(0, f), a.map_or(0, f));
    SideDifference {
        needed: of(|s| s.needed.0),
        read: of(|s| s.read.0),
        unused: of(|s| s.unused.0),
        stall: of(|s| s.stall.0),
        requests: of(|s| s.requests),
    }
}

#[cfg(test)]
mod tests;
