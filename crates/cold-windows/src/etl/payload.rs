//! What the classes say that tell of disk reads, hard faults, their files and their owners. Other classes are no
//! [`Record`].

use super::{Class, Event, utf16};
use crate::Result;
use crate::bytes::Input;

/// Where in its life something is when an event names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It begins now.
    Start,
    /// It ends now.
    End,
    /// It was there when the trace began.
    Before,
    /// It was there when the trace ended.
    After,
    /// It had ended, and something still held it.
    Defunct,
}

/// What an event tells of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessPayload {
    /// Where in its life.
    pub phase: Phase,
    /// Process id.
    pub pid: u32,
    /// Process that made it.
    pub parent: u32,
    /// Session of the user.
    pub session: u32,
    /// Exit status; 259 while it runs.
    pub status: i32,
    /// Name of its program, without directory. Not of UTF-16: bytes that are not UTF-8 become U+FFFD.
    pub image: String,
    /// Command line; empty where the event has none.
    pub command: String,
}

/// What an event tells of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadPayload {
    /// Where in its life.
    pub phase: Phase,
    /// Its process.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
}

/// A program or library in an address space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImagePayload {
    /// Where in its life.
    pub phase: Phase,
    /// Process that has it; 0 for the kernel.
    pub pid: u32,
    /// Address of its first byte.
    pub base: u64,
    /// Bytes of address space.
    pub size: u64,
    /// Path, by device.
    pub name: String,
}

/// What was done with a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskKind {
    /// Bytes were read.
    Read,
    /// Bytes were written.
    Write,
}

/// A request to a disk, told when it was complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disk {
    /// What was done.
    pub kind: DiskKind,
    /// Number of the disk.
    pub disk: u32,
    /// Flags of the request packet (`IRP_*` of `wdm.h`); bits 17 to 19 are the priority.
    pub flags: u32,
    /// Bytes that were moved.
    pub bytes: u32,
    /// First byte on the disk.
    pub offset: u64,
    /// File object, for its name.
    pub file: u64,
    /// Address of the request packet.
    pub irp: u64,
    /// How long the disk took, ticks.
    pub response: u64,
    /// Thread that asked; `None` before Windows 8, whose events do not tell.
    pub tid: Option<u32>,
}

impl Disk {
    /// Priority: 0 not set, 1 very low, 2 low, 3 normal, 4 high, 5 critical.
    pub const fn priority(&self) -> u32 {
        self.flags >> 17 & 7
    }
}

/// A fault that read from a disk, told when it was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HardFault {
    /// When it began, ticks.
    pub began: i64,
    /// First byte in the file that was read.
    pub offset: u64,
    /// Address that faulted.
    pub address: u64,
    /// File object, for its name.
    pub file: u64,
    /// Thread that faulted.
    pub tid: u32,
    /// Bytes that were read.
    pub bytes: u32,
}

/// The name of a file object; told when it is opened, or for all at the trace's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileName {
    /// File object.
    pub object: u64,
    /// Path, by device.
    pub name: String,
}

/// The stack of an event before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    /// Time of the event that it belongs to, ticks.
    pub of: i64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Addresses, innermost first.
    pub frames: Vec<u64>,
}

/// Where a volume is mounted; written into a trace when it is merged (`xperf -d` and others do).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumePayload {
    /// Path by device, with its last `\`.
    pub device: String,
    /// Path by drive, with its last `\`; empty for a volume without a letter.
    pub drive: String,
}

/// What an event says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// A process begins, ends, or is there.
    Process(ProcessPayload),
    /// A thread begins, ends, or is there.
    Thread(ThreadPayload),
    /// An image is loaded, unloaded, or is there.
    Image(ImagePayload),
    /// A disk read or write is complete.
    Disk(Disk),
    /// A hard fault is over.
    HardFault(HardFault),
    /// A file object has a name.
    FileName(FileName),
    /// The stack of an event.
    Stack(Stack),
    /// A volume has a drive letter.
    Volume(VolumePayload),
}

/// `{9B79EE91-B5FD-41C0-A243-4248E266E9D0}`, the class of events that merging adds about the machine.
const SYSTEM_CONFIG: [u8; 16] =
    [0x91, 0xee, 0x79, 0x9b, 0xfd, 0xb5, 0xc0, 0x41, 0xa2, 0x43, 0x42, 0x48, 0xe2, 0x66, 0xe9, 0xd0];
/// Its type `VolumeMapping`.
const VOLUME_MAPPING: u8 = 35;

