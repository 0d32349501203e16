//! Two samples of counters and what moved between them.

use std::collections::BTreeMap;
use std::time::Instant;

use cold_sys::procfs::{CpuTimes, DiskStat, ProcFs};
use cold_sys::sysfs::SysFs;

/// CPU use and reads of one process so far.
#[derive(Debug, Clone, Copy)]
struct Usage {
    starttime: u64,
    ticks: u64,
    /// Storage reads in bytes; `None` where we may not look.
    read_bytes: Option<u64>,
}

/// What a disk read and wrote between two samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiskMoved<'a> {
    pub(crate) name: &'a str,
    /// Requests to read.
    pub(crate) reads: u64,
    /// Bytes that it read between the two samples.
    pub(crate) read: u64,
    /// Bytes that it wrote between them.
    pub(crate) written: u64,
}

/// Counters at one moment. A file that cannot be read leaves its part out with the reason.
pub(crate) struct Sample {
    at: Instant,
    vmstat: Result<BTreeMap<String, u64>, String>,
    cpu: Result<CpuTimes, String>,
    disks: Result<Vec<DiskStat>, String>,
    processes: BTreeMap<i32, Usage>,
    throttles: Option<u64>,
}

impl Sample {
    pub(crate) fn take(proc: &ProcFs, sys: &SysFs) -> Self {
        let pids = proc.pids().unwrap_or_default();
        let usage = |pid: &i32| {
            let stat = proc.stat(*pid).ok()?;
            let read_bytes = proc.process_field(*pid, "io", "read_bytes").ok().flatten();
            Some((*pid, Usage { starttime: stat.starttime, ticks: stat.utime + stat.stime, read_bytes }))
        };
        Self {
            at: Instant::now(),
            vmstat: proc.vmstat().map_err(|e| e.to_string()),
            cpu: proc.cpu_times().map_err(|e| e.to_string()),
            disks: proc.diskstats().map_err(|e| e.to_string()),
            processes: pids.iter().filter_map(usage).collect(),
            throttles: throttles(sys),
        }
    }
}

/// Thermal throttling events of all cores so far; `None` where no core counts them.
fn throttles(sys: &SysFs) -> Option<u64> {
    let cpus = sys.list("devices/system/cpu").ok()?;
    let counts = cpus.iter().filter(|c| c.starts_with("cpu")).filter_map(|cpu| {
        let rel = format!("devices/system/cpu/{cpu}/thermal_throttle/core_throttle_count");
        sys.read_opt(rel).ok()??.parse::<u64>().ok()
    });
    counts.fold(None, |sum, n| Some(sum.unwrap_or(0) + n))
}

/// A process that was busy during the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Busy {
    pub(crate) pid: i32,
    /// CPU time as a share of one CPU in percent.
    pub(crate) cpu_percent: f64,
    /// Bytes it read from storage; `None` where we may not look.
    pub(crate) read_bytes: Option<u64>,
}

/// What moved between two samples.
pub(crate) struct Observation<'a> {
    first: &'a Sample,
    second: &'a Sample,
}

impl<'a> Observation<'a> {
    pub(crate) fn between(first: &'a Sample, second: &'a Sample) -> Self {
        Self { first, second }
    }

    /// Length of the window in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.second.at.duration_since(self.first.at).as_secs_f64().max(1e-3)
    }

    /// A vmstat counter: its value now and how far it moved; `None` when this kernel lacks it.
    pub(crate) fn vmstat(&self, key: &str) -> Result<Option<(u64, u64)>, &'a str> {
        let (first, second) = (
            self.first.vmstat.as_ref().map_err(String::as_str)?,
            self.second.vmstat.as_ref().map_err(String::as_str)?,
        );
        Ok(second.get(key).map(|now| (*now, now.saturating_sub(first.get(key).copied().unwrap_or(0)))))
    }

    /// CPU times at the end, and during the window.
    pub(crate) fn cpu(&self) -> Result<(CpuTimes, CpuTimes), &'a str> {
        let (first, second) = (
            self.first.cpu.as_ref().map_err(String::as_str)?,
            self.second.cpu.as_ref().map_err(String::as_str)?,
        );
        let moved = CpuTimes {
            total: second.total.saturating_sub(first.total),
            idle: second.idle.saturating_sub(first.idle),
            steal: second.steal.saturating_sub(first.steal),
        };
        Ok((*second, moved))
    }

    /// What each disk read and wrote.
    pub(crate) fn disks(&self) -> Result<Vec<DiskMoved<'a>>, &'a str> {
        let (first, second) = (
            self.first.disks.as_ref().map_err(String::as_str)?,
            self.second.disks.as_ref().map_err(String::as_str)?,
        );
        let moved = second.iter().filter_map(|now| {
            let before = first.iter().find(|d| d.dev == now.dev)?;
            Some(DiskMoved {
                name: now.name.as_str(),
                reads: now.reads.saturating_sub(before.reads),
                read: now.read_bytes.saturating_sub(before.read_bytes),
                written: now.write_bytes.saturating_sub(before.write_bytes),
            })
        });
        Ok(moved.collect())
    }

    /// Thermal throttling events: total and during the window.
    pub(crate) fn throttles(&self) -> Option<(u64, u64)> {
        let now = self.second.throttles?;
        Some((now, now.saturating_sub(self.first.throttles.unwrap_or(now))))
    }

    /// Processes by CPU use during the window, busiest first; those that started or ended inside it are
    /// left out, for their use cannot be told.
    pub(crate) fn busy(&self) -> Vec<Busy> {
        // USER_HZ is 100 on every architecture Linux runs on with this ABI.
        let percent = |ticks: u64| ticks as f64 / self.seconds();
        let mut busy: Vec<Busy> = self
            .second
            .processes
            .iter()
            .filter_map(|(pid, now)| {
                let before = self.first.processes.get(pid).filter(|b| b.starttime == now.starttime)?;
                let read_bytes = match (now.read_bytes, before.read_bytes) {
                    (Some(now), Some(before)) => Some(now.saturating_sub(before)),
                    _ => None,
                };
                let cpu_percent = percent(now.ticks.saturating_sub(before.ticks));
                Some(Busy { pid: *pid, cpu_percent, read_bytes })
            })
            .collect();
        busy.sort_by(|a, b| b.cpu_percent.total_cmp(&a.cpu_percent));
        busy
    }

    /// Bytes this process itself read from storage during the window: its own pages, mostly.
    pub(crate) fn own_read_bytes(&self) -> u64 {
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        self.of_process(own).and_then(|b| b.read_bytes).unwrap_or(0)
    }

    /// What one process did during the window.
    pub(crate) fn of_process(&self, pid: i32) -> Option<Busy> {
        self.busy().into_iter().find(|b| b.pid == pid)
    }
}

#[cfg(test)]
mod tests;
