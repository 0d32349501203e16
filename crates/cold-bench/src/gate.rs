//! `--fail-if` of benchmarks: conditions on figures, with three answers.
//!
//! A gate fails when its condition is true. Times vary, so they are judged by their 95% interval: a
//! gate fails when the whole interval meets the condition, passes when none of it does, and is
//! inconclusive when it crosses the limit. Counts (files, misses, bytes, requests, faults) are judged
//! as they are, and so are `min` and `max`, which have no interval. Whatever is unknown makes a gate
//! inconclusive; it never passes in silence.
//!
//! ```text
//! GATE  = [NAME ':'] LEFT OP LIMIT            NAME: a command's name; without it, every command
//! LEFT  = 'files' | 'misses' | 'read' | STATE '/' STATE | STATE '.' FIGURE
//! FIGURE= STAT | METRIC ['.' STAT]            STAT alone is of the time to ready; default: median
//! STATE = 'cold' | 'prefetched' | 'light' | 'warm' | 'snapshot'
//! STAT  = 'median' | 'mean' | 'p95' | 'min' | 'max'
//! ```
//! `OP` and `LIMIT` are those of [`cold_gate`]; the reference is the baseline or, without one, the first command.
//! `read` is `cold.read_bytes`, `lookups-missed` another name of `misses`.

use cold_gate::{Against, Condition, News, Observed, Unit};
use cold_model::Known;
use cold_model::bench::{Report, Run, State};
use cold_stats::{Comparison, Interval, compare, interval};

use crate::metric::Metric;
use crate::{baseline, summary};

mod news;
mod parse;
pub use cold_gate::{GateResult, Outcome, overall};
pub use parse::GateError;

/// A condition that fails the benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    text: String,
    command: Option<String>,
    left: Left,
    condition: Condition,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Left {
    Files,
    Misses,
    Ratio(StateName, StateName),
    Figure(StateName, Metric, Stat),
}

/// A state as gates name it; `snapshot` stands for the report's one snapshot state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StateName {
    Cold,
    Prefetched,
    Light,
    Warm,
    Snapshot,
}

impl StateName {
    fn is(self, state: &State) -> bool {
        match self {
            Self::Cold => *state == State::Cold,
            Self::Prefetched => *state == State::Prefetched,
            Self::Light => *state == State::Light,
            Self::Warm => *state == State::Warm,
            Self::Snapshot => matches!(state, State::Snapshot(_)),
        }
    }
    fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Prefetched => "prefetched",
            Self::Light => "light",
            Self::Warm => "warm",
            Self::Snapshot => "snapshot",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stat {
    Median,
    Mean,
    P95,
    Min,
    Max,
}

impl Stat {
    fn of(self, values: &mut [f64]) -> f64 {
        let v = match self {
            Self::Median => cold_stats::median_of(values),
            Self::Mean => cold_stats::mean(values),
            Self::P95 => cold_stats::quantile(values, 0.95),
            Self::Min => values.iter().copied().min_by(f64::total_cmp),
            Self::Max => values.iter().copied().max_by(f64::total_cmp),
        };
        v.unwrap_or(f64::NAN)
    }
    fn has_interval(self) -> bool {
        matches!(self, Self::Median | Self::Mean | Self::P95)
    }
}

type Answer = Result<Observed, String>;

impl Gate {
    /// Parses a gate.
    pub fn parse(text: &str) -> Result<Self, GateError> {
        parse::gate(text)
    }

    /// The same gate, about this command where it names none.
    #[must_use]
    pub fn about(mut self, command: &str) -> Self {
        self.command.get_or_insert_with(|| command.to_owned());
        self
    }

