//! When so many programs are started that hearing of each by itself would slow them down.
//!
//! Each event that wakes the listener costs whoever executes a program about 20 µs (an interrupt to another CPU of a
//! virtual machine; 43 µs per start of `true`, which raises two events and takes 640). Events that come while the
//! listener sleeps wait in the queue and cost a few.

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

#[cfg(test)]
mod tests {
    use super::*;

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
