//! Per file: which pages were needed, read, read by others, read again. One replay in time order.
//!
//! The first event of a page tells its state at the beginning: a fill says it was absent, an eviction that
//! it was cached. From then on it is known; a page without either is *unknown*, which for a page that was
//! read or faulted means: cached before.

use std::collections::{BTreeMap, HashMap};

use cold_model::recording::manifest::Tier;
use cold_model::recording::{File, FileKind, FillCause, Recording, Touch, TouchKind};
use cold_model::{Known, Nanos};

use cold_model::pages::{LiveRuns, Range, Runs};

/// The time that counts: from the start to ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Start of the command, or of the recording.
    pub start: Nanos,
    /// Ready; the end of the recording where that is unknown.
    pub until: Nanos,
    /// `until` is ready.
    pub ready: bool,
}

impl Window {
    /// The window of a recording.
    pub fn of(recording: &Recording) -> Self {
        let m = &recording.manifest;
        let ready = match &m.ready {
            Some(Known::Value(t)) if *t >= m.start => Some(*t),
            _ => None,
        };
        Self { start: m.start, until: ready.unwrap_or(m.end.max(m.start)), ready: ready.is_some() }
    }
    /// The point in time lies in it.
    pub fn holds(&self, at: Nanos) -> bool {
        self.start <= at && at <= self.until
    }
    /// The part of an interval inside it, if any; one without an end lasts to the end.
    pub fn clip(&self, from: Nanos, to: Option<Nanos>) -> Option<(Nanos, Nanos)> {
        let (from, to) = (from.max(self.start), to.unwrap_or(self.until).min(self.until));
        (from < to).then_some((from, to))
    }
    /// A point in time from the start on; 0 for earlier ones.
    pub fn since_start(&self, at: Nanos) -> Nanos {
        at.saturating_sub(self.start)
    }
}

/// What happened to one file's pages in the window. All sets end at the file's size.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Usage {
    /// Touched for certain.
    pub exact: Runs,
    /// Mapped around a fault and not known to have been absent: perhaps touched. Without `exact`.
    pub upper: Runs,
    /// All of `exact` and `upper`.
    pub needed: Runs,
    /// Of `upper`, pages of a file that nobody could look at in the end (it is deleted): whether they were there at
    /// all is not known.
    pub unsure: Runs,
    /// Filled by the tree, written pages excepted.
    pub read: Runs,
    /// Filled by others, and not by the tree.
    pub by_others: Runs,
    /// Filled because they were written.
    pub written: Runs,
    /// Of `read`, metadata.
    pub metadata: Runs,
    /// Pages the tree filled again, counted each time.
    pub refilled: u64,
    /// New pages per cause, by the tree.
    pub causes: BTreeMap<FillCause, u64>,
    /// Pages of exact touches that were known to be absent and were not filled for them.
    pub contradicted: u64,
    /// When the first page of it was touched, by any kind of touch; `CLOCK_MONOTONIC`.
    pub first_touch: Option<Nanos>,
}

impl Usage {
    /// Read by the tree and not needed; metadata is neither.
    pub fn unused(&self) -> Runs {
        self.read.minus(&self.metadata).minus(&self.needed)
    }
    /// Needed and filled by nobody.
    pub fn cached(&self) -> Runs {
        self.needed.minus(&self.unsure).minus(&self.read).minus(&self.by_others).minus(&self.written)
    }
}

/// First page behind a file's end; `u64::MAX` where the size says nothing.
pub(crate) fn end_page(file: &File, page_bytes: u64) -> u64 {
    match (file.kind, file.size) {
        // A size of 0 beside touches: a file that has grown since, or one of /proc.
        (FileKind::Regular, Some(size)) if size > 0 => size.div_ceil(page_bytes),
        _ => u64::MAX,
    }
}

enum PageEvent<'a> {
    Evicted,
    Filled { in_tree: bool, cause: FillCause },
    Touched { touch: &'a Touch, next: Nanos },
}

type Timeline<'a> = Vec<(Nanos, Range, PageEvent<'a>)>;

/// Replays every file of the recording; one entry per row of `files`.
pub fn replay(recording: &Recording) -> Vec<Usage> {
    replay_within(recording, Window::of(recording))
}

