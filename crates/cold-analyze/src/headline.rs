//! The main figures.

use std::collections::BTreeMap;

use cold_model::bench::{BUSY_PERCENT, STEAL_PERCENT, is_outlived};
use cold_model::figures::percent;
use cold_model::file_system::Origin;
use cold_model::recording::manifest::{FileSystem, Manifest, Subject, Tier};
use cold_model::recording::tables::Began;
use cold_model::recording::{DeviceRead, File, FileKind, FillCause, LookupKind, Process};
use cold_model::{Bytes, Known, Nanos};

use crate::context::{Context, is_miss};
use crate::model::{AfterReady, FileUse, Headline, MappedNeed, Reached, RecordedSpan};
use crate::usage::fills_have_times;
use crate::waits::{first_process, main_thread, sum, union};

/// From these shares of the CPUs on, in percent, a start's times are longer than alone, and that is said; what
/// disqualifies it is more.
const FELT: f64 = 15.0;
const FELT_STEAL: f64 = 3.0;

pub(crate) fn headline(cx: &Context<'_>, files: &[FileUse]) -> Headline {
    let (r, m) = (cx.recording, &cx.recording.manifest);
    let total = |f: fn(&FileUse) -> Bytes| files.iter().map(f).sum::<Bytes>();
    let touched = |v| cx.if_table("touches", r.touches.as_ref(), v);
    let needed = |v| cx.if_reads_seen(touched(v));
    let filled = |v| match m.tier {
        // It tells of the clusters that its own faults read, and of no other fills.
        Tier::Imported => Known::unknown("the imported file does not tell it"),
        _ => cx.if_fills_have_readers(cx.if_table("fills", r.fills.as_ref(), v)),
    };
    let both = |v: Bytes| match (needed(v), filled(v)) {
        (Known::Value(_), known) => known,
        (unknown, _) => unknown,
    };
    let waited = |v| cx.if_table("stalls", r.stalls.as_ref(), v);
    let requests = Requests::of(cx);
    let looked = |v| cx.if_table("lookups", r.lookups.as_ref(), v);
    let (files_used, files_needed) = crate::files::counts(cx, files);
    let metadata = cx.usage.iter().map(|u| u.metadata.pages()).sum();
    Headline {
        subject: subject(cx),
        tier: m.tier,
        ready: match &m.ready {
            Some(Known::Value(_)) if cx.window.ready => Known::Value(cx.window.since_start(cx.window.until)),
            Some(Known::Value(_)) => Known::unknown("ready lies before the start"),
            Some(Known::Unknown { unknown }) => Known::unknown(unknown.clone()),
            None => Known::unknown("no command was started"),
        },
        ended: ended(cx),
        first_ended: first_ended(cx),
        recorded: (m.subject != Subject::Command)
            .then(|| RecordedSpan { lasted: m.end.saturating_sub(m.start), ended_by: m.ended_by }),
        waited: waited(union(cx.waits.iter().map(|w| (w.from, w.to)))),
        waited_sum: waited(sum(cx.waits.iter())),
        waited_main: main_waits(cx),
        needed: needed(total(|f| f.needed)),
        needed_upper: needed(total(|f| f.needed_upper)),
        read: brought(cx, filled(total(|f| f.read)), |_| true),
        read_by_others: filled(
            files.iter().filter(|f| f.reached != Reached::ByOthers).map(|f| f.read_by_others).sum(),
        ),
        // A touch that was not seen leaves a page that looks unused; a fill, one that looks as if it had been there.
        unused: cx.unless_lost("touches", both(total(|f| f.unused))),
        mapped: (!cx.reads_seen() && m.tier != Tier::Imported && r.touches.is_some()).then(|| {
            let (most, upper) = (total(|f| f.needed), total(|f| f.needed_upper));
            MappedNeed { at_least: most.saturating_sub(upper), at_most: most }
        }),
        came_in: (!fills_have_times(r) && r.fills.is_some()).then(|| total(|f| f.read_by_others)),
        cached: cx.unless_lost("fills", both(total(|f| f.cached))),
        requests: cx.if_table("device reads", r.device_reads.as_ref(), requests.count),
        mean_request: requests.known(cx, requests.mean_bytes()),
        mean_service: requests.known(cx, requests.mean(|r| Some((r.issued?, r.completed?)))),
        mean_queueing: requests.queueing(cx),
        requests_by_others: cx.if_table("device reads", r.device_reads.as_ref(), requests.by_others),
        metadata: brought(cx, filled(cx.bytes(metadata)), |r| r.metadata),
        direct: cx.if_table("device reads", r.device_reads.as_ref(), total(|f| f.direct)),
        written: filled(cx.bytes(cx.usage.iter().map(|u| u.written.pages()).sum())),
        refilled: filled(total(|f| f.refilled)),
        unattributed: waited(sum(cx.waits.iter().filter(|w| w.unattributed()))),
        causes: causes(files),
        lookups: looked(cx.lookups().filter(|(_, l)| l.kind != LookupKind::List).count() as u64),
        misses: looked(cx.lookups().filter(|(_, l)| is_miss(l)).count() as u64),
        files: files_used,
        files_needed,
        processes: processes(cx),
        after_ready: after_ready(cx),
        lost: m.lost.iter().filter(|(_, n)| **n > 0).map(|(k, n)| (k.clone(), *n)).collect(),
        complete: m.complete,
        load: m.load.clone(),
        notes: notes(cx),
    }
}

