//! Event trace logs (`.etl`) of the Windows kernel logger: buffers, events, and what the classes that tell of disk
//! reads, hard faults and their owners say.
//!
//! Layouts: `wmistr.h` and `evntrace.h` of the Windows SDK (`WNODE_HEADER`, `TRACE_LOGFILE_HEADER`), the MOF classes
//! of "Windows Kernel Trace" on learn.microsoft.com. A file may be larger than memory: [`Trace`] asks a [`Source`]
//! for one buffer of each processor at a time.

mod buffer;
mod event;
mod gather;
mod header;
mod payload;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
#[cfg(test)]
mod tests;
mod trace;

pub use buffer::{Buffer, HEADER as BUFFER_HEADER};
pub use event::{Class, Event, Events, HeaderKind};
pub use gather::{GatheredTrace, gather};
pub use header::{Clock, LogHeader};
pub use payload::{
    Disk, DiskKind, FileName, HardFault, ImagePayload, Phase, ProcessPayload, Record, Stack, ThreadPayload,
    record,
};
pub use trace::{Losses, Source, Trace};

/// Reads UTF-16 up to its NUL or the end. What is no UTF-16 becomes U+FFFD.
fn utf16(bytes: &[u8]) -> String {
    let units = bytes.chunks_exact(2).map(|c| u16::from_le_bytes([c[0], c[1]])).take_while(|u| *u != 0);
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}
