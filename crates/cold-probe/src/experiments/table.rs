//! Tables 6.1 and 6.2 of "Optimizing Windows NT" (Blake 1993), cold and warm, in rounds.

mod answer;

use cold_stats::{Pcg, median};
use serde::Serialize;

use super::{Lab, Measured, State};
use crate::spec::{Act, FileAdvice, Limit, Mode, Work};
use crate::subject::Subject;
use crate::variate::Seek;
use crate::{Error, Result};

pub use answer::{OrderAnswer, Other, answers};

/// The file, its records, and which lines are measured how often.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TableOptions {
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of a record.
    pub record: u64,
    /// Records per measurement; as many as the file has when `None`.
    pub count: Option<u64>,
    /// Only these orders; all when `None`.
    pub order: Option<&'static str>,
    /// Only this action; all when `None`.
    pub action: Option<&'static str>,
    /// Only this state; both when `None`.
    pub state: Option<State>,
    /// Rounds; each measures every line once.
    pub repeats: u64,
}

impl TableOptions {
    /// As published: 1 MB, 4096 bytes.
    pub const PUBLISHED: Self = Self {
        bytes: 1 << 20,
        record: 4096,
        count: None,
        order: None,
        action: None,
        state: None,
        repeats: 10,
    };
    /// 64 MB, 4096 bytes, 2048 of them.
    pub const MODERN: Self = Self { bytes: 64 << 20, count: Some(2048), ..Self::PUBLISHED };

    /// Records that the file has.
    fn records(&self) -> u64 {
        (self.bytes / self.record.max(1)).max(1)
    }
}

/// What one order, action, mode and state of the cache came to.
#[derive(Debug, Clone, Serialize)]
pub struct TableRow {
    /// `sequential`, `normal`, `uniform`.
    pub order: &'static str,
    /// `read`, `write`, `read-write`.
    pub action: &'static str,
    /// `direct`, `buffered`, `exact` (buffered, told that access is random: nothing is read ahead), `mapped`.
    pub mode: &'static str,
    /// The cache before; past the cache it makes no difference, and such lines are measured cold only.
    pub state: State,
    /// Of each round the time per record: its mean, and where something was written its share of the flush,
    /// without which writing past the cache could not be compared with writing into it.
    pub rounds_ms: Vec<f64>,
    /// The figures of one round, the same for all lines: in it all used the same places.
    #[serde(flatten)]
    pub measured: Measured,
}

impl TableRow {
    /// Of all rounds of a line, and the one to show.
    fn of(line: &TableLine, rounds: &[Measured], shown: usize) -> Option<Self> {
        let TableLine { order, action, mode, state, .. } = *line;
        let rounds_ms = rounds.iter().map(whole_ms).collect();
        Some(Self { order, action, mode, state, rounds_ms, measured: rounds.get(shown)?.clone() })
    }
}

fn whole_ms(m: &Measured) -> f64 {
    m.ms.mean + m.flush_ms.map_or(0.0, |flush| flush / m.ms.count.max(1) as f64)
}

/// The round in which the lines' means are, all in all, nearest to their medians over the rounds.
fn usual_round(lines: &[Vec<Measured>], rounds: usize) -> usize {
    let away = |round: usize| -> f64 {
        let line = |all: &Vec<Measured>| {
            let means: Vec<f64> = all.iter().map(|m| m.ms.mean).collect();
            let (middle, mine) = (median(&means)?, means.get(round)?);
            (middle > 0.0 && *mine > 0.0).then(|| (mine / middle).ln().abs())
        };
        lines.iter().filter_map(line).sum()
    };
    (0..rounds).min_by(|a, b| away(*a).total_cmp(&away(*b))).unwrap_or(0)
}

/// A line of 1993: a 386SX/25 with 12 MB and a disk of 120 MB; ms per record. "Cached" was measured after
/// the cache had been emptied, like all of them: read-ahead and late writing made the difference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Published {
    /// `sequential` or `normal`.
    pub order: &'static str,
    /// What was done.
    pub action: &'static str,
    /// Past the cache.
    pub direct: f64,
    /// Through the cache.
    pub buffered: f64,
    /// By a mapping.
    pub mapped: f64,
}

