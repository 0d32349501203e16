//! One start, prepared and judged as a run of a benchmark is, for somebody who watches it.

use std::sync::atomic::AtomicBool;

use cold_journal::Journal;
use cold_model::Bytes;
use cold_model::bench::{Run, State};
use cold_model::recording::manifest::StartState;
use cold_sys::procfs::ProcFs;

use super::cgroups::TreeCgroups;
use super::exact::{ExactNeed, Exactness};
use super::state::Preparer;
use super::{Around, Progress, Rounds, Subject, subject};
use crate::config::Config;
use crate::launch::Start;
use crate::{Error, Result};

/// Why nothing is proved of a cache that was left alone.
const AS_FOUND: &str = "the cache was left as it was found, and the start's files are not known before it";

/// One start and what it started from.
#[derive(Debug)]
pub struct Single {
    /// The start, judged.
    pub run: Run,
    /// Its points in time and its ending.
    pub start: Start,
    /// The state of the cache before it, with its proof.
    pub state: StartState,
    /// What the reader has to know about the preparation.
    pub notes: Vec<String>,
    /// Whether touches were exact during the start.
    pub exact: ExactNeed,
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
    let proc = ProcFs::default();
    let journal = Journal::open()?;
    let mut preparer = Preparer::new(config, &journal)?;
    let spec = config
        .commands
        .first()
        .ok_or_else(|| Error::Program { program: "cold".into(), reason: "no command is given".into() })?;
    let state = config.states.first();
    let (subject, notes) = if state.is_none() {
        (Subject::unobserved(spec, AS_FOUND.into()), Vec::new())
    } else {
        progress.step(&format!("observing one start of {}", spec.name));
        let (subject, command) = subject(config, spec, &proc, interrupt)?;
        (subject, command.notes)
    };
    let subjects = [subject];
    if state.is_some() {
        preparer.observed(&subjects);
    }
    let exactness = Exactness::reach(exact, &journal, &proc, subjects[0].set.as_ref(), &subjects[0].devices);
    let cgroups = TreeCgroups::create(config, &proc, &journal, &subjects)?;
    progress.step(&format!("starting {}", spec.name));
    let measured = Rounds {
        config,
        proc: &proc,
        subjects: &subjects,
        preparer: &mut preparer,
        cgroups: &cgroups,
        interrupt,
        around,
        as_found: state.is_none(),
    }
    // A warm start is the nearest thing to one whose state nobody knows: only disturbances taint it.
    .measured(0, state.unwrap_or(&State::Warm), (0, 0, 0));
    let removed = cgroups.remove();
    let (exact, restored) = exactness.restore();
    let measured = measured?;
    removed?;
    restored?;
    let measured = measured.ok_or(Error::Interrupted)?;
    let state = StartState {
        wanted: state.map_or_else(|| "as found".into(), ToString::to_string),
        method: match state {
            None => "left as it was".into(),
            Some(State::Warm) => format!("{} starts before", config.warmup.max(1)),
            Some(_) => preparer.method().to_owned(),
        },
        checked: measured.checked,
        residual: Some(measured.run.residual.clone()),
    };
    Ok(Single { run: measured.run, start: measured.start, state, notes, exact })
}

impl Single {
    /// Whether every page of the start's files was absent, as far as it was checked.
    pub fn proved_cold(&self) -> bool {
        self.run.residual.value().is_some_and(|r| r.bytes == Bytes(0) && r.unknown_bytes == Bytes(0))
    }
}
