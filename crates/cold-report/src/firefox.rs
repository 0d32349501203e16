//! A recording as a profile for the Firefox Profiler (profiler.firefox.com, "Load a profile from file").
//!
//! Per thread its waits as samples weighted by their time, so that the call tree and flame graph show
//! what waited; needed pages as samples without weight; waits, buffered reads and path resolutions as
//! `FileIO` markers with stacks; per process the bytes read into the cache as a counter. Times are from
//! the start. Function names are in the profile: the viewer need not ask a symbol server.

mod libraries;
mod markers;
mod weights;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use cold_analyze::Analysis;
use cold_model::layout::Layouts;
use cold_model::recording::{Recording, StackIdx, TouchKind};
use cold_model::{Known, Nanos};
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, MarkerTiming, ProcessHandle, Profile, ReferenceTimestamp,
    SamplingInterval, StackHandle, StringHandle, ThreadHandle, Timestamp, WeightType,
};

use crate::wording;
use libraries::Libraries;
use markers::{FileIo, Ready};

/// Threads that are shown first: those that waited longest.
const SHOWN: usize = 10;

/// Writes the profile. Fails only when `out` does.
pub fn write(
    recording: &Recording,
    analysis: &Analysis,
    layouts: &Layouts,
    out: &mut dyn Write,
) -> io::Result<()> {
    let profile = Builder::new(recording, analysis, layouts).build();
    let mut buffered = io::BufWriter::with_capacity(1 << 20, out);
    serde_json::to_writer(weights::Weights::new(&mut buffered), &profile)?;
    buffered.flush()
}

/// What a marker says besides its time.
struct Io<'a> {
    operation: &'a str,
    source: &'a str,
    filename: &'a str,
    offset: Option<u64>,
    stack: Option<StackIdx>,
}

struct Builder<'a> {
    recording: &'a Recording,
    layouts: &'a Layouts,
    profile: Profile,
    libraries: Libraries,
    category: CategoryHandle,
    name: StringHandle,
    processes: BTreeMap<u32, ProcessHandle>,
    threads: BTreeMap<(u32, u32), ThreadHandle>,
    stacks: HashMap<(ThreadHandle, StackIdx), Option<StackHandle>>,
}

