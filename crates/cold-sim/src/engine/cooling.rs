//! What each processor owes after it slept, and pays when it computes.
//!
//! Only that sleep counts in which the start waited for a disk. Where a processor slept of itself (a timer, another
//! thread that computed), what that costs is in its recorded computing.

use cold_model::Cooling;

/// What each processor owes.
#[derive(Debug)]
pub(super) struct Warmth {
    cooling: Cooling,
    slots: Vec<Slot>,
    /// Tasks of the program that wait for storage now.
    waiting: usize,
    /// How long any did, up to `since`.
    waited: u64,
    since: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    owes: f64,
    /// How long storage had been waited for when the processor fell asleep.
    asleep: Option<u64>,
}

impl Warmth {
    /// All processors warm.
    pub(super) fn new(cooling: Cooling, processors: usize) -> Self {
        Self { cooling, slots: vec![Slot::default(); processors], waiting: 0, waited: 0, since: 0 }
    }

    /// A task of the program begins to wait for storage.
    pub(super) fn waits(&mut self, now: u64) {
        self.pass(now);
        self.waiting += 1;
    }

    /// One of those waits no longer.
    pub(super) fn waits_no_longer(&mut self, now: u64) {
        self.pass(now);
        self.waiting = self.waiting.saturating_sub(1);
    }

    /// Nobody runs on a processor any more.
    pub(super) fn sleeps(&mut self, now: u64, slot: usize) {
        self.pass(now);
        if let Some(of) = self.slots.get_mut(slot) {
            of.asleep = Some(self.waited);
        }
    }

    /// Somebody runs there again, or goes on.
    pub(super) fn runs(&mut self, now: u64, slot: usize) {
        self.pass(now);
        let (cooling, waited) = (self.cooling, self.waited);
        if let Some(of) = self.slots.get_mut(slot)
            && let Some(since) = of.asleep.take()
        {
            of.owes = cooling.slept(of.owes, waited.saturating_sub(since));
        }
    }

    /// Whole nanoseconds that work of `ns` takes longer there.
    pub(super) fn pays(&mut self, slot: usize, ns: u64) -> u64 {
        let cooling = self.cooling;
        let Some(of) = self.slots.get_mut(slot).filter(|of| of.owes >= 1.0) else { return 0 };
        // Whole ones, so that many small pieces of work pay what one large one does.
        let paid = cooling.pays(of.owes, ns).floor();
        of.owes -= paid;
        paid as u64
    }

    fn pass(&mut self, now: u64) {
        if self.waiting > 0 {
            self.waited = self.waited.saturating_add(now.saturating_sub(self.since));
        }
        self.since = now;
    }
}
