//! A whole trace as evidence.

use std::collections::BTreeMap;

use super::{Losses, Record, Source, Trace, record};
use crate::Result;
use crate::evidence::{Builder, Evidence, System};

/// What a trace of the kernel logger tells, and how much of it was read.
#[derive(Debug)]
pub struct GatheredTrace {
    /// What it tells.
    pub evidence: Evidence,
    /// What could not be read.
    pub losses: Losses,
}

/// Reads all of a trace. Memory: one buffer of each processor, and about 100 bytes for each disk read, hard fault,
/// process, thread, image and name.
///
/// # Errors
/// [`crate::Error::Source`] where the source fails.
pub fn gather<S: Source>(trace: Trace<S>) -> Result<GatheredTrace> {
    let header = trace.header().clone();
    let mut builder = Builder::default();
    let (mut bad, mut first, mut last) = (0_u64, None, 0);
    let losses = trace.events(|time, event| {
        let zero = *first.get_or_insert(time);
        let ns = |ticks: i64| header.nanos(ticks.saturating_sub(zero));
        last = last.max(ns(time));
        match record(event, header.pointer) {
            Ok(Some(Record::Stack(_)) | None) => {}
            Ok(Some(record)) => builder.record(time, &record, ns),
            Err(_) => bad += 1,
        }
    })?;
    let lost = [
        ("events", header.events_lost.into()),
        ("buffers", header.buffers_lost.into()),
        ("damaged buffers", losses.damaged),
        ("events too short for their class", bad),
    ];
    let lost: BTreeMap<String, u64> =
        lost.into_iter().filter(|(_, n)| *n > 0).map(|(what, n)| (what.to_owned(), n)).collect();
    let system = System {
        build: Some(header.build).filter(|b| *b != 0),
        processors: Some(header.processors).filter(|n| *n != 0),
        started: Some(header.started).filter(|t| *t != 0),
    };
    let mut evidence = builder.finish(system, last, lost);
    if let Some(at) = losses.cut_at {
        evidence
            .notes
            .push(format!("The file stops being a trace at byte {at}: what came later is missing."));
    }
    Ok(GatheredTrace { evidence, losses })
}
