//! Threads that look from time to time, and wait on.
//!
//! Housekeeping threads wait with a timeout: a watchdog or a monitor of the network for a second, timers of a virtual
//! machine for 50 ms. When it passes they find nothing to do and wait again, until the start ends them. How often that
//! happens tells how long the recorded start took, not what it needed: with such waits taken as time, a start that joins
//! its watchdog could not end before the watchdog's recorded seconds had passed.

use std::collections::{HashMap, HashSet};

use cold_model::recording::{OffCpu, OffCpuReason, Recording};

use super::waits;

/// Who ran no longer than this between two waits has only looked, nanoseconds. Firefox' monitor of the network ran 0.6 ms
/// the first time, with its pages to be read, and 0.1 ms later.
const LOOKED_NS: u64 = 1_000_000;

/// Thread and beginning of the waits for an event that a timer or somebody outside ended and that led to nothing: the
/// thread hardly ran, woke nobody, and waited in the same system call again until a thread of the start woke it.
pub(super) fn of(recording: &Recording) -> HashSet<(u32, u64)> {
    let tasks: HashSet<u32> = recording.threads.iter().filter(|t| t.in_tree).map(|t| t.tid).collect();
    let mut woke: HashMap<u32, Vec<u64>> = HashMap::new();
    let mut threads: HashMap<u32, Vec<&OffCpu>> = HashMap::new();
    for o in recording.off_cpu.iter().flatten() {
        threads.entry(o.tid).or_default().push(o);
        if let Some(waker) = o.waker.filter(|waker| *waker != o.tid) {
            woke.entry(waker).or_default().push(waits::end(o));
        }
    }
    let mut looks = HashSet::new();
    for (tid, mut rows) in threads {
        rows.sort_unstable_by_key(|o| o.began);
        let mut woke = woke.remove(&tid).unwrap_or_default();
        woke.sort_unstable();
        let by_task = |o: &OffCpu| o.waker.is_some_and(|waker| waker != tid && tasks.contains(&waker));
        looks.extend(of_thread(&rows, &woke, by_task).into_iter().map(|at| (tid, at)));
    }
    looks
}

/// Those of one thread, by the times at which it woke others, from the last one back.
fn of_thread(rows: &[&OffCpu], woke: &[u64], by_task: impl Fn(&OffCpu) -> bool) -> Vec<u64> {
    let mut found = Vec::new();
    // The wait behind, which a task ended at last, and the time between that the thread did not run.
    let mut behind: Option<&OffCpu> = None;
    let mut off = 0_u64;
    for row in rows.iter().rev() {
        if matches!(row.reason, OffCpuReason::Runnable | OffCpuReason::Storage | OffCpuReason::Lock) {
            off = off.saturating_add(row.ended.0.saturating_sub(row.began.0));
            continue;
        }
        behind = if row.reason != OffCpuReason::Event {
            None
        } else if by_task(row) {
            Some(row)
        } else {
            behind.filter(|next| {
                let ran = next.began.0.saturating_sub(row.ended.0).saturating_sub(off);
                let first = woke.partition_point(|at| *at < waits::end(row));
                let woke_nobody = woke.get(first).is_none_or(|at| *at > next.began.0);
                row.system_call.is_some()
                    && row.system_call == next.system_call
                    && ran <= LOOKED_NS
                    && woke_nobody
            })
        };
        if behind.is_some() && !by_task(row) {
            found.push(row.began.0);
            behind = Some(row);
        }
        off = 0;
    }
    found
}
