//! The answer of a gate, and by name what a failed one is about.

use std::path::PathBuf;

use cold_model::path_text;
use serde::Serialize;

use crate::condition::{Condition, Observed};
use crate::unit::Unit;

/// Names that are kept; the rest is counted.
const MOST: usize = 20;

/// The answer of a gate.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The condition is not met.
    Pass,
    /// Cannot be told.
    Inconclusive {
        /// What is unknown, too few, or undecided, in words.
        reason: String,
        /// Further rounds that would probably decide it, where that can be estimated.
        runs_needed: Option<u32>,
    },
    /// The condition is met.
    Fail,
}

/// A gate's answer for one command or recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GateResult {
    /// The gate as typed.
    pub gate: String,
    /// The command's name, or the recording's.
    pub command: String,
    /// What was observed, in words; empty when unknown.
    pub observed: String,
    /// Whether the condition is met; its fields stand beside the others in JSON.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// What a failed gate on files, misses or bytes read found that the reference does not have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub news: Option<News>,
    /// What a failed gate on a recording is about, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub culprits: Option<Culprits>,
}

impl GateResult {
    /// A result without names.
    pub fn new(gate: &str, command: &str, observed: String, outcome: Outcome) -> Self {
        let (gate, command) = (gate.to_owned(), command.to_owned());
        Self { gate, command, observed, outcome, news: None, culprits: None }
    }

    /// What a condition says of what was observed; inconclusive where that is not known, for this reason.
    pub fn of(gate: &str, command: &str, condition: &Condition, observed: Result<Observed, String>) -> Self {
        match observed {
            Ok(o) => Self::new(gate, command, o.words.clone(), condition.judge(&o)),
            Err(reason) => {
                let outcome = Outcome::Inconclusive { reason, runs_needed: None };
                Self::new(gate, command, String::new(), outcome)
            }
        }
    }
}

/// The worst answer of all gates: a fail, else an inconclusive one, else a pass.
pub fn overall(results: &[GateResult]) -> &Outcome {
    let rank = |o: &Outcome| match o {
        Outcome::Pass => 0,
        Outcome::Inconclusive { .. } => 1,
        Outcome::Fail => 2,
    };
    results.iter().map(|r| &r.outcome).max_by_key(|o| rank(o)).unwrap_or(&Outcome::Pass)
}

/// What is new.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum News {
    /// Files, by their sizes in bytes.
    Files(New),
    /// Failed lookups by directory, by their number; those of the directories that both reports name.
    Misses(New),
}

/// New things, the largest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct New {
    /// How many there are.
    pub count: u64,
    /// Their amounts, summed.
    pub amount: u64,
    /// The largest of them.
    pub largest: Vec<(PathText, u64)>,
}

/// A path, as text in JSON where it is UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathText(#[serde(with = "path_text")] pub PathBuf);

impl New {
    /// Paths with their amounts, in any order; `None` of none.
    pub fn of(mut all: Vec<(PathBuf, u64)>) -> Option<Self> {
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        (!all.is_empty()).then(|| Self {
            count: all.len() as u64,
            amount: all.iter().map(|(_, n)| n).sum(),
            largest: all.into_iter().take(MOST).map(|(path, n)| (PathText(path), n)).collect(),
        })
    }
}

/// Who first asked for something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Asked {
    /// The program's name, as the kernel has it.
    pub process: String,
    /// Its process id.
    pub pid: u32,
    /// Frames of the stack in words, outermost first; empty where none was recorded.
    pub stack: Vec<String>,
}

/// A file, a directory that was searched, or a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Culprit {
    /// Its name, as recordings write it.
    pub name: String,
    /// What it adds to the figure, in the unit of all.
    pub amount: u64,
    /// The same in the reference or the list of what is allowed; `None`: it is new, or nothing was compared.
    pub before: Option<u64>,
    /// Who asked for it first, where that is known.
    pub asked: Option<Asked>,
}

impl Culprit {
    /// By how much it grew.
    pub fn growth(&self) -> u64 {
        self.amount.saturating_sub(self.before.unwrap_or(0))
    }
}

/// What a figure consists of, or what of it is more than before, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Culprits {
    /// What they are, in the plural (`files`, `directories`, `programs`).
    pub of: &'static str,
    /// In words, why they are named (`new or grown`, `the largest`, `not allowed`).
    pub why: &'static str,
    /// What `amount` and `before` are measured in.
    pub unit: Unit,
    /// How many there are.
    pub count: u64,
    /// The largest of them, at most 20.
    pub largest: Vec<Culprit>,
}

impl Culprits {
    /// Those that grew most first; `None` of none.
    pub fn of(of: &'static str, why: &'static str, unit: Unit, mut all: Vec<Culprit>) -> Option<Self> {
        all.sort_by(|a, b| b.growth().cmp(&a.growth()).then_with(|| a.name.cmp(&b.name)));
        let count = all.len() as u64;
        all.truncate(MOST);
        (count > 0).then_some(Self { of, why, unit, count, largest: all })
    }
}
