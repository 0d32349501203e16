//! From the text of a gate to a [`Gate`]. Errors name the place and what was expected there.

use super::{Against, Gate, Left, Op, Stat, StateName};
use crate::metric::{Metric, Unit};

/// Why a gate cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// Not of the grammar.
    #[error("'{text}': at character {position} expected {expected}, found {found}")]
    Syntax {
        /// The gate as typed.
        text: String,
        /// Character, counted from 1.
        position: usize,
        /// What would have been right.
        expected: String,
        /// What is there.
        found: String,
    },
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
const TIMES: [(&str, f64); 5] = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
const SIZES: [(&str, f64); 7] = [
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
];

pub(super) fn gate(text: &str) -> Result<Gate, GateError> {
    // The name may hold anything, also operators: it ends at the last colon.
    let (command, start) = match text.rfind(':') {
        Some(colon) => (Some(text[..colon].trim().to_owned()), colon + 1),
        None => (None, 0),
    };
    let mut p = Parser { text, at: start };
    if command.as_deref() == Some("") {
        return Err(Parser { text, at: 0 }.error("the name of a command before ':'"));
    }
    let left = p.left()?;
    let op = p.op()?;
    let (limit, against) = p.limit(left)?;
    p.space();
    if p.at < text.len() {
        return Err(p.error("the end of the condition"));
    }
    Ok(Gate { text: text.to_owned(), command, left, op, limit, against })
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

fn alternatives<T>(table: &[(&str, T)]) -> String {
    table.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn lookup<T: Copy>(table: &[(&str, T)], word: &str) -> Option<T> {
    table.iter().find(|(name, _)| *name == word).map(|(_, v)| *v)
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn error(&self, expected: impl Into<String>) -> GateError {
        let rest = self.rest();
        let word = rest.split_whitespace().next().unwrap_or("");
        GateError::Syntax {
            text: self.text.to_owned(),
            position: self.text[..self.at].chars().count() + 1,
            expected: expected.into(),
            found: if word.is_empty() { "the end".into() } else { format!("'{word}'") },
        }
    }

    /// The longest run of characters that satisfy `part`.
    fn take(&mut self, part: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !part(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.rest().starts_with(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    /// A word of a table, or an error at its beginning.
    fn word<T>(
        &mut self,
        find: impl Fn(&str) -> Option<T>,
        expected: impl Fn() -> String,
    ) -> Result<T, GateError> {
        let start = self.at;
        let word = self.take(|c| c.is_ascii_alphanumeric() || c == '_');
        find(word).ok_or_else(|| Parser { text: self.text, at: start }.error(expected()))
    }

    fn left(&mut self) -> Result<Left, GateError> {
        enum First {
            Files,
            Misses,
            Read,
            State(StateName),
        }
        self.space();
        let first = self.word(
            |w| match w {
                "files" => Some(First::Files),
                "misses" => Some(First::Misses),
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
        if self.eat('/') {
            let other =
                self.word(|w| lookup(&STATES, w), || format!("a state ({})", alternatives(&STATES)))?;
            return Ok(Left::Ratio(state, other));
        }
        if !self.eat('.') {
            return Err(self.error("'.' and a figure, or '/' and a state"));
        }
        self.figure(state)
    }

    fn figure(&mut self, state: StateName) -> Result<Left, GateError> {
        enum Figure {
            Stat(Stat),
            Metric(Metric),
        }
        let figure = self.word(
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
                let stat = if self.eat('.') {
                    self.word(|w| lookup(&STATS, w), || alternatives(&STATS))?
                } else {
                    Stat::Median
                };
                Left::Figure(state, metric, stat)
            }
        })
    }

    fn op(&mut self) -> Result<Op, GateError> {
        self.space();
        let more = self.eat('>');
        if !more && !self.eat('<') {
            return Err(self.error(">, >=, < or <="));
        }
        Ok(match (more, self.eat('=')) {
            (true, false) => Op::More,
            (true, true) => Op::AtLeast,
            (false, false) => Op::Less,
            (false, true) => Op::AtMost,
        })
    }

    /// The limit in nanoseconds, bytes or pure number, and what it is relative to.
    fn limit(&mut self, left: Left) -> Result<(f64, Against), GateError> {
        self.space();
        let start = self.at;
        let more = self.eat('+');
        let countable = match left {
            Left::Files | Left::Misses => true,
            Left::Ratio(..) => false,
            Left::Figure(_, metric, _) => metric.unit() != Unit::Time,
        };
        if more && !countable {
            let here = Parser { text: self.text, at: start };
            return Err(here.error("no +, which is for counts and bytes; for times write x"));
        }
        let against = if more { Against::Difference } else { Against::Nothing };
        self.space();
        let start = self.at;
        let digits = self.take(|c| c.is_ascii_digit() || c == '.');
        let Some(number) = digits.parse::<f64>().ok().filter(|n| n.is_finite()) else {
            return Err(Parser { text: self.text, at: start }.error("a number"));
        };
        self.space();
        let start = self.at;
        let unit = self.take(char::is_alphabetic);
        let here = Parser { text: self.text, at: start };
        match (left, unit) {
            (Left::Ratio(..), "" | "x") => Ok((number, Against::Nothing)),
            (Left::Files | Left::Misses, "") => Ok((number, against)),
            (Left::Ratio(..), _) => Err(here.error("no unit or x, since the left side is a ratio")),
            (_, "x") if !more => Ok((number, Against::Factor)),
            (Left::Files | Left::Misses, _) => {
                Err(here.error("no unit or x, since this is a number of things"))
            }
            (Left::Figure(_, metric, _), _) => {
                let (factor, expected) = match metric.unit() {
                    Unit::Time => {
                        (lookup(&TIMES, unit), format!("a unit of time ({}) or x", alternatives(&TIMES)))
                    }
                    Unit::Bytes => {
                        (lookup(&SIZES, unit), format!("a unit of size ({}) or x", alternatives(&SIZES)))
                    }
                    Unit::Count => (
                        unit.is_empty().then_some(1.0),
                        "no unit or x, since this is a number of things".into(),
                    ),
                };
                factor.map(|f| (number * f, against)).ok_or_else(|| here.error(expected))
            }
        }
    }
}
