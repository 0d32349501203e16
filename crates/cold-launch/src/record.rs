//! The history of a plan's starts.

use crate::load::Loaded;
use crate::options::Skip;
use crate::watch::Mark;

/// How a start went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Prefetched(u64),
    Control,
    Stale,
    Warm,
    Memory,
    Busy,
}

impl Outcome {
    pub(crate) fn of(skip: &Skip) -> Option<Self> {
        Some(match skip {
            Skip::Warm => Self::Warm,
            Skip::Memory { .. } => Self::Memory,
            Skip::Busy(_) => Self::Busy,
            _ => return None,
        })
    }
}

pub(crate) fn append(_loaded: &Loaded, _outcome: Outcome, _mark: Mark) {}

pub(crate) fn is_control(_loaded: &Loaded, _every: u32) -> bool {
    false
}
