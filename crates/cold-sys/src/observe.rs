//! One start of a command, watched without root: which regular files its tree executes, maps or
//! opens, and how many path lookups fail.
//!
//! A helper process (the same program, called with [`HELPER_ARGUMENT`]) runs the command under ptrace
//! and a seccomp filter that stops only at the exec, open, stat, access and readlink families; all other
//! system calls run at full speed. It is a process of its own because it waits for any child
//! (`waitpid(-1)`), and because the kernel then kills the whole tree if it dies. Start reading at
//! [`Client`] for callers, `tracer` for the loop.
//!
//! What it cannot see: files read through descriptors that were sent over a socket from outside the
//! tree, unless they are mapped; files opened through an `io_uring` that were closed again before the
//! process ended, or by a supervisor's `SECCOMP_USER_NOTIF_FLAG_CONTINUE`, unless they are mapped;
//! threads made with `CLONE_UNTRACED` (their opens fail with `ENOSYS`). Programs under observation
//! cannot trace each other, and without root set-user-ID programs run without their privileges. The
//! last two and `io_uring` are reported as notes when they happen.
//!
//! # Slowdown
//!
//! Each stop costs two switches to the helper, and a followed call stops twice. Measured warm and
//! interleaved on a busy 2-CPU VM (Linux 6.18), medians of 7 to 9 pairs; the duration of an observed
//! start is therefore no measurement of anything:
//!
//! | command | untraced | observed | ratio, over four rounds |
//! |---|---|---|---|
//! | `python3 -c 'import json, http.server, sqlite3'` (511 lookups) | 76 ms | 112 ms | 1.5 to 1.6, once 4.3 |
//! | `git status` | 4 ms | 18 ms | 3.8 to 4.5 (some 5 ms of it for starting the observer) |
//! | `firefox-esr --headless -screenshot` (3,800 lookups, 111 threads) | 1.08 s | 1.45 s | 1.2 to 1.3 |
//!
//! `strace -f --seccomp-bpf -e trace=file` took 442 ms, 52 ms and 1.64 s where this took 334 ms, 17 ms
//! and 1.62 s. Leaving out the stat, access and readlink families gave 1.3 to 1.4 with python3 and 1.2 to
//! 1.4 with Firefox, too little to leave them out: failed lookups are always counted. Spinning for 60 µs before each blocking
//! wait made it slower on two busy CPUs.

mod calls;
mod client;
mod collect;
mod entries;
mod error;
mod filter;
mod image;
mod place;
mod protocol;
pub(crate) mod ptrace;
mod serve;
mod signals;
mod spawn;
mod tracer;
mod watch;

pub use client::{Client, HELPER_ARGUMENT, ObserveSpec, Streams};
pub use entries::FunctionTables;
pub use error::ObserveError;
pub use serve::serve;

/// Reads `bytes` as a message of either side.
#[cfg(feature = "fuzzing")]
pub(crate) fn fuzz(bytes: &[u8]) {
    let (mut orders, mut replies) = (bytes, bytes);
    let _ = crate::helper::receive::<protocol::Order>(&mut orders);
    let _ = crate::helper::receive::<protocol::Reply>(&mut replies);
}