/// Reads what `event` says in a trace whose pointers have `pointer` bytes; `None` for other classes.
///
/// # Errors
/// [`crate::Error::Short`] where the payload is too short for its class.
pub fn record(event: &Event<'_>, pointer: u8) -> Result<Option<Record>> {
    if event.class == Some(Class { guid: SYSTEM_CONFIG, kind: VOLUME_MAPPING }) {
        return Ok(Some(Record::Volume(volume(event.payload))));
    }
    let Some(hook) = event.hook else { return Ok(None) };
    let b = Fields { bytes: Input::new(event.payload), pointer: pointer.into() };
    Ok(Some(match hook {
        0x010a => Record::Disk(b.disk(DiskKind::Read)?),
        0x010b => Record::Disk(b.disk(DiskKind::Write)?),
        0x0220 => Record::HardFault(b.hard_fault()?),
        0x0301..=0x0304 => Record::Process(b.process(phase(hook), event.version)?),
        0x0327 => Record::Process(b.process(Phase::Defunct, event.version)?),
        0x030a => Record::Image(b.image(Phase::Start, event.version)?),
        0x1402..=0x1404 => Record::Image(b.image(phase(hook), event.version)?),
        0x0400 | 0x0420 | 0x0423 | 0x0424 => Record::FileName(b.file_name()?),
        0x0501..=0x0504 => {
            Record::Thread(ThreadPayload { phase: phase(hook), pid: b.u32(0)?, tid: b.u32(4)? })
        }
        0x1820 => Record::Stack(b.stack()?),
        _ => return Ok(None),
    }))
}

/// Two texts, each with its NUL.
fn volume(payload: &[u8]) -> VolumePayload {
    let device = utf16(payload);
    let behind = 2 * device.encode_utf16().count() + 2;
    VolumePayload { drive: payload.get(behind..).map(utf16).unwrap_or_default(), device }
}

/// The types of event that all classes number alike.
const fn phase(hook: u16) -> Phase {
    match hook & 0xff {
        1 => Phase::Start,
        2 => Phase::End,
        3 => Phase::Before,
        _ => Phase::After,
    }
}

const WHAT: &str = "a field of an event";

/// A payload, whose pointers are 4 or 8 bytes wide.
struct Fields<'a> {
    bytes: Input<'a>,
    pointer: u64,
}

impl Fields<'_> {
    fn u32(&self, at: u64) -> Result<u32> {
        self.bytes.u32(at, WHAT)
    }

    fn u64(&self, at: u64) -> Result<u64> {
        self.bytes.u64(at, WHAT)
    }

    fn pointer(&self, at: u64) -> Result<u64> {
        if self.pointer == 4 { self.u32(at).map(u64::from) } else { self.u64(at) }
    }

    fn rest(&self, at: u64) -> Result<&[u8]> {
        let len = (self.bytes.len() as u64).saturating_sub(at);
        self.bytes.part(at, len, WHAT).map(Input::all)
    }

    fn disk(&self, kind: DiskKind) -> Result<Disk> {
        let p = self.pointer;
        let behind = 24 + 2 * p;
        Ok(Disk {
            kind,
            disk: self.u32(0)?,
            flags: self.u32(4)?,
            bytes: self.u32(8)?,
            offset: self.u64(16)?,
            file: self.pointer(24)?,
            irp: self.pointer(24 + p)?,
            response: self.u64(behind)?,
            tid: self.u32(behind + 8).ok().filter(|t| *t != u32::MAX),
        })
    }

    fn hard_fault(&self) -> Result<HardFault> {
        let p = self.pointer;
        Ok(HardFault {
            began: self.u64(0)?.cast_signed(),
            offset: self.u64(8)?,
            address: self.pointer(16)?,
            file: self.pointer(16 + p)?,
            tid: self.u32(16 + 2 * p)?,
            bytes: self.u32(20 + 2 * p)?,
        })
    }

    fn file_name(&self) -> Result<FileName> {
        Ok(FileName { object: self.pointer(0)?, name: utf16(self.rest(self.pointer)?) })
    }

    fn process(&self, phase: Phase, version: u16) -> Result<ProcessPayload> {
        let p = self.pointer;
        // Versions 3 and 4 added the directory table, then flags.
        let mut at = p + 16;
        if version >= 3 {
            at += p;
        }
        if version >= 4 {
            at += 4;
        }
        // A TOKEN_USER of two pointers stands before a SID; four zero bytes where there is none.
        if self.u32(at)? == 0 {
            at += 4;
        } else {
            let sid = at + 2 * p;
            at = sid + 8 + 4 * u64::from(self.bytes.u8(sid + 1, WHAT)?);
        }
        let rest = self.rest(at)?;
        let end = rest.iter().position(|b| *b == 0).unwrap_or(rest.len());
        Ok(ProcessPayload {
            phase,
            pid: self.u32(p)?,
            parent: self.u32(p + 4)?,
            session: self.u32(p + 8)?,
            status: self.u32(p + 12)?.cast_signed(),
            image: String::from_utf8_lossy(&rest[..end]).into_owned(),
            command: rest.get(end + 1..).map(utf16).unwrap_or_default(),
        })
    }

    fn image(&self, phase: Phase, version: u16) -> Result<ImagePayload> {
        let p = self.pointer;
        // Version 2 added checksum, time stamp, default base and reserved fields before the name.
        let name = if version < 2 { 2 * p + 4 } else { 3 * p + 32 };
        Ok(ImagePayload {
            phase,
            base: self.pointer(0)?,
            size: self.pointer(p)?,
            pid: self.u32(2 * p)?,
            name: utf16(self.rest(name)?),
        })
    }

    fn stack(&self) -> Result<Stack> {
        let count = (self.bytes.len() as u64).saturating_sub(16) / self.pointer;
        let frames = (0..count).map(|n| self.pointer(16 + n * self.pointer)).collect::<Result<_>>()?;
        Ok(Stack { of: self.u64(0)?.cast_signed(), pid: self.u32(8)?, tid: self.u32(12)?, frames })
    }
}
