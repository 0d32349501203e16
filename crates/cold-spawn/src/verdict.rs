//! Does starting the program get slower? Counts first, because they are exact, then time.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use crate::cause::{Cause, Observed, causes};
use crate::evidence::Evidence;
use crate::growth::{self, Class, Fit, Growth, ValueKind, judge_points};
use crate::session::Measured;

/// What is counted of starts. A string in documents: `lookups`, … `minor_faults`; `calls.NAME` of one system call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CountOf {
    /// Names looked up.
    Lookups,
    /// Those of them that were not there.
    Misses,
    /// Bytes of directories that were listed.
    ListedBytes,
    /// System calls of all names together.
    Calls,
    /// Bytes read and written by calls.
    CallBytes,
    /// Pages of files that were touched.
    TouchedPages,
    /// Faults that waited for no device, of the timed starts; all else is of the observed ones.
    MinorFaults,
    /// Calls of this name, which became more frequent.
    CallsOf(String),
}

impl fmt::Display for CountOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lookups => "lookups",
            Self::Misses => "misses",
            Self::ListedBytes => "listed_bytes",
            Self::Calls => "calls",
            Self::CallBytes => "call_bytes",
            Self::TouchedPages => "touched_pages",
            Self::MinorFaults => "minor_faults",
            Self::CallsOf(name) => return write!(f, "calls.{name}"),
        })
    }
}

impl Serialize for CountOf {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// A counted thing of the starts as wholes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Counted {
    /// What is counted.
    pub what: CountOf,
    /// At the last start.
    pub present: f64,
    /// How it grows.
    pub growth: Growth,
}

impl Counted {
    /// Touched pages and faults vary with the memory's layout and with what is cached in which pieces: they
    /// are shown, and decide nothing.
    pub fn decides(&self) -> bool {
        !matches!(self.what, CountOf::TouchedPages | CountOf::MinorFaults)
    }
}

/// From what a verdict was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum From {
    /// A count of the observed starts.
    Counts,
    /// The time of all starts.
    Time,
    /// Too few starts for either.
    Nothing,
}

/// The cost of a start at some number of starts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Prediction {
    /// Starts before it.
    pub starts: u64,
    /// Cost of the next one, nanoseconds.
    pub each_ns: f64,
    /// Of all of them together, nanoseconds.
    pub total_ns: f64,
}

/// The verdict on one series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// How the cost of a start depends on how many there were.
    pub class: Class,
    /// From what that was taken.
    pub from: From,
    /// Exponent p with which the total cost of n starts grows at present: total ~ nᵖ.
    pub exponent: f64,
    /// Time of a start that grows for sure: by the verdict's own model. None when time does not show it (yet).
    pub time: Option<Fit>,
    /// At present, and at ten times as many starts. Empty without a model of time.
    pub predictions: Vec<Prediction>,
}

impl Verdict {
    /// It gets slower without an end: a step is a change, and none that goes on.
    pub fn grows(&self) -> bool {
        matches!(self.class, Class::Logarithmic | Class::Linear | Class::Quadratic)
    }
}

/// Everything that was judged of a series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// How the cost of a start grows, and from what that was taken.
    pub verdict: Verdict,
    /// How wall time grows, drift taken out; none when there are too few starts.
    pub time: Option<Growth>,
    /// How CPU time does. Wall time that grows alone is waiting, for the machine's load or for others, and
    /// decides nothing.
    pub cpu: Option<Growth>,
    /// By how much the control program's own time drifted, as a share of it.
    pub drift: f64,
    /// Counts of the starts; empty when there are too few.
    pub counts: Vec<Counted>,
    /// What lengthened, what costs most first.
    pub causes: Vec<Cause>,
}

impl Judged {
    /// Wall time grows, and nothing else.
    pub fn only_waits(&self) -> bool {
        self.verdict.class == Class::Constant && self.time.as_ref().is_some_and(Growth::grows)
    }
}

/// Judges what was measured. `extrapolate`: a further number of starts to predict.
pub fn judge(measured: &Measured, extrapolate: Option<u64>) -> Judged {
    let ns = |t: &cold_sys::spawn::Timing| t.ended.saturating_sub(t.began).0 as f64;
    let values: Vec<f64> = measured.starts.iter().map(|(_, t)| ns(t)).collect();
    let control: Vec<f64> = measured.control.iter().map(ns).collect();
    let all = measured.starts.len() + measured.observed.len();
    let time = growth::judge_times(&values, &control);
    let busy = |t: &cold_sys::spawn::Timing| (t.user + t.system).0 as f64;
    let own: Vec<f64> = measured.starts.iter().map(|(_, t)| busy(t)).collect();
    let cpu = growth::judge_times(&own, &measured.control.iter().map(busy).collect::<Vec<_>>());
    let causes = causes(&measured.observed, all);
    let counts = counts(measured, all);
    let works = cpu.as_ref().is_some_and(Growth::rises);
    let verdict = verdict(time.as_ref(), works, &counts, &causes, extrapolate);
    Judged { verdict, time, cpu, drift: growth::drift(&control), counts, causes }
}

