//! A simulated start in the form of a recording, for the pictures that recordings have.

use std::collections::HashMap;

use cold_model::recording::{
    DeviceRead, FileIdx, Fill, FillCause, Recording, Stall, StallCause, Touch, TouchKind,
};
use cold_model::{Dev, Known, Nanos};
use cold_sim::Names;
use cold_sim::disk::Layout;
use cold_sim::engine::{Done, Filled, Sent, Step};
use cold_sim::op::{FileId, Op, Why};

use super::{Recorded, Simulated};

/// Bytes of a sector in a recording.
const SECTOR: u64 = 512;

/// What a row of a recording says of who did it.
#[derive(Debug, Clone, Copy)]
struct Who {
    pid: u32,
    tid: u32,
}

/// From the model's names to the recording's.
struct Rows<'a> {
    start: &'a Recorded,
    began: Nanos,
    names: Names,
    processes: HashMap<u32, u32>,
}

impl Recorded {
    /// What a simulated start did, as rows of the recording that it was made from: touches, fills, device reads and
    /// waits. Everything else that was recorded is left out: it did not happen in the model. The note tells readers
    /// what this is.
    pub fn as_recording(&self, recording: &Recording, simulated: &Simulated, note: String) -> Recording {
        let mut names = Names::default();
        for step in self.tasks.iter().flat_map(|task| &task.steps) {
            if let Step::Access(op) = step {
                names.hear(op);
            }
        }
        let rows = Rows {
            start: self,
            began: recording.manifest.start,
            names,
            processes: recording.threads.iter().map(|t| (t.tid, t.pid)).collect(),
        };
        let outcome = &simulated.outcome;
        let mut manifest = recording.manifest.clone();
        manifest.end = rows.at(outcome.time_ns);
        manifest.ready = Some(Known::Value(rows.at(outcome.time_ns)));
        "simulated".clone_into(&mut manifest.started_at);
        manifest.lost.clear();
        manifest.notes = vec![note];
        // The model's order is that in which things were done, a recording's that in which they began.
        let mut touches: Vec<Touch> =
            outcome.done.iter().filter_map(|done| rows.touch(done, &self.layout)).collect();
        touches.sort_by_key(|t| t.at);
        let waits = outcome.done.iter().filter(|done| done.waited);
        let mut stalls: Vec<Stall> = waits.filter_map(|done| rows.stall(done, &self.layout)).collect();
        stalls.sort_by_key(|s| s.began);
        Recording {
            files: recording.files.clone(),
            processes: recording.processes.clone(),
            threads: recording.threads.clone(),
            touches: Some(touches),
            fills: Some(outcome.filled.iter().filter_map(|filled| rows.fill(filled)).collect()),
            device_reads: Some(outcome.sent.iter().map(|sent| rows.request(sent)).collect()),
            stalls: Some(stalls),
            manifest,
            ..Recording::default()
        }
    }
}

impl Rows<'_> {
    fn at(&self, ns: u64) -> Nanos {
        Nanos(self.began.0.saturating_add(ns))
    }

    /// The thread of a task. A helper's threads are none of the recording: they count as number 0.
    fn who(&self, task: usize) -> Who {
        let tid = self.start.threads.get(task).copied().unwrap_or(0);
        Who { pid: self.processes.get(&tid).copied().unwrap_or(tid), tid }
    }

    fn file(&self, file: FileId) -> Option<FileIdx> {
        self.start.names.get(file.0 as usize).copied()
    }

    fn touch(&self, done: &Done, layout: &Layout) -> Option<Touch> {
        let (file, pages) = self.names.needed(&done.op, layout)?;
        let Who { pid, tid } = self.who(done.task);
        if self.start.is_metadata(file) {
            return None;
        }
        let kind = if matches!(done.op, Op::Touch { .. }) { TouchKind::Fault } else { TouchKind::Read };
        Some(Touch {
            at: self.at(if kind == TouchKind::Fault { done.began_ns } else { done.done_ns }),
            pid,
            tid,
            file: self.file(file)?,
            first_page: pages.start,
            pages: u32::try_from(pages.end - pages.start).unwrap_or(u32::MAX),
            kind,
            major: None,
            ip: None,
            stack: None,
            call: None,
            end: None,
        })
    }

    fn stall(&self, done: &Done, layout: &Layout) -> Option<Stall> {
        let (file, pages) = self.names.needed(&done.op, layout)?;
        let Who { pid, tid } = self.who(done.task);
        let cause = match done.op {
            _ if self.start.is_metadata(file) => StallCause::Lookup,
            Op::Touch { .. } => StallCause::Fault,
            _ => StallCause::Read,
        };
        Some(Stall {
            began: self.at(done.began_ns),
            woken: Some(self.at(done.done_ns)),
            ended: Some(self.at(done.done_ns)),
            pid,
            tid,
            cause,
            file: self.file(file),
            page: Some(pages.start),
            system_call: None,
            lookup: None,
            stack: None,
        })
    }

    fn fill(&self, filled: &Filled) -> Option<Fill> {
        let Who { pid, tid } = self.who(filled.task);
        let cause = match filled.read.why {
            _ if self.start.is_metadata(filled.read.file) => FillCause::Metadata,
            Why::Demand => FillCause::DemandFault,
            Why::Ahead => FillCause::ReadAround,
            Why::Advice => FillCause::Advice,
        };
        Some(Fill {
            at: self.at(filled.at_ns),
            pid,
            tid,
            in_tree: true,
            file: self.file(filled.read.file)?,
            first_page: filled.read.first,
            pages: u32::try_from(filled.read.pages).unwrap_or(u32::MAX),
            cause,
        })
    }

    fn request(&self, sent: &Sent) -> DeviceRead {
        DeviceRead {
            queued: self.at(sent.sent_ns),
            issued: Some(self.at(sent.sent_ns)),
            completed: Some(self.at(sent.done_ns)),
            dev: Dev { major: 0, minor: sent.disk },
            sector: sent.offset / SECTOR,
            bytes: u32::try_from(sent.bytes).unwrap_or(u32::MAX),
            pid: 0,
            tid: 0,
            in_tree: true,
            metadata: self.start.is_metadata(sent.of.0),
            readahead: sent.of.1 != Why::Demand,
            file: None,
        }
    }
}
