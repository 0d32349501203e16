//! Events inside a buffer: headers of all kinds.

use crate::bytes::Input;
use crate::{Error, Result};

const WHAT: &str = "an event's header";

/// What kind of header an event has: `EVENT_HEADER_TYPE` of the trace format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HeaderKind {
    /// `SYSTEM_TRACE_HEADER`, 1 and 2: kernel events with CPU times.
    System,
    /// 3 and 4: the same without CPU times.
    Compact,
    /// `PERFINFO_TRACE_HEADER`, 0x10 and 0x11: names neither process nor thread.
    PerfInfo,
    /// `EVENT_TRACE_HEADER`, 0x0A and 0x14: classic events of programs.
    Full,
    /// `EVENT_INSTANCE_HEADER`, 0x0B and 0x15.
    Instance,
    /// `EVENT_HEADER`, 0x12 and 0x13: events with a manifest.
    Manifest,
    /// Messages of WPP, 0x0F.
    Message,
}

/// An event of the trace, undecoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Kind of its header.
    pub kind: HeaderKind,
    /// The kernel's group and type, `GGTT` in hexadecimal; `None` where the kind of header has none.
    pub hook: Option<u16>,
    /// Version of its class; 0 where the header says none.
    pub version: u16,
    /// Thread that logged it. `None`: not told (`PerfInfo`, all bits set).
    pub tid: Option<u32>,
    /// Process that logged it. `None`: not told.
    pub pid: Option<u32>,
    /// When, in ticks of the trace's clock; `None` for messages, which need not have one.
    pub time: Option<i64>,
    /// Class and type of a classic event with a full header; `None` for all others.
    pub class: Option<Class>,
    /// What it says.
    pub payload: &'a [u8],
}

/// What a full header names: the class' GUID as it lies in the file (its first three parts little-endian), and the
/// type within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// GUID of the provider's class, as it lies in the file.
    pub guid: [u8; 16],
    /// The event's type within its class.
    pub kind: u8,
}

/// The events of one buffer.
#[derive(Debug)]
pub struct Events<'a> {
    bytes: Input<'a>,
    at: u64,
}

impl<'a> Events<'a> {
    /// Over the expanded bytes behind a buffer's header.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes: Input::new(bytes), at: 0 }
    }

    /// Where the next event begins, bytes.
    pub(crate) const fn position(&self) -> usize {
        self.at as usize
    }

    fn read(&self) -> Result<(Event<'a>, u64)> {
        let kind_code = self.bytes.u8(self.at + 2, WHAT)?;
        let (kind, header, size_at) = match kind_code {
            1 | 2 => (HeaderKind::System, 32, 4),
            3 | 4 => (HeaderKind::Compact, 24, 4),
            0x10 | 0x11 => (HeaderKind::PerfInfo, 16, 4),
            0x0a | 0x14 => (HeaderKind::Full, 48, 0),
            0x0b | 0x15 => (HeaderKind::Instance, 0, 0),
            0x12 | 0x13 => (HeaderKind::Manifest, 80, 0),
            0x0f => (HeaderKind::Message, 8, 0),
            _ => return Err(self.damaged("a kind of header that is not known")),
        };
        let size = u64::from(self.bytes.u16(self.at + size_at, WHAT)?);
        // Without a size of its own no event could be passed.
        if size < u64::max(header, 8) {
            return Err(self.damaged("smaller than its header"));
        }
        let event = self.bytes.part(self.at, size, "an event")?;
        let kernel = matches!(kind, HeaderKind::System | HeaderKind::Compact | HeaderKind::PerfInfo);
        let named = |at| event.u32(at, WHAT).map(|v| Some(v).filter(|v| *v != u32::MAX));
        let (tid, pid) = match kind {
            HeaderKind::PerfInfo | HeaderKind::Instance | HeaderKind::Message => (None, None),
            _ => (named(8)?, named(12)?),
        };
        let time = match kind {
            HeaderKind::PerfInfo => Some(event.u64(8, WHAT)?.cast_signed()),
            HeaderKind::Instance | HeaderKind::Message => None,
            _ => Some(event.u64(16, WHAT)?.cast_signed()),
        };
        let hook = if kernel { Some(event.u16(6, WHAT)?) } else { None };
        let version = if kernel { event.u16(0, WHAT)? } else { 0 };
        let payload = event.part(header, size - header, "an event")?.all();
        let class = match (kind, event.all()) {
            (HeaderKind::Full, &[_, _, _, _, kind, ..]) => {
                let mut guid = [0; 16];
                guid.copy_from_slice(event.part(24, 16, WHAT)?.all());
                Some(Class { guid, kind })
            }
            _ => None,
        };
        Ok((Event { kind, hook, version, tid, pid, time, class, payload }, size))
    }

    const fn damaged(&self, why: &'static str) -> Error {
        Error::Damaged { what: WHAT, at: self.at, why }
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Result<Event<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        // Bit 7 of the fourth byte marks an event; what follows the last is padding.
        let flags = self.bytes.u8(self.at + 3, WHAT).ok()?;
        if flags & 0x80 == 0 {
            return None;
        }
        match self.read() {
            Ok((event, size)) => {
                self.at += size.next_multiple_of(8);
                Some(Ok(event))
            }
            Err(e) => {
                self.at = self.bytes.len() as u64;
                Some(Err(e))
            }
        }
    }
}
