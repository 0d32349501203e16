//! The evidence of each start of a group that was recorded together.

use std::collections::HashMap;

use cold_model::Nanos;
use cold_model::recording::{LookupKind, Recording};
use cold_sys::spawn::Timing;
use serde::Serialize;

use super::{Evidence, of};

/// Classes of events without which counts are too low.
const NEEDED: [&str; 4] = ["processes", "lookups", "touches", "task_state"];

/// What was seen of a group of starts.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// All starts of the group in one recording.
    pub recording: Recording,
    /// Counts of system calls by process, of all processes of the recording.
    pub calls: Vec<ProcessCalls>,
}

/// How often one system call returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Calls {
    /// Calls that returned.
    pub calls: u64,
    /// Bytes read, written, or of directory entries.
    pub bytes: u64,
    /// Wall time within them, nanoseconds.
    pub ns: u64,
}

/// How often one process called one system call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessCalls {
    /// Process (thread group) that called, as the recording names it.
    pub pid: u32,
    /// Name of the call.
    pub name: String,
    /// Calls, bytes and time, summed over the whole recording.
    pub calls: Calls,
}

/// One start divided by what the kernel tells, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Stages {
    /// From the call that creates the process until the process calls exec.
    pub create: u64,
    /// The exec: from its call until the new program is loaded.
    pub exec: u64,
    /// The program: dynamic loading, its own work, until its last thread is gone.
    pub run: u64,
    /// From there until it was waited for.
    pub exit: u64,
}

/// The evidence of each start in a recording of several: one per child of `spawner`, in order of creation,
/// as `timings` are. An error says what is missing.
pub fn per_start(seen: &Seen, timings: &[Timing], spawner: u32) -> Result<Vec<Evidence>, String> {
    let recording = &seen.recording;
    let lost: u64 = NEEDED.iter().filter_map(|class| recording.manifest.lost.get(*class)).sum();
    if lost > 0 {
        return Err(format!("{lost} events were lost, so counts are too low"));
    }
    let mut of_start: HashMap<u32, usize> = HashMap::new();
    let mut roots = Vec::new();
    for p in &recording.processes {
        if of_start.contains_key(&p.pid) {
            continue; // an exec: the same process
        }
        if p.parent == spawner && p.pid != spawner {
            of_start.insert(p.pid, roots.len());
            roots.push(p.pid);
        } else if let Some(start) = of_start.get(&p.parent).copied() {
            of_start.insert(p.pid, start);
        }
    }
    if roots.len() != timings.len() {
        return Err(format!("{} starts were recorded of {} that were made", roots.len(), timings.len()));
    }
    let each = roots.into_iter().zip(timings).enumerate();
    Ok(each
        .map(|(i, (root, timing))| start(seen, |pid| of_start.get(&pid) == Some(&i), root, timing))
        .collect())
}

fn start(seen: &Seen, own: impl Fn(u32) -> bool, root: u32, timing: &Timing) -> Evidence {
    let mut e = of(&seen.recording, &own);
    for c in seen.calls.iter().filter(|c| own(c.pid)) {
        let sum = e.calls.entry(c.name.clone()).or_default();
        sum.calls += c.calls.calls;
        sum.bytes += c.calls.bytes;
        sum.ns += c.calls.ns;
    }
    e.wall_ns = timing.ended.saturating_sub(timing.began).0;
    e.stages = stages(&seen.recording, root, timing);
    e
}

fn stages(recording: &Recording, root: u32, timing: &Timing) -> Option<Stages> {
    let mut execs = recording.lookups.iter().flatten();
    let exec = execs.find(|l| l.pid == root && l.kind == LookupKind::Exec && l.result >= 0)?;
    let ended = recording.processes.iter().filter(|p| p.pid == root).filter_map(|p| p.ended).max()?;
    let between = |from: Nanos, to: Nanos| to.saturating_sub(from).0;
    Some(Stages {
        create: between(timing.began, exec.at),
        exec: between(exec.at, exec.ended),
        run: between(exec.ended, ended),
        exit: between(ended, timing.ended),
    })
}