    /// Checks, before anything runs, that the gate can have an answer: its command and states are
    /// measured, and a relative limit has a reference.
    pub fn check(&self, commands: &[String], states: &[State], has_baseline: bool) -> Result<(), GateError> {
        let error = |what: String| Err(GateError::Unanswerable { text: self.text.clone(), what });
        if let Some(name) = self.command.as_ref().filter(|n| !commands.contains(n)) {
            return error(format!("there is no command named {name:?}; names are {}", commands.join(", ")));
        }
        let needed = match self.left {
            Left::Files | Left::Misses => vec![],
            Left::Ratio(a, b) => vec![a, b],
            Left::Figure(s, ..) => vec![s],
        };
        if let Some(missing) = needed.iter().find(|n| !states.iter().any(|s| n.is(s))) {
            let name = missing.name();
            return error(format!("the state {name:?} is not measured; add it to --states"));
        }
        if self.is_relative() && !has_baseline {
            if commands.len() < 2 {
                return error("a limit in x or with + needs --baseline FILE or a second command".into());
            }
            if self.command.as_ref() == commands.first() {
                return error("x and + compare with the first command; name another one before ':'".into());
            }
        }
        Ok(())
    }

    /// The gate's answers, one per command it is about.
    pub fn evaluate(&self, report: &Report, baseline: Option<&Report>) -> Vec<GateResult> {
        let refers_to_first = self.is_relative() && baseline.is_none();
        let mut results: Vec<GateResult> = report
            .commands
            .iter()
            .enumerate()
            .filter(|(_, c)| self.command.as_ref().is_none_or(|name| *name == c.name))
            .filter(|(i, _)| !(refers_to_first && *i == 0))
            .map(|(i, c)| {
                let mut result = self.result(&c.name, self.observe(report, baseline, i));
                if result.outcome == Outcome::Fail {
                    result.news = self.news(report, baseline, i);
                }
                result
            })
            .collect();
        if results.is_empty() {
            let reason =
                if refers_to_first { "there is nothing to compare with" } else { "there is no such command" };
            results.push(self.result(self.command.as_deref().unwrap_or(""), Err(reason.into())));
        }
        results
    }

    fn is_relative(&self) -> bool {
        self.condition.is_relative()
    }

    /// What the command's start has that the reference's has not, where that is what the gate is about.
    fn news(&self, report: &Report, baseline: Option<&Report>, command: usize) -> Option<News> {
        let own = report.commands.get(command)?;
        let reference = match baseline {
            Some(b) => b.commands.get(baseline::command_of(b, report, command)?)?,
            None => report.commands.first().filter(|_| command > 0)?,
        };
        match self.left {
            Left::Files | Left::Figure(_, Metric::ReadBytes, _) => news::files(own, reference),
            Left::Misses => news::misses(own, reference),
            Left::Ratio(..) | Left::Figure(..) => None,
        }
    }

    fn result(&self, command: &str, answer: Answer) -> GateResult {
        GateResult::of(&self.text, command, &self.condition, answer)
    }

    fn observe(&self, report: &Report, baseline: Option<&Report>, command: usize) -> Answer {
        match self.left {
            Left::Files => self.of_command(report, baseline, command, |c| &c.files),
            Left::Misses => self.of_command(report, baseline, command, |c| &c.misses),
            Left::Ratio(a, b) => {
                let (a, b) = (series(report, command, a)?, series(report, command, b)?);
                of_comparison(summary::compare(report, a, b))
            }
            Left::Figure(state, metric, stat) => {
                let own = series(report, command, state)?;
                if !self.is_relative() {
                    return absolute(report, own, metric, stat);
                }
                let (other, with) = match baseline {
                    Some(b) => {
                        let state = &report.series[own].state;
                        let found = baseline::series_of(b, report, command, state);
                        (
                            b,
                            found.ok_or_else(|| {
                                format!("the baseline has no runs of this command in state {state}")
                            })?,
                        )
                    }
                    None => (report, series(report, 0, state)?),
                };
                let paired = baseline.is_none() && stat == Stat::Median && metric.unit() == Unit::Time;
                if paired {
                    known(report, own, metric)?;
                    known(report, with, metric)?;
                    return of_comparison(summary::compare_by(report, own, with, metric));
                }
                let (mut own, mut with) = (known(report, own, metric)?, known(other, with, metric)?);
                if self.condition.against == Against::Difference {
                    return Ok(Observed::difference(
                        stat.of(&mut own),
                        stat.of(&mut with),
                        own.len(),
                        metric.unit(),
                    ));
                }
                relative(own, with, metric, stat, report.seed)
            }
        }
    }

