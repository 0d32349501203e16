//! Processes that already run: their ids for the tree, and a record of each of their threads.

use cold_sys::procfs::ProcFs;
use cold_sys::time::monotonic;

/// `COLD_TASK`, and how many bytes `struct cold_task` has.
const KIND: u16 = 6;
const BYTES: u16 = 56;

/// One record for each thread of these processes.
pub(super) fn records(proc: &ProcFs, pids: &[u32]) -> Vec<u8> {
    // Before any is looked at: what is seen of its end comes after.
    let at = monotonic().0;
    let mut out = Vec::new();
    for &pid in pids {
        let Ok(stat) = proc.stat(pid.cast_signed()) else { continue };
        let Ok(threads) = std::fs::read_dir(proc.path(format!("{pid}/task"))) else { continue };
        for thread in threads.flatten() {
            let Some(tid) = thread.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let comm = proc.read(format!("{pid}/task/{tid}/comm")).unwrap_or_default();
            let name = comm.trim_end_matches('\n').as_bytes();
            record(&mut out, at, [pid, tid, stat.ppid.cast_unsigned()], name);
        }
    }
    out
}

fn record(out: &mut Vec<u8>, at: u64, [pid, tid, parent]: [u32; 3], comm: &[u8]) {
    out.extend(at.to_le_bytes());
    out.extend([pid, tid].iter().flat_map(|n| n.to_le_bytes()));
    out.extend([KIND, BYTES].iter().flat_map(|n| n.to_le_bytes()));
    out.extend(crate::raw::IN_TREE.to_le_bytes());
    out.extend([pid, tid, parent, 0].iter().flat_map(|n| n.to_le_bytes()));
    let mut name = [0; 16];
    for (to, from) in name.iter_mut().take(15).zip(comm) {
        *to = *from;
    }
    out.extend(name);
}
