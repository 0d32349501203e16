//! Processes: list, `stat`, links, descriptors, cgroups.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use cold_model::{Nanos, Shown as _};

use super::ProcFs;
use crate::{Error, Result};

/// The fields of `/proc/PID/stat` that somebody here uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// Process id in the pid namespace of this /proc.
    pub pid: i32,
    /// Command name, at most 15 bytes.
    pub comm: String,
    /// State letter: R, S, D, Z, T, …
    pub state: char,
    /// Parent's process id; 0: none in that pid namespace.
    pub ppid: i32,
    /// Process group, named by the pid of its leader, who may be gone.
    pub pgrp: i32,
    /// Session, named by the pid of its leader, who may be gone.
    pub session: i32,
    /// Flags (`PF_*`; `0x0020_0000` is a kernel thread).
    pub flags: u64,
    /// Minor faults since it began, without those of its children.
    pub minflt: u64,
    /// Major faults since it began, without those of its children.
    pub majflt: u64,
    /// User time in clock ticks.
    pub utime: u64,
    /// System time in clock ticks.
    pub stime: u64,
    /// CPU time of its children that it has waited for, user and system; whole clock ticks (10 ms).
    pub children_cpu: Nanos,
    /// Start time in clock ticks since boot: with the pid an identity that is not reused.
    pub starttime: u64,
    /// Time waited for block I/O in clock ticks (0 unless delay accounting is on).
    pub delayacct_blkio_ticks: u64,
}

/// One entry of `/proc/PID/fd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fd {
    /// Number of the descriptor in its process.
    pub fd: i32,
    /// Where the link points, as printed (`/path`, `socket:[…]`, `/path (deleted)`).
    pub target: PathBuf,
}

/// The control group that a process is in, of one hierarchy (a line of `/proc/PID/cgroup`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InCgroup {
    /// Number of the hierarchy; 0 is that of version 2.
    pub hierarchy: u32,
    /// Its controllers, with commas between them; empty for version 2.
    pub controllers: String,
    /// The group, from the root of the hierarchy on, as the reader's cgroup namespace names it.
    pub path: PathBuf,
}

impl ProcFs {
    /// The ids of all processes, ascending.
    pub fn pids(&self) -> Result<Vec<i32>> {
        let dir = self.path("");
        let entries = std::fs::read_dir(&dir).map_err(|e| Error::io("list", dir.shown().to_string(), e))?;
        let mut pids: Vec<i32> = entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect();
        pids.sort_unstable();
        Ok(pids)
    }

    /// `/proc/PID/stat`.
    pub fn stat(&self, pid: i32) -> Result<Stat> {
        let rel = format!("{pid}/stat");
        let text = self.read(&rel)?;
        parse_stat(&text)
            .ok_or_else(|| self.parse_error(&rel, &text, "pid (comm) state ppid … as in proc(5)"))
    }

    /// All threads of a process sleep until something happens; none runs, or waits for a disk. False when that
    /// cannot be told.
    pub fn is_asleep(&self, pid: i32) -> bool {
        let Ok(threads) = std::fs::read_dir(self.path(format!("{pid}/task"))) else { return false };
        let asleep = |entry: std::io::Result<std::fs::DirEntry>| {
            let text = std::fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
            Some(parse_stat(&text)?.state == 'S')
        };
        threads.map(asleep).all(|yes| yes.unwrap_or(false))
    }

    /// Of the calling process. Its own number may be another one's here: this `/proc` can be that of another pid
    /// namespace.
    pub fn own_stat(&self) -> Result<Stat> {
        let text = self.read("self/stat")?;
        parse_stat(&text)
            .ok_or_else(|| self.parse_error("self/stat", &text, "pid (comm) state ppid … as in proc(5)"))
    }

    /// The executable's path (root or own processes only); ` (deleted)` is kept as the kernel says it.
    pub fn exe(&self, pid: i32) -> Result<PathBuf> {
        let path = self.path(format!("{pid}/exe"));
        std::fs::read_link(&path).map_err(|e| Error::io("read link", path.shown().to_string(), e))
    }

