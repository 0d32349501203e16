//! When so many programs are started that hearing of each by itself would slow them down.
//!
//! Each event that wakes the listener costs whoever executes a program about 20 µs (an interrupt to another CPU of a
//! virtual machine; 43 µs per start of `true`, which raises two events and takes 640). Events that come while the
//! listener sleeps wait in the queue and cost a few.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use cold_model::Nanos;

/// So many events within [`SECOND`] are a storm: below, waking costs less than 1% of a CPU.
const MANY: u64 = 300;
const SECOND: Nanos = Nanos(1_000_000_000);
/// The listener sleeps so long between two looks when a storm begins: a cold start in it is followed so much later.
const NAP: Duration = Duration::from_millis(2);
/// And so long when it has lasted a second: what it starts again and again is cached by then, and each look interrupts
/// who starts it. The queue (16,384 events) would take 1.6 million events a second to overflow.
const LONG_NAP: Duration = Duration::from_millis(10);

/// How much was heard of late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Storm {
    since: Nanos,
    events: u64,
    /// Those of the second before.
    before: u64,
}

impl Storm {
    /// So many events were heard at `now`.
    pub fn heard(&mut self, events: u64, now: Nanos) {
        let passed = now.saturating_sub(self.since);
        if passed >= SECOND {
            // Of a longer pause nothing was heard in the last second.
            self.before = if passed < Nanos(2 * SECOND.0) { self.events } else { 0 };
            (self.since, self.events) = (now, 0);
        }
        self.events += events;
    }

    /// For how long not to listen now.
    pub fn nap(&self) -> Option<Duration> {
        let lasts = self.before >= MANY;
        (lasts || self.events >= MANY).then_some(if lasts { LONG_NAP } else { NAP })
    }
}

/// A file that is executed so often within [`SECOND`] while there is a storm is what the storm is made of.
const OFTEN: u32 = 100;
/// For so long it is not heard of then. What is executed as often is cached, and hearing of it takes the kernel alone
/// 1 % of a start of half a millisecond.
const LEFT_OUT: Nanos = Nanos(10_000_000_000);
/// Files that are counted or left out at a time.
const FILES: usize = 256;

/// What a storm is made of. `F` names a file.
#[derive(Debug)]
pub struct Often<F> {
    since: Nanos,
    counts: HashMap<F, u32>,
    /// Files that are left out, and until when each.
    left_out: Vec<(F, Nanos)>,
}

impl<F> Default for Often<F> {
    fn default() -> Self {
        Self { since: Nanos(0), counts: HashMap::new(), left_out: Vec::new() }
    }
}

impl<F: Copy + Eq + Hash> Often<F> {
    /// It was executed once more in a storm; whether it is to be heard of no more, until [`Often::over`] names it.
    pub fn is_enough(&mut self, file: F, now: Nanos) -> bool {
        if now.saturating_sub(self.since) >= SECOND {
            (self.since, self.counts) = (now, HashMap::new());
        }
        if self.counts.len() >= FILES && !self.counts.contains_key(&file) {
            return false;
        }
        let count = self.counts.entry(file).or_default();
        *count += 1;
        // Once: what is still told after that was executed before, or cannot be left out.
        let enough = *count == OFTEN && self.left_out.len() < FILES;
        let known = self.left_out.iter().any(|(left, _)| *left == file);
        if enough && !known {
            self.left_out.push((file, now + LEFT_OUT));
        }
        enough && !known
    }

    /// Those that are to be heard of again.
    pub fn over(&mut self, now: Nanos) -> Vec<F> {
        let (over, left_out) = self.left_out.iter().partition(|(_, until)| *until <= now);
        self.left_out = left_out;
        let over: Vec<(F, Nanos)> = over;
        over.into_iter().map(|(file, _)| file).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_storm_is_made_of_is_left_out_for_a_while() {
        let mut often = Often::default();
        let at = |ms: u64| Nanos(100_000_000_000 + ms * 1_000_000);
        // 200 a second of one, 50 of another.
        let mut left_out = Vec::new();
        for ms in (0..900).step_by(5) {
            left_out.extend(often.is_enough("cc1", at(ms)).then_some((ms, "cc1")));
            left_out.extend((ms % 20 == 0 && often.is_enough("make", at(ms))).then_some((ms, "make")));
        }
        assert_eq!(left_out, [(495, "cc1")]);
        assert_eq!(often.over(at(10_000)), Vec::<&str>::new());
        assert_eq!(often.over(at(10_495)), ["cc1"]);
        assert_eq!(often.over(at(10_496)), Vec::<&str>::new());
        // It goes on: once more.
        assert_eq!((0..100).filter(|i| often.is_enough("cc1", at(20_000 + i))).count(), 1);
        // What cannot be left out is not asked for again and again.
        assert_eq!((0..500).filter(|i| often.is_enough("cc1", at(21_000 + i))).count(), 0);
    }

    #[test]
    fn storms_of_many_programs_take_no_more_memory() {
        let mut often = Often::default();
        for file in 0..10 * FILES {
            for _ in 0..OFTEN {
                often.is_enough(file, Nanos(5_000_000_000));
            }
        }
        assert_eq!((often.counts.len(), often.left_out.len()), (FILES, FILES));
    }

    #[test]
    fn a_storm_is_slept_through_and_a_few_starts_are_heard_at_once() {
        let mut storm = Storm::default();
        let at = |ms: u64| Nanos(100_000_000_000 + ms * 1_000_000);
        for ms in 0..100 {
            storm.heard(2, at(ms * 10));
            assert_eq!(storm.nap(), None, "200 a second");
        }
        let mut storm = Storm::default();
        for ms in 0..900 {
            storm.heard(2, at(ms));
        }
        assert_eq!(storm.nap(), Some(NAP));
        storm.heard(1, at(1001));
        assert_eq!(storm.nap(), Some(LONG_NAP), "it was one just now");
        storm.heard(1, at(4000));
        assert_eq!(storm.nap(), None, "it has passed");
    }
}
