//! A whole file: its buffers found, its events merged by time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use super::{BUFFER_HEADER, Buffer, Event, Events, LogHeader};
use crate::{Error, Result};

/// More processors than any Windows supports: what asks for more is damage, and would be held in memory.
const PROCESSORS: usize = 2048;

/// Where the bytes of a trace come from.
pub trait Source {
    /// Size in bytes.
    fn size(&self) -> u64;

    /// Fills `into` with the bytes at `at`.
    ///
    /// # Errors
    /// Why not, in words.
    fn read(&mut self, at: u64, into: &mut [u8]) -> std::result::Result<(), String>;
}

impl Source for &[u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read(&mut self, at: u64, into: &mut [u8]) -> std::result::Result<(), String> {
        let bytes = self.get(at as usize..).and_then(|b| b.get(..into.len())).ok_or("behind the end")?;
        into.copy_from_slice(bytes);
        Ok(())
    }
}

/// What a trace lacks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Losses {
    /// Buffers that say that events or buffers were lost when they were written.
    pub marked: u64,
    /// Buffers whose events could not be read, wholly or from some event on.
    pub damaged: u64,
    /// The first damage met.
    pub first: Option<Error>,
    /// Where the file stops being a trace, bytes: cut off in a buffer, or a header that is none.
    pub cut_at: Option<u64>,
    /// Events that came later than the order of their processor's buffers promised.
    pub late: u64,
}

impl Losses {
    fn add(&mut self, error: Error) {
        self.damaged += 1;
        self.first.get_or_insert(error);
    }
}

/// A trace whose buffers are known.
#[derive(Debug)]
pub struct Trace<S> {
    source: S,
    /// By processor, in the order of the file, which is that of time.
    queues: BTreeMap<u16, VecDeque<Buffer>>,
    header: LogHeader,
    buffers: u64,
    compressed: u64,
    losses: Losses,
}

impl<S: Source> Trace<S> {
    /// Finds the buffers and reads the log file's header. Memory: 24 bytes for each buffer.
    ///
    /// # Errors
    /// Where the first buffer or the header in it cannot be read: then it is no trace. Later damage is a loss.
    pub fn open(mut source: S) -> Result<Self> {
        let mut queues: BTreeMap<u16, VecDeque<Buffer>> = BTreeMap::new();
        let mut losses = Losses::default();
        let (mut at, mut buffers, mut compressed) = (0, 0, 0);
        let mut header = None;
        while at < source.size() {
            let buffer = match find(&mut source, at) {
                Ok(buffer) => buffer,
                Err(e) if buffers == 0 => return Err(e),
                Err(e) => {
                    losses.add(e);
                    losses.cut_at = Some(at);
                    break;
                }
            };
            if header.is_none() {
                header = Some(log_header(&load(&mut source, &buffer)?)?);
            }
            buffers += 1;
            compressed += u64::from(buffer.compressed);
            losses.marked += u64::from(buffer.lost);
            at += u64::from(buffer.size);
            queues.entry(buffer.processor).or_default().push_back(buffer);
            if queues.len() > PROCESSORS {
                let why = "buffers of more processors than there can be";
                return Err(Error::Damaged { what: "a trace", at, why });
            }
        }
        let none = Error::Short { what: "a trace", at: 0, wanted: BUFFER_HEADER, has: 0 };
        Ok(Self { source, queues, header: header.ok_or(none)?, buffers, compressed, losses })
    }

    /// What it says of itself.
    pub const fn header(&self) -> &LogHeader {
        &self.header
    }

    /// Buffers in all, and compressed ones.
    pub const fn buffers(&self) -> (u64, u64) {
        (self.buffers, self.compressed)
    }