/// The published tables.
pub const PUBLISHED: [Published; 4] = [
    Published { order: "sequential", action: "read", direct: 6.58, buffered: 1.32, mapped: 0.75 },
    Published { order: "sequential", action: "write", direct: 22.91, buffered: 1.70, mapped: 0.64 },
    Published { order: "normal", action: "read", direct: 20.45, buffered: 1.51, mapped: 0.97 },
    Published { order: "normal", action: "read-write", direct: 40.66, buffered: 3.16, mapped: 1.31 },
];

/// The orders and the actions, by the words of tables and options.
pub const WORDS: ([&str; 3], [&str; 3]) =
    (["sequential", "normal", "uniform"], ["read", "write", "read-write"]);

const EXACT: Mode = Mode::Buffered { advice: FileAdvice::Random };
const MODES: [(&str, Mode, &[State]); 4] = [
    ("direct", Mode::Direct, &[State::Cold]),
    ("buffered", Mode::BUFFERED, &[State::Cold, State::Warm]),
    // Its misses and the device's requests must be equal: the table proves its own counting.
    ("exact", EXACT, &[State::Cold]),
    ("mapped", Mode::MAPPED, &[State::Cold, State::Warm]),
];

/// One line to measure.
struct TableLine {
    order: &'static str,
    action: &'static str,
    mode: &'static str,
    state: State,
    reach: Mode,
    seek: Seek,
    acts: Vec<Act>,
    /// Of the random numbers: lines of the same order draw the same places.
    stream: u64,
}

/// The table and what it proves.
#[derive(Debug, Clone, Serialize)]
pub struct TableFindings {
    /// By order, then action, mode and state.
    pub rows: Vec<TableRow>,
    /// What they come to.
    pub answers: Vec<OrderAnswer>,
    /// Rounds that were measured whole; others are left out.
    pub rounds: usize,
    /// The round whose figures the lines show, from 1: the one nearest to the medians of all.
    pub shown: usize,
    /// It was interrupted after these.
    pub interrupted: bool,
}

/// Measures all lines in each round, in an order of its own, so that what changes with time meets all alike.
pub fn run(lab: &Lab<'_>, o: &TableOptions) -> Result<TableFindings> {
    let subject = lab.subject(o.bytes)?;
    lab.log.watch_files(&[("table", &subject)]);
    let lines = lines(o);
    let (measured, interrupted) =
        rounds(&lines, o.repeats, lab.seed, |line, round| one(lab, o, &subject, line, round))?;
    let rounds = measured.first().map_or(0, Vec::len);
    let shown = usual_round(&measured, rounds);
    let rows: Vec<TableRow> =
        lines.iter().zip(&measured).filter_map(|(l, m)| TableRow::of(l, m, shown)).collect();
    Ok(TableFindings { answers: answers(&rows), rows, rounds, shown: shown + 1, interrupted })
}

fn lines(o: &TableOptions) -> Vec<TableLine> {
    let records = o.records();
    let seeks = [Seek::Sequential, Seek::middle(records), Seek::Uniform { from: 0, to: records }];
    let acts = [vec![Act::R], vec![Act::W], vec![Act::R, Act::W]];
    let mut lines = Vec::new();
    for (stream, (order, seek)) in (0..).zip(WORDS.0.into_iter().zip(seeks)) {
        for (action, acts) in WORDS.1.into_iter().zip(&acts) {
            let wanted = o.order.is_none_or(|w| w == order) && o.action.is_none_or(|w| w == action);
            for (mode, reach, states) in
                MODES.into_iter().filter(|m| wanted && (m.0 != "exact" || action == "read"))
            {
                for state in states.iter().copied().filter(|s| o.state.is_none_or(|w| w == *s)) {
                    let acts = acts.clone();
                    lines.push(TableLine { order, action, mode, state, reach, seek, acts, stream });
                }
            }
        }
    }
    lines
}

