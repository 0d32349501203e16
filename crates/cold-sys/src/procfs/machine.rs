//! More of the machine: loadavg, swaps, locks, and files that may be absent.

use std::io::ErrorKind;

use super::ProcFs;
use crate::{Error, Result};
use cold_model::Dev;

/// `/proc/loadavg`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadAverage {
    /// Mean number of running and uninterruptible tasks over the last minute.
    pub one_minute: f64,
    /// Tasks runnable at the moment of reading, including the reader.
    pub runnable: u64,
    /// Tasks that exist.
    pub tasks: u64,
}

/// One line of `/proc/swaps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swap {
    /// Device or file.
    pub name: String,
    /// `partition` or `file`.
    pub kind: String,
    /// Size in bytes.
    pub size: u64,
    /// Bytes in use.
    pub used: u64,
}

/// One held lock of `/proc/locks` (a waiting one is left out).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lock {
    /// Holder; -1 for open-file-description locks, 0 for a holder in another pid namespace.
    pub pid: i32,
    /// Device as the kernel prints it (`s_dev`).
    pub dev: Dev,
    /// Inode number of the locked file.
    pub inode: u64,
}

impl ProcFs {
    /// Like [`ProcFs::read`], trimmed, with `None` for a file this kernel does not have.
    pub fn read_opt(&self, rel: &str) -> Result<Option<String>> {
        match self.read(rel) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// `/proc/loadavg`.
    pub fn loadavg(&self) -> Result<LoadAverage> {
        let text = self.read("loadavg")?;
        let parse = || {
            let mut words = text.split_whitespace();
            let one_minute = words.next()?.parse().ok()?;
            let (runnable, tasks) = words.nth(2)?.split_once('/')?;
            Some(LoadAverage { one_minute, runnable: runnable.parse().ok()?, tasks: tasks.parse().ok()? })
        };
        parse().ok_or_else(|| self.parse_error("loadavg", &text, "three averages and running/total"))
    }

    /// `/proc/swaps`; empty without swap (and on kernels without it).
    pub fn swaps(&self) -> Result<Vec<Swap>> {
        let text = self.read_opt("swaps")?.unwrap_or_default();
        let parse = |line: &str| {
            // The name's blanks are printed as \040, so columns are safe to split.
            let w: Vec<&str> = line.split_whitespace().collect();
            let kib = |i: usize| w.get(i).and_then(|s| s.parse::<u64>().ok());
            Some(Swap {
                name: w.first()?.replace("\\040", " "),
                kind: (*w.get(1)?).to_owned(),
                size: kib(2)?.saturating_mul(1024),
                used: kib(3)?.saturating_mul(1024),
            })
        };
        Ok(text.lines().skip(1).filter_map(parse).collect())
    }

    /// The held locks of `/proc/locks` (readable by everybody).
    pub fn locks(&self) -> Result<Vec<Lock>> {
        Ok(self.read("locks")?.lines().filter_map(parse_lock).collect())
    }
}

fn parse_lock(line: &str) -> Option<Lock> {
    // `1: POSIX  ADVISORY  WRITE 4321 fe:00:1234 0 EOF`; waiters have `->` after the number.
    let w: Vec<&str> = line.split_whitespace().collect();
    if w.get(1) == Some(&"->") {
        return None;
    }
    let (dev, inode) = w.get(5)?.rsplit_once(':')?;
    Some(Lock { pid: w.get(4)?.parse().ok()?, dev: Dev::parse_hex(dev)?, inode: inode.parse().ok()? })
}

#[cfg(test)]
mod tests;
