//! Looks for better knobs by trial, then proves the best against starts without a plan.
//!
//! **Search**: one coordinate after the other; each candidate meets the best so far in a few pairs in
//! random order, a start without plan beside each first pair. A candidate that is clearly slower in its first
//! pair is dropped; it takes over when it is faster by the margin in the estimate. Where a start was recorded, the
//! model is asked first ([`Forecast`]): a candidate that is slower by more than its error is not tried. The search only
//! *chooses*: nothing in it is evidence, so it may be as hasty as it likes.
//!
//! **Proof**: the best against no plan, fresh pairs in random order, with a test that may stop at any time
//! ([`mod@cold_stats::sequential`]): proven as soon as the interval lies below 1 − margin; off as soon as it lies
//! above 1, or when the pairs are used up without a decision. A plan that does nothing is so called
//! proven in at most 2.5% of tunings.
//!
//! Pure: [`Tuner::next`] says which start to make, [`Tuner::record`] takes its time.

mod candidates;
mod forecast;

use cold_plan::Plan;
use cold_plan::judge::gain_words;
use cold_plan::plan::{Knobs, Standing, Trial};
use cold_stats::{Comparison, Pcg, median_u64, sequential};
use serde::Serialize;

use crate::{Ground, Latest, bound, compile};

pub use candidates::Space;
pub use forecast::Forecast;

/// How much may be tried, and what counts as better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Most starts in all, void ones included.
    pub starts: u32,
    /// Pairs per candidate in the search.
    pub search_pairs: u32,
    /// Most pairs of the proof. 0: search only.
    pub proof_pairs: u32,
    /// Better by less than this is not better (0.01: 1%).
    pub margin: f64,
    /// For the order within pairs.
    pub seed: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { starts: 200, search_pairs: 3, proof_pairs: 20, margin: 0.01, seed: 1 }
    }
}

/// How a start is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arm {
    /// Without a plan.
    Plain,
    /// With the plan compiled with these knobs.
    With(Knobs),
}

/// A start to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartWanted {
    /// With the plan, by these knobs, or without it.
    pub arm: Arm,
    /// What it is for, in words.
    pub why: String,
}

/// What became of a start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Made {
    /// Time to ready in nanoseconds.
    Ready(u64),
    /// It does not count (disturbed, not cold); it is made again.
    Void,
}

/// What a tuning ended with.
#[derive(Debug, Clone, PartialEq)]
pub struct TuningVerdict {
    /// The best knobs.
    pub knobs: Knobs,
    /// The proof's figures; `None` without a valid pair.
    pub trial: Option<Trial>,
    /// Whether the plan may be used.
    pub standing: Standing,
    /// Starts made in all, void ones included.
    pub starts: u32,
    /// Median of the control starts of the search, nanoseconds; `None` without any.
    pub controls_ns: Option<u64>,
    /// Time with the best knobs by the model, as a multiple of that without a plan.
    pub foretold: Option<f64>,
    /// What was tried, in order.
    pub tried: Vec<Tried>,
}

impl TuningVerdict {
    /// The plan with what was found: compiled with the best knobs, tried, and bounded anew, since a trial may have
    /// measured warm starts. `latest`: as for [`bound()`].
    pub fn applied_to(&self, plan: &Plan, ground: Ground<'_>, latest: Option<&Latest>) -> Plan {
        let mut better = Plan { trial: self.trial, standing: self.standing.clone(), ..plan.clone() };
        compile(&mut better, &self.knobs, plan.device.as_ref(), ground.extents);
        better.bound = bound(&better, ground, latest);
        better
    }
}

/// One candidate of the search.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tried {
    /// What it did differently from the best of then, in words.
    pub what: String,
    /// All its knobs, also those that it shares with the best of then.
    #[serde(skip)]
    pub knobs: Knobs,
    /// Pairs that it was given; none where the model left no hope.
    pub pairs: u32,
    /// Estimate of its time, as a multiple of that of the best of then; `None` without a pair.
    pub ratio: Option<f64>,
    /// The same by the model.
    pub foretold: Option<f64>,
    /// It became the best.
    #[serde(rename = "taken_over")]
    pub taken: bool,
}

#[derive(Debug)]
enum Phase {
    Search { candidate: Knobs, pairs: Vec<(f64, f64)> },
    Proof { pairs: Vec<(f64, f64)> },
    Done,
}

