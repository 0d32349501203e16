//! Starting one command and owning its whole process tree until the last process is gone.
//!
//! A fresh, tiny, single-threaded *supervisor* process stands between `cold` and the command:
//!
//! - It is the tree's child subreaper, so orphaned descendants (daemons that fork twice) come back to
//!   it, and `wait4` saying `ECHILD` proves that nothing of the tree is left. No cgroup, no root needed.
//! - Its small memory keeps `vfork` cheap and keeps `ru_maxrss` honest: on exec the kernel carries the
//!   parent's high-water mark over to a vforked child (`exec_mmap` in fs/exec.c), so the floor is the
//!   supervisor's own peak, which it reports.
//! - When `cold` dies, even by SIGKILL, the control socket closes and the supervisor ends the tree.
//!   When the supervisor dies, `PR_SET_PDEATHSIG` ends the command itself.
//!
//! [`client`] is the side inside `cold`; [`serve`](serve::serve) runs in the supervisor, which is `cold`
//! itself started again with the hidden argument [`ARGUMENT`]; [`protocol`] is what they say.

pub mod client;
pub mod protocol;
pub mod serve;

/// First argument that makes `cold` a supervisor instead of a command.
pub const ARGUMENT: &str = "__supervise";

/// Reads the lines of `bytes` as messages of either side.
#[cfg(feature = "fuzzing")]
pub(crate) fn fuzz(bytes: &[u8]) {
    let (mut orders, mut events) = (bytes, bytes);
    while let Ok(Some(_)) = crate::helper::receive::<protocol::Order>(&mut orders) {}
    while let Ok(Some(_)) = crate::helper::receive::<protocol::SupervisorEvent>(&mut events) {}
}
