//! The machine: meminfo, vmstat, stat, diskstats, pressure, sysctl.

use std::collections::BTreeMap;

use super::ProcFs;
use crate::Result;
use cold_model::Dev;

/// Cumulative figures of one block device since boot (`/proc/diskstats`,
/// Documentation/admin-guide/iostats.rst).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskStat {
    /// Major and minor number.
    pub dev: Dev,
    /// Kernel name of the disk or partition (`vda`, `vda1`).
    pub name: String,
    /// Read requests completed (after merging).
    pub reads: u64,
    /// Read requests merged into others before they were issued.
    pub reads_merged: u64,
    /// Bytes read by these requests.
    pub read_bytes: u64,
    /// Sum of the read requests' times in milliseconds.
    pub read_ms: u64,
    /// Write requests completed.
    pub writes: u64,
    /// Bytes written by these requests.
    pub write_bytes: u64,
    /// Requests in flight now.
    pub in_flight: u64,
}

/// The `cpu` line of `/proc/stat`, in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTimes {
    /// All columns summed (guest time is inside user time and not added again).
    pub total: u64,
    /// Idle and waiting for I/O.
    pub idle: u64,
    /// Taken by the hypervisor for others.
    pub steal: u64,
}

/// One line of a pressure file.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PressureLine {
    /// Share of the last 10 s in percent.
    pub avg10: f64,
    /// Cumulative stall time in microseconds.
    pub total_us: u64,
}

/// `/proc/pressure/{cpu,memory,io}` (Documentation/accounting/psi.rst).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pressure {
    /// At least one task stalled.
    pub some: PressureLine,
    /// All non-idle tasks stalled; absent for cpu on older kernels.
    pub full: Option<PressureLine>,
}

impl Pressure {
    /// What there must be.
    pub(crate) const EXPECTED: &str = "some avg10=… total=…";

    /// From a pressure file's text, of the machine or of a control group.
    pub fn parse(text: &str) -> Option<Self> {
        let line = |name: &str| {
            let l = text.lines().find(|l| l.starts_with(name))?;
            let get = |key: &str| l.split_whitespace().find_map(|w| w.strip_prefix(key));
            Some(PressureLine { avg10: get("avg10=")?.parse().ok()?, total_us: get("total=")?.parse().ok()? })
        };
        Some(Self { some: line("some")?, full: line("full") })
    }
}

impl ProcFs {
    /// `/proc/meminfo`, in bytes per key.
    pub fn meminfo(&self) -> Result<BTreeMap<String, u64>> {
        Ok(self
            .read("meminfo")?
            .lines()
            .filter_map(|l| {
                let (key, value) = l.split_once(':')?;
                let mut words = value.split_whitespace();
                let n: u64 = words.next()?.parse().ok()?;
                let unit = if words.next() == Some("kB") { 1024 } else { 1 };
                Some((key.to_owned(), n.saturating_mul(unit)))
            })
            .collect())
    }

    /// `/proc/vmstat`: event counters and page counts by name.
    pub fn vmstat(&self) -> Result<BTreeMap<String, u64>> {
        Ok(self
            .read("vmstat")?
            .lines()
            .filter_map(|l| {
                let (key, value) = l.split_once(' ')?;
                Some((key.to_owned(), value.trim().parse().ok()?))
            })
            .collect())
    }

    /// The machine's CPU time so far.
    pub fn cpu_times(&self) -> Result<CpuTimes> {
        let text = self.read("stat")?;
        let line = text.lines().find(|l| l.starts_with("cpu "));
        let line = line.ok_or_else(|| self.parse_error("stat", &text, "a line that starts with 'cpu '"))?;
        let n: Vec<u64> = line.split_ascii_whitespace().skip(1).filter_map(|w| w.parse().ok()).collect();
        let at = |i: usize| n.get(i).copied().unwrap_or(0);
        Ok(CpuTimes {
            total: n.iter().take(8).fold(0, |sum, t| sum.saturating_add(*t)),
            idle: at(3).saturating_add(at(4)),
            steal: at(7),
        })
    }

    /// `/proc/diskstats`.
    pub fn diskstats(&self) -> Result<Vec<DiskStat>> {
        Ok(self.read("diskstats")?.lines().filter_map(parse_disk).collect())
    }

    /// `/proc/pressure/KIND`; an error where PSI is off or absent.
    pub fn pressure(&self, kind: &str) -> Result<Pressure> {
        let rel = format!("pressure/{kind}");
        let text = self.read(&rel)?;
        Pressure::parse(&text).ok_or_else(|| self.parse_error(&rel, &text, Pressure::EXPECTED))
    }

    /// A sysctl such as `kernel.task_delayacct`, trimmed.
    pub fn sysctl(&self, name: &str) -> Result<String> {
        Ok(self.read(format!("sys/{}", name.replace('.', "/")))?.trim().to_owned())
    }

    /// The kernel's release (`uname -r`); empty where it cannot be read, which is no version
    /// ([`cold_model::kernel::since`]).
    pub fn kernel_release(&self) -> String {
        self.sysctl("kernel.osrelease").unwrap_or_default()
    }
}

fn parse_disk(line: &str) -> Option<DiskStat> {
    let w: Vec<&str> = line.split_ascii_whitespace().collect();
    let n = |i: usize| w.get(i).and_then(|s| s.parse::<u64>().ok());
    Some(DiskStat {
        dev: Dev::new(w.first()?.parse().ok()?, w.get(1)?.parse().ok()?),
        name: (*w.get(2)?).to_owned(),
        reads: n(3)?,
        reads_merged: n(4)?,
        read_bytes: n(5)?.saturating_mul(512),
        read_ms: n(6)?,
        writes: n(7)?,
        write_bytes: n(9)?.saturating_mul(512),
        in_flight: n(11)?,
    })
}

#[cfg(test)]
mod tests;
