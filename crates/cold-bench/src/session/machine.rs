//! Facts about the machine that belong beside the figures.

use std::collections::BTreeSet;

use cold_model::Bytes;
use cold_model::Dev;
use cold_model::Shown as _;
use cold_model::bench::MeasuredMachine;
use cold_model::figures::cpus;
use cold_sys::procfs::ProcFs;
use cold_sys::sysfs::SysFs;

use super::Subject;

/// Now, as RFC 3339 in UTC.
pub(super) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Kernel, CPU, memory and the devices of all subjects.
pub(super) fn facts(proc: &ProcFs, subjects: &[Subject<'_>], eviction: &str) -> MeasuredMachine {
    let devices: BTreeSet<Dev> = subjects.iter().flat_map(|s| s.devices.devices.iter().copied()).collect();
    let names = proc.diskstats().unwrap_or_default();
    let mut notes: BTreeSet<String> = BTreeSet::new();
    for s in subjects {
        for (kind, path) in &s.devices.without {
            notes.insert(format!("{} lies on {kind}: its reads are not seen", path.shown()));
        }
    }
    MeasuredMachine {
        kernel: proc.kernel_release(),
        cpu: cpu(proc),
        memory: Bytes(proc.meminfo().ok().and_then(|m| m.get("MemTotal").copied()).unwrap_or(0)),
        devices: names.iter().filter(|d| devices.contains(&d.dev)).map(|d| device(d.dev, &d.name)).collect(),
        eviction: eviction.to_owned(),
        notes: notes.into_iter().collect(),
    }
}

fn cpu(proc: &ProcFs) -> String {
    let n = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    cpus(n, &proc.cpu_model())
}

/// Name and the settings that decide how it is read; what the kernel does not tell is left out.
fn device(dev: Dev, name: &str) -> String {
    let mut words = vec![name.to_owned()];
    if let Ok(Some(d)) = SysFs::default().block_device(dev) {
        words.extend(d.read_ahead_kb.map(|n| format!("{n} KiB read-ahead")));
        words.extend(d.max_sectors_kb.map(|n| format!("{n} KiB per request at most")));
        words.extend(d.scheduler.map(|s| format!("scheduler {s}")));
        words.extend((d.rotational == Some(true)).then(|| "rotational".to_owned()));
    }
    words.join(", ")
}
