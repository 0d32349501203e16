//! How far a replay has come: numbers that its processes share, and who waits for it.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use cold_model::Nanos;
use cold_sys::shared::SharedWords;

/// 1 when the program may begin.
pub(crate) const GATE: usize = 0;
/// Counts steps done of the critical prefix.
pub(crate) const CRITICAL: usize = 1;
/// Counts all steps begun.
pub(crate) const STEPS: usize = 2;
const NEXT_READ: usize = 3;
const NEXT_LOOKUP: usize = 4;
/// 1 when no further step is to be begun.
const STOP: usize = 5;
/// 1 when another process does the steps that are left.
const TAKEN_OVER: usize = 6;
/// 1 when that process has begun all of them.
const FINISHED: usize = 7;
const CALLS: usize = 8;

const BYTES: usize = 0;
const STALE: usize = 1;
/// Nanoseconds; 0: no call yet.
const FIRST: usize = 2;
const BEFORE: usize = 3;

/// The numbers by their names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress<'a>(pub(crate) &'a SharedWords);

/// Where there is no such number nothing is counted.
static NOWHERE: AtomicU32 = AtomicU32::new(0);
static NOWHERE_WIDE: AtomicU64 = AtomicU64::new(0);

impl<'a> Progress<'a> {
    /// By what another process can open them, where they were made for that.
    pub(crate) fn fd(self) -> Option<BorrowedFd<'a>> {
        self.0.fd()
    }

    pub(crate) fn word(self, index: usize) -> &'a AtomicU32 {
        self.0.words().get(index).unwrap_or(&NOWHERE)
    }

    fn wide(self, index: usize) -> &'a AtomicU64 {
        self.0.wide().get(index).unwrap_or(&NOWHERE_WIDE)
    }

    /// The number of a read that nobody has had yet, or of a lookup. Each is counted by itself.
    pub(crate) fn next(self, lookup: bool) -> usize {
        let counter = self.word(if lookup { NEXT_LOOKUP } else { NEXT_READ });
        counter.fetch_add(1, Ordering::Relaxed) as usize
    }

    pub(crate) fn step(self) {
        self.word(STEPS).fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stop(self) {
        self.word(STOP).store(1, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(self) -> bool {
        self.word(STOP).load(Ordering::Relaxed) != 0
    }

    /// From now on the calling process does the steps that are left.
    pub(crate) fn take_over(self) {
        self.wide(BEFORE).store(self.bytes(), Ordering::Relaxed);
        self.word(TAKEN_OVER).store(1, Ordering::Release);
    }

    pub(crate) fn is_taken_over(self) -> bool {
        self.word(TAKEN_OVER).load(Ordering::Acquire) != 0
    }

    /// Bytes that were asked for before another process took over, as it counted them then.
    pub(crate) fn bytes_before(self) -> u64 {
        self.wide(BEFORE).load(Ordering::Relaxed)
    }

    pub(crate) fn finish(self) {
        self.word(FINISHED).store(1, Ordering::Release);
    }

    pub(crate) fn is_finished(self) -> bool {
        self.word(FINISHED).load(Ordering::Acquire) != 0
    }

    /// Counts bytes that are to be asked for; how many it are with these.
    pub(crate) fn ask(self, bytes: u64) -> u64 {
        self.wide(BYTES).fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes)
    }

    /// Takes back what was not asked for.
    pub(crate) fn take_back(self, bytes: u64) {
        self.wide(BYTES).fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn bytes(self) -> u64 {
        self.wide(BYTES).load(Ordering::Relaxed)
    }

    /// Counts a call that is made now.
    pub(crate) fn call(self, now: impl FnOnce() -> Nanos) {
        if self.word(CALLS).fetch_add(1, Ordering::Relaxed) == 0 {
            self.wide(FIRST).store(now().0, Ordering::Relaxed);
        }
    }

    pub(crate) fn calls(self) -> u32 {
        self.word(CALLS).load(Ordering::Relaxed)
    }

    pub(crate) fn first(self) -> Option<Nanos> {
        Some(Nanos(self.wide(FIRST).load(Ordering::Relaxed))).filter(|at| at.0 > 0)
    }

    /// Counts bytes of a step whose file is missing or changed.
    pub(crate) fn count_stale(self, bytes: u64) {
        self.wide(STALE).fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn stale(self) -> u64 {
        self.wide(STALE).load(Ordering::Relaxed)
    }

    /// Counts steps of the critical prefix that are done.
    pub(crate) fn critical(self, steps: u32) {
        self.word(CRITICAL).fetch_add(steps, Ordering::Relaxed);
    }

    pub(crate) fn open_gate(self) {
        self.0.set_and_wake(GATE, 1);
    }

    pub(crate) fn is_open(self) -> bool {
        self.word(GATE).load(Ordering::Acquire) != 0
    }

    /// Waits for the gate, at most `limit`.
    pub(crate) fn wait_for_gate(self, limit: Duration) {
        self.0.wait(GATE, 0, limit);
    }
}
