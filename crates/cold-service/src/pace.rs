//! How often a program's starts are looked at, and which of its cold ones are controls.

use cold_model::Nanos;

/// A program that was found cached is not asked about again for so long. `make -j` starts the same compiler hundreds
/// of times a second; looking at 16 places of its plan takes about 100 µs of another CPU each time. Whatever empties
/// the cache in between costs one cold start.
pub const WARM_FOR: Nanos = Nanos(2_000_000_000);

/// Every so many cold starts of a program one is a control, until a gain is shown. Six pairs at least decide
/// (`cold_stats::sequential`), so a harmful plan is off after 24 cold starts where it does harm each time.
pub const CONTROL_EVERY: u64 = 4;

/// The same once a gain is shown: a file system that has filled up, or an update, can end it.
pub const CONTROL_EVERY_PROVEN: u64 = 20;

/// What is remembered of one program between its starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pace {
    warm_at: Option<Nanos>,
    cold_starts: u64,
    first: u64,
}

impl Pace {
    /// Of a program that had so many cold starts before. `name` is any number of its own: where the count of controls
    /// begins follows from it, so that not all programs have theirs at once.
    pub fn new(cold_starts: u64, name: u64) -> Self {
        Self { warm_at: None, cold_starts, first: name }
    }

    /// Whether a start at `now` is worth a look.
    pub fn asks(&self, now: Nanos) -> bool {
        self.warm_at.is_none_or(|at| now.saturating_sub(at) >= WARM_FOR)
    }

    /// A start at `now` found everything cached.
    pub fn was_warm(&mut self, now: Nanos) {
        self.warm_at = Some(now);
    }

    /// A start was cold: whether it goes without its plan, to compare. `every` is 0 for never.
    pub fn is_control(&mut self, every: u64) -> bool {
        self.warm_at = None;
        let n = self.cold_starts;
        self.cold_starts += 1;
        every > 0 && n % every == self.first % every
    }
}

/// How often a cold start of a plan is a control.
pub fn control_every(is_proven: bool) -> u64 {
    if is_proven { CONTROL_EVERY_PROVEN } else { CONTROL_EVERY }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_warm_is_left_alone_for_a_while_and_what_was_cold_is_not() {
        let mut pace = Pace::default();
        let at = |ms: u64| Nanos(10_000_000_000 + ms * 1_000_000);
        assert!(pace.asks(at(0)));
        pace.was_warm(at(0));
        assert!(!pace.asks(at(1)) && !pace.asks(at(1999)) && pace.asks(at(2000)));
        pace.is_control(0);
        assert!(pace.asks(at(1)), "it was cold meanwhile");
        pace.was_warm(at(5));
        assert!(!pace.asks(at(0)), "events of two CPUs may come in the wrong order");
    }

    #[test]
    fn one_of_every_four_cold_starts_is_a_control_also_after_a_new_start_of_the_service() {
        let controls =
            |mut pace: Pace, n: u64, every| (0..n).map(|_| pace.is_control(every)).collect::<Vec<_>>();
        let whole = controls(Pace::new(0, 7), 12, 4);
        assert_eq!(whole.iter().filter(|c| **c).count(), 3);
        assert!(whole.chunks(4).all(|c| c == &whole[..4]));
        assert_eq!(controls(Pace::new(5, 7), 7, 4), whole[5..]);
        assert!(!controls(Pace::new(0, 7), 12, 0).contains(&true));
        assert_ne!(whole, controls(Pace::new(0, 8), 12, 4));
    }
}