/// The same for another time that counts.
pub fn replay_within(recording: &Recording, window: Window) -> Vec<Usage> {
    let cold = recording.manifest.state.is_cold();
    let files = &recording.files;
    timelines(recording, window)
        .into_iter()
        .zip(files)
        .map(|(mut events, file)| {
            events.sort_by_key(|e| e.0);
            let touched = events.iter().any(|e| matches!(e.2, PageEvent::Touched { .. }));
            // A device's own pages are metadata unless the program reads the device itself.
            let metadata = match file.kind {
                FileKind::Directory | FileKind::Symlink => true,
                FileKind::BlockDevice => !touched,
                _ => false,
            };
            let mut usage = Replay { window, metadata, ..Replay::default() }.run(&events, cold);
            if !file.deleted {
                usage.unsure = Runs::default();
            }
            usage
        })
        .collect()
}

/// Tiers C and D compare residency before and after: their fills are booked at the end of the recording,
/// but happened at some time before it, each before the first touch of its pages.
pub(crate) fn fills_have_times(recording: &Recording) -> bool {
    recording.manifest.tier.sees_all() || recording.manifest.tier == Tier::Imported
}

/// The events of each file up to the end of the window, its evictions first, then fills, then touches.
fn timelines(recording: &Recording, window: Window) -> Vec<Timeline<'_>> {
    let page = recording.page_bytes();
    let ends: Vec<u64> = recording.files.iter().map(|f| end_page(f, page)).collect();
    let mut of: Vec<Timeline<'_>> = std::iter::repeat_with(Vec::new).take(ends.len()).collect();
    let mut put = |at: Nanos, file: u32, first: u64, pages: u32, event| {
        let Some(&end) = ends.get(file as usize) else { return };
        let range = first.min(end)..first.saturating_add(u64::from(pages)).min(end);
        if at <= window.until && range.start < range.end {
            of[file as usize].push((at, range, event));
        }
    };
    for e in recording.evictions.iter().flatten() {
        put(e.at, e.file, e.first_page, e.pages, PageEvent::Evicted);
    }
    for f in recording.fills.iter().flatten() {
        let at = if fills_have_times(recording) { f.at } else { window.start };
        put(at, f.file, f.first_page, f.pages, PageEvent::Filled { in_tree: f.in_tree, cause: f.cause });
    }
    let touches = recording.touches.as_deref().unwrap_or_default();
    for (touch, next) in touches.iter().zip(next_touches(touches)) {
        put(touch.at, touch.file, touch.first_page, touch.pages, PageEvent::Touched { touch, next });
    }
    of
}

/// For each touch the time of the same thread's next exact one: until then its own fault is over.
fn next_touches(touches: &[Touch]) -> Vec<Nanos> {
    let mut next: HashMap<u32, Nanos> = HashMap::new();
    let mut out = vec![Nanos(u64::MAX); touches.len()];
    for (i, t) in touches.iter().enumerate().rev() {
        out[i] = next.get(&t.tid).copied().unwrap_or(Nanos(u64::MAX));
        if t.kind != TouchKind::FaultAround {
            next.insert(t.tid, t.at);
        }
    }
    out
}

struct Replay {
    window: Window,
    /// All of the file is metadata.
    metadata: bool,
    absent: LiveRuns,
    present: LiveRuns,
    tree: LiveRuns,
    /// Faults on absent pages whose fill has not come yet: page, and when it must have come.
    pending: Vec<(u64, Nanos)>,
    exact: Vec<Range>,
    around: Vec<Range>,
    around_unknown: Vec<Range>,
    read: Vec<Range>,
    others: Vec<Range>,
    written: Vec<Range>,
    meta: Vec<Range>,
    /// A page was touched that nobody filled: part of the file was cached before.
    cached_before: bool,
    out: Usage,
}

impl Default for Replay {
    fn default() -> Self {
        Self {
            window: Window { start: Nanos(0), until: Nanos(0), ready: false },
            metadata: false,
            absent: LiveRuns::default(),
            present: LiveRuns::default(),
            tree: LiveRuns::default(),
            pending: Vec::new(),
            exact: Vec::new(),
            around: Vec::new(),
            around_unknown: Vec::new(),
            read: Vec::new(),
            others: Vec::new(),
            written: Vec::new(),
            meta: Vec::new(),
            cached_before: false,
            out: Usage::default(),
        }
    }
}

