//! Whether exact needs pay, by the model ([`mod@crate::rehearse`]): before a start is made page by page, and after it.
//!
//! A recording shows the page of each fault, and what the kernel mapped around it, which may have been needed, too. A
//! plan of the first alone reads least, and nobody needs less: it is the most that exact needs can bring. What they
//! bring is found between the two. On a disk where requests are dearer than bytes that is nothing, whatever part of the
//! pages is uncertain: there a start made page by page would slow the machine down in vain.
//!
//! Exact ranges are many and small. What lies between them is read along up to a gap; which gap is best depends on
//! what requests cost the processor, and on what else the start has to wait for. The model knows both.

use std::path::Path;

use cold_model::recording::Recording;
use cold_model::{DeviceModel, Extent, Nanos};
use cold_plan::Plan;
use cold_plan::plan::Knobs;

use crate::compile::compile;
use crate::knobs::{gaps, knobs_for};
use crate::rehearse::{CLEARLY, NotRehearsed, Rehearsal};

/// A start with exact faults is not made where it would take longer than this. Nobody waits longer for a plan, and the
/// whole machine reads page by page meanwhile.
const LONGEST: Nanos = Nanos(60_000_000_000);

/// What exact needs could bring, and what they cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worth {
    /// Time to ready with the plan as it would be made without them.
    pub with_doubt: Nanos,
    /// With a plan of what was needed for certain, if nothing else was.
    pub without: Nanos,
    /// Time to ready of the start that would show them: at most, as what is uncertain counts as needed.
    pub page_by_page: Nanos,
}

impl Worth {
    /// By a cold start and the plan that was learnt so far, that start included. `warm`: a warm start of the same
    /// program, where there is one ([`Rehearsal::computing_as_in`]); `extents`: as for [`compile()`].
    pub fn of(
        recording: &Recording,
        warm: Option<&Recording>,
        plan: &Plan,
        device: Option<&DeviceModel>,
        extents: &dyn Fn(&Path) -> Option<Vec<Extent>>,
    ) -> Result<Self, NotRehearsed> {
        let seen = Rehearsal::seen(recording, device)?.computing_as_in(warm, None);
        let mut doubtful = plan.clone();
        compile(&mut doubtful, &knobs_for(plan, device), device, extents);
        let mut certain = plan.clone();
        certain.ranges.retain(|range| !range.around);
        let knobs = best_gap(&seen, &certain, device, extents)?;
        compile(&mut certain, &knobs, device, extents);
        Ok(Self {
            with_doubt: seen.with(&doubtful)?,
            without: seen.with(&certain)?,
            page_by_page: Rehearsal::at_most(recording, None, device)?
                .computing_as_in(warm, None)
                .page_by_page()?,
        })
    }

    /// Part of the start that exact needs can save at most; 0 where they save nothing.
    pub fn gain(&self) -> f64 {
        let saved = self.with_doubt.saturating_sub(self.without);
        saved.0 as f64 / self.with_doubt.0.max(1) as f64
    }

    /// Whether a start with exact faults is worth making.
    pub fn is_worth_an_exact_start(&self) -> bool {
        self.gain() > CLEARLY && self.page_by_page <= LONGEST
    }
}

/// The knobs for a plan of exact needs, with the gap that is best for a recorded cold start: that of the device
/// ([`knobs_for`]) unless another one is clearly faster. `warm`: as for [`Worth::of`].
pub fn knobs_by(
    recording: &Recording,
    warm: Option<&Recording>,
    plan: &Plan,
    device: Option<&DeviceModel>,
    extents: &dyn Fn(&Path) -> Option<Vec<Extent>>,
) -> Result<Knobs, NotRehearsed> {
    best_gap(&Rehearsal::seen(recording, device)?.computing_as_in(warm, None), plan, device, extents)
}

fn best_gap(
    start: &Rehearsal<'_>,
    plan: &Plan,
    device: Option<&DeviceModel>,
    extents: &dyn Fn(&Path) -> Option<Vec<Extent>>,
) -> Result<Knobs, NotRehearsed> {
    let usual = knobs_for(plan, device);
    let time = |knobs: &Knobs| {
        let mut plan = plan.clone();
        compile(&mut plan, knobs, device, extents);
        start.with(&plan)
    };
    let enough = Nanos((time(&usual)?.0 as f64 * (1.0 - CLEARLY)) as u64);
    let mut best = (enough, usual);
    for gap_bytes in gaps(device) {
        let knobs = Knobs { gap_bytes, ..usual };
        let found = time(&knobs)?;
        if found < best.0 {
            best = (found, knobs);
        }
    }
    Ok(best.1)
}

#[cfg(test)]
pub(crate) mod tests;
