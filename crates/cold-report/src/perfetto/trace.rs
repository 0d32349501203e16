//! Packets of a trace: tracks, events and the strings they share.
//!
//! Field numbers are those of Perfetto's `protos/perfetto/trace/trace_packet.proto` and
//! `protos/perfetto/trace/track_event/*.proto`; they never change.

use std::collections::HashMap;
use std::io::{self, Write};

use super::proto::Message;

/// Kinds of event (`TrackEvent.Type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrackEventType {
    Begin = 1,
    End = 2,
    Instant = 3,
    Counter = 4,
}

/// A value beside an event.
#[derive(Debug, Clone)]
pub(super) enum Value<'a> {
    Text(&'a str),
    Int(i64),
    Uint(u64),
    Bool(bool),
}

/// What an event says.
#[derive(Debug, Clone, Default)]
pub(super) struct Event<'a> {
    pub(super) name: &'a str,
    pub(super) annotations: Vec<(&'static str, Value<'a>)>,
    /// Flows that go on from here.
    pub(super) flows: &'a [u64],
    /// Flows that end here.
    pub(super) flows_ending: &'a [u64],
}

/// How children of a track are ordered: by their `sibling_order_rank`.
const EXPLICIT: u64 = 3;
const UNIT_COUNT: u64 = 2;
const UNIT_SIZE_BYTES: u64 = 3;
/// `SEQ_INCREMENTAL_STATE_CLEARED` and `SEQ_NEEDS_INCREMENTAL_STATE`.
const CLEARED: u64 = 1;
const NEEDED: u64 = 2;
/// Any number but 0: all packets are of one writer.
const SEQUENCE: u64 = 1;

/// A kind of interned string: its field in `InternedData`, and the numbers given so far.
struct Interned {
    field: u32,
    numbers: HashMap<Box<str>, u64>,
}

impl Interned {
    fn new(field: u32) -> Self {
        Self { field, numbers: HashMap::new() }
    }

    /// The string's number; a new string is added to `data`.
    fn number(&mut self, text: &str, data: &mut Message) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.numbers.len() as u64 + 1;
        self.numbers.insert(text.into(), number);
        let mut entry = Message::new();
        entry.uint(1, number).string(2, text);
        data.message(self.field, &entry);
        number
    }
}

/// Writes the packets of one sequence; a string that repeats is written once.
pub(super) struct Trace<'a> {
    out: &'a mut dyn Write,
    begun: bool,
    event_names: Interned,
    value_names: Interned,
    texts: Interned,
    event: Message,
    data: Message,
    packet: Message,
}

impl<'a> Trace<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Self {
            out,
            begun: false,
            event_names: Interned::new(2),
            value_names: Interned::new(3),
            texts: Interned::new(29),
            event: Message::new(),
            data: Message::new(),
            packet: Message::new(),
        }
    }

    /// Ends a packet: adds what every packet has and writes it.
    fn finish(&mut self) -> io::Result<()> {
        let flags = if self.begun { NEEDED } else { CLEARED | NEEDED };
        self.begun = true;
        self.packet.uint(10, SEQUENCE).uint(13, flags);
        let mut field = Message::new();
        field.message(1, &self.packet);
        self.packet.clear();
        self.out.write_all(field.as_bytes())
    }

    fn describe(
        &mut self,
        uuid: u64,
        parent: u64,
        rank: u64,
        fill: impl FnOnce(&mut Message),
    ) -> io::Result<()> {
        let mut track = Message::new();
        track.uint(1, uuid);
        if parent != 0 {
            track.uint(5, parent);
        }
        fill(&mut track);
        track.uint(11, EXPLICIT).uint(12, rank);
        self.packet.message(60, &track);
        self.finish()
    }

    /// A track with a name, below `parent` (0: none).
    pub(super) fn track(&mut self, uuid: u64, parent: u64, rank: u64, name: &str) -> io::Result<()> {
        self.describe(uuid, parent, rank, |t| {
            t.string(2, name);
        })
    }

    /// A track of numbers.
    pub(super) fn counter(
        &mut self,
        uuid: u64,
        parent: u64,
        rank: u64,
        name: &str,
        bytes: bool,
    ) -> io::Result<()> {
        let mut counter = Message::new();
        counter.uint(3, if bytes { UNIT_SIZE_BYTES } else { UNIT_COUNT });
        self.describe(uuid, parent, rank, |t| {
            t.string(2, name).message(8, &counter);
        })
    }

    /// The track of a process; it lies below no other.
    pub(super) fn process(
        &mut self,
        uuid: u64,
        rank: u64,
        pid: u32,
        name: &str,
        arguments: &[String],
    ) -> io::Result<()> {
        let mut process = Message::new();
        process.int(1, i64::from(pid)).string(6, name);
        for argument in arguments {
            process.string(2, argument);
        }
        self.describe(uuid, 0, rank, |t| {
            t.message(3, &process);
        })
    }

    /// The track of a thread; `ids`: its process' and its own.
    pub(super) fn thread(
        &mut self,
        uuid: u64,
        parent: u64,
        rank: u64,
        ids: (u32, u32),
        name: &str,
    ) -> io::Result<()> {
        let mut thread = Message::new();
        thread.int(1, i64::from(ids.0)).int(2, i64::from(ids.1)).string(5, name);
        self.describe(uuid, parent, rank, |t| {
            t.message(4, &thread);
        })
    }

    /// A value of a counter.
    pub(super) fn count(&mut self, track: u64, at: u64, value: i64) -> io::Result<()> {
        self.event.clear();
        self.event.uint(9, TrackEventType::Counter as u64).uint(11, track).int(30, value);
        self.packet.uint(8, at).message(11, &self.event);
        self.finish()
    }

    /// The end of the slice that began last on this track.
    pub(super) fn end(&mut self, track: u64, at: u64) -> io::Result<()> {
        self.event.clear();
        self.event.uint(9, TrackEventType::End as u64).uint(11, track);
        self.packet.uint(8, at).message(11, &self.event);
        self.finish()
    }

    /// Begins a slice, or marks an instant.
    pub(super) fn event(
        &mut self,
        kind: TrackEventType,
        track: u64,
        at: u64,
        event: &Event<'_>,
    ) -> io::Result<()> {
        self.event.clear();
        self.data.clear();
        let name = self.event_names.number(event.name, &mut self.data);
        self.event.uint(9, kind as u64).uint(11, track).uint(10, name);
        for (key, value) in &event.annotations {
            let mut annotation = Message::new();
            annotation.uint(1, self.value_names.number(key, &mut self.data));
            match value {
                Value::Text(text) => annotation.uint(17, self.texts.number(text, &mut self.data)),
                Value::Int(n) => annotation.int(4, *n),
                Value::Uint(n) => annotation.uint(3, *n),
                Value::Bool(b) => annotation.uint(2, u64::from(*b)),
            };
            self.event.message(4, &annotation);
        }
        for flow in event.flows {
            self.event.fixed64(47, *flow);
        }
        for flow in event.flows_ending {
            self.event.fixed64(48, *flow);
        }
        self.packet.uint(8, at).message(11, &self.event);
        if !self.data.is_empty() {
            self.packet.message(12, &self.data);
        }
        self.finish()
    }
}
