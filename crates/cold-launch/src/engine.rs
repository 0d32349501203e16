//! Does a plan's steps: looks names up, opens, reads ahead, in order, within its limits.

use std::fs::File;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use cold_model::Nanos;
use cold_model::pages::Range;
use cold_plan::format::View;
use cold_plan::plan::{FileKind, Gate, Op, Step};
use cold_sys::readahead::{await_page, read_ahead};
use cold_sys::shared::SharedWords;
use cold_sys::time::monotonic;

use crate::brought::Brought;
use crate::files::Files;
use crate::flight::Window;
use crate::guard;
use crate::places::Places;
use crate::progress::Progress;

/// Fewer lookups per thread are not worth the thread (30 µs).
const LOOKUPS_PER_THREAD: usize = 8;

/// What a replay may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes asked for.
    pub(crate) bytes: u64,
    /// Bytes in flight; 0 for no bound.
    pub(crate) in_flight: u64,
    /// Bytes per call.
    pub(crate) chunk: u64,
    /// Threads that read.
    pub(crate) threads: usize,
    /// Files kept open at a time; as many again may be held by chunks in flight.
    pub(crate) files: usize,
    /// When it ends, done or not.
    pub(crate) deadline: Instant,
    /// When the program may begin.
    pub(crate) gate: Gate,
    /// Only steps that lack a page are asked for, as far as the kernel tells, and these can be touched ([`Engine::touch`]).
    pub(crate) absent_only: bool,
}

impl Limits {
    /// Descriptors that a replay may have at a time.
    pub(crate) fn most_open(&self) -> usize {
        /// Directories that are gone through by name, mounts.
        const OTHERS: usize = 64;
        2 * self.files + OTHERS
    }
}

/// What a replay did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Bytes asked for (also of pages that were there already).
    pub bytes: u64,
    /// Calls of `readahead`.
    pub calls: u32,
    /// Files found as the plan says.
    pub files: u32,
    /// Files missing or changed.
    pub gone: u32,
    /// Bytes of steps whose file was missing or changed.
    pub stale_bytes: u64,
    /// When the first of these calls was made (`CLOCK_MONOTONIC`).
    pub first: Option<Nanos>,
}

/// What a thread has in flight, and whether what it did is enough: asked before each chunk.
struct Work<'w> {
    window: Window,
    is_enough: &'w mut dyn FnMut() -> bool,
}

/// A replay under way; its threads share it.
pub(crate) struct Engine<'a> {
    view: View<'a>,
    files: Files<'a>,
    /// Shared with whoever waits for it, and with a process that goes on with it.
    progress: Progress<'a>,
    limits: Limits,
    /// It goes on with what another process began.
    took_over: bool,
    critical_left: AtomicU32,
    /// Steps that were asked for, where only absent ones are, and their absent pages as far as the kernel tells.
    asked: Mutex<Vec<(Step, Vec<Range>)>>,
}

