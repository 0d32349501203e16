//! The one pass in order of time. Pure.

use std::collections::{BTreeSet, HashMap, HashSet};

use cold_model::Dev;
use cold_model::file::Content;
use cold_model::kernel::faults_map_whole_folios;
use cold_model::recording::manifest::{Awaited, Manifest, ReachedBy, Subject, Tier};
use cold_model::recording::{
    Eviction, FileIdx, FileKind, Lookup, Mapping, OffCpu, Readahead, ReadaheadKind, Recording, StackIdx,
    Stall,
};
use cold_model::{Known, Nanos, recording};

use super::causes;
use super::files::{Files, escape};
use super::index::{ContextKey, Index};
use super::input::{Event, Input, Timed};
use super::mounts::Mounts;
use super::pages::{Pages, Unseen};
use super::requests::Requests;
use super::space::Spaces;
use super::stacks::{self, Stacks};
use super::tasks::Tasks;
use super::{calls, off_cpu, residency, side_band};
use crate::machine::FilesNow;
use crate::raw;
use crate::syscalls::{Class, class};
use crate::unwind::{Unwinder, Unwound};
use crate::waiting::{Waiting, waiting};

/// The kernel's own window around a fault, bytes (`fault_around_bytes`), where a log does not say.
const FAULT_AROUND: u64 = 65536;

/// Everything that is being put together.
pub(super) struct Builder<'a> {
    pub(super) input: &'a Input,
    pub(super) index: Index,
    pub(super) mounts: Mounts,
    pub(super) files: Files,
    pub(super) tasks: Tasks,
    pub(super) spaces: Spaces,
    pub(super) pages: Pages,
    pub(super) stacks: Stacks,
    pub(super) mappings: Vec<Mapping>,
    requests: Requests,
    stalls: Vec<(Stall, ContextKey)>,
    off_cpu: Vec<OffCpu>,
    /// Who woke the recorder, and when: time, process, thread.
    heard: Vec<(u64, u32, u32)>,
    lookups: Vec<(Lookup, ContextKey)>,
    advice: Vec<recording::Advice>,
    readahead: Vec<Readahead>,
    evictions: Vec<Eviction>,
    /// Calls of the read family in which a task waited: file and page of their position.
    waited_reads: HashMap<ContextKey, (FileIdx, u64)>,
    /// What the kernel waits for, by thread and begin of the stall.
    waiting: HashMap<ContextKey, Waiting>,
    /// The stack of a fault or call.
    stack_of: HashMap<ContextKey, StackIdx>,
    /// Lost records that the log itself reports, of perf events.
    pub(super) lost: HashMap<&'static str, u64>,
    pub(super) tier: Tier,
    /// Bytes per page.
    pub(super) page: u64,
    /// Bytes of the window around a fault.
    pub(super) window: u64,
}

impl<'a> Builder<'a> {
    pub(super) fn new(input: &'a Input, manifest: &Manifest) -> Self {
        let page = u64::from(manifest.page_bytes);
        let mounts = Mounts::new(input.mounts.clone());
        let mut files = Files::default();
        let index = Index::build(input, &mut files, &mounts, page);
        let mut tasks = Tasks::default();
        tasks.everybody = manifest.subject == Subject::Machine;
        Self {
            input,
            index,
            mounts,
            files,
            tasks,
            spaces: Spaces::default(),
            pages: Pages::default(),
            stacks: Stacks::default(),
            mappings: Vec::new(),
            requests: Requests::default(),
            stalls: Vec::new(),
            off_cpu: Vec::new(),
            heard: Vec::new(),
            lookups: Vec::new(),
            advice: Vec::new(),
            readahead: Vec::new(),
            evictions: Vec::new(),
            waited_reads: HashMap::new(),
            waiting: HashMap::new(),
            stack_of: HashMap::new(),
            lost: HashMap::new(),
            tier: manifest.tier,
            page,
            window: manifest.fault_around.value().map_or(FAULT_AROUND, |bytes| bytes.0),
        }
    }

