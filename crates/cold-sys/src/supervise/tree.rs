//! Which processes descend from a process.

use std::collections::HashMap;

use crate::procfs::ProcFs;

/// All living descendants of `root`, parents before children. Zombies are left out.
///
/// Works from the parent links in `/proc`, so it needs no privileges; a process that forks during the
/// scan can be missed, and callers that must get all of them scan again.
pub fn descendants(proc: &ProcFs, root: i32) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<(i32, char)>> = HashMap::new();
    for pid in proc.pids().unwrap_or_default() {
        if let Ok(stat) = proc.stat(pid) {
            children.entry(stat.ppid).or_default().push((pid, stat.state));
        }
    }
    let mut found = Vec::new();
    let mut queue = vec![root];
    while let Some(parent) = queue.pop() {
        for &(pid, state) in children.get(&parent).map_or(&[][..], Vec::as_slice) {
            if state != 'Z' && state != 'X' {
                found.push(pid);
            }
            queue.push(pid);
        }
    }
    found
}
