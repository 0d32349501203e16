//! One start, prepared and judged as a run of a benchmark is, for somebody who watches it.

use std::sync::atomic::AtomicBool;

use cold_model::bench::Run;
use cold_model::recording::manifest::{Load, StartState};
use cold_model::{Bytes, Known};

use super::exact::ExactNeed;
use super::starts::Starts;
use super::{Around, Progress};
use crate::config::Config;
use crate::launch::LaunchedStart;
use crate::{Error, Result};

/// One start and what it started from.
#[derive(Debug)]
pub struct Single {
    /// The start, judged.
    pub run: Run,
    /// Its points in time and its ending.
    pub start: LaunchedStart,
    /// The state of the cache before it, with its proof.
    pub state: StartState,
    /// What the reader has to know about the preparation.
    pub notes: Vec<String>,
    /// Whether touches were exact during the start.
    pub exact: ExactNeed,
    /// What others did to the CPUs during the start, the recorder among them.
    pub load: Known<Load>,
}

/// Starts the first command of `config` once: from its first state, or as found if it names none. With
/// `exact`, the kernel is asked to map and read nothing but what is needed during this start.
///
/// An interrupt ends the start; what was seen of it is returned all the same.
pub fn run(
    config: &Config,
    exact: bool,
    around: &mut dyn Around,
    progress: &mut dyn Progress,
    interrupt: &AtomicBool,
) -> Result<Single> {
    let mut starts = Starts::begin(config, progress, interrupt)?;
    let made = starts.one(config.states.first(), exact, around, progress);
    let ended = starts.end();
    let single = made?.ok_or(Error::Interrupted)?;
    ended?;
    Ok(single)
}

impl Single {
    /// Whether every page of the start's files was absent, as far as it was checked.
    pub fn proved_cold(&self) -> bool {
        self.run.residual.value().is_some_and(|r| r.bytes == Bytes(0) && r.unknown_bytes == Bytes(0))
    }
}