    pub(super) fn event(&mut self, event: &Event<'_>, unwinder: &mut dyn Unwinder) {
        match event {
            Event::Bpf(record) => self.bpf(record, unwinder),
            Event::Perf(record) => side_band::perf(self, record, unwinder),
            Event::Timed(Timed::Follow { pid, itself }) => self.tasks.follow(*pid, *itself),
            Event::Timed(Timed::Existing(e)) => side_band::existing(self, e),
            Event::Timed(Timed::CommandLine { pid, arguments }) => {
                self.tasks.arguments(*pid, arguments.clone());
            }
        }
    }

    fn bpf(&mut self, record: &raw::RawRecord<'_>, unwinder: &mut dyn Unwinder) {
        let head = &record.head;
        let in_tree = self.tasks.said_in_tree(head.pid, head.in_tree());
        match &record.event {
            raw::Event::Fork(t) => {
                self.tasks.fork(head.at, t.pid, t.tid, head.pid, Some(&escape(t.comm)));
                if self.input.areas_by_bpf && t.pid != head.pid {
                    self.spaces.fork(head.pid, t.pid);
                }
            }
            raw::Event::Comm(t) => self.tasks.rename(t.pid, t.tid, &escape(t.comm)),
            raw::Event::Exec(e) => self.exec(head, e),
            raw::Event::Exit(e) => {
                // Only the last thread's status is the process'.
                let status = e.last.then_some(e.status);
                if self.tasks.exit(head.at, head.pid, head.tid, Some(e.last), status) {
                    self.spaces.clear(head.pid);
                }
            }
            raw::Event::Stall(s) if in_tree => self.stall(head, s),
            raw::Event::Off(o) if in_tree => self.off_cpu.push(off_cpu::off(head, o)),
            raw::Event::Area(a) if in_tree => side_band::area(self, head, a),
            raw::Event::Heard => self.heard.push((head.at, head.pid, head.tid)),
            raw::Event::Call(c) if in_tree => self.call(head, c),
            raw::Event::Request(r) => self.requests.issued(head, r, in_tree, &mut self.files, self.page),
            raw::Event::Done(d) => self.requests.done(head.at, d),
            raw::Event::Readahead(r) => self.ahead(head, r, in_tree),
            raw::Event::Delete(d) => self.delete(head.at, d),
            raw::Event::Stack(s) => {
                let unwound = Unwound { addresses: s.frames().collect(), truncated: s.full };
                if let Some(stack) = self.stacks.add(head.pid, unwound, &self.spaces) {
                    self.stack_of.insert((head.tid, s.context), stack);
                }
            }
            raw::Event::Wait(s) => {
                if let Some(what) = waiting(&self.input.kernel, s.frames()) {
                    self.waiting.insert((head.tid, s.context), what);
                }
            }
            raw::Event::StackCopy(s) => {
                let copy = stacks::of_bpf(s);
                let stack = copy.and_then(|copy| {
                    self.stacks.unwind(head.pid, &copy, &self.spaces, &self.files.rows, unwinder)
                });
                if let Some(stack) = stack {
                    self.stack_of.insert((head.tid, s.context), stack);
                }
            }
            raw::Event::Fault(_) | raw::Event::Map(_) | raw::Event::Get(_) | raw::Event::Add(_) => {
                self.page_event(head, &record.event, in_tree);
            }
            raw::Event::PageFault(f) => self.page_fault(head, f, in_tree),
            raw::Event::Stall(_)
            | raw::Event::Area(_)
            | raw::Event::Off(_)
            | raw::Event::Call(_)
            | raw::Event::File(_)
            | raw::Event::Unknown => {}
        }
    }

