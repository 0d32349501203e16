//! What a task did while it ran.

use std::collections::{BTreeSet, HashMap};

use cold_model::Nanos;
use cold_model::recording::tables::Began;
use cold_model::recording::{Lookup, LookupKind, Process, Recording};

use super::{Kind, Piece};
use crate::clock::spans::reading;

/// A program in a process, from its exec on.
#[derive(Debug, Clone, Copy)]
struct Image {
    began: Nanos,
    how: Began,
    /// When its own code first ran; `None`: that was not seen.
    entry: Option<Nanos>,
}

/// When something went on that a running task did.
#[derive(Default)]
struct Times {
    /// Disjoint and in order, per thread.
    reading: HashMap<u32, Vec<(u64, u64)>>,
    /// By their beginning, per thread; calls of one thread follow each other.
    lookups: HashMap<u32, Vec<(Nanos, Nanos, Kind)>>,
    /// By their beginning, per process.
    images: HashMap<u32, Vec<Image>>,
}

/// The pieces, those in which a task ran divided by what it did.
pub(super) fn divided(recording: &Recording, pieces: &[Piece]) -> Vec<Piece> {
    let times = Times::of(recording);
    let mut out: Vec<Piece> = Vec::new();
    for piece in pieces {
        if piece.kind != Kind::Program {
            out.push(*piece);
            continue;
        }
        let cuts = times.cuts(piece);
        for (from, to) in cuts.iter().zip(cuts.iter().skip(1)) {
            let kind = times.kind(piece, *from);
            match out.last_mut().filter(|p| p.kind == kind && p.tid == piece.tid && p.to == *from) {
                Some(last) if last.file.is_none() => last.to = *to,
                _ => out.push(Piece { from: *from, to: *to, kind, ..*piece }),
            }
        }
    }
    out
}

impl Times {
    fn of(recording: &Recording) -> Self {
        let mut lookups: HashMap<u32, Vec<(Nanos, Nanos, Kind)>> = HashMap::new();
        for l in recording.lookups.iter().flatten() {
            lookups.entry(l.tid).or_default().push((l.at, l.ended, of_lookup(l)));
        }
        for rows in lookups.values_mut() {
            rows.sort_by_key(|(from, to, _)| (*from, *to));
        }
        let reading = reading(recording).into_iter().map(|(tid, spans)| (tid, spans.into_inner())).collect();
        Self { reading, lookups, images: images(recording) }
    }

    /// The ends of the piece and every time within it at which what the task does may change.
    fn cuts(&self, piece: &Piece) -> Vec<Nanos> {
        let mut cuts = BTreeSet::from([piece.from, piece.to]);
        let mut add = |at: Nanos| {
            if piece.from < at && at < piece.to {
                cuts.insert(at);
            }
        };
        if let Some(spans) = self.reading.get(&piece.tid) {
            let first = spans.partition_point(|(_, to)| *to <= piece.from.0);
            for (from, to) in spans.iter().skip(first).take_while(|(from, _)| *from < piece.to.0) {
                add(Nanos(*from));
                add(Nanos(*to));
            }
        }
        if let Some(calls) = self.lookups.get(&piece.tid) {
            let first = calls.partition_point(|(_, to, _)| *to <= piece.from);
            for (from, to, _) in calls.iter().skip(first).take_while(|(from, _, _)| *from < piece.to) {
                add(*from);
                add(*to);
            }
        }
        for image in self.images.get(&piece.pid).into_iter().flatten() {
            add(image.began);
            image.entry.into_iter().for_each(&mut add);
        }
        cuts.into_iter().collect()
    }

    /// What the task did from then until the next cut.
    fn kind(&self, piece: &Piece, at: Nanos) -> Kind {
        if let Some(spans) = self.reading.get(&piece.tid) {
            let span = spans.get(spans.partition_point(|(_, to)| *to <= at.0));
            if span.is_some_and(|(from, _)| *from <= at.0) {
                return Kind::Reading;
            }
        }
        if let Some(calls) = self.lookups.get(&piece.tid) {
            let call = calls.get(calls.partition_point(|(_, to, _)| *to <= at));
            if let Some((_, _, kind)) = call.filter(|(from, _, _)| *from <= at) {
                return *kind;
            }
        }
        let Some(images) = self.images.get(&piece.pid) else { return Kind::Program };
        let n = images.partition_point(|i| i.began <= at);
        match images.get(n.saturating_sub(1)).filter(|_| n > 0) {
            // A fork of a program that goes on as that is the program's own work.
            Some(i) if i.how == Began::Fork && images.get(n).is_some_and(|next| next.how == Began::Exec) => {
                Kind::Processes
            }
            Some(i) if i.how == Began::Exec && i.entry.is_some_and(|entry| at < entry) => Kind::Loader,
            _ => Kind::Program,
        }
    }
}

fn of_lookup(lookup: &Lookup) -> Kind {
    match lookup.kind {
        LookupKind::Exec => Kind::Processes,
        _ if lookup.result < 0 => Kind::LookupMissed,
        _ => Kind::Lookup,
    }
}

/// The images of each process. A new image has no page in its page tables, so the first instruction of the program's
/// own code faults: until then the loader ran.
fn images(recording: &Recording) -> HashMap<u32, Vec<Image>> {
    let mut rows: Vec<&Process> = recording.processes.iter().filter(|p| p.in_tree).collect();
    rows.sort_by_key(|p| p.began);
    let mut out: HashMap<u32, Vec<Image>> = HashMap::new();
    for p in rows {
        out.entry(p.pid).or_default().push(Image { began: p.began, how: p.how, entry: entry(recording, p) });
    }
    out
}

/// When code of the process' own executable first ran.
fn entry(recording: &Recording, process: &Process) -> Option<Nanos> {
    let executable = process.executable.filter(|_| process.how == Began::Exec)?;
    let until = process.ended.unwrap_or(Nanos(u64::MAX));
    let own: Vec<(u64, u64)> = recording
        .mappings
        .iter()
        .flatten()
        .filter(|m| m.pid == process.pid && m.file == executable && m.executable)
        // They are made in the exec, before the event that tells of it.
        .filter(|m| m.at <= until)
        .map(|m| (m.address, m.address.saturating_add(m.bytes)))
        .collect();
    let is_own = |ip: u64| own.iter().any(|(from, to)| (*from..*to).contains(&ip));
    recording
        .touches
        .iter()
        .flatten()
        .filter(|t| t.pid == process.pid && t.ip.is_some_and(is_own))
        .map(|t| t.at)
        .filter(|at| process.began <= *at && *at <= until)
        .min()
}