    /// The command name.
    pub fn comm(&self, pid: i32) -> Result<String> {
        Ok(self.read(format!("{pid}/comm"))?.trim_end().to_owned())
    }

    /// The arguments; empty for kernel threads and zombies.
    pub fn cmdline(&self, pid: i32) -> Result<Vec<String>> {
        let text = self.read(format!("{pid}/cmdline"))?;
        Ok(text.split_terminator('\0').map(str::to_owned).collect())
    }

    /// Open descriptors (root or own processes only).
    pub fn fds(&self, pid: i32) -> Result<Vec<Fd>> {
        let dir = self.path(format!("{pid}/fd"));
        let entries = std::fs::read_dir(&dir).map_err(|e| Error::io("list", dir.shown().to_string(), e))?;
        Ok(entries
            .filter_map(|e| {
                let e = e.ok()?;
                let fd = e.file_name().to_str()?.parse().ok()?;
                // A descriptor closed meanwhile is no error.
                let target = std::fs::read_link(e.path()).ok()?;
                Some(Fd { fd, target })
            })
            .collect())
    }

    /// The lines of `/proc/PID/cgroup`.
    pub fn cgroups(&self, pid: i32) -> Result<Vec<InCgroup>> {
        Ok(self
            .read(format!("{pid}/cgroup"))?
            .lines()
            .filter_map(|l| {
                let mut parts = l.splitn(3, ':');
                let hierarchy = parts.next()?.parse().ok()?;
                let controllers = parts.next()?.to_owned();
                let path = PathBuf::from(std::ffi::OsStr::from_bytes(parts.next()?.as_bytes()));
                Some(InCgroup { hierarchy, controllers, path })
            })
            .collect())
    }

    /// The effective user who runs it: the owner of its directory, which takes less than reading its `status`, and is that
    /// user also of what hides itself (`PR_SET_DUMPABLE`; fs/proc/base.c, `task_dump_owner`). `None` where it is gone.
    pub fn user(&self, pid: i32) -> Option<u32> {
        Some(self.path(pid.to_string()).metadata().ok()?.uid())
    }

    /// A `key: value` or `key value` field of `/proc/PID/REL` (`status`, `io`, …) with its first
    /// number; `None` when the key is absent.
    pub fn process_field(&self, pid: i32, rel: &str, key: &str) -> Result<Option<u64>> {
        let text = self.read(format!("{pid}/{rel}"))?;
        Ok(text.lines().find_map(|l| {
            let rest = l.strip_prefix(key)?;
            let rest = rest.strip_prefix(':').unwrap_or(rest);
            rest.split_whitespace().next()?.parse().ok()
        }))
    }
}

fn parse_stat(text: &str) -> Option<Stat> {
    // comm may contain blanks and parentheses: it ends at the last ')'.
    let open = text.find('(')?;
    let close = text.rfind(')')?;
    let pid = text.get(..open)?.trim().parse().ok()?;
    let comm = text.get(open + 1..close)?.to_owned();
    let f: Vec<&str> = text.get(close + 1..)?.split_ascii_whitespace().collect();
    // f[0] is field 3 (state) of proc(5).
    let num = |field: usize| f.get(field - 3).and_then(|s| s.parse::<u64>().ok());
    let int = |field: usize| f.get(field - 3).and_then(|s| s.parse::<i32>().ok());
    Some(Stat {
        pid,
        comm,
        state: f.first()?.chars().next()?,
        ppid: int(4)?,
        pgrp: int(5)?,
        session: int(6)?,
        flags: num(9)?,
        minflt: num(10)?,
        majflt: num(12)?,
        utime: num(14)?,
        stime: num(15)?,
        children_cpu: Nanos(
            num(16)?
                .saturating_add(num(17)?)
                .saturating_mul(1_000_000_000 / rustix::param::clock_ticks_per_second()),
        ),
        starttime: num(22)?,
        delayacct_blkio_ticks: num(42).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests;
