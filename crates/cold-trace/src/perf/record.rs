//! Decoding the records of perf events. Pure; any bytes may come in.
//!
//! Layout: `enum perf_event_type` in `include/uapi/linux/perf_event.h`. All events are opened by
//! `cold_sys::perf_event` with `sample_id_all`, so that every record but a sample ends with thread, time,
//! CPU and event.

use std::collections::HashMap;

use cold_model::Dev;
use cold_sys::perf_event::sample;

use crate::blocks::{PerfClass, PerfEvent};

/// Most frames of a call chain that are kept; the kernel's own limit is 127.
const MAX_FRAMES: u64 = 1024;
/// Markers between the contexts of a call chain (`PERF_CONTEXT_*`) are the last 4095 addresses.
const CONTEXT: u64 = u64::MAX - 4095;

/// The events of a recording by number.
#[derive(Debug, Clone, Default)]
pub struct Events(HashMap<u64, PerfEvent>);

impl Events {
    /// Adds events; one with a known number replaces what was said of it.
    pub fn extend(&mut self, events: &[PerfEvent]) {
        self.0.extend(events.iter().map(|e| (e.id, *e)));
    }
    /// There are none: perf events were not used.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// What this event counts.
    pub fn class(&self, id: u64) -> Option<PerfClass> {
        self.0.get(&id).map(|e| e.class)
    }
}

/// One decoded record: when, of whom, what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerfRecord<'a> {
    /// `CLOCK_MONOTONIC` in nanoseconds.
    pub at: u64,
    /// Process (thread group) that ran when it was written.
    pub pid: u32,
    /// Thread that ran then: of a fork the maker, not what was made.
    pub tid: u32,
    /// What its kind and its body say.
    pub what: What<'a>,
}

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What<'a> {
    /// Something was mapped.
    Map(Map<'a>),
    /// A task got a name.
    Comm {
        /// Process (thread group) of the named thread.
        pid: u32,
        /// Thread that bears the name from now on.
        tid: u32,
        /// By an exec.
        exec: bool,
        /// `comm`, up to its NUL.
        name: &'a [u8],
    },
    /// A process or thread was made.
    Fork {
        /// New process (of a new thread: its process).
        pid: u32,
        /// New thread; of a new process its first one.
        tid: u32,
        /// Process that made it.
        parent: u32,
    },
    /// A thread ended.
    Exit {
        /// Process (thread group) that the thread belonged to.
        pid: u32,
        /// Thread that ended; its process may go on.
        tid: u32,
    },
    /// Records of one event were lost.
    Lost {
        /// Number of the event ([`PerfEvent::id`]).
        id: u64,
        /// Records lost since the last such record.
        count: u64,
    },
    /// A page fault.
    Fault(PerfFault<'a>),
}

/// A mapping that was made, as `PERF_RECORD_MMAP2` tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Map<'a> {
    /// Process (thread group) whose memory it is in.
    pub pid: u32,
    /// First address, inclusive.
    pub address: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Device of the file's superblock; 0:0 for memory that is no file's.
    pub dev: Dev,
    /// Inode; 0: no file.
    pub inode: u64,
    /// Generation of the inode; 0: not told, or the file system keeps none.
    pub generation: u32,
    /// Protection bits (`PROT_READ`, `PROT_EXEC`, …) when it was made.
    pub prot: u32,
    /// As the kernel prints it.
    pub path: &'a [u8],
}

/// A page fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerfFault<'a> {
    /// Booked as major.
    pub major: bool,
    /// Address that was touched.
    pub address: u64,
    /// Instruction; of the kernel in a kernel-mode fault.
    pub ip: u64,
    /// User call chain, 8 bytes each, markers included; empty: none.
    pub chain: &'a [u8],
    /// User registers in the order of `UNWIND_REGISTERS`; empty: none.
    pub registers: &'a [u8],
    /// Bytes of the stack from its pointer up.
    pub stack: &'a [u8],
}

impl PerfFault<'_> {
    /// Addresses of the call chain, innermost first.
    pub fn frames(&self) -> impl Iterator<Item = u64> + '_ {
        let words = self.chain.chunks_exact(8).map(|b| b.try_into().map_or(0, u64::from_le_bytes));
        words.filter(|a| *a < CONTEXT)
    }
}

/// Reads forward and never beyond the end.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n)?;
        self.0 = tail;
        Some(head)
    }
    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.take(2)?.try_into().ok()?))
    }
    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }
    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }
    /// Up to the first NUL, or all.
    fn text(&self) -> &'a [u8] {
        let end = self.0.iter().position(|b| *b == 0).unwrap_or(self.0.len());
        self.0.get(..end).unwrap_or_default()
    }
}