/// What entered the cache, or where that is told in part only what those requests of the tree brought that count.
fn brought(cx: &Context<'_>, filled: Known<Bytes>, counts: impl Fn(&DeviceRead) -> bool) -> Known<Bytes> {
    if cx.asked.is_none() {
        return filled;
    }
    Known::Value(cx.requests().filter(|(_, r)| counts(r)).map(|(_, r)| Bytes(r.bytes.into())).sum())
}

fn subject(cx: &Context<'_>) -> String {
    let m = &cx.recording.manifest;
    let words: Vec<_> = m.command.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    // Fails only on a NUL, which no argument can hold; a damaged manifest may.
    let line = shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "));
    match m.subject {
        Subject::Process { pid } if line.is_empty() => format!("process {pid}"),
        Subject::Process { pid } => format!("process {pid}: {line}"),
        Subject::Machine => "the whole machine".to_string(),
        Subject::Command => line,
    }
}

/// Start to the end of the last process, unless ready says it.
fn ended(cx: &Context<'_>) -> Option<Nanos> {
    let m = &cx.recording.manifest;
    if m.subject != Subject::Command || m.is_ready_at_exit() {
        return None;
    }
    let tree = cx.recording.processes.iter().filter(|p| p.in_tree);
    let last = tree.map(|p| p.ended).try_fold(None, |last, ended| Some(last.max(Some(ended?))))?;
    last.map(|at| cx.window.since_start(at))
}

/// Start to the end of the process that was started, where the tree outlived it and ready is the end of that.
fn first_ended(cx: &Context<'_>) -> Option<Nanos> {
    let m = &cx.recording.manifest;
    if m.subject != Subject::Command || !m.is_ready_at_exit() || !cx.window.ready {
        return None;
    }
    let first = first_process(cx.recording)?;
    // Each exec is a row of its own.
    let rows = cx.recording.processes.iter().filter(|p| p.in_tree && p.pid == first);
    let ended = rows.map(|p| p.ended).try_fold(Nanos(0), |last, at| Some(last.max(at?)))?;
    let (ended, ready) = (cx.window.since_start(ended), cx.window.since_start(cx.window.until));
    is_outlived(ended, ready).then_some(ended)
}

fn main_waits(cx: &Context<'_>) -> Known<Nanos> {
    if cx.recording.stalls.is_none() {
        return Known::unknown(cx.absent("stalls"));
    }
    match main_thread(cx.recording) {
        Some(tid) => Known::Value(sum(cx.waits.iter().filter(|w| w.stall.tid == tid))),
        None => Known::unknown("there is no one main thread"),
    }
}

/// Every pid of the tree once: a fork and its execs are one process.
fn processes(cx: &Context<'_>) -> Known<u64> {
    // A recording of anything holds at least one.
    if cx.recording.processes.is_empty() {
        return Known::unknown("no process was seen");
    }
    let mut pids: Vec<(u32, Nanos)> = Vec::new();
    let lives = |p: &&Process| {
        p.in_tree && p.began <= cx.window.until && p.ended.is_none_or(|ended| ended >= cx.window.start)
    };
    for p in cx.recording.processes.iter().filter(lives) {
        // A new fork may reuse a pid; an exec goes on with one.
        let is_new = p.how != Began::Exec || !pids.iter().any(|(pid, _)| *pid == p.pid);
        if is_new {
            pids.push((p.pid, p.began));
        }
    }
    Known::Value(pids.len() as u64)
}

fn causes(files: &[FileUse]) -> BTreeMap<FillCause, Bytes> {
    let mut out = BTreeMap::new();
    for (cause, bytes) in files.iter().flat_map(|f| &f.causes) {
        *out.entry(*cause).or_insert(Bytes(0)) += *bytes;
    }
    out
}

struct Requests<'a> {
    count: u64,
    by_others: u64,
    own: Vec<&'a DeviceRead>,
}

