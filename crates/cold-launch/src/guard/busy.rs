//! Do tasks wait for memory, or for a disk that is busy with others' requests?

use std::fs::File;
use std::os::unix::fs::MetadataExt;

use cold_model::Dev;
use cold_plan::format::View;
use cold_plan::plan::FileKind;
use cold_sys::procfs::{Pressure, ProcFs};
use cold_sys::sysfs::SysFs;

/// Share of the last 10 s in which some task waited for memory, in percent, from which on a replay would
/// only push out what others need.
const MEMORY_WAIT: f64 = 10.0;
/// The same for I/O. It alone says nothing: a cold start just before waits all the time.
const IO_WAIT: f64 = 30.0;
/// Requests in flight at one moment on a disk that the plan would read from, made by others.
const IN_FLIGHT: u64 = 4;
/// Devices looked at; the files of a start lie on one or two.
const DEVICES: usize = 4;

/// Shares of the last 10 s in which some task waited, in percent; 0 where nothing tells.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Waits {
    memory: f64,
    io: f64,
}

impl Waits {
    pub(crate) fn now(proc: &ProcFs) -> Self {
        let share = |kind| proc.pressure(kind).map_or(0.0, |p| p.some.avg10);
        Self { memory: share("memory"), io: share("io") }
    }
}

/// Why a replay would compete, as a phrase; `None` when it would not, or nothing tells.
pub(crate) fn is_busy(waits: Waits, sys: &SysFs, view: View<'_>) -> Option<&'static str> {
    if waits.memory >= MEMORY_WAIT {
        return Some("memory is under pressure");
    }
    if waits.io >= IO_WAIT && devices(view).into_iter().any(|d| in_flight(sys, d) >= IN_FLIGHT) {
        return Some("the disk is busy");
    }
    None
}

/// Where the program lies, and where the plan's files lay when it was learnt: asking each of them where it
/// lies now would read a cold disk. A number that means another disk by now costs a wrong answer, no more.
fn devices(view: View<'_>) -> Vec<Dev> {
    let mut found = Vec::with_capacity(DEVICES);
    found.extend(std::fs::metadata(view.key().executable).ok().map(|m| Dev::of_number(m.dev())));
    for file in view.files().filter(|f| f.kind() == FileKind::Regular) {
        let dev = file.identity().dev;
        if found.len() < DEVICES && !found.contains(&dev) {
            found.push(dev);
        }
    }
    found
}

/// Requests in flight on a device; 0 where the number is not a block device's (btrfs, overlay).
fn in_flight(sys: &SysFs, dev: Dev) -> u64 {
    // Of a partition this is the partition's own count.
    let text = sys.read_opt(format!("dev/block/{dev}/inflight")).ok().flatten();
    text.map_or(0, |t| t.split_whitespace().filter_map(|n| n.parse::<u64>().ok()).sum())
}

/// Whether tasks have begun to wait for memory since this was made; asked again and again while a replay
/// runs, so the file stays open.
pub(crate) struct Hunger {
    /// `/proc/pressure/memory`.
    file: File,
    before_us: u64,
}

impl Hunger {
    /// Time in which tasks waited from which on it counts, microseconds.
    const FELT_US: u64 = 50_000;

    /// From now on; `None` where the kernel does not tell.
    pub(crate) fn since_now(proc: &ProcFs) -> Option<Self> {
        let file = File::open(proc.path("pressure/memory")).ok()?;
        let before_us = stall_us(&file)?;
        Some(Self { file, before_us })
    }

    pub(crate) fn is_felt(&self) -> bool {
        stall_us(&self.file).is_some_and(|now| now.saturating_sub(self.before_us) > Self::FELT_US)
    }
}

/// Microseconds since boot in which some task waited.
fn stall_us(file: &File) -> Option<u64> {
    let mut buffer = [0_u8; 256];
    let n = std::os::unix::fs::FileExt::read_at(file, &mut buffer, 0).ok()?;
    Some(Pressure::parse(std::str::from_utf8(buffer.get(..n)?).ok()?)?.some.total_us)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cold_testbed::FakeTree;

    fn tree(memory: &str, io: &str, inflight: &str, dev: Dev) -> FakeTree {
        let line = |share: &str| format!("some avg10={share} avg60=0.00 avg300=0.00 total=1\n");
        FakeTree::new()
            .file("proc/pressure/memory", line(memory))
            .file("proc/pressure/io", line(io))
            .file(&format!("sys/dev/block/{dev}/inflight"), inflight)
    }

    #[test]
    fn waits_for_io_count_only_while_a_disk_of_the_plan_has_requests() {
        let mut plan = cold_plan::sample::sample();
        let dev = plan.files.iter().find(|f| f.kind == FileKind::Regular).expect("a file").identity.dev;
        plan.key.executable = std::env::current_exe().expect("known");
        let own = Dev::of_number(std::fs::metadata(&plan.key.executable).expect("stat").dev());
        let bytes = cold_plan::format::encode(&plan).expect("a plan");
        let view = View::parse(&bytes).expect("parses");
        let busy = |t: FakeTree| is_busy(Waits::now(&ProcFs::new(t.proc())), &SysFs::new(t.sys()), view);
        for at in [own, dev] {
            assert_eq!(busy(tree("0.00", "99.00", "0 0", at)), None);
            assert_eq!(busy(tree("0.00", "0.00", "9 9", at)), None);
            assert_eq!(busy(tree("0.00", "50.00", "3 5", at)), Some("the disk is busy"));
            assert_eq!(busy(tree("12.50", "0.00", "0 0", at)), Some("memory is under pressure"));
        }
        assert_eq!(busy(tree("0.00", "50.00", "3 5", Dev::new(250, 9))), None, "another disk");
    }
    #[test]
    fn hunger_is_felt_when_tasks_have_waited_50_ms_longer() {
        let waited = |us: u64| format!("some avg10=99.00 avg60=0.00 avg300=0.00 total={us}\nfull total=1\n");
        let tree = FakeTree::new().file("proc/pressure/memory", waited(7_000_000));
        let hunger = Hunger::since_now(&ProcFs::new(tree.proc())).expect("told");
        for (us, felt) in [(7_000_000, false), (7_050_000, false), (7_050_001, true), (1, false)] {
            std::fs::write(tree.proc().join("pressure/memory"), waited(us)).expect("written");
            assert_eq!(hunger.is_felt(), felt, "{us}");
        }
        assert!(Hunger::since_now(&ProcFs::new("/nonexistent")).is_none());
    }
}