    fn of_command(
        &self,
        report: &Report,
        baseline: Option<&Report>,
        command: usize,
        field: impl Fn(&cold_model::bench::Command) -> &Known<u64>,
    ) -> Answer {
        let value = |report: &Report, command: usize| match report.commands.get(command).map(&field) {
            Some(Known::Value(v)) => Ok(*v as f64),
            Some(Known::Unknown { unknown }) => Err(format!("unknown: {unknown}")),
            None => Err("there is no such command".into()),
        };
        let own = value(report, command)?;
        if !self.is_relative() {
            return Ok(Observed::exact(own, 1, Unit::Count));
        }
        let reference = match baseline {
            Some(b) => {
                let of = baseline::command_of(b, report, command);
                value(b, of.ok_or("the baseline does not have this command")?)?
            }
            None => value(report, 0)?,
        };
        if self.condition.against == Against::Difference {
            return Ok(Observed::difference(own, reference, 1, Unit::Count));
        }
        Observed::ratio(own, reference, 1, Unit::Count)
    }
}

fn series(report: &Report, command: usize, state: StateName) -> Result<usize, String> {
    let mut found =
        report.series.iter().enumerate().filter(|(_, s)| s.command == command && state.is(&s.state));
    match (found.next(), found.next()) {
        (Some((i, _)), None) => Ok(i),
        (None, _) => Err(format!("the state {:?} was not measured", state.name())),
        (Some(_), Some(_)) => {
            Err("several snapshots were measured; it is not clear which one is meant".into())
        }
    }
}

/// The values of the counted runs, or why they are not known.
fn known(report: &Report, series: usize, metric: Metric) -> Result<Vec<f64>, String> {
    let runs: Vec<&Run> = report.counted(series).collect();
    match metric.of_all(runs) {
        Known::Value(v) if v.is_empty() => Err("no run counts".into()),
        Known::Value(v) => Ok(v),
        Known::Unknown { unknown } => Err(format!("unknown: {unknown}")),
    }
}

fn absolute(report: &Report, series: usize, metric: Metric, stat: Stat) -> Answer {
    let mut values = known(report, series, metric)?;
    let interval = if metric.unit() != Unit::Time || !stat.has_interval() {
        None
    } else {
        let own = interval::of_median(&values, report.seed);
        let own = own.ok_or("a single run has no interval")?;
        // Below six runs no statistic has an interval of 95%; the median's says so.
        if stat == Stat::Median || !own.is_full() {
            Some(own)
        } else {
            interval::bootstrap(&values, report.seed, |draw| stat.of(draw))
        }
    };
    let show = |v: f64| metric.unit().show(v);
    let value = stat.of(&mut values);
    let words = interval
        .map_or_else(|| show(value), |i| format!("{} [{}, {}]", show(value), show(i.low), show(i.high)));
    Ok(Observed { value, n: values.len(), interval, between: None, words })
}

fn relative(mut own: Vec<f64>, mut with: Vec<f64>, metric: Metric, stat: Stat, seed: u64) -> Answer {
    if metric.unit() == Unit::Time && stat.has_interval() {
        let c = compare::independent(&own, &with).ok_or("too few runs to compare")?;
        if stat == Stat::Median || !c.interval.is_full() {
            return of_comparison(Some(c));
        }
        let interval = interval::bootstrap_ratio(&own, &with, seed, |draw| stat.of(draw));
        let value = stat.of(&mut own) / stat.of(&mut with);
        return interval
            .filter(|_| value.is_finite())
            .map(|i| observed_ratio(value, i, c.n))
            .ok_or_else(|| "the reference is 0".into());
    }
    Observed::ratio(stat.of(&mut own), stat.of(&mut with), own.len(), metric.unit())
}

fn of_comparison(c: Option<Comparison>) -> Answer {
    let c = c.ok_or("too few runs to compare")?;
    Ok(observed_ratio(c.ratio, c.interval, c.n))
}

fn observed_ratio(value: f64, i: Interval, n: usize) -> Observed {
    Observed {
        value,
        n,
        interval: Some(i),
        between: None,
        words: format!("{value:.3}x [{:.3}, {:.3}]", i.low, i.high),
    }
}

#[cfg(test)]
mod tests;
