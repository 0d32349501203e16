//! Tables 6.1 and 6.2 of "Optimizing Windows NT" (Blake 1993), cold and warm.

use serde::Serialize;

use super::{Lab, Measured, State};
use crate::Result;
use crate::spec::{Act, FileAdvice, Limit, Mode, Work};
use crate::variate::Seek;

/// Sizes.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Options {
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
}

impl Options {
    /// As published: 1 MB, 4096 bytes.
    pub const PUBLISHED: Self =
        Self { bytes: 1 << 20, record: 4096, count: None, order: None, action: None, state: None };
    /// 64 MB, 4096 bytes, 2048 of them.
    pub const MODERN: Self = Self { bytes: 64 << 20, count: Some(2048), ..Self::PUBLISHED };
}

/// One line.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// `sequential`, `normal`, `uniform`.
    pub order: &'static str,
    /// `read`, `write`, `read-write`.
    pub action: &'static str,
    /// `direct`, `buffered`, `exact` (buffered, told that access is random: nothing is read ahead), `mapped`.
    pub mode: &'static str,
    /// The cache before; past the cache it makes no difference, and such lines are measured cold only.
    pub state: State,
    /// The figures.
    #[serde(flatten)]
    pub measured: Measured,
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
    /// Mapped.
    pub mapped: f64,
}

/// The published tables.
pub const PUBLISHED: [Published; 4] = [
    Published { order: "sequential", action: "read", direct: 6.58, buffered: 1.32, mapped: 0.75 },
    Published { order: "sequential", action: "write", direct: 22.91, buffered: 1.70, mapped: 0.64 },
    Published { order: "normal", action: "read", direct: 20.45, buffered: 1.51, mapped: 0.97 },
    Published { order: "normal", action: "read-write", direct: 40.66, buffered: 3.16, mapped: 1.31 },
];

/// Orders, actions.
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

/// Measures all lines. Lines of the same order draw the same places.
pub fn run(lab: &Lab<'_>, o: &Options) -> Result<Vec<Row>> {
    let subject = lab.subject(o.bytes)?;
    lab.log.watch_files(&[("table", &subject)]);
    let records = (o.bytes / o.record.max(1)).max(1);
    let seeks = [Seek::Sequential, Seek::middle(records), Seek::Uniform { from: 0, to: records }];
    let acts = [vec![Act::R], vec![Act::W], vec![Act::R, Act::W]];
    let mut rows = Vec::new();
    for (stream, (order, seek)) in (0..).zip(WORDS.0.into_iter().zip(seeks)) {
        for (action, acts) in WORDS.1.into_iter().zip(&acts) {
            let wanted = o.order.is_none_or(|w| w == order) && o.action.is_none_or(|w| w == action);
            for (mode, reach, states) in
                MODES.iter().filter(|m| wanted && (m.0 != "exact" || action == "read"))
            {
                for state in states.iter().filter(|s| o.state.is_none_or(|w| w == **s)) {
                    let word = if *state == State::Cold { "cold" } else { "warm" };
                    lab.say(&format!("{order} {action}, {mode}, {word}"));
                    let work = Work {
                        action: acts.clone(),
                        variate: lab.variate,
                        ..Work::reads(subject.path().to_owned(), o.bytes, o.record, *reach, seek)
                    };
                    // Of reading and writing, each pair is two actions on one place.
                    let limit = Limit::Records { records: o.count.unwrap_or(records) * acts.len() as u64 };
                    let measured = lab.measure(&subject, *state, work, limit, stream)?;
                    rows.push(Row { order, action, mode, state: *state, measured });
                }
            }
        }
    }
    Ok(rows)
}

/// The three ways of one order and action, cold.
#[derive(Debug, Clone, Copy)]
pub struct Ranking<'a> {
    /// Past the cache.
    pub direct: &'a Row,
    /// Through it.
    pub buffered: &'a Row,
    /// Mapped.
    pub mapped: &'a Row,
}

impl Ranking<'_> {
    /// Whether mapped <= buffered <= direct for the mean times, as in 1993.
    pub fn holds(&self) -> bool {
        let [direct, buffered, mapped] =
            [self.direct, self.buffered, self.mapped].map(|r| r.measured.ms.mean);
        mapped <= buffered && buffered <= direct
    }
}

/// The rankings of all orders and actions for which the three ways were measured cold.
pub fn rankings(rows: &[Row]) -> Vec<Ranking<'_>> {
    let cold = |like: &Row, mode: &str| {
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
