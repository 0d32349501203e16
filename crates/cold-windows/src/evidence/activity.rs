//! What each process of a trace did, so that the start that is meant can be chosen.

use cold_model::{Bytes, Nanos};
use serde::Serialize;

use super::Evidence;

/// What a process did in the trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Activity {
    /// Its row in [`Evidence::processes`]: a number may be used again.
    #[serde(skip)]
    pub process: usize,
    /// Process id.
    pub pid: u32,
    /// Process that made it.
    pub parent: Option<u32>,
    /// Name of its program, without directory.
    pub image: String,
    /// Command line; empty where it is not told.
    pub command: String,
    /// It began while the trace ran.
    pub began_in_trace: bool,
    /// Faults that read from a disk.
    pub hard_faults: u64,
    /// Time in which its threads waited for hard faults, added up, ns.
    pub waited: Nanos,
    /// Disk reads that it asked for.
    pub reads: u64,
    /// Bytes of these reads.
    pub read: Bytes,
}

impl Activity {
    /// It did something that a start does: it began here, or read.
    pub fn is_of_interest(&self) -> bool {
        self.hard_faults > 0 || self.reads > 0 || self.began_in_trace
    }
}

impl Evidence {
    /// What each process did, those with most hard faults first.
    pub fn activities(&self) -> Vec<Activity> {
        let new = |(process, p): (usize, &super::Process)| Activity {
            process,
            pid: p.pid,
            parent: p.parent,
            image: p.image.clone(),
            command: p.command.clone(),
            began_in_trace: p.began.is_some(),
            hard_faults: 0,
            waited: Nanos(0),
            reads: 0,
            read: Bytes(0),
        };
        let mut rows: Vec<Activity> = self.processes.iter().enumerate().map(new).collect();
        let at = |pid: Option<u32>, at: i64| pid.and_then(|pid| self.process_at(pid, at));
        for f in &self.faults {
            if let Some(row) = at(f.pid, f.ended).and_then(|row| rows.get_mut(row)) {
                row.hard_faults += 1;
                row.waited += Nanos(f.ended.saturating_sub(f.began).max(0).cast_unsigned());
            }
        }
        for r in &self.reads {
            if let Some(row) = at(r.pid, r.completed).and_then(|row| rows.get_mut(row)) {
                row.reads += 1;
                row.read += Bytes(r.bytes.into());
            }
        }
        rows.sort_by_key(|r| std::cmp::Reverse((r.hard_faults, r.read, std::cmp::Reverse(r.pid))));
        rows
    }

    /// Hard faults and disk reads whose file has a name.
    pub fn named(&self) -> (u64, u64) {
        let faults = self.faults.iter().filter(|f| f.file.is_some()).count() as u64;
        (faults, self.reads.iter().filter(|r| r.file.is_some()).count() as u64)
    }
}
