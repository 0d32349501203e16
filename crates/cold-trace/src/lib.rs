//! Live recorders: BPF tracepoints and the perf-event fallback.
//!
//! Records, and puts together what was recorded; never analyses, never prints. While a program runs,
//! raw events go into a log as they come ([`blocks`], [`raw`], [`perf`]); at its end, or after a crash,
//! the log becomes a recording ([`assemble()`]). Start reading at [`assemble()`] and [`blocks`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml

pub mod assemble;
pub mod blocks;
#[cfg(feature = "bpf")]
pub mod bpf;
pub mod machine;
pub mod only;
pub mod perf;
pub mod raw;
pub mod record;
pub mod syscalls;
pub mod unwind;
pub mod waiting;

pub use assemble::assemble;
pub use record::{Survey, assemble_dir, recover, survey};
