//! Readings of the machine's counters around one run, and their differences.

use std::collections::{BTreeSet, HashMap};

use cold_model::Dev;
use cold_sys::cgroup::Cgroup;
use cold_sys::procfs::{CpuTimes, ProcFs};

/// Cumulative counters at one moment. What cannot be read is absent.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    vmstat: HashMap<&'static str, u64>,
    cpu: Option<CpuTimes>,
    disks: HashMap<Dev, Disk>,
    readers: HashMap<(i32, u64), Reader>,
    io_stall_us: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Disk {
    reads: u64,
    bytes: u64,
}

#[derive(Debug, Clone)]
struct Reader {
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
        let read_since = |id: &(i32, u64), now: &Reader| {
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
fn readers(proc: &ProcFs) -> HashMap<(i32, u64), Reader> {
    let mut found = HashMap::new();
    for pid in proc.pids().unwrap_or_default() {
        let Ok(Some(bytes)) = proc.process_field(pid, "io", "read_bytes") else { continue };
        let Ok(stat) = proc.stat(pid) else { continue };
        found.insert((pid, stat.starttime), Reader { comm: stat.comm, bytes });
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

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(dir: &std::path::Path, drops: u64, reads: u64, read_bytes: u64) -> ProcFs {
        std::fs::create_dir_all(dir.join("77")).unwrap();
        std::fs::write(dir.join("vmstat"), format!("drop_pagecache {drops}\npgsteal_file 5\n")).unwrap();
        std::fs::write(dir.join("stat"), format!("cpu  {drops} 0 0 10 0 0 0 4\n")).unwrap();
        let line =
            format!("8 0 sda {reads} 0 {} 0 0 0 0 0 0 0 0\n8 1 sdb 9 0 9 0 0 0 0 0 0 0 0\n", reads * 8);
        std::fs::write(dir.join("diskstats"), line).unwrap();
        std::fs::write(dir.join("77/io"), format!("rchar: 1\nread_bytes: {read_bytes}\n")).unwrap();
        let stat = "77 (indexer) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0";
        std::fs::write(dir.join("77/stat"), stat).unwrap();
        ProcFs::new(dir)
    }

    #[test]
    fn differences_name_the_reader_and_leave_unknowns_unknown() {
        let dir = tempfile::tempdir().unwrap();
        let devices = BTreeSet::from([Dev::new(8, 0)]);
        let before = Reading::take(&tree(dir.path(), 1, 10, 4096), &devices, None);
        let after = Reading::take(&tree(dir.path(), 3, 25, 12288), &devices, None);
        let a = after.since(&before);
        assert_eq!(a.page_cache_drops, Some(2));
        assert_eq!(a.slab_drops, None, "this kernel does not count them");
        assert_eq!((a.device_reads, a.device_read_bytes), (Some(15), Some(15 * 8 * 512)));
        assert_eq!(a.other_readers, vec![("indexer[77]".to_owned(), 8192)]);
        assert_eq!(a.io_stall_us, None);
        let earlier = CpuTimes { total: 16, idle: 10, steal: 5 };
        let until = |cpu| after.clone().with_cpu(cpu).since(&before).cpu;
        assert_eq!(
            (until(Some(earlier)), until(None)),
            (Some(CpuTimes { total: 1, idle: 0, steal: 1 }), None)
        );
    }

    /// A reading by hand: devices with (reads, bytes), readers as (pid, start time, name, bytes).
    fn reading(disks: &[(Dev, u64, u64)], readers: &[(i32, u64, &str, u64)]) -> Reading {
        Reading {
            disks: disks
                .iter()
                .map(|(dev, reads, bytes)| (*dev, Disk { reads: *reads, bytes: *bytes }))
                .collect(),
            readers: readers
                .iter()
                .map(|(pid, started, comm, bytes)| {
                    ((*pid, *started), Reader { comm: (*comm).to_owned(), bytes: *bytes })
                })
                .collect(),
            ..Reading::default()
        }
    }

    #[test]
    fn a_number_that_another_process_took_is_another_reader() {
        let before = reading(&[], &[(50, 1, "old", 900), (51, 1, "idle", 5)]);
        let after = reading(&[], &[(50, 2, "new", 100), (51, 1, "idle", 5), (52, 3, "most", 4096)]);
        let readers = after.since(&before).other_readers;
        assert_eq!(readers, [("most[52]".to_owned(), 4096), ("new[50]".to_owned(), 100)]);
    }

    #[test]
    fn what_cold_reads_itself_is_not_others() {
        let own = i32::try_from(std::process::id()).unwrap();
        let before = reading(&[], &[(own, 1, "cold", 1000)]);
        let a = reading(&[], &[(own, 1, "cold", 1500)]).since(&before);
        assert_eq!((a.own_read_bytes, a.other_readers), (500, vec![]));
    }

    #[test]
    fn reads_of_several_devices_are_summed_and_a_counter_that_went_back_is_no_huge_number() {
        let (a, b) = (Dev::new(8, 0), Dev::new(259, 0));
        let activity =
            reading(&[(a, 12, 5000), (b, 1, 100)], &[]).since(&reading(&[(a, 10, 1000), (b, 7, 900)], &[]));
        assert_eq!((activity.device_reads, activity.device_read_bytes), (Some(2), Some(4000)));
    }

    #[test]
    fn a_device_without_an_earlier_reading_leaves_its_reads_unknown() {
        let (a, b) = (Dev::new(8, 0), Dev::new(259, 0));
        let after = reading(&[(a, 12, 5000), (b, 7, 900)], &[]);
        for before in [reading(&[], &[]), reading(&[(a, 12, 5000)], &[])] {
            let activity = after.since(&before);
            assert_eq!((activity.device_reads, activity.device_read_bytes), (None, None));
        }
    }

    #[test]
    fn a_machine_that_tells_nothing_leaves_everything_unknown() {
        let dir = tempfile::tempdir().unwrap();
        let take = || Reading::take(&ProcFs::new(dir.path()), &BTreeSet::from([Dev::new(8, 0)]), None);
        assert_eq!(take().since(&take()), Activity::default());
    }
}
