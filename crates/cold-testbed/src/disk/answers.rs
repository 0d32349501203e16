//! Answers of the disk's server, each sent when it is time.

use std::collections::BinaryHeap;
use std::io;
use std::num::NonZeroU64;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use cold_model::Nanos;
use fuser::{ReplyData, ReplyEmpty, ReplyWrite};

use super::log::{Log, Op, Request};
use super::punctual::{Punctual, Sent};

/// `CLOCK_MONOTONIC` in nanoseconds.
pub(super) fn now() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec.unsigned_abs() * 1_000_000_000 + t.tv_nsec.unsigned_abs()
}

/// Memory for what is read, used again: new memory of this size comes from the kernel each time, page by page and zeroed,
/// which takes CPU time from the programs that are measured.
#[derive(Default)]
pub(super) struct Buffers(Mutex<Vec<Vec<u8>>>);

/// So many are kept; a queue that is longer for a moment gives the others back.
const BUFFERS: usize = 64;

impl Buffers {
    /// At least `len` bytes of anything.
    pub(super) fn take(&self, len: usize) -> Vec<u8> {
        let mut buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        if buffer.len() < len {
            buffer.resize(len, 0);
        }
        buffer
    }

    fn give(&self, buffer: Vec<u8>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < BUFFERS {
            kept.push(buffer);
        }
    }
}

/// What is sent when it is time.
pub(super) enum Answer {
    /// So many of the first bytes.
    Data(ReplyData, Vec<u8>, usize),
    Written(ReplyWrite, u32),
    Empty(ReplyEmpty),
}

impl Answer {
    fn send(self, buffers: &Buffers) {
        match self {
            Self::Data(reply, buffer, len) => {
                reply.data(buffer.get(..len).unwrap_or_default());
                buffers.give(buffer);
            }
            Self::Written(reply, len) => reply.written(len),
            Self::Empty(reply) => reply.ok(),
        }
    }
}

/// An answer that is not sent yet.
pub(super) struct Waiting {
    /// When to send it (`CLOCK_MONOTONIC` in nanoseconds).
    pub(super) send_at: u64,
    pub(super) request: Request,
    pub(super) answer: Answer,
}

// Ordered by when they are sent, the earliest first out of a BinaryHeap.
impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.send_at.cmp(&self.send_at)
    }
}
impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.send_at == other.send_at
    }
}
impl Eq for Waiting {}

/// Answers requests when it is time, so that no thread sleeps for one while others arrive.
pub(super) struct Completer {
    waiting: Mutex<BinaryHeap<Waiting>>,
    earlier: Condvar,
    log: Arc<Log>,
    pub(super) buffers: Buffers,
    punctual: Arc<OnceLock<Punctual>>,
}

impl Completer {
    pub(super) fn start(log: Arc<Log>, punctual: Arc<OnceLock<Punctual>>) -> io::Result<Arc<Self>> {
        let this = Arc::new(Self {
            waiting: Mutex::default(),
            earlier: Condvar::new(),
            log,
            buffers: Buffers::default(),
            punctual,
        });
        let worker = Arc::clone(&this);
        std::thread::Builder::new().name("completer".to_owned()).spawn(move || worker.run())?;
        Ok(this)
    }

    pub(super) fn add(&self, waiting: Waiting) {
        if waiting.send_at <= now() {
            self.complete(waiting, false);
            return;
        }
        let mut heap = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // Else the thread wakes in time by itself.
        let first = heap.peek().is_none_or(|next| waiting.send_at < next.send_at);
        heap.push(waiting);
        drop(heap);
        if first {
            self.earlier.notify_one();
        }
    }

    fn run(&self) {
        // Else the kernel lets each sleep last up to 50 µs longer.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut heap = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = now();
            match heap.peek().map(|w| w.send_at) {
                Some(at) if at <= now => {
                    let first = heap.pop();
                    drop(heap);
                    if let Some(waiting) = first {
                        self.complete(waiting, true);
                    }
                    heap = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                }
                Some(at) => {
                    let pause = Duration::from_nanos(at - now);
                    heap = self.earlier.wait_timeout(heap, pause).unwrap_or_else(PoisonError::into_inner).0;
                }
                None => heap = self.earlier.wait(heap).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// The log comes first: who has seen the answer must find the request in it.
    fn complete(&self, waiting: Waiting, held: bool) {
        let (at, request) = (now(), waiting.request);
        if request.op == Op::Read
            && let Some(punctual) = self.punctual.get()
        {
            punctual.sends(Sent { offset: request.offset, len: request.len.0, due: request.due.0, at, held });
        }
        self.log.add(Request { done: Nanos(at), ..request });
        waiting.answer.send(&self.buffers);
    }
}
