//! A tree of processes: who descends from a process, and ending them all.
//!
//! Who ends a tree is its child subreaper: what loses its parent comes to it, and when it has no child left nothing
//! of the tree is.

use std::collections::HashMap;
use std::ffi::c_int;

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

/// The first descendant of `root` that has one of these sockets open (inodes): parents come before children, who may have
/// inherited it. `None`: nobody, or nobody who may be looked at.
pub fn holder(proc: &ProcFs, root: i32, sockets: &[u32]) -> Option<i32> {
    let names: Vec<String> = sockets.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let holds = |pid: &i32| {
        let open = proc.fds(*pid).unwrap_or_default();
        open.iter().any(|fd| fd.target.to_str().is_some_and(|target| names.iter().any(|n| n == target)))
    };
    descendants(proc, root).into_iter().find(holds)
}

/// Signals what descends from this process, but for those that `spared` names; returns how many that were. To be
/// repeated by who must get all: see [`descendants`].
pub(crate) fn signal(signal: c_int, spared: impl Fn(i32) -> bool) -> u64 {
    let mut pids = descendants(&ProcFs::default(), std::process::id().cast_signed());
    pids.retain(|pid| !spared(*pid));
    for &pid in &pids {
        // SAFETY: kill takes integers. The pid cannot have been reused by a stranger: a descendant that ends stays
        // a zombie until its parent or we wait for it, and we are not waiting now. (A parent inside the tree may;
        // the window is the microseconds since the scan.)
        unsafe { libc::kill(pid, signal) };
    }
    pids.len() as u64
}

/// Asks what descends from this process to end.
pub(crate) fn ask_to_end(spared: impl Fn(i32) -> bool + Copy) {
    signal(libc::SIGTERM, spared);
    // A stopped process takes SIGTERM only when it goes on.
    signal(libc::SIGCONT, spared);
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn children_of_the_dead_are_found_and_the_dead_are_not() {
        let dir = tempfile::tempdir().unwrap();
        // 1 ─ 10 ─ 11 (zombie) ─ 12, 10 ─ 13 (dead) ─ 9; 20 is another's.
        for (pid, state, parent) in [
            (1, 'S', 0),
            (10, 'R', 1),
            (11, 'Z', 10),
            (12, 'D', 11),
            (13, 'X', 10),
            (9, 'T', 13),
            (20, 'S', 2),
        ] {
            let place = dir.path().join(pid.to_string());
            std::fs::create_dir(&place).unwrap();
            let line = format!("{pid} (x) {state} {parent} 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 777\n");
            std::fs::write(place.join("stat"), line).unwrap();
        }
        let proc = ProcFs::new(dir.path());
        let found = |root| {
            let mut found = descendants(&proc, root);
            assert!(found.len() < 2 || root != 1 || found[0] == 10, "parents first: {found:?}");
            found.sort_unstable();
            found
        };
        assert_eq!((found(1), found(10), found(11)), (vec![9, 10, 12], vec![9, 12], vec![12]));
        assert_eq!((found(12), found(99)), (vec![], vec![]));
    }

    #[test]
    fn descendants_come_behind_their_parents_and_who_has_ended_does_not() {
        let script = "sh -c 'sleep 1000 & echo $!; wait' & echo $!; wait";
        let mut root = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(root.stdout.take().unwrap()).lines();
        let mut told: Vec<i32> = lines.take(2).map(|line| line.unwrap().parse().unwrap()).collect();
        let (proc, id) = (ProcFs::default(), root.id().cast_signed());
        let found = descendants(&proc, id);
        let parent = proc.stat(found[1]).unwrap().ppid;
        assert_eq!(parent, found[0], "the younger one is the other's child: {found:?}");
        told.sort_unstable();
        let mut sorted = found.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, told);
        assert_eq!(descendants(&proc, found[0]), [found[1]]);
        for pid in found.iter().chain([&id]) {
            // SAFETY: processes of this test; none was waited for but by their parents, which live.
            unsafe { libc::kill(*pid, libc::SIGKILL) };
        }
        // Nobody has waited for it yet.
        let until = Instant::now() + Duration::from_secs(10);
        while proc.stat(id).unwrap().state != 'Z' && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!descendants(&proc, std::process::id().cast_signed()).contains(&id));
        root.wait().unwrap();
    }
}