    fn exec(&mut self, head: &raw::Header, exec: &raw::Exec<'_>) {
        self.tasks.exec(head.at, head.pid, &escape(exec.comm));
        let file = self.files.index(exec.file);
        self.tasks.executable(head.pid, file);
        let cut = exec.argument_bytes as usize > exec.arguments.len();
        let text = exec.arguments.strip_suffix(b"\0").unwrap_or(exec.arguments);
        if !text.is_empty() {
            let mut arguments: Vec<String> = text.split(|b| *b == 0).map(escape).collect();
            if let (true, Some(last)) = (cut, arguments.last_mut()) {
                last.push('…');
            }
            self.tasks.arguments(head.pid, arguments);
        }
    }

    fn call(&mut self, head: &raw::Header, call: &raw::Call<'_>) {
        match class(call.syscall) {
            Class::Lookup(kind) if !calls::by_descriptor(call, kind) => {
                let row = calls::lookup(head, call, kind, &mut self.files);
                self.lookups.push((row, (head.tid, call.began)));
            }
            Class::Advice => self.advice.extend(calls::advice(head, call, &mut self.files, &self.spaces)),
            Class::Read if self.index.has_gets => self.end_read(head, call),
            Class::Read => self.read_call(head, call),
            _ => {}
        }
    }

    fn stall(&mut self, head: &raw::Header, raw: &raw::Stall) {
        let key = (head.tid, raw.context.at);
        let iowait = raw.state & raw::STALL_IOWAIT != 0;
        let waiting = self.waiting.remove(&(head.tid, raw.began));
        let cause = causes::stall(raw.context.doing, raw.context.syscall, iowait, waiting);
        self.off_cpu.push(off_cpu::stall(head, raw, cause));
        let Some(cause) = cause else { return };
        let place = match raw.context.doing {
            raw::Doing::Fault => {
                let place = self.fault_place(head.pid, head.tid, &raw.context, raw.address);
                place.map(|(file, page)| (file, Some(page)))
            }
            raw::Doing::Call => {
                let got = self.index.next_got(key, head.at).filter(|_| raw.context.at != 0);
                let got = got.map(|(file, page)| (file, Some(page)));
                got.or_else(|| self.call_place(head.tid, &raw.context))
            }
            _ => None,
        };
        if raw.context.doing == raw::Doing::Call
            && class(raw.context.syscall) == Class::Read
            && let Some(file) = self.files.index(raw.context.file)
            && let Some(page) = raw.context.page()
            && self.files.row(file).is_some_and(|f| f.kind == FileKind::Regular)
        {
            self.waited_reads.insert(key, (file, page));
        }
        let user_fault = raw.context.doing == raw::Doing::Fault && raw.context.syscall < 0;
        let stall = Stall {
            began: Nanos(raw.began.min(head.at)),
            woken: (raw.state & raw::STALL_WOKEN != 0).then_some(Nanos(raw.woken)),
            ended: Some(Nanos(head.at)),
            pid: head.pid,
            tid: head.tid,
            cause,
            file: place.map(|p| p.0),
            page: place.and_then(|p| p.1),
            system_call: u32::try_from(raw.context.syscall).ok().filter(|_| !user_fault),
            lookup: None,
            stack: None,
        };
        self.stalls.push((stall, key));
    }

    /// File and page that a call waited for: the position of a read, the file of another descriptor, else
    /// what it filled last (the directory block or inode table block of a lookup).
    fn call_place(&mut self, tid: u32, context: &raw::Context) -> Option<(FileIdx, Option<u64>)> {
        match self.files.index(context.file) {
            Some(file) => {
                let reads = class(context.syscall) == Class::Read;
                Some((file, context.page().filter(|_| reads)))
            }
            None => self.pages.last_fill(tid, context.at).map(|(file, page)| (file, Some(page))),
        }
    }

