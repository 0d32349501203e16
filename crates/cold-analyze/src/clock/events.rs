//! What moves the clocks, in order of time.

use std::collections::HashMap;

use cold_model::recording::tables::Began;
use cold_model::recording::{Recording, Thread};

/// One event of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event {
    pub(super) at: u64,
    pub(super) kind: Kind,
    pub(super) tid: u32,
}

/// What happens; of what happens at one time, the first of these first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// It leaves the CPU: row of the times off the CPU. A new task's first tells who made it.
    Off(usize),
    /// That wait ends.
    Woken(usize),
    /// It runs again.
    On,
    /// It begins; the thread that made it, as far as the tables of threads and processes say.
    Born { maker: Option<u32> },
    /// It is gone.
    Ended,
}

/// All threads, and who made each as far as the tables of threads and processes say: the first thread of its process,
/// or of the parent. The times off the CPU know better where they tell of a thread's first interval.
pub fn makers(recording: &Recording) -> impl Iterator<Item = (&Thread, Option<u32>)> {
    let forked = recording.processes.iter().filter(|p| p.how == Began::Fork);
    let parents: HashMap<u32, u32> = forked.map(|p| (p.pid, p.parent)).collect();
    recording.threads.iter().map(move |t| {
        let maker = if t.tid == t.pid { parents.get(&t.pid).copied() } else { Some(t.pid) };
        (t, maker)
    })
}

/// All of them.
pub(super) fn of(recording: &Recording) -> Vec<Event> {
    let mut events = Vec::new();
    for (t, maker) in makers(recording) {
        events.push(Event { at: t.began.0, kind: Kind::Born { maker }, tid: t.tid });
        events.extend(t.ended.map(|ended| Event { at: ended.0, kind: Kind::Ended, tid: t.tid }));
    }
    for (row, o) in recording.off_cpu.iter().flatten().enumerate() {
        let woken = o.woken.unwrap_or(o.ended);
        let each = [(o.began, Kind::Off(row)), (woken, Kind::Woken(row)), (o.ended, Kind::On)];
        events.extend(each.map(|(at, kind)| Event { at: at.0, kind, tid: o.tid }));
    }
    events.sort_unstable();
    events
}
