//! Answers that reach the kernel when they are due, not when the server's work is done.
//!
//! A read's way to the server, the server's own waking and the way back take as long as a fast disk itself, and longer
//! on a machine that is at work. The kernel tells when it issued each read and when it had the answer. So a read's time
//! is counted from its issue, and answers are sent earlier by what the way back took before, for reads of that size.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::times::Times;

/// What lies further back is an issue of another read, whose answer was never asked for: no request waits so long
/// for the server.
const LONGEST_WAY_NS: u64 = 50_000_000;
/// An answer that the kernel has not told of after this is not waited for.
const TOLD_AFTER_NS: u64 = 10_000_000;
/// One answer's error counts as this at most: a single one is late by milliseconds where the machine stood still.
const ERROR_NS: i64 = 200_000;
/// One answer changes what is sent early by one of so many parts of its error.
const PARTS: i64 = 16;
/// Sizes are told apart by powers of two, from a page up to the largest request (512 KiB).
const SIZES: usize = 8;

/// A disk whose answers are on time.
#[derive(Debug)]
pub(super) struct Punctual {
    times: Box<dyn Times>,
    pace: Mutex<Pace>,
}

#[derive(Debug, Default)]
struct Pace {
    /// By how much answers are sent before they are due, in nanoseconds, by size.
    early: [i64; SIZES],
    /// In the order in which they were sent.
    sent: VecDeque<Sent>,
}

/// An answer on its way to the kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    /// Of the read: bytes from the disk's start.
    pub(super) offset: u64,
    /// Bytes of the read.
    pub(super) len: u64,
    /// When the kernel was to have it.
    pub(super) due: u64,
    /// When it was sent.
    pub(super) at: u64,
    /// It could be sent when it was to be. Others could only be sent at once, too late already.
    pub(super) held: bool,
}

impl Punctual {
    pub(super) fn new(times: Box<dyn Times>) -> Self {
        Self { times, pace: Mutex::default() }
    }

    /// When the read that `arrived` was issued; `None` where the kernel did not tell.
    pub(super) fn issued(&self, offset: u64, arrived: u64) -> Option<u64> {
        self.times.issued(offset).filter(|&at| at <= arrived && arrived - at < LONGEST_WAY_NS)
    }

    /// When to send the answer that is due then.
    pub(super) fn send_at(&self, len: u64, due: u64) -> u64 {
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        let now = pace.sent.back().map_or(0, |sent| sent.at);
        pace.learn(&*self.times, now);
        due.saturating_add_signed(-pace.early[size(len)])
    }

    /// An answer is about to be sent.
    pub(super) fn sends(&self, sent: Sent) {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner).sent.push_back(sent);
    }
}

impl Pace {
    /// Takes in when the answers were there that were sent until `now`.
    fn learn(&mut self, times: &dyn Times, now: u64) {
        while let Some(&sent) = self.sent.front() {
            match times.completed(sent.offset) {
                // That of an earlier read of the same place, which was given up.
                Some(at) if at < sent.at => continue,
                Some(at) => self.correct(sent, at),
                None if now.saturating_sub(sent.at) < TOLD_AFTER_NS => return,
                None => {}
            }
            self.sent.pop_front();
        }
    }

    fn correct(&mut self, sent: Sent, at: u64) {
        let late = at.cast_signed() - sent.due.cast_signed();
        // One that was sent at once and came late says nothing; one that came early does: it was to be sent before it
        // had arrived.
        if sent.held || late < 0 {
            let early = &mut self.early[size(sent.len)];
            *early = (*early + late.clamp(-ERROR_NS, ERROR_NS) / PARTS).max(0);
        }
    }
}

fn size(len: u64) -> usize {
    ((len >> 12).max(1).ilog2() as usize).min(SIZES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::sync::Arc;

    /// A kernel that issues and completes what the test says.
    #[derive(Debug, Default, Clone)]
    struct Kernel(Arc<Mutex<[HashMap<u64, u64>; 2]>>);

    impl Kernel {
        fn say(&self, which: usize, offset: u64, at: u64) {
            self.0.lock().unwrap()[which].insert(offset, at);
        }
    }

    impl Times for Kernel {
        fn issued(&self, offset: u64) -> Option<u64> {
            self.0.lock().unwrap()[0].remove(&offset)
        }
        fn completed(&self, offset: u64) -> Option<u64> {
            self.0.lock().unwrap()[1].remove(&offset)
        }
    }

    const PAGE: u64 = 4096;

    /// Reads of `len` bytes, a millisecond apart, due 100 µs after their issue; they arrive 20 µs after it, and
    /// answers are there `back(n)` nanoseconds after they were sent. By how much each was late.
    fn reads(disk: &Punctual, kernel: &Kernel, len: u64, count: u64, back: impl Fn(u64) -> u64) -> Vec<i64> {
        (1..=count)
            .map(|n| {
                let (offset, issued) = (n * len, n * 1_000_000);
                kernel.say(0, offset, issued);
                let arrived = issued + 20_000;
                assert_eq!(disk.issued(offset, arrived), Some(issued));
                let due = issued + 100_000;
                let send_at = disk.send_at(len, due);
                let at = send_at.max(arrived);
                disk.sends(Sent { offset, len, due, at, held: send_at > arrived });
                kernel.say(1, offset, at + back(n));
                (at + back(n)).cast_signed() - due.cast_signed()
            })
            .collect()
    }

    #[test]
    fn answers_are_on_time_once_the_way_back_is_known() {
        let kernel = Kernel::default();
        let disk = Punctual::new(Box::new(kernel.clone()));
        let late = reads(&disk, &kernel, PAGE, 200, |_| 40_000);
        assert_eq!(late[0], 40_000);
        assert!(late[150..].iter().all(|late| late.abs() < 50), "{late:?}");
        // Larger ones take another time, which they have to show themselves.
        let late = reads(&disk, &kernel, 16 * PAGE, 200, |_| 60_000);
        assert_eq!(late[0], 60_000);
        assert!(late[150..].iter().all(|late| late.abs() < 50), "{late:?}");
    }

    #[test]
    fn a_machine_that_stood_still_makes_no_answer_too_early_for_long() {
        let kernel = Kernel::default();
        let disk = Punctual::new(Box::new(kernel.clone()));
        // Ten in a row: answers would have to be sent before reads arrive.
        let late =
            reads(&disk, &kernel, PAGE, 400, |n| if (200..210).contains(&n) { 4_000_000 } else { 40_000 });
        assert!(late[350..].iter().all(|late| late.abs() < 50), "{:?}", &late[205..]);
    }

    #[test]
    fn what_the_kernel_does_not_tell_is_not_waited_for() {
        let kernel = Kernel::default();
        let disk = Punctual::new(Box::new(kernel.clone()));
        // Given up: no completion is told.
        disk.sends(Sent { offset: PAGE, len: PAGE, due: 100_000, at: 100_000, held: true });
        let late = reads(&disk, &kernel, 2 * PAGE, 200, |_| 40_000);
        assert!(late[190].abs() < 50, "{late:?}");
        // Issued long ago, or after it came: another read.
        kernel.say(0, 0, 1);
        assert_eq!(disk.issued(0, 1 << 30), None);
        kernel.say(0, 0, 2 << 30);
        assert_eq!(disk.issued(0, 1 << 30), None);
        assert_eq!(disk.issued(0, 1 << 30), None);
    }
}
