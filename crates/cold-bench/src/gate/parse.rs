//! From the text of a gate to a [`Gate`]. Errors name the place and what was expected there.

use cold_gate::scan::{Kind, alternatives, lookup};
use cold_gate::{Scanner, SyntaxError, Unit};

use super::{Gate, Left, Stat, StateName};
use crate::metric::Metric;

/// Why a gate cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// Not of the grammar.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// Well formed, but without an answer in this benchmark.
    #[error("'{text}': {what}")]
    Unanswerable {
        /// The gate as typed.
        text: String,
        /// What is not measured or has nothing to be compared with, in words.
        what: String,
    },
}

const STATES: [(&str, StateName); 5] = [
    ("cold", StateName::Cold),
    ("prefetched", StateName::Prefetched),
    ("light", StateName::Light),
    ("warm", StateName::Warm),
    ("snapshot", StateName::Snapshot),
];
const STATS: [(&str, Stat); 5] = [
    ("median", Stat::Median),
    ("mean", Stat::Mean),
    ("p95", Stat::P95),
    ("min", Stat::Min),
    ("max", Stat::Max),
];
pub(super) fn gate(text: &str) -> Result<Gate, GateError> {
    // The name may hold anything, also operators: it ends at the last colon.
    let (command, start) = match text.rfind(':') {
        Some(colon) => (Some(text[..colon].trim().to_owned()), colon + 1),
        None => (None, 0),
    };
    if command.as_deref() == Some("") {
        return Err(Scanner::new(text, 0).error("the name of a command before ':'").into());
    }
    let mut scanner = Scanner::new(text, start);
    let left = left(&mut scanner)?;
    let condition = scanner.condition(match left {
        Left::Ratio(..) => Kind::Ratio,
        Left::Files | Left::Misses => Kind::Of(Unit::Count),
        Left::Figure(_, metric, _) => Kind::Of(metric.unit()),
    })?;
    Ok(Gate { text: text.to_owned(), command, left, condition })
}

fn left(p: &mut Scanner<'_>) -> Result<Left, SyntaxError> {
    enum First {
        Files,
        Misses,
        Read,
        State(StateName),
    }
    p.space();
    let first = p.word(
        |w| match w {
            "files" => Some(First::Files),
            "misses" | "lookups-missed" => Some(First::Misses),
            "read" => Some(First::Read),
            _ => lookup(&STATES, w).map(First::State),
        },
        || format!("files, misses, read or a state ({})", alternatives(&STATES)),
    )?;
    let state = match first {
        First::Files => return Ok(Left::Files),
        First::Misses => return Ok(Left::Misses),
        First::Read => return Ok(Left::Figure(StateName::Cold, Metric::ReadBytes, Stat::Median)),
        First::State(s) => s,
    };
    if p.eat('/') {
        let other = p.word(|w| lookup(&STATES, w), || format!("a state ({})", alternatives(&STATES)))?;
        return Ok(Left::Ratio(state, other));
    }
    if !p.eat('.') {
        return Err(p.error("'.' and a figure, or '/' and a state"));
    }
    figure(p, state)
}

fn figure(p: &mut Scanner<'_>, state: StateName) -> Result<Left, SyntaxError> {
    enum Figure {
        Stat(Stat),
        Metric(Metric),
    }
    let figure = p.word(
        |w| {
            let stat = lookup(&STATS, w).map(Figure::Stat);
            stat.or_else(|| Metric::ALL.into_iter().find(|m| m.name() == w).map(Figure::Metric))
        },
        || {
            let metrics: Vec<&str> = Metric::ALL.iter().map(|m| m.name()).collect();
            format!("{}, {}", alternatives(&STATS), metrics.join(", "))
        },
    )?;
    Ok(match figure {
        Figure::Stat(stat) => Left::Figure(state, Metric::Ready, stat),
        Figure::Metric(metric) => {
            let stat = if p.eat('.') {
                p.word(|w| lookup(&STATS, w), || alternatives(&STATS))?
            } else {
                Stat::Median
            };
            Left::Figure(state, metric, stat)
        }
    })
}
