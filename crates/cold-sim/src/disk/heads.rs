//! The way of heads to a place, and the wait for the platter.

/// How long heads take, by distance d in cylinders (a fraction of one where there is one):
/// `short.0 + short.1 · √d` up to `split`, `long.0 + long.1 · d` beyond, and half a turn (the mean wait) after
/// each way. The two branches are those of Ruemmler and Wilkes, "An introduction to disk drive modeling" (1994).
/// Where the platter stands is not followed: the mean stands for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Heads {
    /// Cylinders of the whole disk; distances are shares of its bytes.
    pub cylinders: f64,
    /// Below this distance no seek is needed, only the platter has to turn.
    pub within: f64,
    /// Longest distance of the short branch, in cylinders.
    pub split: f64,
    /// Nanoseconds, and nanoseconds per root of a cylinder.
    pub short: (f64, f64),
    /// Nanoseconds, and nanoseconds per cylinder.
    pub long: (f64, f64),
    /// Half a turn, nanoseconds.
    pub rotation_ns: u64,
    /// A gap forward is at most what its bytes take to pass below the head.
    pub passes: bool,
}

impl Heads {
    /// The same time for every place that does not follow the last one.
    pub fn constant(ns: u64) -> Self {
        Self {
            cylinders: 1.0,
            within: 0.0,
            split: 1.0,
            short: (ns as f64, 0.0),
            long: (ns as f64, 0.0),
            rotation_ns: 0,
            passes: false,
        }
    }

    /// Nanoseconds from `head` to `offset` on a disk of `bytes`; `passing` is the time of so many bytes below
    /// the head. Reading on costs nothing.
    pub(super) fn way_ns(&self, head: u64, offset: u64, bytes: u64, passing: impl Fn(u64) -> u64) -> u64 {
        let distance = offset.abs_diff(head);
        if distance == 0 {
            return 0;
        }
        let share = (distance as f64 / bytes as f64).min(1.0);
        let d = self.cylinders * share;
        let seek = if d < self.within {
            0
        } else if d <= self.split {
            self.short.0 as u64 + (self.short.1 * d.sqrt()) as u64
        } else {
            self.long.0 as u64 + (self.long.1 * d) as u64
        };
        let way = seek.saturating_add(self.rotation_ns);
        if self.passes && offset > head { way.min(passing(distance)) } else { way }
    }
}