    fn ahead(&mut self, head: &raw::Header, r: &raw::ReadaheadEvent, in_tree: bool) {
        let kind = match r.kind {
            raw::READAHEAD_SYNC => ReadaheadKind::Sync,
            raw::READAHEAD_ASYNC => ReadaheadKind::Async,
            raw::READAHEAD_ORDER => ReadaheadKind::Order,
            _ => ReadaheadKind::Unbounded,
        };
        let Some(file) = self.files.index(r.file) else { return };
        self.readahead.push(Readahead {
            at: Nanos(head.at),
            pid: head.pid,
            tid: head.tid,
            in_tree,
            file,
            kind,
            index: r.index,
            window_first: r.start,
            window_pages: r.size,
            async_pages: r.async_size,
            asked_pages: u32::try_from(r.asked).unwrap_or(u32::MAX),
            limit_pages: r.ra_pages,
            mmap_miss: r.mmap_miss,
        });
    }

    fn delete(&mut self, at: u64, raw: &raw::Delete) {
        let Some(file) = self.files.index(raw.file) else { return };
        let pages = super::pages::folio_pages(raw.order);
        self.pages.evicted(at, file, raw.index, pages);
        self.evictions.push(Eviction { at: Nanos(at), file, first_page: raw.index, pages });
    }

    /// Ready is a line of output: who wrote last before it was read wrote it.
    fn reached_by(&self, manifest: &mut Manifest) {
        let output = manifest.awaited() == Awaited::Output && manifest.serving.is_none();
        let ready = manifest.ready.as_ref().and_then(Known::value).filter(|_| output);
        let last = ready.and_then(|ready| self.heard.iter().filter(|h| h.0 <= ready.0).max());
        if let Some((_, pid, tid)) = last {
            manifest.reached_by = Some(ReachedBy { pid: *pid, tid: Some(*tid) });
        }
    }

    pub(super) fn finish(mut self, mut manifest: Manifest, machine: &mut dyn FilesNow) -> Recording {
        for fact in &self.input.files {
            self.files.fact(fact);
        }
        let grown = self.sizes_now(machine);
        let mut residency = residency::residency(&mut self, &manifest, machine);
        let cached_before = residency.before.take();
        let bpf = matches!(self.tier, Tier::A | Tier::B);
        let unseen = Unseen {
            page: self.page,
            whole_folios: faults_map_whole_folios(&manifest.machine.kernel),
            fills_seen: bpf,
            huge: if manifest.mapped_huge.is_some_and(|n| n > 0) { &self.mappings } else { &[] },
        };
        let mut pages = std::mem::take(&mut self.pages);
        if self.tier == Tier::B {
            // A fast device answers before the task waits: then the call alone tells the file.
            for (key, place) in pages.reads() {
                self.waited_reads.entry(key).or_insert(place);
            }
        }
        self.waited_reads.retain(|key, _| !pages.filled_in(*key));
        pages.past_the_cache(&self.requests.name_direct(&self.waited_reads));
        let (reads, transfers) = std::mem::take(&mut self.requests).finish();
        if bpf {
            pages.read_to_be_written(&reads, &transfers);
        }
        let mut touches = pages.finish(&self.files.rows, &self.stack_of, residency, unseen, machine);
        touches.cut(&grown);
        let names: HashMap<Dev, String> = manifest.devices.iter().map(|d| (d.dev, d.name.clone())).collect();
        self.files.finish(&self.mounts, |dev| names.get(&dev).cloned());
        for (class, count) in &self.lost {
            let lost = manifest.lost.entry((*class).to_owned()).or_default();
            *lost = (*lost).max(*count);
        }
        self.reached_by(&mut manifest);
        if self.spaces.full {
            manifest.notes.push("there were too many mappings to follow all of them".to_owned());
        }
        let by_time = |m: &Mapping| m.at;
        self.mappings.sort_by_key(by_time);
        self.lookups.sort_by_key(|(l, _)| l.at);
        self.stalls.sort_by_key(|(s, _)| s.began);
        self.off_cpu.sort_by_key(|o| o.began);
        self.advice.sort_by_key(|a| a.at);
        let (lookups, stalls) = self.joined();
        let wanted = manifest.stacks != recording::manifest::StackMethod::None;
        let has_stacks = wanted || !self.stacks.rows.is_empty();
        let perf = !self.input.perf_events.is_empty();
        let mut recording = Recording {
            processes: self.tasks.processes,
            threads: self.tasks.threads,
            files: self.files.rows,
            touches: (bpf || perf).then_some(touches.touches),
            fills: (bpf || touches.fills_by_residency).then_some(touches.fills),
            evictions: bpf.then_some(self.evictions),
            residency: cached_before,
            readahead: (bpf && !self.readahead.is_empty()).then_some(self.readahead),
            advice: bpf.then_some(self.advice),
            device_reads: bpf.then_some(reads),
            transfers: bpf.then_some(transfers),
            stalls: bpf.then_some(stalls),
            off_cpu: (bpf && manifest.subject != Subject::Machine).then_some(self.off_cpu),
            lookups: bpf.then_some(lookups),
            mappings: (perf || self.input.areas_by_bpf).then_some(self.mappings),
            stacks: has_stacks.then_some(self.stacks.rows),
            manifest,
        };
        super::unused::drop_files(&mut recording);
        let used: HashSet<Dev> = recording.files.iter().map(|f| f.dev).collect();
        recording.manifest.file_systems.retain(|fs| used.contains(&fs.dev));
        recording
    }