/// What each line measured in each round, and whether an interrupt came before the last. The lines of a round
/// that was cut short are dropped; an interrupt in the first leaves nothing to tell.
pub(super) fn rounds<L, T>(
    lines: &[L],
    repeats: u64,
    seed: u64,
    mut one: impl FnMut(&L, u64) -> Result<T>,
) -> Result<(Vec<Vec<T>>, bool)> {
    let mut rng = Pcg::new(seed, 78);
    let mut all: Vec<Vec<T>> = lines.iter().map(|_| Vec::new()).collect();
    for round in 0..repeats {
        let mut order: Vec<usize> = (0..lines.len()).collect();
        rng.shuffle(&mut order);
        for n in order {
            match one(&lines[n], round) {
                Ok(found) => all[n].push(found),
                Err(Error::Interrupted) if round > 0 => {
                    for found in &mut all {
                        found.truncate(round as usize);
                    }
                    return Ok((all, true));
                }
                Err(e) => return Err(e),
            }
        }
    }
    Ok((all, false))
}

fn one(lab: &Lab<'_>, o: &TableOptions, subject: &Subject, line: &TableLine, round: u64) -> Result<Measured> {
    let TableLine { order, action, mode, .. } = line;
    let word = if line.state == State::Cold { "cold" } else { "warm" };
    lab.say(&format!("round {} of {}: {order} {action}, {mode}, {word}", round + 1, o.repeats));
    let work = Work {
        action: line.acts.clone(),
        variate: lab.variate,
        ..Work::reads(subject.path().to_owned(), o.bytes, o.record, line.reach, line.seek)
    };
    let records = o.count.unwrap_or(o.records());
    // Of reading and writing, each pair is two actions on one place.
    let limit = Limit::Records { records: records * line.acts.len() as u64 };
    // Each round draws other places: what holds only for some would else look proved.
    let stream = round * WORDS.0.len() as u64 + line.stream;
    lab.measure(subject, line.state, work, limit, stream)
}

/// The three ways of one order and action, cold.
#[derive(Debug, Clone, Copy)]
pub struct Ranking<'a> {
    /// Past the cache.
    pub direct: &'a TableRow,
    /// Through the cache, by calls.
    pub buffered: &'a TableRow,
    /// Through the cache, by a mapping.
    pub mapped: &'a TableRow,
}

/// What the counts say of a ranking other than that of 1993.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyNot {
    /// Calls took longer than going past the cache: they had more read than was used.
    ReadAlong,
    /// A mapping took longer than calls: a page is read before it is written, and a call that writes whole pages reads
    /// nothing.
    ReadBeforeWritten,
    /// A mapping took longer than calls: each of its faults waited, where calls had asked ahead.
    Faults,
    /// The disk was not asked.
    NothingRead,
}

impl Ranking<'_> {
    /// The times of 1993 for this order and action, where there are some.
    pub fn published(&self) -> Option<&'static Published> {
        PUBLISHED.iter().find(|p| p.order == self.direct.order && p.action == self.direct.action)
    }

    /// Why it does not hold; of one that does it says nothing.
    pub fn why_not(&self) -> WhyNot {
        let (buffered, mapped) = (&self.buffered.measured, &self.mapped.measured);
        if mapped.ms.mean <= buffered.ms.mean {
            WhyNot::ReadAlong
        } else if mapped.read_bytes > 0 && buffered.read_bytes == 0 {
            WhyNot::ReadBeforeWritten
        } else if mapped.major_faults > 0 && buffered.read_bytes > 0 {
            WhyNot::Faults
        } else {
            WhyNot::NothingRead
        }
    }

    /// Whether mapped <= buffered <= direct for the mean times, as in 1993.
    pub fn holds(&self) -> bool {
        let [direct, buffered, mapped] =
            [self.direct, self.buffered, self.mapped].map(|r| r.measured.ms.mean);
        mapped <= buffered && buffered <= direct
    }
}

/// The rankings of all orders and actions for which the three ways were measured cold.
pub fn rankings(rows: &[TableRow]) -> Vec<Ranking<'_>> {
    let cold = |like: &TableRow, mode: &str| {
        rows.iter().find(|r| {
            r.order == like.order && r.action == like.action && r.mode == mode && r.state == State::Cold
        })
    };
    let directs = rows.iter().filter(|r| r.mode == "direct");
    let all = directs.filter_map(|direct| {
        Some(Ranking { direct, buffered: cold(direct, "buffered")?, mapped: cold(direct, "mapped")? })
    });
    all.collect()
}

#[cfg(test)]
mod tests;