impl Replay {
    fn run(mut self, events: &Timeline<'_>, cold: bool) -> Usage {
        // Backwards to the beginning: what a page's first event says about its state before it.
        for (_, range, event) in events.iter().rev() {
            match event {
                PageEvent::Filled { .. } => self.absent.insert(range),
                PageEvent::Evicted => self.absent.remove(range),
                PageEvent::Touched { .. } => {}
            }
        }
        for (at, range, event) in events {
            self.expire(*at);
            match event {
                PageEvent::Evicted => {
                    self.absent.insert(range);
                    self.present.remove(range);
                }
                PageEvent::Filled { in_tree, cause } => self.fill(*at, range, *in_tree, *cause),
                PageEvent::Touched { touch, next } if *at >= self.window.start => {
                    self.touch(range, touch, *next);
                }
                PageEvent::Touched { .. } => {}
            }
        }
        self.expire(Nanos(u64::MAX));
        self.finish(cold)
    }

    fn fill(&mut self, at: Nanos, range: &Range, in_tree: bool, cause: FillCause) {
        self.absent.remove(range);
        self.present.insert(range);
        self.pending.retain(|(page, _)| !range.contains(page));
        if at < self.window.start {
            return;
        }
        if !in_tree {
            self.others.push(range.clone());
            return;
        }
        let new = self.tree.holes(range);
        let pages: u64 = new.iter().map(|r| r.end - r.start).sum();
        self.out.refilled += (range.end - range.start) - pages;
        if pages > 0 {
            *self.out.causes.entry(cause).or_default() += pages;
        }
        self.tree.insert(range);
        if self.metadata || cause == FillCause::Metadata {
            self.meta.extend(new.iter().cloned());
        }
        if cause == FillCause::Write {
            self.written.extend(new);
        } else {
            self.read.extend(new);
        }
    }

    fn touch(&mut self, range: &Range, touch: &Touch, next: Nanos) {
        self.out.first_touch = Some(self.out.first_touch.map_or(touch.at, |t| t.min(touch.at)));
        if touch.kind == TouchKind::FaultAround {
            let present = self.present.within(range);
            for hole in self.present.holes(range) {
                self.around_unknown.extend(self.absent.holes(&hole));
            }
            self.around.extend(present);
            return;
        }
        self.exact.push(range.clone());
        let absent = self.absent.within(range);
        if absent.is_empty() {
            self.cached_before |= !self.present.holes(range).is_empty();
        }
        for hole in absent {
            if touch.kind == TouchKind::Fault && hole.end - hole.start == 1 {
                self.pending.push((hole.start, next));
            } else {
                self.out.contradicted += hole.end - hole.start;
            }
        }
    }

    /// Faults on an absent page whose thread went on without the page having been filled.
    fn expire(&mut self, now: Nanos) {
        if self.pending.is_empty() {
            return;
        }
        let before = self.pending.len();
        self.pending.retain(|(_, deadline)| *deadline >= now && now < Nanos(u64::MAX));
        self.out.contradicted += (before - self.pending.len()) as u64;
    }

    fn finish(mut self, cold: bool) -> Usage {
        let mut out = self.out;
        // The range around a fault is the one the kernel looked at, holes included. In a file of which no
        // page is known to have been cached before a cold start, pages nobody filled are holes.
        out.unsure = Runs::of(self.around_unknown.clone()).minus(&Runs::of(self.exact.clone()));
        if !cold || self.cached_before {
            self.around.append(&mut self.around_unknown);
        }
        out.exact = Runs::of(self.exact);
        out.upper = Runs::of(self.around).minus(&out.exact);
        out.needed = out.exact.or(&out.upper);
        out.read = Runs::of(self.read);
        out.written = Runs::of(self.written);
        out.metadata = Runs::of(self.meta).and(&out.read);
        out.by_others = Runs::of(self.others).minus(&out.read).minus(&out.written);
        out
    }
}

#[cfg(test)]
mod tests;
