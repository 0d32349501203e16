//! What moves the clocks, in order of time.

use std::collections::HashMap;

use cold_model::recording::tables::Began;
use cold_model::recording::{Recording, Thread};

/// One event of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TaskEvent {
    pub(super) at: u64,
    pub(super) kind: TaskEventKind,
    pub(super) tid: u32,
}

/// What happens; of what happens at one time, the first of these first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TaskEventKind {
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

/// Threads of a process that are looked at for the one that made another: a process may have had as many as a
/// recording has rows.
const MOST_MAKERS: usize = 1000;

/// All threads, and who made each as far as the tables of threads and processes say: a thread of the parent, or of its
/// own process. The times off the CPU know better where they tell of a thread's first interval.
pub fn makers<'r>(recording: &'r Recording, off: &Off) -> impl Iterator<Item = (&'r Thread, Option<u32>)> {
    let forked = recording.processes.iter().filter(|p| p.how == Began::Fork);
    let parents: HashMap<u32, u32> = forked.map(|p| (p.pid, p.parent)).collect();
    let mut siblings: HashMap<u32, Vec<&Thread>> = HashMap::new();
    for t in &recording.threads {
        siblings.entry(t.pid).or_default().push(t);
    }
    recording.threads.iter().map(move |t| {
        if t.tid == t.pid {
            return (t, parents.get(&t.pid).copied());
        }
        // The process' first thread, unless it did not run then: then the first one that did.
        let lived = |s: &&&Thread| s.tid != t.tid && s.began < t.began && s.ended.is_none_or(|e| e > t.began);
        let ran = |s: &&&Thread| off.since(s.tid, t.began.0).is_none();
        let others = siblings.get(&t.pid).into_iter().flatten().take(MOST_MAKERS);
        let maker = others.filter(lived).filter(ran).min_by_key(|s| (s.tid != t.pid, s.began, s.tid));
        (t, Some(maker.map_or(t.pid, |s| s.tid)))
    })
}

/// When threads were off the CPU.
pub struct Off(HashMap<u32, Vec<(u64, u64)>>);

impl Off {
    /// In a recording.
    pub fn of(recording: &Recording) -> Self {
        let mut all: HashMap<u32, Vec<(u64, u64)>> = HashMap::new();
        for o in recording.off_cpu.iter().flatten() {
            all.entry(o.tid).or_default().push((o.began.0, o.ended.0));
        }
        for spans in all.values_mut() {
            spans.sort_unstable();
        }
        Self(all)
    }

    /// Since when this thread was off the CPU at that time; `None` when it ran.
    pub fn since(&self, tid: u32, at: u64) -> Option<u64> {
        let spans = self.0.get(&tid)?;
        let last = spans.partition_point(|(began, _)| *began < at).checked_sub(1)?;
        spans.get(last).filter(|(_, ended)| at <= *ended).map(|(began, _)| *began)
    }
}

/// All of them.
pub(super) fn of(recording: &Recording) -> Vec<TaskEvent> {
    let mut events = Vec::new();
    for (t, maker) in makers(recording, &Off::of(recording)) {
        events.push(TaskEvent { at: t.began.0, kind: TaskEventKind::Born { maker }, tid: t.tid });
        events.extend(t.ended.map(|ended| TaskEvent { at: ended.0, kind: TaskEventKind::Ended, tid: t.tid }));
    }
    for (row, o) in recording.off_cpu.iter().flatten().enumerate() {
        let woken = o.woken.unwrap_or(o.ended);
        let each = [
            (o.began, TaskEventKind::Off(row)),
            (woken, TaskEventKind::Woken(row)),
            (o.ended, TaskEventKind::On),
        ];
        events.extend(each.map(|(at, kind)| TaskEvent { at: at.0, kind, tid: o.tid }));
    }
    events.sort_unstable();
    events
}