fn counts(measured: &Measured, all: usize) -> Vec<Counted> {
    type Count = (CountOf, ValueKind, fn(&Evidence) -> Option<u64>);
    let kinds: [Count; 6] = [
        (CountOf::Lookups, ValueKind::Exact, |e| Some(e.lookups)),
        (CountOf::Misses, ValueKind::Exact, |e| Some(e.misses)),
        (CountOf::ListedBytes, ValueKind::Exact, |e| Some(e.listed.values().map(|s| s.amount).sum())),
        (CountOf::Calls, ValueKind::Exact, |e| of_counted_calls(e, e.calls.values().map(|c| c.calls).sum())),
        // Files of /proc are a byte longer now and then.
        (CountOf::CallBytes, ValueKind::Varying, |e| {
            of_counted_calls(e, e.calls.values().map(|c| c.bytes).sum())
        }),
        (CountOf::TouchedPages, ValueKind::Exact, |e| e.touched_pages),
    ];
    let observed = &measured.observed;
    let mut found: Vec<Counted> =
        kinds.into_iter().filter_map(|(what, kind, of)| counted(what, observed, all, kind, of)).collect();
    let faults: Vec<f64> = measured.starts.iter().map(|(_, t)| t.minor_faults as f64).collect();
    if let (Some(growth), Some(last)) = (growth::judge(&faults, ValueKind::Varying), faults.last()) {
        found.push(Counted { what: CountOf::MinorFaults, present: *last, growth });
    }
    let names: BTreeSet<&String> = observed.iter().flat_map(|(_, e)| e.calls.keys()).collect();
    for name in names {
        let calls = |e: &Evidence| Some(e.calls.get(name).map_or(0, |c| c.calls));
        let one = counted(CountOf::CallsOf(name.clone()), observed, all, ValueKind::Exact, calls);
        found.extend(one.filter(|c| c.growth.grows()));
    }
    found
}

/// A sum over calls, where calls were counted.
fn of_counted_calls(e: &Evidence, sum: u64) -> Option<u64> {
    (!e.calls.is_empty()).then_some(sum)
}

/// None where it was not told of every start.
fn counted(
    what: CountOf,
    observed: &[Observed],
    all: usize,
    kind: ValueKind,
    of: impl Fn(&Evidence) -> Option<u64>,
) -> Option<Counted> {
    let points: Option<Vec<(f64, f64)>> =
        observed.iter().map(|(i, e)| Some((*i as f64, of(e)? as f64))).collect();
    let points = points?;
    let (_, present) = *points.last()?;
    Some(Counted { what, present, growth: judge_points(&points, all, kind)? })
}

/// `works`: CPU time rises too.
fn verdict(
    time: Option<&Growth>,
    works: bool,
    counts: &[Counted],
    causes: &[Cause],
    extrapolate: Option<u64>,
) -> Verdict {
    let exact = counts.iter().filter(|c| c.decides() && c.growth.grows()).map(|c| &c.growth);
    let counted = causes.iter().map(|c| &c.growth).chain(exact).next();
    let (class, from) = match (counted, time) {
        (Some(g), _) => (g.class, From::Counts),
        (None, Some(g)) => (if works { g.class } else { Class::Constant }, From::Time),
        (None, None) if counts.is_empty() => (Class::Constant, From::Nothing),
        (None, None) => (Class::Constant, From::Counts),
    };
    let starts = time.map_or(0, |g| g.starts) as u64;
    // Time that does not grow for sure may still be fitted with the counts' class: a slope that is there in
    // the counts is there in time as well, if it rises at all.
    let fit = time.and_then(|g| g.fits.iter().find(|f| f.class == class)).filter(|f| {
        let rises = f.at(starts as f64) > f.at(0.0);
        class == Class::Constant || rises && time.is_some_and(|g| g.grows() || f.bic < g.fits[0].bic)
    });
    let ten_times = starts.saturating_mul(10);
    let further = extrapolate.filter(|n| ![starts, ten_times].contains(n));
    let wanted = [Some(starts), Some(ten_times), further];
    let predictions = fit.map_or(Vec::new(), |f| {
        let at = |n: u64| Prediction { starts: n, each_ns: f.at(n as f64), total_ns: f.total(n as f64) };
        wanted.into_iter().flatten().map(at).collect()
    });
    let n = starts.max(2) as f64;
    let exponent = match (fit, counted) {
        (Some(f), _) if f.total(n) > 0.0 => n * f.at(n - 1.0) / f.total(n),
        (_, Some(g)) => g.exponent,
        _ => 1.0,
    };
    Verdict { class, from, exponent, time: fit.cloned(), predictions }
}

#[cfg(test)]
mod tests;