/// The state of a tuning.
#[derive(Debug)]
pub struct Tuner<'a> {
    limits: Limits,
    forecast: Option<Forecast<'a>>,
    space: Space,
    best: Knobs,
    phase: Phase,
    /// Starts still to be made for the present pair, next one last.
    queue: Vec<Arm>,
    /// Times of the present pair: candidate (or plan), and best (or none).
    first: Option<f64>,
    second: Option<f64>,
    /// Starts without a plan, from the search.
    plain: Vec<u64>,
    made: u32,
    rng: Pcg,
    tried: Vec<Tried>,
    gave_up: bool,
}

impl<'a> Tuner<'a> {
    /// Begins with these knobs. An empty `space` goes straight to the proof. Without a `forecast` all is measured.
    pub fn new(begin: Knobs, space: Space, limits: Limits, forecast: Option<Forecast<'a>>) -> Self {
        let rng = Pcg::new(limits.seed, 1);
        let mut tuner = Self {
            limits,
            forecast,
            space,
            best: begin,
            phase: Phase::Done,
            queue: Vec::new(),
            first: None,
            second: None,
            plain: Vec::new(),
            made: 0,
            rng,
            tried: Vec::new(),
            gave_up: false,
        };
        tuner.next_candidate();
        tuner
    }

    /// The best knobs so far.
    pub fn best(&self) -> &Knobs {
        &self.best
    }

    /// The next start to make; `None` when all is decided. Ask again only after [`Tuner::record`].
    #[allow(clippy::should_implement_trait)] // it is no iterator: each answer waits for an outcome
    pub fn next(&mut self) -> Option<StartWanted> {
        if self.made >= self.limits.starts && !matches!(self.phase, Phase::Done) {
            self.gave_up = true;
        }
        if self.gave_up || matches!(self.phase, Phase::Done) {
            return None;
        }
        let arm = *self.queue.last()?;
        let why = match &self.phase {
            Phase::Search { candidate, pairs } => {
                let n = pairs.len() + 1;
                let what = candidates::difference(&self.best, candidate);
                match arm {
                    Arm::Plain => "control".to_owned(),
                    Arm::With(k) if k == *candidate => format!("candidate ({what}), pair {n}"),
                    Arm::With(_) => format!("best so far, against {what}, pair {n}"),
                }
            }
            Phase::Proof { pairs } => {
                let n = pairs.len() + 1;
                let most = self.limits.proof_pairs;
                let which = if arm == Arm::Plain { "without plan" } else { "with plan" };
                format!("proof, pair {n} of at most {most}, {which}")
            }
            Phase::Done => return None,
        };
        Some(StartWanted { arm, why })
    }

    /// The outcome of the start that [`Tuner::next`] asked for.
    pub fn record(&mut self, outcome: Made) {
        self.made += 1;
        let Made::Ready(ns) = outcome else { return };
        let Some(arm) = self.queue.pop() else { return };
        let time = ns as f64;
        match (&self.phase, arm) {
            (Phase::Search { candidate, .. }, Arm::With(k)) if k == *candidate => self.first = Some(time),
            (Phase::Search { .. }, Arm::With(_)) | (Phase::Proof { .. }, Arm::Plain) => {
                self.second = Some(time);
            }
            (Phase::Proof { .. }, Arm::With(_)) => self.first = Some(time),
            _ => self.plain.push(ns),
        }
        if self.queue.is_empty() {
            self.pair_done();
        }
    }

    fn pair_done(&mut self) {
        let pair = self.first.take().zip(self.second.take());
        match &mut self.phase {
            Phase::Search { candidate, pairs } => {
                pairs.extend(pair);
                let candidate = *candidate;
                let Some(e) = sequential(pairs) else { return self.next_candidate() };
                let hopeless = pairs.len() == 1 && e.ratio > 1.0 + 3.0 * self.limits.margin;
                if hopeless || pairs.len() as u32 >= self.limits.search_pairs {
                    let better = !hopeless && e.ratio < 1.0 - self.limits.margin;
                    let (pairs, ratio) = (pairs.len() as u32, Some(e.ratio));
                    let tried = Tried { pairs, ratio, taken: better, ..self.untried(candidate) };
                    self.tried.push(tried);
                    if better {
                        self.best = candidate;
                    }
                    self.space.answered(better);
                    self.next_candidate();
                } else {
                    self.queue_pair(Arm::With(candidate), Arm::With(self.best));
                }
            }
            Phase::Proof { pairs } => {
                pairs.extend(pair);
                let decided =
                    sequential(pairs).is_some_and(|e| is_better(&e, &self.limits) || e.interval.low > 1.0);
                if decided || pairs.len() as u32 >= self.limits.proof_pairs {
                    // The pairs are what the verdict is made of: they stay.
                    self.queue.clear();
                    let pairs = std::mem::take(pairs);
                    self.finish(pairs);
                } else {
                    self.queue_pair(Arm::With(self.best), Arm::Plain);
                }
            }
            Phase::Done => {}
        }
    }