impl<'a> Builder<'a> {
    fn new(recording: &'a Recording, analysis: &Analysis, layouts: &'a Layouts) -> Self {
        let manifest = &recording.manifest;
        let began = manifest.started_at.parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_millisecond);
        let reference = ReferenceTimestamp::from_millis_since_unix_epoch(began as f64);
        let mut profile =
            Profile::new(&analysis.headline.subject, reference, SamplingInterval::from_millis(1));
        let os = [manifest.machine.os.as_str(), manifest.machine.kernel.as_str()].join(" ");
        profile.set_os_name(os.trim());
        profile.set_symbolicated(true);
        let category = profile.add_category("Storage", CategoryColor::Orange);
        let libraries = Libraries::add(&mut profile, recording, layouts);
        let name = profile.intern_string("FileIO");
        let (processes, threads) = (BTreeMap::new(), BTreeMap::new());
        Self {
            recording,
            layouts,
            profile,
            libraries,
            category,
            name,
            processes,
            threads,
            stacks: HashMap::new(),
        }
    }

    fn build(mut self) -> Profile {
        self.tasks();
        self.stalls();
        self.touches();
        self.lookups();
        self.bytes_read();
        self.ready();
        self.show();
        self.profile
    }

    fn at(&self, time: Nanos) -> Timestamp {
        Timestamp::from_nanos_since_reference(time.0.saturating_sub(self.recording.manifest.start.0))
    }

    /// Processes and threads that the tables list.
    fn tasks(&mut self) {
        let recording = self.recording;
        for p in &recording.processes {
            let (began, ended) = (self.at(p.began), p.ended.map(|e| self.at(e)));
            let process = match self.processes.get(&p.pid) {
                // A later image of the process: the last name is what people know it by.
                Some(known) => *known,
                None => self.profile.add_process(&p.name, p.pid, began),
            };
            self.processes.insert(p.pid, process);
            self.profile.set_process_name(process, &p.name);
            if let Some(ended) = ended {
                self.profile.set_process_end_time(process, ended);
            }
        }
        for t in &recording.threads {
            let (began, ended) = (self.at(t.began), t.ended.map(|e| self.at(e)));
            let thread = self.thread(t.pid, t.tid, began);
            self.profile.set_thread_name(thread, &t.name);
            if let Some(ended) = ended {
                self.profile.set_thread_end_time(thread, ended);
            }
        }
    }

    fn process(&mut self, pid: u32, began: Timestamp) -> ProcessHandle {
        let profile = &mut self.profile;
        *self.processes.entry(pid).or_insert_with(|| profile.add_process("", pid, began))
    }

    fn thread(&mut self, pid: u32, tid: u32, began: Timestamp) -> ThreadHandle {
        if let Some(thread) = self.threads.get(&(pid, tid)) {
            return *thread;
        }
        let process = self.process(pid, began);
        let thread = self.profile.add_thread(process, tid, began, pid == tid);
        self.profile.set_thread_samples_weight_type(thread, WeightType::TracingMs);
        self.threads.insert((pid, tid), thread);
        thread
    }

    fn stack(&mut self, thread: ThreadHandle, stack: Option<StackIdx>) -> Option<StackHandle> {
        let index = stack?;
        if let Some(known) = self.stacks.get(&(thread, index)) {
            return *known;
        }
        let stack = self.recording.stacks.as_ref()?.get(index as usize)?;
        let mut frames = Vec::new();
        for (depth, frame) in stack.frames.iter().enumerate().rev() {
            let (profile, libraries) = (&mut self.profile, &self.libraries);
            frames.extend(libraries.frames(
                profile,
                self.recording,
                self.layouts,
                frame,
                depth == 0,
                self.category,
            ));
        }
        let handle = self.profile.intern_stack_frames(thread, frames.into_iter());
        self.stacks.insert((thread, index), handle);
        handle
    }

    fn marker(&mut self, thread: ThreadHandle, tid: u32, timing: MarkerTiming, io: &Io<'_>) {
        let marker = FileIo {
            name: self.name,
            category: self.category,
            operation: self.profile.intern_string(io.operation),
            source: self.profile.intern_string(io.source),
            filename: self.profile.intern_string(io.filename),
            thread: self.profile.intern_string(&tid.to_string()),
            offset: io.offset.map_or(f64::NAN, |o| o as f64),
        };
        let stack = self.stack(thread, io.stack);
        let handle = self.profile.add_marker(thread, timing, marker);
        self.profile.set_marker_stack(thread, handle, stack);
    }

    fn bytes(&self, page: u64) -> u64 {
        page.saturating_mul(self.recording.page_bytes())
    }

    fn stalls(&mut self) {
        let recording = self.recording;
        for s in recording.stalls.iter().flatten() {
            let began = self.at(s.began);
            let thread = self.thread(s.pid, s.tid, began);
            let stack = self.stack(thread, s.stack);
            let end = s.woken.or(s.ended).unwrap_or(recording.manifest.end).max(s.began);
            let micros = i32::try_from((end.0 - s.began.0).div_ceil(1000)).unwrap_or(i32::MAX);
            self.profile.add_sample(thread, began, stack, CpuDelta::ZERO, micros);
            let filename = s.file.map(|f| wording::path(recording, f)).unwrap_or_default();
            let io = Io {
                operation: s.cause.word(),
                source: "wait",
                filename: &filename,
                offset: s.page.map(|p| self.bytes(p)),
                stack: s.stack,
            };
            self.marker(thread, s.tid, MarkerTiming::Interval(began, self.at(end)), &io);
        }
    }

    fn touches(&mut self) {
        let recording = self.recording;
        // Pages mapped around a fault were not needed for certain, and nothing ran for them.
        for t in recording.touches.iter().flatten().filter(|t| t.kind != TouchKind::FaultAround) {
            let at = self.at(t.at);
            let thread = self.thread(t.pid, t.tid, at);
            if t.stack.is_some() {
                let stack = self.stack(thread, t.stack);
                self.profile.add_sample(thread, at, stack, CpuDelta::ZERO, 0);
            }
            if t.kind == TouchKind::Read {
                let filename = wording::path(recording, t.file);
                let offset = Some(self.bytes(t.first_page));
                let io =
                    Io { operation: "read", source: "call", filename: &filename, offset, stack: t.stack };
                self.marker(thread, t.tid, MarkerTiming::Instant(at), &io);
            }
        }
    }

    fn lookups(&mut self) {
        let recording = self.recording;
        for l in recording.lookups.iter().flatten() {
            let began = self.at(l.at);
            let thread = self.thread(l.pid, l.tid, began);
            let by_file = || l.file.map(|f| wording::path(recording, f));
            let filename = l.shown_place().map(Cow::into_owned).or_else(by_file).unwrap_or_default();
            let source = if l.result < 0 {
                format!("failed: error {}", l.result.unsigned_abs())
            } else {
                "call".to_owned()
            };
            let operation = l.kind.word();
            let io = Io { operation, source: &source, filename: &filename, offset: None, stack: l.stack };
            let timing = MarkerTiming::Interval(began, self.at(l.ended.max(l.at)));
            self.marker(thread, l.tid, timing, &io);
        }
    }

    /// Bytes read into the cache by each process of the start.
    fn bytes_read(&mut self) {
        let recording = self.recording;
        let mut counters = BTreeMap::new();
        let page = recording.page_bytes() as f64;
        for f in recording.fills.iter().flatten().filter(|f| f.in_tree) {
            let at = self.at(f.at);
            let counter = if let Some(known) = counters.get(&f.pid) {
                *known
            } else {
                let process = self.process(f.pid, at);
                // The viewer adds up a "Memory" counter, which this is; "Bandwidth" is a network's to it,
                // with an estimate of the CO₂ of each byte.
                let counter = self.profile.add_counter(
                    process,
                    "read into the cache",
                    "Memory",
                    "Bytes read into the page cache",
                );
                self.profile.add_counter_sample(counter, self.at(recording.manifest.start), 0.0, 0);
                counters.insert(f.pid, counter);
                counter
            };
            self.profile.add_counter_sample(counter, at, f64::from(f.pages) * page, 1);
        }
    }

    fn ready(&mut self) {
        let Some(Known::Value(ready)) = self.recording.manifest.ready else { return };
        let first = self.recording.processes.iter().find(|p| p.in_tree).map(|p| p.pid);
        let Some(pid) = first else { return };
        let thread = self.thread(pid, pid, self.at(self.recording.manifest.start));
        let name = self.profile.intern_string("Ready");
        let means = self.profile.intern_string(&self.recording.manifest.ready_means);
        let at = self.at(ready);
        self.profile.add_marker(thread, MarkerTiming::Instant(at), Ready { name, means });
    }

    /// Shows the threads that waited longest; the viewer's own choice goes by CPU time, of which this
    /// profile has none.
    fn show(&mut self) {
        let mut waited: HashMap<(u32, u32), u64> = HashMap::new();
        for s in self.recording.stalls.iter().flatten() {
            let end = s.woken.or(s.ended).unwrap_or(self.recording.manifest.end);
            let sum = waited.entry((s.pid, s.tid)).or_default();
            *sum = sum.saturating_add(end.0.saturating_sub(s.began.0));
        }
        let mut order: Vec<_> = waited.into_iter().collect();
        order.sort_unstable_by_key(|(ids, time)| (std::cmp::Reverse(*time), *ids));
        for (n, (ids, _)) in order.iter().take(SHOWN).enumerate() {
            let Some(thread) = self.threads.get(ids) else { continue };
            self.profile.add_initial_visible_thread(*thread);
            self.profile.set_thread_show_markers_in_timeline(*thread, true);
            if n == 0 {
                self.profile.add_initial_selected_thread(*thread);
            }
        }
    }
}

#[cfg(test)]
mod tests;
