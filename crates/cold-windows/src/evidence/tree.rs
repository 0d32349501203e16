//! Which of the processes of a trace are the start.

use std::collections::{BTreeSet, HashMap};

use super::Evidence;

/// The process that a user asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// By its number.
    Pid(u32),
    /// By the name of its program, with or without `.exe`, whatever the case.
    Name(String),
}

/// Why there is no such start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WhyNot {
    /// No process of that number or name.
    #[error("no process of the trace is {0}: it has {1}")]
    NoSuch(String, String),
    /// Nothing to choose from.
    #[error("the trace tells of no process")]
    NoProcess,
    /// None of them faulted, so that nothing says which one is meant.
    #[error("no process of the trace waited for a hard fault: name one with --process, it has {0}")]
    NoFaults(String),
}

/// A start: one process and what it made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Row of its first process in [`Evidence::processes`].
    pub root: usize,
    /// Rows of all its processes, the first included.
    pub rows: BTreeSet<usize>,
}

impl Tree {
    /// The start that is meant; without a wish, the process with most hard faults, of those that began during the
    /// trace if any of them faulted.
    ///
    /// # Errors
    /// Where there is no such process.
    pub fn choose(evidence: &Evidence, wanted: Option<&Wanted>) -> Result<Self, WhyNot> {
        if evidence.processes.is_empty() {
            return Err(WhyNot::NoProcess);
        }
        let mut counts: HashMap<usize, u64> = HashMap::new();
        for fault in &evidence.faults {
            if let Some(row) = fault.pid.and_then(|pid| evidence.process_at(pid, fault.ended)) {
                *counts.entry(row).or_default() += 1;
            }
        }
        let meant = |row: &usize| match (wanted, evidence.processes.get(*row)) {
            (_, None) => false,
            (None, _) => counts.contains_key(row),
            (Some(Wanted::Pid(pid)), Some(process)) => process.pid == *pid,
            (Some(Wanted::Name(name)), Some(process)) => {
                let image = process.image.to_lowercase();
                let name = name.to_lowercase();
                image == name || image.strip_suffix(".exe") == Some(name.as_str())
            }
        };
        let began = |row: &usize| evidence.processes.get(*row).is_some_and(|p| p.began.is_some());
        let rank = |row: &usize| (began(row), counts.get(row).copied().unwrap_or(0), std::cmp::Reverse(*row));
        let root = (0..evidence.processes.len()).filter(meant).max_by_key(rank);
        let all = || evidence.described(&counts);
        let root = root.ok_or_else(|| match wanted {
            Some(Wanted::Pid(pid)) => WhyNot::NoSuch(format!("number {pid}"), all()),
            Some(Wanted::Name(name)) => WhyNot::NoSuch(name.clone(), all()),
            None => WhyNot::NoFaults(all()),
        })?;
        Ok(Self { root, rows: evidence.descendants(root) })
    }

    /// Whether process `pid` belonged to it at that time.
    pub fn has(&self, evidence: &Evidence, pid: Option<u32>, at: i64) -> bool {
        pid.and_then(|pid| evidence.process_at(pid, at)).is_some_and(|row| self.rows.contains(&row))
    }
}

/// Processes that an error names at most.
const NAMED: usize = 8;

impl Evidence {
    /// Row of the process that had this id at that time: the last that had begun, else the first.
    pub fn process_at(&self, pid: u32, at: i64) -> Option<usize> {
        let rows = self.by_pid.get(&pid)?;
        let began = |row: &&usize| self.processes.get(**row).and_then(|p| p.began).is_some_and(|b| b <= at);
        rows.iter().rev().find(began).or_else(|| rows.first()).copied()
    }

    fn descendants(&self, root: usize) -> BTreeSet<usize> {
        let mut rows = BTreeSet::from([root]);
        let mut open = vec![root];
        while let Some(parent) = open.pop() {
            let Some(of) = self.processes.get(parent) else { continue };
            for (row, child) in self.processes.iter().enumerate() {
                // One that was there before the trace may have been made by an earlier process of the same number.
                let Some(began) = child.began else { continue };
                let lived = of.began.is_none_or(|b| b <= began) && of.ended.is_none_or(|e| began <= e);
                if child.parent == Some(of.pid) && lived && rows.insert(row) {
                    open.push(row);
                }
            }
        }
        rows
    }

    /// The processes with most hard faults, in words.
    fn described(&self, counts: &HashMap<usize, u64>) -> String {
        let mut rows: Vec<usize> = (0..self.processes.len()).collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(counts.get(row).copied().unwrap_or(0)), *row));
        let named = rows.iter().take(NAMED).filter_map(|row| {
            let p = self.processes.get(*row)?;
            Some(format!("{} ({})", p.image, p.pid))
        });
        let more = rows.len().saturating_sub(NAMED);
        let words = named.collect::<Vec<_>>().join(", ");
        if more > 0 { format!("{words} and {more} more") } else { words }
    }
}
