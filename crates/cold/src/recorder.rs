//! Puts the recorder around a start: attached while the supervisor waits, ended when the tree is gone.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use cold_bench::launch::LaunchedStart;
use cold_bench::session::Around;
use cold_bench::session::single::Single;
use cold_model::Nanos;
use cold_model::recording::{Manifest, Recording};
use cold_recording::log::Writer;
use cold_sys::procfs::ProcFs;
use cold_sys::time::monotonic;
use cold_trace::record::{CallCount, RecordOptions, Session};

use crate::unwind::Tables;

mod afterwards;
mod directory;
pub(crate) mod manifest;

pub(crate) use directory::Directory;

/// Whom to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whom {
    /// What this process starts from now on, but not itself.
    ChildrenOf(u32),
    /// This process and what it starts from now on.
    Process(u32),
    /// All processes but `cold` itself.
    Everybody,
    /// Nobody yet: see [`Watch::follow`].
    WhoComes,
}

/// The recorder of one recording, and the directory it writes.
pub(crate) struct Watch {
    options: RecordOptions,
    manifest: Manifest,
    running: Option<(Session, Arc<Mutex<Writer>>)>,
    /// The log is whole.
    ended: bool,
    calls: Vec<CallCount>,
    /// The last: dropped when the log is closed.
    directory: Directory,
}

impl Watch {
    /// Nothing is attached or written yet.
    pub(crate) fn new(directory: Directory, options: RecordOptions, manifest: Manifest) -> Self {
        Self { options, manifest, running: None, ended: false, calls: Vec::new(), directory }
    }

    /// Attaches and follows; what was recorded before is void.
    pub(crate) fn begin(&mut self, whom: Whom, files: &[PathBuf]) -> Result<()> {
        self.running = None; // detached, and its log closed, before another one takes its place
        self.manifest.start = monotonic();
        // Now, because --exact-need has changed it by now.
        self.manifest.fault_around = cold_bench::session::fault_around(&ProcFs::default());
        // What may be replaced was decided before anything was done; here it is our own earlier try.
        cold_recording::begin(self.directory.path(), &self.manifest, true)?;
        let log = Writer::create(self.directory.path(), self.manifest.page_bytes, self.manifest.start)?;
        let log = Arc::new(Mutex::new(log));
        self.options.files = files.to_vec();
        let mut session = Session::start(&self.options, self.manifest.clone(), log.clone())?;
        match whom {
            Whom::ChildrenOf(pid) => {
                session.follow(pid, false)?;
            }
            Whom::Process(pid) => {
                session.follow(pid, true)?;
            }
            // The manifest says so, or it is told later.
            Whom::Everybody | Whom::WhoComes => {}
        }
        self.running = Some((session, log));
        Ok(())
    }

    /// The start that was waited for has come: this process, and what it starts. Answers from when on all pages that it
    /// touches are seen.
    pub(crate) fn follow(&mut self, pid: u32) -> Result<Nanos> {
        let Some((session, _)) = &mut self.running else { bail!("nothing is recorded") };
        Ok(session.follow(pid, true)?)
    }

    /// Detaches; nothing is recorded from here on.
    pub(crate) fn end(&mut self, complete: impl FnOnce(&mut Manifest)) -> Result<()> {
        let Some((session, log)) = self.running.take() else { bail!("nothing was recorded") };
        self.calls = session.finish(complete)?.calls;
        let log = Arc::into_inner(log).context("the recorder still writes its log")?;
        log.into_inner().unwrap_or_else(PoisonError::into_inner).finish()?;
        self.ended = true;
        Ok(())
    }

    /// What was called, where the options asked for that; after the end.
    pub(crate) fn calls(&self) -> &[CallCount] {
        &self.calls
    }

    /// Makes the recording of what was seen, and writes it.
    pub(crate) fn finish(&mut self, single: Option<Single>) -> Result<Recording> {
        let recording = self.assemble(single)?;
        cold_recording::write(self.directory.path(), &recording)?;
        self.directory.keep();
        Ok(recording)
    }

    /// Makes the recording of what was seen. Nothing of it stays on disk, unless [`Self::finish`] writes it.
    pub(crate) fn assemble(&self, single: Option<Single>) -> Result<Recording> {
        if !self.ended {
            bail!("nothing was recorded");
        }
        let mut recording = cold_trace::assemble_dir(self.directory.path(), &mut Tables::default())?;
        match single {
            Some(single) => manifest::judged(&mut recording.manifest, single),
            None => manifest::ended(&mut recording),
        }
        afterwards::add(&mut recording);
        Ok(recording)
    }
}

impl Around for Watch {
    fn waiting(&mut self, supervisor: u32, files: &[PathBuf]) -> cold_bench::Result<()> {
        self.begin(Whom::ChildrenOf(supervisor), files).map_err(|e| cold_bench::Error::Around(e.into()))
    }
    fn gone(&mut self, start: &LaunchedStart) -> cold_bench::Result<()> {
        self.end(|m| manifest::started(m, start)).map_err(|e| cold_bench::Error::Around(e.into()))
    }
}
