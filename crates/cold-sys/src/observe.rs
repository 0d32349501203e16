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

mod calls;
mod client;
mod collect;
mod error;
mod filter;
mod image;
mod place;
mod protocol;
mod ptrace;
mod serve;
mod signals;
mod spawn;
mod tracer;

pub use client::{Client, HELPER_ARGUMENT, ObserveSpec, Streams};
pub use error::ObserveError;
pub use serve::serve;
