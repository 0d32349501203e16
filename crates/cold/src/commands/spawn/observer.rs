//! Records some starts, for what they look up, list and read.

use std::path::Path;

use cold_model::recording::Manifest;
use cold_model::recording::manifest::{FORMAT, StackMethod, Tier, VERSION};
use cold_spawn::evidence::{Calls, ProcessCalls, Seen};
use cold_spawn::session::Observer;
use cold_sys::page::page_size;
use cold_trace::record::{CallCount, RecordOptions};
use cold_trace::syscalls;

use crate::recorder::{Directory, Watch, Whom};
use crate::unwind::Tables;

/// The recorder of a series. It is attached for a few starts at a time and is not there in between.
pub(super) struct Recorder<'a> {
    directory: &'a Path,
    /// Why nothing is recorded.
    refused: Option<String>,
    running: Option<Watch>,
}

impl<'a> Recorder<'a> {
    /// Records into this directory, which need not be there yet.
    pub(super) fn new(directory: &'a Path, unwanted: bool) -> Self {
        let refused = if unwanted { Some("--no-observe".to_owned()) } else { refused() };
        Self { directory, refused, running: None }
    }
}

/// Why no start can be recorded: only BPF programs see lookups and every process of a tree.
pub(super) fn refused() -> Option<String> {
    let survey = cold_trace::survey();
    if matches!(survey.tier, Tier::A | Tier::B) {
        return None;
    }
    let why = survey.refused.last().map_or("not possible here", |(_, why)| why.as_str());
    Some(format!("lookups and processes are seen only by BPF programs, as root ({why})"))
}

impl Observer for Recorder<'_> {
    fn begin(&mut self, spawner: u32) -> Result<(), String> {
        if let Some(why) = &self.refused {
            return Err(why.clone());
        }
        let manifest = Manifest {
            format: FORMAT.into(),
            version: VERSION,
            page_bytes: u32::try_from(page_size()).unwrap_or(4096),
            ..Manifest::default()
        };
        let options = RecordOptions {
            stacks: Some(StackMethod::UnwindTables),
            count_calls: true,
            ..RecordOptions::default()
        };
        let directory = Directory::make(self.directory.to_owned()).map_err(|e| e.to_string())?;
        let mut watch = Watch::new(directory, options, manifest);
        watch.begin(Whom::ChildrenOf(spawner), &[]).map_err(|e| format!("{e:#}"))?;
        self.running = Some(watch);
        Ok(())
    }

    fn end(&mut self) -> Result<Seen, String> {
        let mut watch = self.running.take().ok_or("nothing was recorded")?;
        watch.end(|_| {}).map_err(|e| format!("{e:#}"))?;
        let recording =
            cold_trace::assemble_dir(self.directory, &mut Tables::default()).map_err(|e| e.to_string())?;
        Ok(Seen { recording, calls: watch.calls().iter().map(calls).collect() })
    }
}

fn calls(c: &CallCount) -> ProcessCalls {
    let name = syscalls::name(c.number).map_or_else(|| format!("call {}", c.number), str::to_owned);
    let calls = Calls { calls: c.calls, bytes: c.bytes, ns: c.time.0 };
    ProcessCalls { pid: c.pid, name, calls }
}
