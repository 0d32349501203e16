//! The functions that a start enters, each the first time, without a change to any file.
//!
//! A breakpoint stands at the beginning of every function of every file that the tree maps executable, from the
//! first instruction after the exec on. The first thread that reaches one stops; the tracer puts back what stood
//! there and lets it go on, so each costs one stop and later calls cost nothing. Start reading at [`Entries`].
//!
//! - `code`: a file's functions as places for breakpoints. What was entered once is not set again: a build that
//!   starts a compiler a thousand times stops at each of its functions once.
//! - `space`: the memory of a process, with what is set there. Memory is written through `/proc/PID/mem`, which
//!   gives the process a copy of the page (as a debugger does), and only where the mapping is private.
//! - `cpus`: why tracer and program share a processor, and how the program does not notice.
//! - The filter stops `mmap` of a file that is to be executed, so that libraries are seen whoever maps them (the
//!   loader, `dlopen`, another loader), at the price of one stop for each; and the two calls after which breakpoints
//!   could not be served: `prctl(PR_SET_DUMPABLE)` and `sigaction(SIGTRAP)`.
//!
//! What the tracer knows of a memory is never more than a note of what is there: when a stop is not explained by it,
//! the mappings and the memory itself are looked at. So it does not matter whether the child's first stop or its
//! parent's report of it comes first, or which of two threads at one breakpoint is served first.
//!
//! # Limits
//!
//! The kernel kills the tree when the tracer dies (`PTRACE_O_EXITKILL`): a program with breakpoints and nobody to
//! take them out would die of its next one. Processes made with `CLONE_UNTRACED` would, too. Code that is made
//! executable by `mprotect` only is not seen. A breakpoint is a `SIGTRAP`: where a program blocks or ignores that
//! signal, the kernel unblocks it and takes its handler away (`force_sig_info_to_task` of `kernel/signal.c`). So a
//! process that handles or ignores it is left alone from then on. [`Tracing::own_traps`] goes on in those that handle
//! it, and remarks where a handler was lost.
//!
//! [`Tracing::own_traps`]: cold_model::order::Tracing::own_traps

mod arch;
mod calls;
mod code;
mod cpus;
mod crash;
mod space;
mod tracer;
mod traps;
mod written;

use std::fs::{File, Metadata};
use std::path::Path;

use cold_model::order::TracedFile;

pub(super) use calls::program as filter;
pub(super) use cpus::bind;
pub(super) use tracer::Entries;

/// Reads the functions of files: this crate knows no file formats.
pub trait FunctionTables {
    /// Those of an open file, which is mapped executable and called `path`.
    ///
    /// # Errors
    /// Says why they cannot be read.
    fn read(&mut self, file: File, meta: Metadata, path: &Path) -> Result<TracedFile, String>;
}