    fn finish(&mut self, pairs: Vec<(f64, f64)>) {
        self.phase = Phase::Proof { pairs };
        self.gave_up = true;
    }

    fn next_candidate(&mut self) {
        // What the proof may need stays untouched by the search.
        let reserve = 2 * self.limits.proof_pairs + 2 * self.limits.search_pairs + 1;
        let affordable = self.made.saturating_add(reserve) <= self.limits.starts;
        match self.hopeful().filter(|_| affordable) {
            Some(candidate) => {
                self.phase = Phase::Search { candidate, pairs: Vec::new() };
                self.queue_pair(Arm::With(candidate), Arm::With(self.best));
                let at = (self.rng.unit() * 3.0) as usize;
                self.queue.insert(at.min(self.queue.len()), Arm::Plain);
            }
            None if self.limits.proof_pairs == 0 => self.phase = Phase::Done,
            None => {
                self.phase = Phase::Proof { pairs: Vec::new() };
                self.queue_pair(Arm::With(self.best), Arm::Plain);
            }
        }
    }

    /// The next candidate that the model does not call clearly worse than the best.
    fn hopeful(&mut self) -> Option<Knobs> {
        loop {
            let candidate = self.space.next(&self.best, self.forecast.as_mut())?;
            let untried = self.untried(candidate);
            if !untried.foretold.is_some_and(forecast::is_clearly_worse) {
                return Some(candidate);
            }
            self.tried.push(untried);
            self.space.answered(false);
        }
    }

    /// A candidate of which nothing is measured yet.
    fn untried(&mut self, candidate: Knobs) -> Tried {
        Tried {
            what: candidates::difference(&self.best, &candidate),
            knobs: candidate,
            pairs: 0,
            ratio: None,
            foretold: self.forecast.as_mut().and_then(|f| f.ratio(&candidate, &self.best)),
            taken: false,
        }
    }

    fn queue_pair(&mut self, a: Arm, b: Arm) {
        self.queue = if self.rng.unit() < 0.5 { vec![a, b] } else { vec![b, a] };
    }

    /// What came of it; also when it was broken off, then without proof. `at`: now, seconds since 1970;
    /// `warm`: times of warm starts, nanoseconds, as many as there are.
    pub fn verdict(&self, at: u64, warm: &[u64]) -> TuningVerdict {
        let pairs: &[(f64, f64)] = match &self.phase {
            Phase::Proof { pairs } => pairs,
            _ => &[],
        };
        let gain = sequential(pairs);
        let of = |pick: fn(&(f64, f64)) -> f64| median_u64(pairs.iter().map(|p| pick(p) as u64));
        let trial = gain.as_ref().and_then(|gain| {
            Some(Trial {
                at,
                pairs: gain.n as u32,
                plain_ns: of(|p| p.1)?,
                prefetched_ns: of(|p| p.0)?,
                warm_ns: median_u64(warm.iter().copied()),
                ratio: gain.ratio,
                low: gain.interval.low,
                high: gain.interval.high,
            })
        });
        TuningVerdict {
            knobs: self.best,
            trial,
            standing: standing(gain.as_ref(), &self.limits),
            starts: self.made,
            controls_ns: median_u64(self.plain.iter().copied()),
            foretold: self.forecast.as_ref().and_then(|f| f.gain(&self.best)),
            tried: self.tried.clone(),
        }
    }
}

/// Better by the margin, whatever the truth within the interval is.
fn is_better(gain: &Comparison, limits: &Limits) -> bool {
    gain.interval.high < 1.0 - limits.margin
}

fn standing(gain: Option<&Comparison>, limits: &Limits) -> Standing {
    let Some(gain) = gain else { return Standing::Untried };
    if is_better(gain, limits) {
        return Standing::Proven;
    }
    if gain.interval.low > 1.0 {
        Standing::Off(format!("starts with the plan are slower: {}", gain_words(gain)))
    } else if gain.n as u32 >= limits.proof_pairs {
        let margin = cold_model::figures::percent(limits.margin * 100.0);
        Standing::Off(format!("no gain of more than {margin} was shown: {}", gain_words(gain)))
    } else {
        Standing::Untried
    }
}

#[cfg(test)]
mod tests;
