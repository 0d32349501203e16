//! Processes that the kernel tells about every opened or changed file: fanotify and inotify.

use cold_model::figures::plural;

use crate::context::{Context, name_processes};
use crate::finding::Finding;
use crate::processes::Process;

/// Watches from which an inotify user counts as an indexer or synchroniser of whole trees.
const MANY_WATCHES: usize = 1000;

/// What a process watches.
#[derive(Debug, Default, PartialEq, Eq)]
struct Watches {
    /// Has fanotify marks that may deny access, so every open waits for it.
    permission: bool,
    /// Has other fanotify marks.
    notification: bool,
    inotify: usize,
}

/// `FAN_OPEN_PERM | FAN_ACCESS_PERM | FAN_OPEN_EXEC_PERM | FAN_PRE_ACCESS` of fanotify(7).
const PERMISSION_EVENTS: u64 = 0x0001_0000 | 0x0002_0000 | 0x0004_0000 | 0x0010_0000;

pub(crate) fn run(c: &Context) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (mut permission, mut notification, mut many) = (Vec::new(), Vec::new(), Vec::new());
    let mut closed = 0;
    for process in c.processes.iter().filter(|p| !p.kernel_thread) {
        match watches(c, process.pid) {
            None => closed += 1,
            Some(w) => {
                if w.permission {
                    permission.push(process);
                } else if w.notification {
                    notification.push(process);
                }
                if w.inotify >= MANY_WATCHES {
                    many.push((process, w.inotify));
                }
            }
        }
    }
    if !permission.is_empty() {
        findings.push(
            group(
                "watcher.permission",
                Finding::disturbs,
                &permission,
                "decides about every open (fanotify)",
            )
            .so("each open or exec waits for its answer, and a scanner reads the whole file into the cache")
            .remedy("stop the scanner for the measurement, or exclude the files' mount"),
        );
    }
    if !notification.is_empty() {
        findings.push(
            group("watcher.fanotify", Finding::note, &notification, "is told about file accesses (fanotify)")
                .so("it may read what the start opens"),
        );
    }
    for (process, count) in many {
        findings.push(
            Finding::note(
                "watcher.inotify",
                format!("{} (pid {}) watches {count} directories", process.name(), process.pid),
            )
            .so("it reads what changes below them, among it what a start writes")
            .pids([process.pid]),
        );
    }
    if closed > 0 {
        findings.push(
            Finding::unknown(
                "watcher",
                "who watches files",
                format!("descriptors of {} cannot be read", plural(closed, "process")),
            )
            .so("an on-access scanner among them would go unnoticed")
            .remedy("run as root: sudo cold doctor"),
        );
    } else if findings.is_empty() {
        findings.push(
            Finding::ok("watcher", "no process watches whole trees or decides about opens")
                .so("opens are not delayed by a scanner"),
        );
    }
    findings
}

fn group(id: &str, make: fn(&str, String) -> Finding, processes: &[&Process], does: &str) -> Finding {
    make(id, format!("{} {does}", name_processes(processes.iter().copied(), 3)))
        .pids(processes.iter().map(|p| p.pid))
}

/// What a process watches; `None` when its descriptors cannot be read.
fn watches(c: &Context, pid: i32) -> Option<Watches> {
    let fds = match c.proc.fds(pid) {
        Ok(fds) => fds,
        // It ended meanwhile.
        Err(e) if matches!(e.errno(), Some(libc::ENOENT | libc::ESRCH)) => return Some(Watches::default()),
        Err(_) => return None,
    };
    let mut watches = Watches::default();
    for fd in fds {
        let target = fd.target.to_string_lossy();
        if !target.contains("inotify") && !target.contains("fanotify") {
            continue;
        }
        let info = c.proc.read(format!("{pid}/fdinfo/{}", fd.fd)).unwrap_or_default();
        let found = parse_fdinfo(&info);
        watches.permission |= found.permission;
        watches.notification |= found.notification;
        watches.inotify += found.inotify;
    }
    Some(watches)
}

/// Parses `/proc/PID/fdinfo/FD` (proc(5)): `fanotify ino:… mask:38 …`, `inotify wd:1 ino:…`.
fn parse_fdinfo(text: &str) -> Watches {
    let mut watches = Watches::default();
    for line in text.lines() {
        if line.starts_with("inotify wd:") {
            watches.inotify += 1;
        } else if line.starts_with("fanotify ino:")
            || line.starts_with("fanotify mnt_id:")
            || line.starts_with("fanotify sdev:")
        {
            let mask =
                line.split_whitespace().find_map(|w| u64::from_str_radix(w.strip_prefix("mask:")?, 16).ok());
            if mask.unwrap_or(0) & PERMISSION_EVENTS != 0 {
                watches.permission = true;
            } else {
                watches.notification = true;
            }
        }
    }
    watches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permission_marks_are_told_from_notifications() {
        let on_access = "pos:\t0\nflags:\t02\nfanotify flags:10 event-flags:0\n\
                         fanotify mnt_id:1b mflags:0 mask:10000 ignored_mask:0\n";
        assert!(parse_fdinfo(on_access).permission);
        let told = "fanotify sdev:fe00000 mflags:0 mask:20 ignored_mask:0\n";
        assert_eq!(parse_fdinfo(told), Watches { notification: true, ..Watches::default() });
        let two = "inotify wd:2 ino:1 sdev:fe mask:fce\ninotify wd:1 ino:2 sdev:fe mask:fce\n";
        assert_eq!(parse_fdinfo(two).inotify, 2);
    }
}
