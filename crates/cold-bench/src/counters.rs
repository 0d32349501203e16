//! Readings of the machine's counters around one run, and their differences.

use std::collections::{BTreeSet, HashMap};

use cold_model::{Dev, Known, Nanos};
use cold_sys::cgroup::Cgroup;
use cold_sys::procfs::{CpuTimes, ProcFs};

/// Cumulative counters at one moment. What cannot be read is absent.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    vmstat: HashMap<&'static str, u64>,
    cpu: Option<CpuTimes>,
    disks: HashMap<Dev, Disk>,
    readers: HashMap<(i32, u64), CounterReader>,
    io_stall_us: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Disk {
    reads: u64,
    bytes: u64,
}

#[derive(Debug, Clone)]
struct CounterReader {
    comm: String,
    bytes: u64,
}

/// The counters of vmstat(5) that tell of a disturbance.
const VMSTAT: [&str; 5] =
    ["drop_pagecache", "drop_slab", "pgsteal_file", "pgsteal_anon", "workingset_refault_file"];

impl Reading {
    /// Reads now. `devices` are those of the file set; `tree` is the tree's own cgroup, if it has one.
    pub fn take(proc: &ProcFs, devices: &BTreeSet<Dev>, tree: Option<&Cgroup>) -> Self {
        let mut me = Self { readers: readers(proc), ..Self::default() };
        if let Ok(v) = proc.vmstat() {
            me.vmstat = VMSTAT.iter().filter_map(|k| Some((*k, *v.get(*k)?))).collect();
        }
        me.disks = proc
            .diskstats()
            .unwrap_or_default()
            .into_iter()
            .filter(|d| devices.contains(&d.dev))
            .map(|d| (d.dev, Disk { reads: d.reads, bytes: d.read_bytes }))
            .collect();
        me.io_stall_us = tree.and_then(|c| c.io_stall_us().ok());
        // Last: looking at every process is work, too, and not others'.
        me.cpu = proc.cpu_times().ok();
        me
    }

    /// The same with the CPU times of a moment before it was taken.
    #[must_use]
    pub fn with_cpu(self, cpu: Option<CpuTimes>) -> Self {
        Self { cpu, ..self }
    }

    /// What happened since `earlier`.
    pub fn since(&self, earlier: &Self) -> Activity {
        let vm = |k| Some(self.vmstat.get(k)?.saturating_sub(*earlier.vmstat.get(k)?));
        // A sum over some of them would be taken for all.
        let disk = |f: fn(&Disk) -> u64| {
            let each = |(dev, now): (&Dev, &Disk)| Some(f(now).saturating_sub(f(earlier.disks.get(dev)?)));
            if self.disks.is_empty() { None } else { self.disks.iter().map(each).sum() }
        };
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        let read_since = |id: &(i32, u64), now: &CounterReader| {
            now.bytes.saturating_sub(earlier.readers.get(id).map_or(0, |r| r.bytes))
        };
        let (ours, others): (Vec<_>, Vec<_>) = self.readers.iter().partition(|(id, _)| id.0 == own);
        let own_read_bytes = ours.into_iter().map(|(id, now)| read_since(id, now)).sum();
        let mut readers: Vec<(String, u64)> = others
            .into_iter()
            .map(|(id, now)| (format!("{}[{}]", now.comm, id.0), read_since(id, now)))
            .filter(|(_, bytes)| *bytes > 0)
            .collect();
        readers.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        Activity {
            page_cache_drops: vm("drop_pagecache"),
            slab_drops: vm("drop_slab"),
            reclaimed_pages: vm("pgsteal_file").map(|f| f + vm("pgsteal_anon").unwrap_or(0)),
            refaulted_pages: vm("workingset_refault_file"),
            cpu: self.cpu.zip(earlier.cpu).map(|(now, then)| CpuTimes {
                total: now.total.saturating_sub(then.total),
                idle: now.idle.saturating_sub(then.idle),
                steal: now.steal.saturating_sub(then.steal),
            }),
            device_reads: disk(|d| d.reads),
            device_read_bytes: disk(|d| d.bytes),
            own_read_bytes,
            other_readers: readers,
            io_stall_us: self.io_stall_us.zip(earlier.io_stall_us).map(|(n, t)| n.saturating_sub(t)),
        }
    }
}

/// Bytes read from storage so far by every process that lets us look.
fn readers(proc: &ProcFs) -> HashMap<(i32, u64), CounterReader> {
    let mut found = HashMap::new();
    for pid in proc.pids().unwrap_or_default() {
        let Ok(Some(bytes)) = proc.process_field(pid, "io", "read_bytes") else { continue };
        let Ok(stat) = proc.stat(pid) else { continue };
        found.insert((pid, stat.starttime), CounterReader { comm: stat.comm, bytes });
    }
    found
}

/// What the machine did during a run; `None` is unknown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Activity {
    /// Writes of 1 or 3 to `drop_caches`, by anybody.
    pub page_cache_drops: Option<u64>,
    /// Writes of 2 or 3 to `drop_caches`, by anybody.
    pub slab_drops: Option<u64>,
    /// Pages that reclaim took from anybody.
    pub reclaimed_pages: Option<u64>,
    /// File pages read again after reclaim had taken them.
    pub refaulted_pages: Option<u64>,
    /// CPU time of the machine in ticks.
    pub cpu: Option<CpuTimes>,
    /// Read requests completed by the devices of the file set.
    pub device_reads: Option<u64>,
    /// Bytes they delivered.
    pub device_read_bytes: Option<u64>,
    /// Bytes that `cold` itself read (its own code, after it has been evicted).
    pub own_read_bytes: u64,
    /// Bytes read by processes that outlived the run (so not of the tree), most first.
    pub other_readers: Vec<(String, u64)>,
    /// Time in which a task of the tree waited for I/O, in microseconds.
    pub io_stall_us: Option<u64>,
}

impl Activity {
    /// How long a start waited for I/O. `has_read`: pages that it touched had to be read; `missing`: why there may be no
    /// account. The kernel weighs its account by whole ticks (of 1 to 10 ms) in which a processor was busy for the
    /// tree: what a start of a few milliseconds waited it may forget, and then it says zero.
    pub(crate) fn stall(&self, has_read: bool, missing: &str) -> Known<Nanos> {
        match self.io_stall_us {
            None => Known::unknown(missing),
            Some(0) if has_read => Known::unknown(
                "a start is shorter than the ticks by which the kernel accounts for waiting (io.pressure)",
            ),
            Some(us) => Known::Value(Nanos(us.saturating_mul(1000))),
        }
    }
}

#[cfg(test)]
mod tests;
