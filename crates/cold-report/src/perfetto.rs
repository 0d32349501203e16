//! A recording as a trace for Perfetto (ui.perfetto.dev, `trace_processor`).
//!
//! Processes and threads with a slice per wait and per path resolution; a counter per costly file of the
//! bytes read into the cache; per device its requests as slices and how many are in flight; flows from a
//! request to the waits that it ended. Times are those of the recording (`CLOCK_MONOTONIC`).

mod flows;
mod proto;
mod slices;
mod trace;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use cold_analyze::Analysis;
use cold_model::Dev;
use cold_model::Known;
use cold_model::layout::Layouts;
use cold_model::recording::{DeviceRead, FileIdx, Lookup, Recording, Stall};

use crate::wording;
use flows::Flows;
use slices::{Slice, Step, lanes, nested};
use trace::{Event, Trace, TrackEventType, Value};

/// Files with a track of their own: the costliest.
const MAX_FILES: usize = 50;
/// Files that are named beside a request.
const MAX_NAMES: usize = 4;

/// Writes the trace. Fails only when `out` does.
pub fn write(
    recording: &Recording,
    analysis: &Analysis,
    layouts: &Layouts,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut buffered = io::BufWriter::with_capacity(1 << 20, out);
    let flows = Flows::of(recording);
    let stacks = recording.stacks.iter().flatten().map(|s| wording::stack(recording, layouts, s)).collect();
    let mut writer = Exporter { recording, stacks, flows: &flows, trace: Trace::new(&mut buffered) };
    writer.start()?;
    writer.processes()?;
    writer.devices()?;
    writer.files(analysis)?;
    buffered.flush()
}

/// Numbers of tracks: the kind above, what it belongs to below.
fn uuid(kind: u64, id: u64) -> u64 {
    kind << 56 | id
}
const START: u64 = 1;
const PROCESS: u64 = 2;
const THREAD: u64 = 3;
const DEVICE: u64 = 4;
const LANE: u64 = 5;
const IN_FLIGHT: u64 = 6;
const FILES: u64 = 7;
const FILE: u64 = 8;

