//! The thread that takes events out of the ring buffer.
//!
//! It looks by the clock instead of being woken: a wake-up per event would cost the recorded program a
//! system-wide interrupt each, on its own CPU. And it takes events out when that disturbs least: see [`Pace`].

use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use cold_model::{Bytes, Nanos};
use cold_sys::ringbuf::RingPositions;
use libbpf_rs::{MapCore, MapHandle, RingBufferBuilder};
use rustix::process::setpriority_process;

/// Between two looks, each of which takes the CPU from the start.
const PERIOD: Duration = Duration::from_millis(50);
/// The same where the buffer is small: that of a recording that waited for its start.
const PERIOD_ARMED: Duration = Duration::from_millis(20);
/// Events are left in the buffer for so long at most: what a recorder that is killed loses.
const LEFT_AT_MOST: Duration = Duration::from_secs(1);
/// Or until so much of the buffer is full (a quarter): the rest holds what comes until the next look.
const FULL: u64 = 4;
/// The thread's niceness while there is room: it works on CPUs that are idle, and gets 1.5 % of a busy one.
const LOWEST: i32 = 19;
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
    /// What was waited for has come. Dropped, it ends the thread.
    comes: Sender<()>,
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
    /// `armed`: nothing comes for a while.
    pub(super) fn start(map: MapHandle, sink: W, armed: bool) -> io::Result<Self> {
        let (comes, hears) = channel();
        let thread = thread::Builder::new()
            .name("cold-events".into())
            .spawn(move || run(&map, sink, &hears, armed))?;
        Ok(Self { thread, comes })
    }

    /// What was waited for has come: from now on it looks for events.
    pub(super) fn comes(&self) {
        // It ends at the end only.
        let _ = self.comes.send(());
    }

    /// Takes what is left, then ends.
    pub(super) fn end(self) -> Option<io::Result<Taken<W>>> {
        drop(self.comes);
        self.thread.join().ok()
    }
}

/// When events are taken out. Taking them costs CPU time that the start wants (17 MB of a cold Firefox: 31 to 37 ms,
/// beside 1.3 s on two CPUs), so they are left in the buffer while it works, and taken when it rests: when none has
/// come since the look before. But never later than [`LEFT_AT_MOST`] or than a part of the buffer is full: only
/// then it is urgent, and no matter of idle CPUs.
struct Pace {
    /// Bytes of the buffer.
    size: u64,
    /// What had been put in at the look before.
    put_in: u64,
    taken: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    No,
    Yes,
    Urgently,
}

impl Pace {
    fn due(&mut self, put_in: u64, waiting: u64, now: Instant) -> Due {
        let rests = std::mem::replace(&mut self.put_in, put_in) == put_in;
        let due = if waiting >= self.size / FULL {
            Due::Urgently
        } else if rests || now - self.taken >= LEFT_AT_MOST {
            Due::Yes
        } else {
            return Due::No;
        };
        self.taken = now;
        due
    }
}

/// Sets the calling thread's niceness. Where that is refused it stays as it is, and only disturbs more.
fn be_nice(niceness: i32) {
    let _refused = setpriority_process(None, niceness);
}

fn run<W: Write>(map: &MapHandle, sink: W, hears: &Receiver<()>, armed: bool) -> io::Result<Taken<W>> {
    // Nothing is told before the start comes, perhaps in hours: until then the buffer takes none of our memory.
    let comes = !armed || hears.recv().is_ok();
    let piece = RefCell::new(Piece {
        sink,
        pending: Vec::with_capacity(PIECE * 2),
        result: Ok(()),
        events: 0,
        bytes: 0,
    });
    if comes {
        let mut builder = RingBufferBuilder::new();
        let take = |record: &[u8]| {
            piece.borrow_mut().add(record);
            0
        };
        builder.add(map, take).map_err(io::Error::other)?;
        let ring = builder.build().map_err(io::Error::other)?;
        let positions = RingPositions::of(map).map_err(io::Error::other)?;
        let mut pace = Pace { size: map.max_entries().into(), put_in: 0, taken: Instant::now() };
        // One that waits for its start has a small buffer, and nobody there who could repeat the start.
        let niceness = if armed { 0 } else { LOWEST };
        be_nice(niceness);
        let period = if armed { PERIOD_ARMED } else { PERIOD };
        loop {
            let last = hears.recv_timeout(period) == Err(RecvTimeoutError::Disconnected);
            let due = pace.due(positions.put_in(), positions.waiting(), Instant::now());
            if due == Due::No && !last {
                continue;
            }
            let waited_for = due == Due::Urgently || last;
            if waited_for {
                be_nice(0);
            }
            ring.consume().map_err(io::Error::other)?;
            piece.borrow_mut().look_is_over();
            if last {
                break;
            }
            if waited_for {
                be_nice(niceness);
            }
        }
    }
    let piece = piece.into_inner();
    let cpu = cold_sys::time::thread_cpu();
    Ok(Taken { sink: piece.sink, result: piece.result, events: piece.events, bytes: Bytes(piece.bytes), cpu })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_taken_when_nothing_comes_or_the_buffer_fills_or_after_a_while() {
        let began = Instant::now();
        let at = |ms| began + Duration::from_millis(ms);
        let mut pace = Pace { size: 64 << 20, put_in: 0, taken: began };
        assert_eq!(pace.due(1 << 20, 1 << 20, at(20)), Due::No, "events come");
        assert_eq!(pace.due(2 << 20, 2 << 20, at(40)), Due::No);
        assert_eq!(pace.due(2 << 20, 2 << 20, at(60)), Due::Yes, "none came");
        assert_eq!(pace.due(18 << 20, 16 << 20, at(80)), Due::Urgently, "a quarter is full");
        assert_eq!(pace.due(19 << 20, 1 << 20, at(1079)), Due::No);
        assert_eq!(pace.due(20 << 20, 2 << 20, at(1080)), Due::Yes, "a second is over");
        assert_eq!(pace.due(21 << 20, 3 << 20, at(1100)), Due::No, "and counts from there");
    }
}