/// Length of the first record in `bytes`; `None` when what is left is no record.
pub fn length(bytes: &[u8]) -> Option<usize> {
    let size = usize::from(u16::from_le_bytes(bytes.get(6..8)?.try_into().ok()?));
    (size >= 8 && size <= bytes.len()).then_some(size)
}

/// Splits a block into records; stops at the first that is none.
pub fn split(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (head, tail) = bytes.split_at_checked(length(bytes)?)?;
        bytes = tail;
        Some(head)
    })
}

/// Bytes at the end of every record but a sample: thread, time, CPU, event.
const TRAILER: usize = 32;

const MMAP2: u32 = 10;
const COMM: u32 = 3;
const FORK: u32 = 7;
const EXIT: u32 = 4;
const LOST: u32 = 2;
const SAMPLE: u32 = 9;
/// `PERF_RECORD_MISC_COMM_EXEC`.
const MISC_EXEC: u16 = 1 << 13;
/// `PERF_RECORD_MISC_MMAP_BUILD_ID`: device and inode are not told; never asked for.
const MISC_BUILD_ID: u16 = 1 << 14;

/// The process, when the record says that one called exec.
pub fn exec_of(record: &[u8]) -> Option<u32> {
    let mut head = Bytes(record);
    let (kind, misc, _) = (head.u32()?, head.u16()?, head.u16()?);
    (kind == COMM && misc & MISC_EXEC != 0).then(|| head.u32())?
}

/// Decodes one record; `None` for a kind that is not used, or when it is not what it should be.
pub fn decode<'a>(record: &'a [u8], events: &Events) -> Option<PerfRecord<'a>> {
    let mut head = Bytes(record);
    let (kind, misc, _) = (head.u32()?, head.u16()?, head.u16()?);
    if kind == SAMPLE {
        return fault(head, events);
    }
    let body_end = head.0.len().checked_sub(TRAILER)?;
    let (body, trailer) = head.0.split_at_checked(body_end)?;
    let (mut body, mut trailer) = (Bytes(body), Bytes(trailer));
    let (pid, tid, at) = (trailer.u32()?, trailer.u32()?, trailer.u64()?);
    let what = match kind {
        MMAP2 if misc & MISC_BUILD_ID == 0 => What::Map(map(body)?),
        COMM => {
            What::Comm { pid: body.u32()?, tid: body.u32()?, exec: misc & MISC_EXEC != 0, name: body.text() }
        }
        FORK => {
            let (pid, parent, tid) = (body.u32()?, body.u32()?, body.u32()?);
            What::Fork { pid, tid, parent }
        }
        EXIT => {
            let (pid, _, tid) = (body.u32()?, body.u32()?, body.u32()?);
            What::Exit { pid, tid }
        }
        LOST => What::Lost { id: body.u64()?, count: body.u64()? },
        _ => return None,
    };
    Some(PerfRecord { at, pid, tid, what })
}

fn map(mut body: Bytes<'_>) -> Option<Map<'_>> {
    let (pid, _tid) = (body.u32()?, body.u32()?);
    let (address, bytes, offset) = (body.u64()?, body.u64()?, body.u64()?);
    let dev = Dev::new(body.u32()?, body.u32()?);
    let (inode, generation) = (body.u64()?, body.u64()? as u32);
    let (prot, _flags) = (body.u32()?, body.u32()?);
    Some(Map { pid, address, bytes, offset, dev, inode, generation, prot, path: body.text() })
}

fn fault<'a>(mut body: Bytes<'a>, events: &Events) -> Option<PerfRecord<'a>> {
    let event = events.0.get(&body.u64()?)?;
    let ip = body.u64()?;
    let (pid, tid, at, address, _cpu) = (body.u32()?, body.u32()?, body.u64()?, body.u64()?, body.u64()?);
    let mut fault = PerfFault {
        major: event.class == PerfClass::Major,
        address,
        ip,
        chain: &[],
        registers: &[],
        stack: &[],
    };
    if event.sample_type & sample::CALLCHAIN != 0 {
        let frames = body.u64().filter(|n| *n <= MAX_FRAMES)?;
        fault.chain = body.take(frames as usize * 8)?;
    }
    if event.sample_type & sample::REGS_USER != 0 && body.u64()? != 0 {
        fault.registers = body.take(8 * cold_sys::perf_event::UNWIND_REGISTERS.count_ones() as usize)?;
    }
    if event.sample_type & sample::STACK_USER != 0 {
        let size = body.u64()?;
        let copied = body.take(usize::try_from(size).ok()?)?;
        if size != 0 {
            // Less may have been readable than there is room for.
            let held = usize::try_from(body.u64()?).ok()?;
            fault.stack = copied.get(..held.min(copied.len()))?;
        }
    }
    Some(PerfRecord { at, pid, tid, what: What::Fault(fault) })
}

#[cfg(test)]
mod tests;
