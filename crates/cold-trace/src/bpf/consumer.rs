//! The thread that takes events out of the ring buffer.
//!
//! It looks by the clock instead of being woken: a wake-up per event would cost the recorded program a
//! system-wide interrupt each, on its own CPU.

use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cold_model::{Bytes, Nanos};
use libbpf_rs::{MapHandle, RingBufferBuilder};
use rustix::time::{ClockId, clock_gettime};

/// Between two looks.
const PERIOD: Duration = Duration::from_millis(20);
/// Events are handed on in pieces of about this size, each of whole records.
const PIECE: usize = 256 << 10;

/// What the thread did.
pub(super) struct Taken<W> {
    pub(super) sink: W,
    /// The first failure; events after it were dropped.
    pub(super) result: io::Result<()>,
    pub(super) events: u64,
    pub(super) bytes: Bytes,
    pub(super) cpu: Nanos,
}

/// Handle of the thread.
pub(super) struct Consumer<W> {
    thread: JoinHandle<io::Result<Taken<W>>>,
    /// Dropped, it ends the thread.
    running: Sender<()>,
}

struct Piece<W> {
    sink: W,
    pending: Vec<u8>,
    result: io::Result<()>,
    events: u64,
    bytes: u64,
}

impl<W: Write> Piece<W> {
    fn add(&mut self, record: &[u8]) {
        self.events += 1;
        self.bytes += record.len() as u64;
        self.pending.extend_from_slice(record);
        if self.pending.len() >= PIECE {
            self.hand_on();
        }
    }

    fn hand_on(&mut self) {
        if self.result.is_ok() && !self.pending.is_empty() {
            self.result = self.sink.write_all(&self.pending);
        }
        self.pending.clear();
    }

    /// Also when nothing has come: whoever is killed while its program sleeps has written what there was.
    fn look_is_over(&mut self) {
        self.hand_on();
        if self.result.is_ok() {
            self.result = self.sink.flush();
        }
    }
}

impl<W: Write + Send + 'static> Consumer<W> {
    /// Starts to take events from `map` and to write them to `sink`.
    pub(super) fn start(map: MapHandle, sink: W) -> io::Result<Self> {
        let (running, end) = channel();
        let thread =
            thread::Builder::new().name("cold-events".into()).spawn(move || run(&map, sink, &end))?;
        Ok(Self { thread, running })
    }

    /// Takes what is left, then ends.
    pub(super) fn end(self) -> Option<io::Result<Taken<W>>> {
        drop(self.running);
        self.thread.join().ok()
    }
}

fn run<W: Write>(map: &MapHandle, sink: W, end: &Receiver<()>) -> io::Result<Taken<W>> {
    let piece = RefCell::new(Piece {
        sink,
        pending: Vec::with_capacity(PIECE * 2),
        result: Ok(()),
        events: 0,
        bytes: 0,
    });
    {
        let mut builder = RingBufferBuilder::new();
        let take = |record: &[u8]| {
            piece.borrow_mut().add(record);
            0
        };
        builder.add(map, take).map_err(io::Error::other)?;
        let ring = builder.build().map_err(io::Error::other)?;
        loop {
            let last = end.recv_timeout(PERIOD) == Err(RecvTimeoutError::Disconnected);
            ring.consume().map_err(io::Error::other)?;
            piece.borrow_mut().look_is_over();
            if last {
                break;
            }
        }
    }
    let piece = piece.into_inner();
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    let cpu = Nanos(spent.tv_sec.cast_unsigned() * 1_000_000_000 + spent.tv_nsec.cast_unsigned());
    Ok(Taken { sink: piece.sink, result: piece.result, events: piece.events, bytes: Bytes(piece.bytes), cpu })
}