    /// Files of which the start used pages, or asked for some.
    pub(super) fn files_used(&self) -> BTreeSet<FileIdx> {
        let mut used = self.pages.files_touched();
        used.extend(self.advice.iter().filter_map(|a| a.file));
        used
    }

    /// Sizes were told when each file was first seen; the start itself may have written them since. What it
    /// wrote and has deleted has no size that anybody knows: of such files the end of the last page filled
    /// is all there is. Answers with the pages of each file that has changed.
    fn sizes_now(&mut self, machine: &mut dyn FilesNow) -> HashMap<FileIdx, u64> {
        let filled = self.pages.filled();
        let mut changed = HashMap::new();
        for (index, file) in self.files.rows.iter_mut().enumerate() {
            if !matches!(file.kind, FileKind::Regular | FileKind::Other) || file.is_pseudo() {
                continue;
            }
            let index = index as FileIdx;
            let now = machine.content(file).filter(|_| !file.deleted);
            let end = filled.get(&index).copied().unwrap_or(0);
            match now {
                Some(Content { size, mtime_ns })
                    if (file.size, file.mtime_ns) != (Some(size), Some(mtime_ns)) =>
                {
                    changed.insert(index, size.div_ceil(self.page));
                    (file.size, file.mtime_ns) = (Some(size), Some(mtime_ns));
                }
                None if file.size.is_some_and(|size| size.div_ceil(self.page) < end) => {
                    changed.insert(index, end);
                    (file.size, file.mtime_ns) = (None, None);
                }
                _ => {}
            }
        }
        changed
    }

    /// Lookups and stalls with their stacks; stalls with the lookup in which they happened.
    fn joined(&mut self) -> (Vec<Lookup>, Vec<Stall>) {
        let stack = |key: ContextKey| if key.1 == 0 { None } else { self.stack_of.get(&key).copied() };
        let mut place: HashMap<ContextKey, u32> = HashMap::new();
        let mut lookups = Vec::with_capacity(self.lookups.len());
        for (n, (lookup, key)) in self.lookups.iter().enumerate() {
            place.insert(*key, n as u32);
            lookups.push(Lookup { stack: stack(*key), ..lookup.clone() });
        }
        let stalls = self.stalls.iter().map(|(stall, key)| Stall {
            stack: stack(*key),
            lookup: place.get(key).copied().filter(|_| key.1 != 0),
            ..*stall
        });
        (lookups, stalls.collect())
    }
}
