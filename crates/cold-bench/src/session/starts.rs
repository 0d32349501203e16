//! Any number of starts of one command, each prepared and judged as a run of a benchmark is, one at a
//! time and in whatever states their caller wants next.

use std::sync::atomic::AtomicBool;

use cold_journal::Journal;
use cold_model::bench::State;
use cold_model::observed::ObservedStart;
use cold_model::recording::manifest::{StartState, WantedState};
use cold_sys::procfs::ProcFs;

use super::cgroups::TreeCgroups;
use super::exact::Exactness;
use super::measure::{Measured, Turn};
use super::single::Single;
use super::state::Preparer;
use super::{Around, Progress, Rounds, Subject, needs_launcher, subject};
use crate::config::Config;
use crate::{Error, Result};

/// Why nothing is proved of a cache that was left alone.
const AS_FOUND: &str = "the cache was left as it was found, and the start's files are not known before it";

/// A command whose files are known from one observed start, ready to be started again and again.
pub struct Starts<'a> {
    config: &'a Config,
    interrupt: &'a AtomicBool,
    proc: ProcFs,
    journal: Journal,
    preparer: Preparer,
    subjects: [Subject<'a>; 1],
    notes: Vec<String>,
    cgroups: TreeCgroups,
    made: u32,
}

impl<'a> Starts<'a> {
    /// Observes one start of the first command of `config`, unless that names no state: then nothing is
    /// known of it, and it can be started as found only.
    pub fn begin(config: &'a Config, progress: &mut dyn Progress, interrupt: &'a AtomicBool) -> Result<Self> {
        let proc = ProcFs::default();
        let journal = Journal::open()?;
        needs_launcher(config)?;
        let mut preparer = Preparer::new(config, &journal)?;
        let spec = config
            .commands
            .first()
            .ok_or_else(|| Error::Program { program: "cold".into(), reason: "no command is given".into() })?;
        let (subject, notes) = if config.states.is_empty() {
            (Subject::unobserved(spec, AS_FOUND.into()), Vec::new())
        } else {
            progress.step(&format!("observing one start of {}", spec.name));
            let (subject, command) = subject(config, spec, &proc, progress, interrupt)?;
            (subject, command.notes)
        };
        let subjects = [subject];
        if !config.states.is_empty() {
            preparer.observed(&subjects);
        }
        let cgroups = TreeCgroups::create(config, &proc, &journal, &subjects)?;
        Ok(Self { config, interrupt, proc, journal, preparer, subjects, notes, cgroups, made: 0 })
    }

    /// One start from `state` (one of those of the configuration), or as found. With `exact`, the kernel
    /// is asked to map and read nothing but what is needed. `None`: interrupted before it; an interrupt
    /// later ends the start, and what was seen of it is returned all the same.
    pub fn one(
        &mut self,
        state: Option<&State>,
        exact: bool,
        around: &mut dyn Around,
        progress: &mut dyn Progress,
    ) -> Result<Option<Single>> {
        let exactness = Exactness::reach(
            exact,
            &self.journal,
            &self.proc,
            self.subjects[0].set.as_ref(),
            &self.subjects[0].devices,
        );
        progress.step(&format!("starting {}", self.subjects[0].spec.name));
        let turn = Turn { series: 0, round: self.made, sequence: self.made };
        self.made += 1;
        let measured = Rounds {
            config: self.config,
            proc: &self.proc,
            journal: &self.journal,
            subjects: &self.subjects,
            preparer: &mut self.preparer,
            cgroups: &self.cgroups,
            interrupt: self.interrupt,
            around,
            as_found: state.is_none(),
        }
        // A warm start is the nearest thing to one whose state nobody knows: only disturbances taint it.
        .measured(0, state.unwrap_or(&State::Warm), turn, progress);
        let (exact, restored) = exactness.restore();
        let measured = measured?;
        restored?;
        let Some(measured) = measured else { return Ok(None) };
        let state = StartState {
            wanted: state.map_or(WantedState::AsFound, WantedState::from),
            method: match state {
                None => "left as it was".into(),
                Some(State::Warm) => format!("{} starts before", self.config.warmup.max(1)),
                Some(_) => self.preparer.method().to_owned(),
            },
            checked: measured.checked,
            residual: Some(measured.run.residual.clone()),
        };
        let notes = self.notes.clone();
        let Measured { run, start, load, .. } = measured;
        Ok(Some(Single { run, start, state, notes, exact, load }))
    }

    /// What the observed start used.
    pub fn observed(&self) -> Option<&ObservedStart> {
        self.subjects[0].observed.as_ref()
    }

    /// Removes what was made for the starts.
    pub fn end(self) -> Result<()> {
        self.cgroups.remove()
    }
}