/// A slice of a thread.
#[derive(Clone, Copy)]
enum Of<'a> {
    Stall(usize, &'a Stall),
    Lookup(&'a Lookup),
}

/// Name and slices of a thread.
type ThreadTrack<'a> = (&'a str, Vec<Slice<Of<'a>>>);

struct Exporter<'a, 'b> {
    recording: &'a Recording,
    /// Every stack in words.
    stacks: Vec<String>,
    flows: &'a Flows,
    trace: Trace<'b>,
}

impl<'a> Exporter<'a, '_> {
    /// The start itself, and when it was ready.
    fn start(&mut self) -> io::Result<()> {
        let manifest = &self.recording.manifest;
        let track = uuid(START, 0);
        self.trace.track(track, 0, 0, "start")?;
        let tool = format!("coldstart {}", manifest.tool);
        let annotations = vec![
            ("tool", Value::Text(&tool)),
            ("ready means", Value::Text(&manifest.ready_means)),
            ("events lost", Value::Uint(manifest.lost_events())),
            ("complete", Value::Bool(manifest.complete)),
        ];
        let event = Event { name: "recording", annotations, ..Event::default() };
        self.trace.event(TrackEventType::Begin, track, manifest.start.0, &event)?;
        let mut end = manifest.end.max(manifest.start);
        if let Some(Known::Value(ready)) = &manifest.ready {
            let event = Event { name: "ready", ..Event::default() };
            self.trace.event(TrackEventType::Instant, track, ready.0, &event)?;
            end = end.max(*ready);
        }
        self.trace.end(track, end.0)
    }

    /// Processes, threads and their slices.
    fn processes(&mut self) -> io::Result<()> {
        let recording = self.recording;
        // One process may have several images; the last one's name is what people know it by.
        let mut last: BTreeMap<u32, usize> = BTreeMap::new();
        for (index, process) in recording.processes.iter().enumerate() {
            last.insert(process.pid, index);
        }
        let mut threads: BTreeMap<(u32, u32), ThreadTrack<'a>> = BTreeMap::new();
        for thread in &recording.threads {
            threads.entry((thread.pid, thread.tid)).or_default().0 = &thread.name;
        }
        let end = recording.manifest.end.0;
        for (index, s) in recording.stalls.iter().flatten().enumerate() {
            let ended = s.ended.or(s.woken).map_or(end, |t| t.0);
            let slice = Slice { began: s.began.0, ended, what: Of::Stall(index, s) };
            threads.entry((s.pid, s.tid)).or_default().1.push(slice);
        }
        for l in recording.lookups.iter().flatten() {
            let slice = Slice { began: l.at.0, ended: l.ended.0, what: Of::Lookup(l) };
            threads.entry((l.pid, l.tid)).or_default().1.push(slice);
        }
        for (pid, _) in threads.keys() {
            last.entry(*pid).or_insert(usize::MAX);
        }
        for (rank, (pid, index)) in last.iter().enumerate() {
            let (name, arguments) = match recording.processes.get(*index) {
                Some(p) => (p.name.as_str(), p.arguments.as_deref().unwrap_or_default()),
                None => ("", &[][..]),
            };
            self.trace.process(uuid(PROCESS, u64::from(*pid)), rank as u64 + 1, *pid, name, arguments)?;
        }
        for (rank, ((pid, tid), (name, mut slices))) in threads.into_iter().enumerate() {
            let track = uuid(THREAD, u64::from(tid));
            self.trace.thread(track, uuid(PROCESS, u64::from(pid)), rank as u64, (pid, tid), name)?;
            for step in nested(&mut slices) {
                match step {
                    Step::End(at) => self.trace.end(track, at)?,
                    Step::Begin(at, Of::Stall(index, stall)) => self.stall(track, at, index, stall)?,
                    Step::Begin(at, Of::Lookup(lookup)) => self.lookup(track, at, lookup)?,
                }
            }
        }
        Ok(())
    }

    fn stall(&mut self, track: u64, at: u64, index: usize, stall: &Stall) -> io::Result<()> {
        let path = stall.file.map(|f| wording::path(self.recording, f));
        let cause = stall.cause.word();
        let name = match &path {
            Some(path) => format!("{cause}: {}", wording::base(path)),
            None => cause.to_owned(),
        };
        let mut annotations = vec![("cause", Value::Text(cause))];
        if let Some(path) = &path {
            annotations.push(("file", Value::Text(path)));
        }
        if let Some(page) = stall.page {
            let bytes = page.saturating_mul(self.recording.page_bytes());
            annotations.push(("offset", Value::Uint(bytes)));
        }
        if let Some(woken) = stall.woken {
            annotations.push(("waited ns", Value::Uint(woken.0.saturating_sub(stall.began.0))));
        }
        if let Some(call) = stall.system_call {
            annotations.push(("system call", Value::Uint(u64::from(call))));
        }
        if let Some(stack) = stall.stack.and_then(|s| self.stacks.get(s as usize)) {
            annotations.push(("stack", Value::Text(stack)));
        }
        let flows: &Flows = self.flows;
        let (flows, flows_ending) = flows.of_stall(index);
        let event = Event { name: &name, annotations, flows, flows_ending };
        self.trace.event(TrackEventType::Begin, track, at, &event)
    }

    fn lookup(&mut self, track: u64, at: u64, lookup: &Lookup) -> io::Result<()> {
        let mut annotations = vec![("result", Value::Int(lookup.result))];
        let place = lookup.shown_place();
        if let Some(path) = &place {
            annotations.push(("path", Value::Text(path)));
        }
        if let Some(stack) = lookup.stack.and_then(|s| self.stacks.get(s as usize)) {
            annotations.push(("stack", Value::Text(stack)));
        }
        let event = Event { name: lookup.kind.word(), annotations, ..Event::default() };
        self.trace.event(TrackEventType::Begin, track, at, &event)
    }

    /// Per device its requests in lanes, and how many are in flight.
    fn devices(&mut self) -> io::Result<()> {
        let mut devices: BTreeMap<Dev, Vec<Slice<usize>>> = BTreeMap::new();
        let end = self.recording.manifest.end.0;
        for (index, r) in self.recording.device_reads.iter().flatten().enumerate() {
            let ended = r.completed.map_or(end, |t| t.0).max(r.queued.0);
            devices.entry(r.dev).or_default().push(Slice { began: r.queued.0, ended, what: index });
        }
        let files = self.files_of_requests();
        for (number, (dev, mut requests)) in devices.into_iter().enumerate() {
            let number = number as u64;
            let known = self.recording.manifest.device(dev);
            let name = known.map_or_else(|| dev.to_string(), |d| d.name.clone());
            let parent = uuid(DEVICE, number);
            self.trace.track(parent, 0, 1000 + number, &format!("device {name}"))?;
            let counter = uuid(IN_FLIGHT, number);
            self.trace.counter(counter, parent, 0, "requests in flight", false)?;
            self.in_flight(counter, &requests)?;
            for (lane, slices) in lanes(&mut requests).into_iter().enumerate() {
                let track = uuid(LANE, number << 32 | lane as u64);
                self.trace.track(track, parent, lane as u64 + 1, "requests")?;
                for slice in slices {
                    let Some(read) = self.recording.device_reads.as_ref().and_then(|r| r.get(slice.what))
                    else {
                        continue;
                    };
                    self.request(track, slice.what, read, files.get(&slice.what))?;
                    self.trace.end(track, slice.ended)?;
                }
            }
        }
        Ok(())
    }

    /// The first few files of each request.
    fn files_of_requests(&self) -> HashMap<usize, Vec<FileIdx>> {
        let mut files: HashMap<usize, Vec<FileIdx>> = HashMap::new();
        for t in self.recording.transfers.iter().flatten() {
            let Some(file) = t.file else { continue };
            let named = files.entry(t.request as usize).or_default();
            if named.len() < MAX_NAMES && !named.contains(&file) {
                named.push(file);
            }
        }
        files
    }

    fn in_flight(&mut self, counter: u64, requests: &[Slice<usize>]) -> io::Result<()> {
        let mut changes: Vec<(u64, i64)> =
            requests.iter().flat_map(|r| [(r.began, 1), (r.ended, -1)]).collect();
        changes.sort_unstable();
        let mut value = 0;
        for (n, (at, by)) in changes.iter().enumerate() {
            value += by;
            // One value per point in time.
            if changes.get(n + 1).is_none_or(|next| next.0 != *at) {
                self.trace.count(counter, *at, value)?;
            }
        }
        Ok(())
    }

    fn request(
        &mut self,
        track: u64,
        index: usize,
        r: &DeviceRead,
        files: Option<&Vec<FileIdx>>,
    ) -> io::Result<()> {
        let names: Vec<String> =
            files.into_iter().flatten().map(|f| wording::path(self.recording, *f)).collect();
        let names = names.join("\n");
        let name = format!("{} KiB", r.bytes.div_ceil(1024));
        let mut annotations = vec![
            ("sector", Value::Uint(r.sector)),
            ("bytes", Value::Uint(u64::from(r.bytes))),
            ("pid", Value::Uint(u64::from(r.pid))),
            ("of the start", Value::Bool(r.in_tree)),
            ("metadata", Value::Bool(r.metadata)),
            ("read-ahead", Value::Bool(r.readahead)),
        ];
        if !names.is_empty() {
            annotations.push(("files", Value::Text(&names)));
        }
        if let Some(issued) = r.issued {
            annotations.push(("queued ns", Value::Uint(issued.0.saturating_sub(r.queued.0))));
        }
        if r.completed.is_none() {
            annotations.push(("completed", Value::Bool(false)));
        }
        let flows: &Flows = self.flows;
        let (flows, flows_ending) = flows.of_request(index);
        self.trace.event(
            TrackEventType::Begin,
            track,
            r.queued.0,
            &Event { name: &name, annotations, flows, flows_ending },
        )
    }

    /// Per costly file the bytes that were read into the cache and still are there.
    fn files(&mut self, analysis: &Analysis) -> io::Result<()> {
        let costly: BTreeMap<FileIdx, usize> = analysis
            .files
            .iter()
            .filter(|f| f.read.0 > 0 && f.file < u32::MAX)
            .take(MAX_FILES)
            .enumerate()
            .map(|(rank, f)| (f.file, rank))
            .collect();
        if costly.is_empty() {
            return Ok(());
        }
        let page = self.recording.page_bytes();
        // (file, at, first page, pages, filled)
        let mut changes: Vec<(FileIdx, u64, u64, u32, bool)> = Vec::new();
        let fills = self.recording.fills.iter().flatten();
        changes.extend(fills.map(|f| (f.file, f.at.0, f.first_page, f.pages, true)));
        let evictions = self.recording.evictions.iter().flatten();
        changes.extend(evictions.map(|e| (e.file, e.at.0, e.first_page, e.pages, false)));
        changes.retain(|c| costly.contains_key(&c.0));
        changes.sort_by_key(|c| (c.0, c.1));
        let parent = uuid(FILES, 0);
        self.trace.track(parent, 0, 2000, "files: bytes read into the cache")?;
        for of_one in changes.chunk_by(|a, b| a.0 == b.0) {
            let Some((file, ..)) = of_one.first().copied() else { continue };
            let track = uuid(FILE, u64::from(file));
            let rank = costly.get(&file).copied().unwrap_or_default() as u64;
            self.trace.counter(track, parent, rank, &wording::path(self.recording, file), true)?;
            self.trace.count(track, self.recording.manifest.start.0, 0)?;
            let mut resident: HashMap<u64, u32> = HashMap::new();
            let mut pages = 0_u64;
            for (n, (_, at, first, count, filled)) in of_one.iter().enumerate() {
                // What was in the cache before is not counted, so nor is its leaving.
                let before = if *filled { resident.insert(*first, *count) } else { resident.remove(first) };
                pages = pages.saturating_sub(u64::from(before.unwrap_or(0)));
                pages += if *filled { u64::from(*count) } else { 0 };
                if of_one.get(n + 1).is_none_or(|next| next.1 != *at) {
                    let bytes = pages.saturating_mul(page);
                    self.trace.count(track, *at, i64::try_from(bytes).unwrap_or(i64::MAX))?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