impl<'a> Requests<'a> {
    fn of(cx: &Context<'a>) -> Self {
        let own: Vec<_> = cx.requests().map(|(_, r)| r).collect();
        let all = cx.recording.device_reads.iter().flatten().filter(|r| cx.window.holds(r.queued));
        let mut devices: Vec<_> = own.iter().map(|r| r.dev).collect();
        devices.sort_unstable();
        devices.dedup();
        let by_others = all.filter(|r| !r.in_tree && devices.binary_search(&r.dev).is_ok()).count() as u64;
        Self { count: own.len() as u64, by_others, own }
    }
    fn known<T>(&self, cx: &Context<'_>, value: Option<T>) -> Known<T> {
        if cx.recording.device_reads.is_none() {
            return Known::unknown(cx.absent("device reads"));
        }
        value.map_or_else(
            || Known::unknown(if self.count == 0 { "no requests were made" } else { "it was not seen" }),
            Known::Value,
        )
    }
    fn queueing(&self, cx: &Context<'_>) -> Known<Nanos> {
        if cx.recording.tells_only_reads() {
            return Known::unknown("the imported trace tells of requests from the disk's driver on");
        }
        self.known(cx, self.mean(|r| Some((r.queued, r.issued?))))
    }
    fn mean_bytes(&self) -> Option<Bytes> {
        let total: u64 = self.own.iter().map(|r| u64::from(r.bytes)).sum();
        total.checked_div(self.count).map(Bytes)
    }
    /// Mean length of an interval of the requests that have it.
    fn mean(&self, interval: fn(&DeviceRead) -> Option<(Nanos, Nanos)>) -> Option<Nanos> {
        let lengths: Vec<_> =
            self.own.iter().filter_map(|r| interval(r)).map(|(a, b)| b.saturating_sub(a)).collect();
        lengths.iter().copied().sum::<Nanos>().0.checked_div(lengths.len() as u64).map(Nanos)
    }
}

fn after_ready(cx: &Context<'_>) -> Option<AfterReady> {
    if !cx.window.ready {
        return None;
    }
    let (r, until) = (cx.recording, cx.window.until);
    let fills = r.fills.iter().flatten().filter(|f| f.in_tree && f.at > until && fills_have_times(r));
    let after = AfterReady {
        read: fills
            .filter(|f| f.cause != FillCause::Write)
            .map(|f| cx.bytes(f.pages.into()))
            .fold(Bytes(0), |a, b| Bytes(a.0.saturating_add(b.0))),
        requests: r.device_reads.iter().flatten().filter(|d| d.in_tree && d.queued > until).count() as u64,
        waited_sum: r
            .stalls
            .iter()
            .flatten()
            .filter(|s| s.cause.is_storage())
            .filter_map(|s| Some(s.woken.or(s.ended)?.saturating_sub(s.began.max(until))))
            .sum(),
    };
    (after != AfterReady::default()).then_some(after)
}

/// Files of it were used, and are such that there would be something to see: the kernel's own file systems
/// and device nodes hold nothing that could be read from a device.
fn concerns(cx: &Context<'_>, fs: &FileSystem) -> bool {
    let used = |f: &File| f.dev == fs.dev && matches!(f.kind, FileKind::Regular | FileKind::Memory);
    Origin::of(&fs.kind) != Origin::Kernel && cx.recording.files.iter().any(used)
}

/// That others had the CPUs, where it was too little to disqualify the start and enough to be felt in its times.
fn busy(m: &Manifest) -> Option<String> {
    let load = m.load.as_ref()?.value()?;
    let (others, stolen) = (load.others_percent(), load.stolen_percent());
    // A taint of these says it already.
    let words = [
        (FELT..BUSY_PERCENT)
            .contains(&others)
            .then(|| format!("other processes used {} of the CPUs", percent(others))),
        (FELT_STEAL..STEAL_PERCENT)
            .contains(&stolen)
            .then(|| format!("the hypervisor took {} of the CPU time", percent(stolen))),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    (!words.is_empty())
        .then(|| format!("{} while it ran: on an idle machine its times may be shorter", words.join(" and ")))
}

fn notes(cx: &Context<'_>) -> Vec<String> {
    let m = &cx.recording.manifest;
    let mut out = Vec::new();
    out.extend(m.taints.iter().cloned());
    out.extend(busy(m));
    out.extend(m.notes.iter().cloned());
    // What the kernel makes up or keeps in memory needs one line, whatever number of mounts.
    let (memory, others): (Vec<_>, Vec<_>) = m
        .file_systems
        .iter()
        .filter(|fs| concerns(cx, fs))
        .filter_map(|fs| Some((fs, fs.blind.as_ref()?)))
        .partition(|(fs, _)| Origin::of(&fs.kind).reads_nothing());
    if !memory.is_empty() {
        let names: Vec<_> = memory.iter().map(|(fs, _)| format!("{} ({})", fs.mounted_at, fs.kind)).collect();
        out.push(format!("Files that no device holds, so that nothing is read: {}.", names.join(", ")));
    }
    out.extend(others.iter().map(|(fs, why)| format!("{} ({}): {why}", fs.mounted_at, fs.kind)));
    out
}
