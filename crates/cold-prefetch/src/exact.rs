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
use crate::knobs::{finer_gaps, knobs_for};
use crate::rehearse::{CLEARLY, NotRehearsed, Rehearsal};

/// A start with exact faults is not made where it would take longer than this. Nobody waits longer for a plan, and the
/// whole machine reads page by page meanwhile.
const LONGEST: Nanos = Nanos(60_000_000_000);

/// Gaps whose starts differ by less than this part are alike to the model: then it is the one nearest to the usual one. On
/// a volume of 3000 requests and 125 MiB/s the gaps that it found best for `php`, `node`, `python3` and `java` (20, 20, 16
/// and 8 KiB) were the best of those measured; but for `python3`, learnt once more, it found 12 KiB best, which took as long
/// as 28 (docs/benchmarks/prefetch.md).
const ALIKE: f64 = 0.02;

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
/// ([`knobs_for`]) unless another one is faster. `warm`: as for [`Worth::of`].
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
    let others = finer_gaps(device).into_iter().filter(|gap| *gap != usual.gap_bytes);
    let gaps = [usual.gap_bytes].into_iter().chain(others);
    let times: Vec<(u32, Nanos)> = gaps
        .map(|gap_bytes| Ok((gap_bytes, time(&Knobs { gap_bytes, ..usual })?)))
        .collect::<Result<_, NotRehearsed>>()?;
    let best = times.iter().map(|(_, time)| time.0).min().unwrap_or(0) as f64;
    let alike = times.iter().filter(|(_, time)| time.0 as f64 <= best * (1.0 + ALIKE));
    let nearest = alike.min_by_key(|(gap, _)| gap.abs_diff(usual.gap_bytes));
    Ok(Knobs { gap_bytes: nearest.map_or(usual.gap_bytes, |(gap, _)| *gap), ..usual })
}

#[cfg(test)]
pub(crate) mod tests;
