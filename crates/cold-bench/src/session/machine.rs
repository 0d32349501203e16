//! Facts about the machine that belong beside the figures.

use std::collections::BTreeSet;
use std::path::Path;

use cold_model::Bytes;
use cold_model::bench::Machine;
use cold_sys::procfs::ProcFs;

use super::Subject;
use crate::counters::Dev;

/// Now, as RFC 3339 in UTC.
pub(super) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Kernel, CPU, memory and the devices of all subjects.
pub(super) fn facts(proc: &ProcFs, subjects: &[Subject<'_>], eviction: &str) -> Machine {
    let devices: BTreeSet<Dev> = subjects.iter().flat_map(|s| s.devices.devices.iter().copied()).collect();
    let names = proc.diskstats().unwrap_or_default();
    let mut notes: BTreeSet<String> = BTreeSet::new();
    for s in subjects {
        for (kind, path) in &s.devices.without {
            notes.insert(format!("{} lies on {kind}: its reads are not seen", path.display()));
        }
    }
    Machine {
        kernel: proc.sysctl("kernel.osrelease").unwrap_or_default(),
        cpu: cpu(proc),
        memory: Bytes(proc.meminfo().ok().and_then(|m| m.get("MemTotal").copied()).unwrap_or(0)),
        devices: names
            .iter()
            .filter(|d| devices.contains(&d.dev))
            .map(|d| device(Path::new("/sys"), d.dev, &d.name))
            .collect(),
        eviction: eviction.to_owned(),
        notes: notes.into_iter().collect(),
    }
}

fn cpu(proc: &ProcFs) -> String {
    let text = proc.read("cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|l| l.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("CPU of unknown model", |(_, m)| m.trim());
    let n = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!("{n} × {model}")
}

/// Name and the settings that decide how it is read.
fn device(sys: &Path, dev: Dev, name: &str) -> String {
    let dir = sys.join(format!("dev/block/{}:{}", dev.0, dev.1));
    // A partition has no queue of its own; its disk is one directory up.
    let read = |file: &str| {
        [dir.join("queue").join(file), dir.join("../queue").join(file)]
            .iter()
            .find_map(|p| std::fs::read_to_string(p).ok())
            .map(|t| t.trim().to_owned())
    };
    let mut words = vec![name.to_owned()];
    for (file, unit) in [("read_ahead_kb", " KiB read-ahead"), ("max_sectors_kb", " KiB per request at most")]
    {
        if let Some(v) = read(file) {
            words.push(format!("{v}{unit}"));
        }
    }
    if let Some(s) = read("scheduler") {
        let chosen = s.split(['[', ']']).nth(1).unwrap_or(&s);
        words.push(format!("scheduler {chosen}"));
    }
    if read("rotational").as_deref() == Some("1") {
        words.push("rotational".into());
    }
    words.join(", ")
}
