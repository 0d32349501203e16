//! Kernel interfaces as safe functions.
//!
//! Holds mechanism, never policy: nothing here decides whether a run counts, what to evict or what to
//! print. The only crate (beside the tracer's loader) that contains `unsafe`; each block says why it
//! is sound. Every reader of `/proc` and `/sys` takes a root directory, so tests build fake trees.
//! Start reading at [`procfs`] and [`open`].
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml
#![allow(unsafe_code)] // this crate owns kernel access; `undocumented_unsafe_blocks` is denied.

pub mod beneath;
pub mod blocks;
pub mod caps;
pub mod cgroup;
pub mod clock;
pub mod copier;
pub mod detached;
pub mod dir;
pub mod emergency;
pub mod evict;
pub mod exec;
pub mod exec_gate;
pub mod exec_watch;
pub mod ext4;
pub mod extents;
pub mod folio;
pub mod heap;
pub mod helper;
pub mod huge;
pub mod inode;
pub mod kernelfs;
pub mod knob;
pub mod listening;
pub mod loopdev;
pub mod map;
pub mod mapped;
pub mod mount;
// The launcher is built with musl, too, where the `libc` crate knows ptrace differently.
#[cfg(target_env = "gnu")]
pub mod observe;
pub mod open;
pub mod own_code;
pub mod page;
pub mod perf_event;
pub mod pidfd;
pub mod place;
pub mod probe;
pub mod procfs;
pub mod readahead;
pub mod realtime;
pub mod reclaim;
pub mod remove;
pub mod residency;
pub mod ringbuf;
pub mod search;
pub mod sender;
pub mod shared;
#[cfg(target_env = "gnu")]
pub mod spawn;
pub mod stdio;
pub mod supervise;
pub mod sysfs;
pub mod time;
pub mod tree;
pub mod uring;
pub mod usage;
pub mod whole;

mod child;
mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;

pub use error::{Error, Result};
