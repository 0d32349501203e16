//! Do tasks wait for memory, or for a disk that is busy with others' requests?

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use cold_sys::procfs::ProcFs;
use cold_sys::sysfs::SysFs;

/// Share of the last 10 s in which some task waited for memory, in percent, from which on a replay would
/// only push out what others need.
const MEMORY_WAIT: f64 = 10.0;
/// The same for I/O. It alone says nothing: a cold start just before waits all the time.
const IO_WAIT: f64 = 30.0;
/// Requests in flight at one moment on the program's disk, made by others.
const IN_FLIGHT: u64 = 4;

/// Why a replay would compete, as a phrase; `None` when it would not, or nothing tells.
pub(crate) fn is_busy(proc: &ProcFs, sys: &SysFs, executable: &Path) -> Option<&'static str> {
    let share = |kind| proc.pressure(kind).map_or(0.0, |p| p.some.avg10);
    if share("memory") >= MEMORY_WAIT {
        return Some("memory is under pressure");
    }
    if share("io") >= IO_WAIT && in_flight(sys, executable)? >= IN_FLIGHT {
        return Some("the disk is busy");
    }
    None
}

/// Requests in flight on the device of `path`; `None` where it has no device of its own number.
fn in_flight(sys: &SysFs, path: &Path) -> Option<u64> {
    let dev = std::fs::metadata(path).ok()?.dev();
    let (major, minor) = cold_sys::device::split(dev);
    // Of a partition this is the partition's own count.
    let text = sys.read_opt(format!("dev/block/{major}:{minor}/inflight")).ok()??;
    Some(text.split_whitespace().filter_map(|n| n.parse::<u64>().ok()).sum())
}

/// Microseconds since boot in which some task waited for memory; asked again and again while a replay
/// runs, so the file stays open.
pub(crate) fn memory_stall(file: &File) -> Option<u64> {
    let mut buffer = [0_u8; 256];
    let n = std::os::unix::fs::FileExt::read_at(file, &mut buffer, 0).ok()?;
    let text = std::str::from_utf8(buffer.get(..n)?).ok()?;
    text.lines().find_map(|l| l.strip_prefix("some ")?.split_once("total=")?.1.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cold_testbed::fake::FakeTree;

    fn tree(memory: &str, io: &str, inflight: &str) -> FakeTree {
        let line = |share: &str| format!("some avg10={share} avg60=0.00 avg300=0.00 total=1\n");
        let dev = std::fs::metadata("/proc/self/exe").expect("stat").dev();
        let (major, minor) = cold_sys::device::split(dev);
        FakeTree::new()
            .file("proc/pressure/memory", line(memory))
            .file("proc/pressure/io", line(io))
            .file(&format!("sys/dev/block/{major}:{minor}/inflight"), inflight)
    }

    #[test]
    fn waits_for_io_count_only_while_the_disk_has_requests() {
        let exe = std::env::current_exe().expect("known");
        let busy = |t: FakeTree| is_busy(&ProcFs::new(t.proc()), &SysFs::new(t.sys()), &exe);
        assert_eq!(busy(tree("0.00", "99.00", "0 0")), None);
        assert_eq!(busy(tree("0.00", "0.00", "9 9")), None);
        assert_eq!(busy(tree("0.00", "50.00", "3 5")), Some("the disk is busy"));
        assert_eq!(busy(tree("12.50", "0.00", "0 0")), Some("memory is under pressure"));
    }
}
