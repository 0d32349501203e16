//! What a process of the tree does with SIGTRAP, which a breakpoint is.

use super::super::ptrace;
use crate::procfs::ProcFs;

/// What a process wants a SIGTRAP to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Default,
    Ignore,
    Handler,
}

impl Action {
    /// Whether the process has a handler from now on; an error: why it is left alone. `own_traps`: one that handles
    /// SIGTRAP is traced all the same.
    pub(super) fn handled(self, own_traps: bool) -> Result<bool, &'static str> {
        match self {
            Self::Default => Ok(false),
            Self::Handler if own_traps => Ok(true),
            Self::Handler => Err("uses SIGTRAP itself (with --own-traps it is traced all the same)"),
            Self::Ignore => Err("uses SIGTRAP itself"),
        }
    }
}

/// The action at this address, as `sigaction` is given it; `None` where it is only asked for, or cannot be read.
pub(super) fn action(tid: i32, address: u64) -> Option<Action> {
    // The handler comes first in the kernel's structure. A program of 32 bits has half of it.
    let mut handler = [0; 4];
    if address == 0 || ptrace::read_memory(tid, address, &mut handler).is_err() {
        return None;
    }
    Some(match u32::from_le_bytes(handler) {
        0 => Action::Default,
        1 => Action::Ignore,
        _ => Action::Handler,
    })
}

/// Whether a new program finds SIGTRAP ignored, as exec leaves it.
pub(super) fn are_ignored(pid: i32) -> bool {
    is_in(pid, "SigIgn:")
}

/// Whether a thread's process has a handler of SIGTRAP.
pub(super) fn are_caught(tid: i32) -> bool {
    is_in(tid, "SigCgt:")
}

fn is_in(tid: i32, set: &str) -> bool {
    let status = ProcFs::default().read(format!("{tid}/status")).unwrap_or_default();
    let set = status.lines().find_map(|l| u64::from_str_radix(l.strip_prefix(set)?.trim(), 16).ok());
    set.is_some_and(|set| set >> (libc::SIGTRAP - 1) & 1 == 1)
}
