//! What the model says of rival knobs, before any disk is touched.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use cold_model::recording::Recording;
use cold_model::{Extent, Nanos};
use cold_plan::Plan;
use cold_plan::plan::Knobs;

use crate::compile::compile;
use crate::rehearse::{NotRehearsed, Rehearsal};

/// Worse by the model than this part, a candidate is not tried: the error that gains of plans are foretold with
/// (docs/concepts/simulation.md#with-a-plan). Nearer ones only starts can tell apart.
const ERROR: f64 = 0.15;

/// Time to ready with some knobs, by the model.
type Time<'a> = dyn Fn(&Knobs) -> Option<Nanos> + 'a;

/// One recorded start, with the plan compiled anew for each knobs.
pub struct Forecast<'a> {
    time: Box<Time<'a>>,
    without: Option<Nanos>,
    asked: HashMap<Knobs, Option<Nanos>>,
}

impl<'a> Forecast<'a> {
    /// Of a plan by a recorded cold start. `extents` as for [`compile()`].
    pub fn of(
        recording: &'a Recording,
        plan: &'a Plan,
        extents: &'a dyn Fn(&Path) -> Option<Vec<Extent>>,
    ) -> Result<Self, NotRehearsed> {
        let start = Rehearsal::at_most(recording, Some(plan), plan.device.as_ref())?;
        let without = start.without()?;
        let time = move |knobs: &Knobs| {
            let mut candidate = plan.clone();
            compile(&mut candidate, knobs, plan.device.as_ref(), extents);
            start.with(&candidate).ok()
        };
        Ok(Self::by(time, Some(without)))
    }

    /// By times that somebody else knows.
    pub(super) fn by(time: impl Fn(&Knobs) -> Option<Nanos> + 'a, without: Option<Nanos>) -> Self {
        Self { time: Box::new(time), without, asked: HashMap::new() }
    }

    /// Time to ready with these knobs. Where the model knows none, it knows nothing of them.
    pub(super) fn time(&mut self, knobs: &Knobs) -> Option<Nanos> {
        *self.asked.entry(*knobs).or_insert_with(|| (self.time)(knobs))
    }

    /// The time with the candidate as a multiple of that with the best so far.
    pub(super) fn ratio(&mut self, candidate: &Knobs, best: &Knobs) -> Option<f64> {
        Some(self.time(candidate)?.0 as f64 / self.time(best)?.0.max(1) as f64)
    }

    /// The time with these knobs as a multiple of that without a plan.
    pub(super) fn gain(&self, knobs: &Knobs) -> Option<f64> {
        Some((self.time)(knobs)?.0 as f64 / self.without?.0.max(1) as f64)
    }
}

impl fmt::Debug for Forecast<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forecast")
            .field("without", &self.without)
            .field("asked", &self.asked)
            .finish_non_exhaustive()
    }
}

/// Not worth a start.
pub(super) fn is_clearly_worse(ratio: f64) -> bool {
    ratio > 1.0 + ERROR
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::tests::{disk, plan, recorded};
    use crate::knobs_for;

    #[test]
    fn a_gap_that_reads_twice_the_bytes_of_a_slow_disk_is_clearly_worse() {
        // Every second page of 200. A page takes 4.1 ms, and the program computes 1 ms before each.
        let pages: Vec<u64> = (0..100).map(|n| 2 * n).collect();
        let recording = recorded(&pages, 0);
        let plan = Plan { device: Some(disk(10.0, 1000.0)), ..plan(&pages, 0) };
        let mut forecast = Forecast::of(&recording, &plan, &|_| None).unwrap();
        let usual = knobs_for(&plan, plan.device.as_ref());
        let along = Knobs { gap_bytes: 4096, ..usual };
        let ratio = forecast.ratio(&along, &usual).unwrap();
        assert!(is_clearly_worse(ratio), "{ratio}");
        // In both the launcher's 0.9 MB, five blocks and the plan are read first, and 3.5 ms are computed.
        let launch = 0.901 + 0.020 + 0.006 + 0.0035;
        let [time, double] = [&usual, &along].map(|knobs| forecast.time(knobs).unwrap().as_secs() - launch);
        let ratio = double / time;
        // Six needs fall into a window of 5 ms, and only within one holes are bridged: 11 pages instead of 6.
        assert!((ratio - 11.0 / 6.0).abs() < 0.05, "{ratio}");
        assert!((time - 0.411).abs() < 0.01, "{time}");
        // Without a plan the kernel reads around: all of the 200 pages, and computing comes on top.
        let gain = forecast.gain(&usual).unwrap();
        assert!((gain - (launch + time) / (0.82 + 0.1)).abs() < 0.03, "{gain}");
    }

    #[test]
    fn a_start_without_waits_foretells_nothing() {
        let recording = Recording { off_cpu: None, ..recorded(&[0], 0) };
        let plan = Plan { device: Some(disk(10.0, 1.0)), ..plan(&[0], 0) };
        assert_eq!(Forecast::of(&recording, &plan, &|_| None).err(), Some(NotRehearsed::Waits));
    }
}
