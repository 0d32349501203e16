//! Does the recording agree with itself and with the machine's own counters?

use cold_model::figures::percent_of as percent;
use cold_model::recording::manifest::{DiskCounter, Tier};
use cold_model::recording::{DeviceRead, FileKind};
use cold_model::{Bytes, Nanos};

use crate::context::Context;
use crate::model::Check;
use crate::usage::Usage;
use crate::waits::sum;

/// Largest difference between device reads seen and counted by the kernel.
const DEVICE_TOLERANCE: f64 = 0.01;
/// Least share of stall time of which file, lookup or request is known.
const ATTRIBUTED: f64 = 0.9;
/// Least share of used files with a path.
const RESOLVED: f64 = 0.99;

/// Classes of losses without which touches are not complete.
const WITH_TOUCHES: [&str; 5] = ["files", "processes", "touches", "mappings", "task_state"];

pub(crate) fn checks(cx: &Context<'_>) -> Vec<Check> {
    let mut out = vec![complete(cx), no_losses(cx), needed_within(cx), needed_is_bound(cx)];
    out.extend(device_reads(cx));
    out.extend([stalls_attributed(cx), paths_resolved(cx)]);
    out
}

fn check(id: &str, holds: Option<bool>, what: impl Into<String>) -> Check {
    Check { id: id.to_string(), holds, what: what.into() }
}

fn complete(cx: &Context<'_>) -> Check {
    let whole = cx.recording.manifest.complete;
    let what =
        if whole { "the recorder ended in order" } else { "the recorder was ended before it was done" };
    check("complete", Some(whole), what)
}

fn no_losses(cx: &Context<'_>) -> Check {
    let lost: Vec<_> = cx.recording.manifest.lost.iter().filter(|(_, n)| **n > 0).collect();
    let words: Vec<_> = lost.iter().map(|(class, n)| format!("{n} of {class}")).collect();
    let what = if lost.is_empty() {
        "no event was lost".to_string()
    } else {
        format!("events were lost: {}", words.join(", "))
    };
    check("no_losses", Some(lost.is_empty()), what)
}

/// Every page that was touched for certain was cached then, or filled for the touch.
fn needed_within(cx: &Context<'_>) -> Check {
    const ID: &str = "needed_within_read_or_cached";
    let r = cx.recording;
    for (name, there) in [("touches", r.touches.is_some()), ("fills", r.fills.is_some())] {
        if !there {
            return check(ID, None, cx.absent(name));
        }
    }
    let pages: u64 = cx.usage.iter().map(|u| u.exact.pages()).sum();
    let bad: u64 = cx.usage.iter().map(|u| u.contradicted).sum();
    let cached: u64 = cx.usage.iter().map(|u| u.cached().and(&u.exact).pages()).sum();
    if bad == 0 {
        let what = format!(
            "each of {pages} pages touched was there or filled at that time; {cached} of them nobody filled, so \
             they were cached before the start"
        );
        return check(ID, Some(true), what);
    }
    let at = cx.usage.iter().position(|u| u.contradicted > 0).unwrap_or(0);
    let example = cx.path(at as u32);
    check(ID, Some(false), format!("{bad} touches of {pages} pages without the page, first in {example}"))
}

/// Every page that was touched is among those told as needed: then that figure is an upper bound.
fn needed_is_bound(cx: &Context<'_>) -> Check {
    const ID: &str = "needed_is_upper_bound";
    let m = &cx.recording.manifest;
    if cx.recording.touches.is_none() {
        return check(ID, None, cx.absent("touches"));
    }
    let lost = WITH_TOUCHES.iter().any(|class| m.lost.get(*class).is_some_and(|n| *n > 0));
    if lost || !m.complete {
        let what = "events that tell of touches were lost: more was needed than is told";
        return check(ID, Some(false), what);
    }
    if cx.recording.tells_only_reads() {
        return check(ID, None, "the imported trace tells only what was read");
    }
    if !cx.reads_seen() {
        let what = "it bounds what was needed through mappings; which pages reads copied is not seen";
        return check(ID, None, what);
    }
    if m.tier == Tier::B {
        let what = "it holds but for reads by io_uring and for pages that were asked for at once (MAP_POPULATE, mlock), \
                    which tier B does not see";
        return check(ID, None, what);
    }
    if m.mapped_huge.is_none() {
        let what = "whether huge pages were mapped at once, without an event, was not recorded";
        return check(ID, None, what);
    }
    let pages = |of: fn(&Usage) -> u64| cx.bytes(cx.usage.iter().map(of).sum());
    let (exact, upper) = (pages(|u| u.exact.pages()), pages(|u| u.upper.pages()));
    let what = format!(
        "{exact} were touched for certain, {upper} more may have been: they were mapped around faults (files in \
         memory apart, whose faults have no events)"
    );
    check(ID, Some(true), what)
}

