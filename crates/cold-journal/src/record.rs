//! One line of a journal: eight hexadecimal digits of CRC-32, a blank, a JSON document.

use cold_sys::procfs::ProcFs;
use serde::{Deserialize, Serialize};

use crate::change::{Change, Made};
use crate::{Error, Result};

/// Identifies the format.
pub(crate) const FORMAT: &str = "coldstart.journal/1";

/// The process that made the changes, for people. Whether it lives, its lock on the journal tells: its pid
/// may name another process in the pid namespace of whoever reads this, or none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its pid, in its own pid namespace.
    pub pid: i32,
    /// Its start time (field 22 of `/proc/PID/stat`), which tells it from a later process with that pid.
    pub starttime: u64,
    /// The boot it ran in.
    pub boot_id: String,
    /// Its `comm`, at most 15 bytes, when it made the journal.
    pub comm: String,
}

impl Owner {
    /// The calling process.
    pub(crate) fn me(proc: &ProcFs) -> Result<Self> {
        let pid = i32::try_from(std::process::id())
            .map_err(|_| Error::refused("identify", "/proc/self", "the pid exceeds 31 bits"))?;
        let stat = proc.own_stat()?;
        Ok(Self { pid, starttime: stat.starttime, boot_id: boot_id(proc)?, comm: stat.comm })
    }
}

/// Identifies the current boot: the kernel's name of it.
pub fn boot_id(proc: &ProcFs) -> Result<String> {
    Ok(proc.read("sys/kernel/random/boot_id")?.trim().to_owned())
}

/// What a line says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Record {
    /// The first line.
    Header { format: String, owner: Owner },
    /// A change will be made.
    Change { id: u64, change: Change },
    /// It was made.
    Made { id: u64, made: Made },
    /// An older change of the same setting was undone first: go back to this value instead.
    Rebased { id: u64, old: String },
    /// It is undone or needs no undoing; the text says how.
    Done { id: u64, outcome: String },
}

impl Record {
    /// The line, with its newline.
    pub(crate) fn line(&self) -> std::result::Result<String, serde_json::Error> {
        let json = serde_json::to_string(self)?;
        Ok(format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes())))
    }

    /// Reads a line (without its newline); `None` if it is damaged or of an unknown kind.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let (sum, json) = (line.get(..8)?, line.get(9..)?);
        let sum = u32::from_str_radix(std::str::from_utf8(sum).ok()?, 16).ok()?;
        if line.get(8) != Some(&b' ') || sum != crc32fast::hash(json) {
            return None;
        }
        serde_json::from_slice(json).ok()
    }
}
