//! From the text of a condition to its parts. Errors name the place and what was expected there.

use crate::condition::{Against, Condition, Op};
use crate::unit::Unit;

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

/// A text that is not of the grammar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}': at character {position} expected {expected}, found {found}")]
pub struct SyntaxError {
    /// The condition as typed.
    pub text: String,
    /// Character, counted from 1.
    pub position: usize,
    /// What would have been right.
    pub expected: String,
    /// What is there.
    pub found: String,
}

/// What the left side of a condition is, as far as its limit needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A ratio of two figures: its limit is a plain number.
    Ratio,
    /// A figure of this unit.
    Of(Unit),
}

/// Reads a condition from left to right.
#[derive(Debug, Clone, Copy)]
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

/// The names of a table, for an error.
pub fn alternatives<T>(table: &[(&str, T)]) -> String {
    table.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// What a table has under this name.
pub fn lookup<T: Copy>(table: &[(&str, T)], word: &str) -> Option<T> {
    table.iter().find(|(name, _)| *name == word).map(|(_, v)| *v)
}

impl<'a> Scanner<'a> {
    /// Begins at a byte of the text, which is the beginning of a character.
    pub fn new(text: &'a str, at: usize) -> Self {
        Self { text, at }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Passes over blanks.
    pub fn space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Something else was expected here.
    pub fn error(&self, expected: impl Into<String>) -> SyntaxError {
        let word = self.rest().split_whitespace().next().unwrap_or("");
        let before = self.text.get(..self.at).unwrap_or_default();
        SyntaxError {
            text: self.text.to_owned(),
            position: before.chars().count() + 1,
            expected: expected.into(),
            found: if word.is_empty() { "the end".into() } else { format!("'{word}'") },
        }
    }

    /// The longest run of characters that satisfy `part`.
    fn take(&mut self, part: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !part(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    /// Passes over this character, if it is here.
    pub fn eat(&mut self, c: char) -> bool {
        let found = self.rest().starts_with(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    /// A word (letters, digits, `_` and `-`) that `find` knows, or an error at its beginning.
    pub fn word<T>(
        &mut self,
        find: impl Fn(&str) -> Option<T>,
        expected: impl Fn() -> String,
    ) -> Result<T, SyntaxError> {
        let start = *self;
        let word = self.take(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        find(word).ok_or_else(|| start.error(expected()))
    }

    /// The rest of a condition: operator, limit, and nothing behind them.
    pub fn condition(mut self, left: Kind) -> Result<Condition, SyntaxError> {
        let op = self.op()?;
        let (limit, against) = self.limit(left)?;
        self.space();
        if self.at < self.text.len() {
            return Err(self.error("the end of the condition"));
        }
        Ok(Condition { op, limit, against })
    }

    fn op(&mut self) -> Result<Op, SyntaxError> {
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
    fn limit(&mut self, left: Kind) -> Result<(f64, Against), SyntaxError> {
        self.space();
        let here = *self;
        let more = self.eat('+');
        if more && matches!(left, Kind::Ratio | Kind::Of(Unit::Time)) {
            return Err(here.error("no +, which is for counts and bytes; for times write x"));
        }
        let against = if more { Against::Difference } else { Against::Nothing };
        self.space();
        let here = *self;
        let digits = self.take(|c| c.is_ascii_digit() || c == '.');
        let Some(number) = digits.parse::<f64>().ok().filter(|n| n.is_finite()) else {
            return Err(here.error("a number"));
        };
        self.space();
        let here = *self;
        let unit = self.take(char::is_alphabetic);
        let (factor, expected) = match (left, unit) {
            (Kind::Ratio, "" | "x") => return Ok((number, Against::Nothing)),
            (Kind::Ratio, _) => return Err(here.error("no unit or x, since the left side is a ratio")),
            (Kind::Of(_), "x") if !more => return Ok((number, Against::Factor)),
            (Kind::Of(Unit::Time), _) => {
                (lookup(&TIMES, unit), format!("a unit of time ({}) or x", alternatives(&TIMES)))
            }
            // Nothing has no size to be mistaken about: `+0` needs no unit.
            (Kind::Of(Unit::Bytes), "") if number == 0.0 => (Some(1.0), String::new()),
            (Kind::Of(Unit::Bytes), _) => {
                (lookup(&SIZES, unit), format!("a unit of size ({}) or x", alternatives(&SIZES)))
            }
            (Kind::Of(Unit::Count), _) => {
                (unit.is_empty().then_some(1.0), "no unit or x, since this is a number of things".to_owned())
            }
        };
        factor.map(|f| (number * f, against)).ok_or_else(|| here.error(expected))
    }
}