    /// Hands every event with its time in ticks to `each`, by time across processors; events of the same time in
    /// the order of their processor. Memory: one buffer of each processor.
    ///
    /// # Errors
    /// [`Error::Source`] where the source fails. Damaged buffers are counted in the losses and passed.
    pub fn events(mut self, mut each: impl FnMut(i64, &Event<'_>)) -> Result<Losses> {
        let mut loaded: BTreeMap<u16, Loaded> = BTreeMap::new();
        let mut heap = BinaryHeap::new();
        for processor in self.queues.keys().copied().collect::<Vec<_>>() {
            if let Some(first) = self.next(processor)? {
                heap.push(Reverse((first.time(), processor)));
                loaded.insert(processor, first);
            }
        }
        let mut last = i64::MIN;
        while let Some(Reverse((time, processor))) = heap.pop() {
            let Some(buffer) = loaded.get_mut(&processor) else { continue };
            self.losses.late += u64::from(time < last);
            last = last.max(time);
            if let Some(event) = buffer.event() {
                each(time, &event);
            }
            buffer.next += 1;
            if buffer.next == buffer.order.len() {
                loaded.remove(&processor);
                let Some(next) = self.next(processor)? else { continue };
                loaded.insert(processor, next);
            }
            if let Some(buffer) = loaded.get(&processor) {
                heap.push(Reverse((buffer.time(), processor)));
            }
        }
        Ok(self.losses)
    }

    /// The processor's next buffer that has events.
    fn next(&mut self, processor: u16) -> Result<Option<Loaded>> {
        while let Some(buffer) = self.queues.get_mut(&processor).and_then(VecDeque::pop_front) {
            let bytes = match load(&mut self.source, &buffer) {
                Ok(bytes) => bytes,
                Err(e @ Error::Source { .. }) => return Err(e),
                Err(e) => {
                    self.losses.add(e);
                    continue;
                }
            };
            let (loaded, damage) = Loaded::new(bytes);
            if let Some(e) = damage {
                // Of a compressed buffer the place in what it expands to.
                self.losses.add(e.beginning_at(buffer.at + BUFFER_HEADER));
            }
            if !loaded.order.is_empty() {
                return Ok(Some(loaded));
            }
        }
        Ok(None)
    }
}

/// Reads the header of the buffer at `at`, all of which must be there.
fn find(source: &mut impl Source, at: u64) -> Result<Buffer> {
    let mut bytes = [0; BUFFER_HEADER as usize];
    let has = source.size().saturating_sub(at);
    let short = |wanted| Err(Error::Short { what: "a buffer", at, wanted, has });
    if has < BUFFER_HEADER {
        return short(BUFFER_HEADER);
    }
    source.read(at, &mut bytes).map_err(|why| Error::Source { at, len: BUFFER_HEADER, why })?;
    let buffer = Buffer::read(&bytes, at)?;
    if has < u64::from(buffer.size) { short(buffer.size.into()) } else { Ok(buffer) }
}

/// A buffer's events, expanded.
fn load(source: &mut impl Source, buffer: &Buffer) -> Result<Vec<u8>> {
    let len = u64::from(buffer.size) - BUFFER_HEADER;
    let at = buffer.at + BUFFER_HEADER;
    let mut body = vec![0; len as usize];
    source.read(at, &mut body).map_err(|why| Error::Source { at, len, why })?;
    buffer.events(body)
}

fn log_header(events: &[u8]) -> Result<LogHeader> {
    match Events::new(events).next() {
        Some(Ok(event)) if event.hook == Some(0) => LogHeader::read(event.payload),
        Some(Err(e)) => Err(e),
        _ => Err(Error::Damaged {
            what: "a trace",
            at: BUFFER_HEADER,
            why: "it does not begin with its header",
        }),
    }
}

/// One buffer in memory.
struct Loaded {
    bytes: Vec<u8>,
    /// Time and place of each event, by time: threads that were interrupted log theirs late.
    order: Vec<(i64, usize)>,
    next: usize,
}

impl Loaded {
    fn new(bytes: Vec<u8>) -> (Self, Option<Error>) {
        let mut order = Vec::new();
        let (mut damage, mut last) = (None, 0);
        let mut events = Events::new(&bytes);
        loop {
            let at = events.position();
            match events.next() {
                Some(Ok(event)) => {
                    last = event.time.unwrap_or(last);
                    order.push((last, at));
                }
                Some(Err(e)) => damage = Some(e),
                None => break,
            }
        }
        order.sort_by_key(|(time, _)| *time);
        (Self { bytes, order, next: 0 }, damage)
    }

    fn time(&self) -> i64 {
        self.order.get(self.next).map_or(i64::MAX, |(time, _)| *time)
    }

    fn event(&self) -> Option<Event<'_>> {
        let (_, at) = *self.order.get(self.next)?;
        Events::new(self.bytes.get(at..)?).next()?.ok()
    }
}