/// One check per device that the kernel counted.
fn device_reads(cx: &Context<'_>) -> Vec<Check> {
    const ID: &str = "device_reads_agree";
    let m = &cx.recording.manifest;
    let Some(reads) = &cx.recording.device_reads else {
        return vec![check(ID, None, cx.absent("device reads"))];
    };
    if m.disk_counters.is_empty() && m.complete && !m.devices.is_empty() && reads.is_empty() {
        return vec![check(ID, Some(true), "no device was read: none was seen, and the kernel counted none")];
    }
    if m.disk_counters.is_empty() {
        return vec![check(ID, None, "the machine's counters were not taken")];
    }
    m.disk_counters.iter().map(|counter| one_device(cx, ID, counter, reads)).collect()
}

fn one_device(cx: &Context<'_>, id: &str, counter: &DiskCounter, reads: &[DeviceRead]) -> Check {
    let m = &cx.recording.manifest;
    // The counters were read when everything was attached, long before the start, and again at the end.
    let counted = |r: &&DeviceRead| r.dev == counter.dev && r.completed.is_some_and(|t| t <= m.end);
    let counted = reads.iter().filter(counted);
    let (requests, bytes) = counted.fold((0u64, 0u64), |(n, b), r| (n + 1, b + u64::from(r.bytes)));
    let name = m
        .devices
        .iter()
        .find(|d| d.dev == counter.dev)
        .map_or_else(|| counter.dev.to_string(), |d| d.name.clone());
    let apart = bytes.abs_diff(counter.bytes.0);
    let holds = apart as f64 <= DEVICE_TOLERANCE * counter.bytes.0.max(bytes) as f64;
    let what = format!(
        "{name}: {} in {requests} requests seen, {} in {} counted by the kernel ({} apart)",
        Bytes(bytes),
        counter.bytes,
        counter.requests,
        percent(apart, counter.bytes.0.max(bytes))
    );
    check(id, Some(holds), what)
}

fn stalls_attributed(cx: &Context<'_>) -> Check {
    const ID: &str = "stalls_attributed";
    if cx.recording.stalls.is_none() {
        return check(ID, None, cx.absent("stalls"));
    }
    let total = sum(cx.waits.iter());
    if total == Nanos(0) {
        return check(ID, None, "nothing waited for storage");
    }
    let bare = sum(cx.waits.iter().filter(|w| w.unattributed()));
    let with_request = sum(cx.waits.iter().filter(|w| w.request.is_some()));
    let holds = (total.0 - bare.0) as f64 >= ATTRIBUTED * total.0 as f64;
    let what = format!(
        "of {total} waited, {} has a file, lookup or request; {} a device request",
        percent(total.0 - bare.0, total.0),
        percent(with_request.0, total.0)
    );
    check(ID, Some(holds), what)
}

/// Of the files that the tree touched or filled, device metadata and memory apart.
fn paths_resolved(cx: &Context<'_>) -> Check {
    const ID: &str = "paths_resolved";
    let named =
        |k| matches!(k, FileKind::Regular | FileKind::Directory | FileKind::Symlink | FileKind::Other);
    let used = cx
        .recording
        .files
        .iter()
        .zip(&cx.usage)
        .filter(|(f, u)| named(f.kind) && !(u.needed.is_empty() && u.read.is_empty()));
    let (mut all, mut without) = (0u64, 0u64);
    for (file, _) in used {
        all += 1;
        without += u64::from(file.path.is_none());
    }
    if all == 0 {
        return check(ID, None, "no file was touched or filled");
    }
    let holds = (all - without) as f64 >= RESOLVED * all as f64;
    check(
        ID,
        Some(holds),
        format!("{} of {all} files with touched or filled pages have a path", all - without),
    )
}

#[cfg(test)]
mod tests;