/// Which steps a thread does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Share {
    All,
    Reads,
    Lookups,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(view: View<'a>, places: &'a Places, shared: &'a SharedWords, limits: Limits) -> Self {
        Self {
            view,
            files: Files::new(view, places, limits.files),
            progress: Progress(shared),
            limits,
            took_over: false,
            critical_left: AtomicU32::new(view.critical_steps().len() as u32),
            asked: Mutex::default(),
        }
    }

    /// For going on with a replay that another process began with the same numbers: that one does no further step once
    /// [`Progress::take_over`] was called.
    pub(crate) fn going_on(self) -> Self {
        Self { took_over: true, ..self }
    }

    /// Ends the replay before its next step.
    pub(crate) fn stop(&self) {
        self.progress.stop();
        self.open_gate();
    }

    /// No further step is this process' business.
    fn is_over(&self) -> bool {
        self.progress.is_stopped()
            || !self.took_over && self.progress.is_taken_over()
            || Instant::now() >= self.limits.deadline
    }

    pub(crate) fn tally(&self) -> Tally {
        let (files, gone) = self.files.counts();
        Tally {
            bytes: self.progress.bytes(),
            calls: self.progress.calls(),
            files,
            gone,
            stale_bytes: self.progress.stale(),
            first: self.progress.first(),
        }
    }

    /// More than half of the plan's bytes belong to files that are missing or changed.
    pub(crate) fn is_stale(&self) -> bool {
        self.progress.stale() > self.view.read_bytes() / 2
    }

    /// Does all steps and returns when they are done or the limits are reached.
    pub(crate) fn run(&self) {
        if self.view.critical_steps().len() == 0 || self.limits.gate == Gate::None {
            self.open_gate();
        }
        let lookups = self.view.steps().filter(|s| s.op != Op::Read).count();
        let readers = self.limits.threads.max(1);
        // A lookup waits for one small read after the other, so on a slow disk more of them at a time are
        // faster. Where the blocks for it are read ahead it is computing, and threads only take the CPUs from
        // those that read and from the program: with 8 the gate opened 2 ms late on 2 CPUs.
        let most = if self.has_blocks() { 1 } else { readers };
        let helpers = (lookups / LOOKUPS_PER_THREAD).min(most);
        let own = if helpers == 0 { Share::All } else { Share::Reads };
        std::thread::scope(|scope| {
            // Without more threads (a limit on processes) fewer do the same.
            let more = (0..helpers).map(|_| Share::Lookups).chain((1..readers).map(|_| Share::Reads));
            let mut started = 0;
            for share in more {
                let work = move || self.work(share, readers, &mut || false);
                started += usize::from(
                    std::thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, work).is_ok(),
                );
            }
            self.work(if started < helpers { Share::All } else { own }, readers, &mut || false);
        });
        self.open_gate();
    }

    /// Does all steps in this thread alone, or those before `is_enough` says so.
    pub(crate) fn run_until(&self, is_enough: &mut dyn FnMut() -> bool) {
        self.work(Share::All, 1, is_enough);
        self.open_gate();
    }

    /// The plan has blocks of file systems, and this process may read them.
    fn has_blocks(&self) -> bool {
        self.devices().next().is_some()
    }

    /// The plan's devices that this process may read, by their numbers in the plan.
    pub(crate) fn devices(&self) -> impl Iterator<Item = (u32, Arc<File>)> {
        let devices = (0..).zip(self.view.files()).filter(|(_, file)| file.kind() == FileKind::BlockDevice);
        devices.filter_map(|(index, _)| Some((index, self.files.get(index)?)))
    }

    /// Has a device of the plan opened already, by who may do so.
    pub(crate) fn give_device(&self, index: u32, file: File) {
        self.files.give(index, file);
    }

    /// What it may use.
    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    pub(crate) fn progress(&self) -> Progress<'a> {
        self.progress
    }

    fn work(&self, share: Share, readers: usize, is_enough: &mut dyn FnMut() -> bool) {
        let window = Window::new(self.limits.in_flight / readers as u64, self.limits.files / readers);
        let mut work = Work { window, is_enough };
        let mut in_tail = false;
        while !self.is_over() {
            let Some(step) = self.next(share) else { break };
            if !step.critical && !in_tail {
                in_tail = true;
                self.enter_tail(&mut work.window);
            }
            self.step(step, &mut work);
        }
        // Whoever waits for what has been asked for must learn that it came.
        if self.limits.gate == Gate::Arrived && self.critical_left.load(Ordering::Relaxed) > 0 {
            self.critical_done(work.window.drain());
        }
    }

    /// The next step that is this thread's business.
    fn next(&self, share: Share) -> Option<Step> {
        loop {
            let step = self.view.steps().nth(self.progress.next(share == Share::Lookups))?;
            match share {
                Share::All => return Some(step),
                Share::Reads if step.op == Op::Read => return Some(step),
                Share::Lookups if step.op != Op::Read => return Some(step),
                _ => {}
            }
        }
    }

    fn enter_tail(&self, window: &mut Window) {
        if self.limits.gate == Gate::Arrived {
            self.critical_done(window.drain());
        }
        cold_sys::detached::lower_io_priority();
    }

    fn step(&self, step: Step, work: &mut Work<'_>) {
        self.progress.step();
        match step.op {
            Op::Read => return self.read(step, work),
            Op::Open => drop(self.files.get(step.file)),
            Op::List => self.files.list(step.file),
            Op::Stat => self.files.look_up(step.file),
        }
        self.critical_done(u32::from(step.critical));
    }

    fn read(&self, step: Step, work: &mut Work<'_>) {
        let all = u64::from(step.bytes);
        let Some(file) = self.files.get(step.file) else {
            // A device that this process may not read is no change.
            if self.view.file(step.file).is_some_and(|f| f.kind() == FileKind::Regular) {
                self.progress.count_stale(all);
            }
            if self.is_stale() {
                self.stop();
            }
            return self.critical_done(u32::from(step.critical));
        };
        let absent = self.limits.absent_only.then(|| guard::absent_runs(self.view, &file, step));
        if let Some(Some(runs)) = &absent
            && runs.is_empty()
        {
            return self.critical_done(u32::from(step.critical));
        }
        if self.progress.ask(all) > self.limits.bytes {
            self.progress.take_back(all);
            return self.stop();
        }
        if let Some(absent) = absent {
            self.asked().push((step, absent.unwrap_or_default()));
        }
        let (mut at, end) = (step.offset, step.offset.saturating_add(all));
        while at < end {
            if (work.is_enough)() {
                self.progress.take_back(end.saturating_sub(at));
                return self.stop();
            }
            let bytes = self.limits.chunk.min(end - at);
            self.critical_done(work.window.make_room(bytes));
            self.progress.call(monotonic);
            if read_ahead(&file, at, bytes).is_err() {
                break; // not readable this way (P3): nothing to wait for
            }
            at += bytes;
            // Only the last chunk of a step tells that the step has come.
            let tells = step.critical && at >= end && self.limits.gate == Gate::Arrived;
            work.window.enter(Arc::clone(&file), at - bytes, bytes, tells);
        }
        if step.critical && (self.limits.gate != Gate::Arrived || at < end) {
            self.critical_done(1);
        }
    }

    /// What was read into memory, where only absent steps are asked for.
    pub(crate) fn brought(&self) -> Brought {
        let mut brought = Brought::default();
        self.asked().iter().for_each(|(step, runs)| brought.add(step.file, runs));
        brought
    }

    fn asked(&self) -> std::sync::MutexGuard<'_, Vec<(Step, Vec<Range>)>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a byte of each page that [`Self::run`] asked for where only absent ones are, until the time is up.
    ///
    /// A disk's read puts pages into memory without a processor's doing. In a virtual machine, behind a program that had
    /// taken all memory, starts computed 26 % (`python3`) and 13 % (`gcc`) longer where nobody had read a byte of each
    /// page since (docs/benchmarks/service.md; a guess is that its host gives the memory back at the first touch). It
    /// takes about 1 µs a page, while nobody waits.
    pub(crate) fn touch(&self) {
        let page = cold_sys::page::page_size();
        for (step, _) in self.asked().iter() {
            let Some(file) = self.files.get(step.file) else { continue };
            let end = step.offset.saturating_add(u64::from(step.bytes));
            for at in (step.offset..end).step_by(page as usize) {
                if Instant::now() >= self.limits.deadline {
                    return;
                }
                if await_page(&file, at).is_err() {
                    break; // not readable, as in `read`
                }
            }
        }
    }

    fn critical_done(&self, steps: u32) {
        if steps == 0 {
            return;
        }
        self.progress.critical(steps);
        if self.critical_left.fetch_sub(steps, Ordering::AcqRel) == steps {
            self.open_gate();
        }
    }

    fn open_gate(&self) {
        self.progress.open_gate();
    }
}
