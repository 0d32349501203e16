//! A helper that replays a plan, by the rules of `cold-launch` (docs/concepts/replay.md): its threads take the
//! steps in order, ask for pages in chunks, and wait for their oldest chunk before more is in flight than allowed.
//!
//! What a helper costs before its first step, its deadline and budget, and the fallback for changed files are left
//! out: they end a replay, they are no part of one that works.

use std::collections::{BTreeSet, VecDeque};

use crate::op::{FileId, Op, OpenId, Pattern};

use super::input::{Event, Step};

/// Chunks in flight of one thread at most, as `cold-launch/src/flight.rs` has it.
const MOST_CHUNKS: usize = 128;

/// When the program may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// At once: nothing holds it back.
    None,
    /// When the critical steps have been asked for.
    Issued,
    /// When the critical steps have come.
    Arrived,
}

/// A step of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanStep {
    /// Pages of a file are asked for.
    Read {
        /// The file that holds them.
        file: FileId,
        /// The helper's own open file, the same in all steps of the file; it is opened at the first.
        open: OpenId,
        /// First page of the file.
        first: u64,
        /// How many pages, from `first` on.
        pages: u64,
        /// Blocks that opening the file takes, where it was not opened yet.
        blocks: Blocks,
        /// The program may wait for it.
        critical: bool,
    },
    /// A name is looked up.
    LookUp {
        /// CPU time, nanoseconds.
        ns: u64,
        /// Blocks that it takes.
        blocks: Blocks,
        /// The program may wait for it.
        critical: bool,
    },
}

/// A helper's own open file of this file, as far from the numbers of a start's as can be.
pub fn helpers_open(file: FileId) -> OpenId {
    OpenId(u32::MAX.saturating_sub(file.0))
}

/// Neighbouring blocks of a file system, which are read at once and waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// What stands for the device.
    pub file: FileId,
    /// First page of the device.
    pub first: u64,
    /// How many pages, from `first` on.
    pub pages: u64,
}

/// Some of a replay's [`Replay::blocks`], one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Blocks {
    /// The first one's number.
    pub from: u32,
    /// How many.
    pub count: u32,
}

impl PlanStep {
    fn critical(&self) -> bool {
        match self {
            Self::Read { critical, .. } | Self::LookUp { critical, .. } => *critical,
        }
    }
    fn is_read(&self) -> bool {
        matches!(self, Self::Read { .. })
    }
}

/// A helper and its plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// What the helper reads, in its order.
    pub steps: Vec<PlanStep>,
    /// Blocks of file systems that its steps name.
    pub blocks: Vec<Block>,
    /// Threads that read, at least one.
    pub threads: usize,
    /// More threads, which look names up; with none, those that read do that, too.
    pub lookup_threads: usize,
    /// Pages per call, at least one.
    pub chunk_pages: u64,
    /// Pages in flight of all threads together; 0 for no limit.
    pub in_flight_pages: u64,
    /// When the program may begin.
    pub gate: Gate,
    /// What then happens: the program's first task begins on it.
    pub opens: Event,
}

/// What the threads of a replay share.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    replay: &'a Replay,
    page_bytes: u64,
    next_read: usize,
    next_look_up: usize,
    critical_left: usize,
    open: BTreeSet<OpenId>,
    running: usize,
}

/// Which steps a thread takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    All,
    Reads,
    LookUps,
}

/// What a thread does next: a step of the simulation, counting a critical step, or telling that a file is open.
#[derive(Debug, Clone, Copy)]
enum Next {
    Step(Step),
    Critical,
    /// From here on nobody has to open it.
    Opened(OpenId),
}

#[derive(Debug)]
struct Chunk {
    open: OpenId,
    last_page: u64,
    pages: u64,
    tells: bool,
}

/// A thread of a replay, as a source of steps.
#[derive(Debug)]
pub(super) struct Thread {
    share: Share,
    next: VecDeque<Next>,
    chunks: VecDeque<Chunk>,
    pages: u64,
    bound: u64,
    in_tail: bool,
    ended: bool,
}

/// The threads, and what they share.
pub(super) fn threads(replay: &Replay, page_bytes: u64) -> (Shared<'_>, Vec<Thread>) {
    let readers = replay.threads.max(1);
    let own = if replay.lookup_threads == 0 { Share::All } else { Share::Reads };
    let shares = std::iter::repeat_n(own, readers)
        .chain(std::iter::repeat_n(Share::LookUps, replay.lookup_threads))
        .map(|share| Thread {
            share,
            next: VecDeque::new(),
            chunks: VecDeque::new(),
            pages: 0,
            // A bound below a page per thread would be none.
            bound: match replay.in_flight_pages {
                0 => 0,
                pages => (pages / readers as u64).max(1),
            },
            in_tail: false,
            ended: false,
        });
    let mut threads: Vec<Thread> = shares.collect();
    let critical_left = replay.steps.iter().filter(|s| s.critical()).count();
    if (critical_left == 0 || replay.gate == Gate::None)
        && let Some(first) = threads.first_mut()
    {
        first.next.push_back(Next::Step(Step::Signal(replay.opens)));
    }
    let shared = Shared {
        replay,
        page_bytes,
        next_read: 0,
        next_look_up: 0,
        critical_left,
        open: BTreeSet::new(),
        running: threads.len(),
    };
    (shared, threads)
}

impl Shared<'_> {
    /// The next step that is this thread's business.
    fn take(&mut self, share: Share) -> Option<PlanStep> {
        let at = if share == Share::LookUps { &mut self.next_look_up } else { &mut self.next_read };
        loop {
            let step = self.replay.steps.get(*at)?;
            *at += 1;
            match share {
                Share::All => return Some(*step),
                Share::Reads if step.is_read() => return Some(*step),
                Share::LookUps if !step.is_read() => return Some(*step),
                _ => {}
            }
        }
    }
}

impl Thread {
    /// What it does next; `None` when it has ended.
    pub(super) fn next(&mut self, shared: &mut Shared<'_>) -> Option<Step> {
        loop {
            match self.next.pop_front() {
                Some(Next::Step(step)) => return Some(step),
                Some(Next::Critical) => {
                    shared.critical_left = shared.critical_left.saturating_sub(1);
                    if shared.critical_left == 0 {
                        return Some(Step::Signal(shared.replay.opens));
                    }
                }
                Some(Next::Opened(open)) => drop(shared.open.insert(open)),
                None if self.ended => return None,
                None => self.fill(shared),
            }
        }
    }

    fn fill(&mut self, shared: &mut Shared<'_>) {
        let Some(step) = shared.take(self.share) else {
            self.ended = true;
            if shared.replay.gate == Gate::Arrived && shared.critical_left > 0 {
                self.drain(shared.page_bytes);
            }
            shared.running -= 1;
            if shared.running == 0 {
                self.next.push_back(Next::Step(Step::Signal(shared.replay.opens)));
            }
            return;
        };
        if !step.critical() && !self.in_tail {
            self.in_tail = true;
            if shared.replay.gate == Gate::Arrived {
                self.drain(shared.page_bytes);
            }
        }
        match step {
            PlanStep::LookUp { ns, blocks, critical } => {
                self.wait_for(shared, blocks);
                self.next.push_back(Next::Step(Step::Compute(ns)));
                self.next.extend(critical.then_some(Next::Critical));
            }
            PlanStep::Read { file, open, first, pages, blocks, critical } => {
                if !shared.open.contains(&open) {
                    self.wait_for(shared, blocks);
                }
                self.open(shared, open, file);
                self.read(shared, open, (first, pages), critical);
            }
        }
    }

    /// Opens the file, unless somebody has. Whoever comes while another thread is opening it opens it as well, as the
    /// launcher's threads do, and waits for the same blocks.
    fn open(&mut self, shared: &Shared<'_>, open: OpenId, file: FileId) {
        let opens = |next: &Next| matches!(next, Next::Opened(other) if *other == open);
        if !shared.open.contains(&open) && !self.next.iter().any(opens) {
            self.access(Op::Open { open, file });
            self.access(Op::AdviseOpen { open, pattern: Pattern::Random });
            self.next.push_back(Next::Opened(open));
        }
    }

    /// Blocks are read one after the other: each tells where the next one lies.
    fn wait_for(&mut self, shared: &Shared<'_>, Blocks { from, count }: Blocks) {
        let replay = shared.replay;
        let blocks = replay.blocks.iter().skip(from as usize).take(count as usize);
        for Block { file, first, pages } in blocks {
            let open = helpers_open(*file);
            self.open(shared, open, *file);
            let (offset, bytes) =
                (first.saturating_mul(shared.page_bytes), pages.saturating_mul(shared.page_bytes));
            self.access(Op::Read { open, offset, bytes });
        }
    }

    fn read(&mut self, shared: &Shared<'_>, open: OpenId, (first, pages): (u64, u64), critical: bool) {
        let end = first.saturating_add(pages);
        let mut at = first;
        let waits = critical && shared.replay.gate == Gate::Arrived;
        while at < end {
            let pages = shared.replay.chunk_pages.max(1).min(end - at);
            while self.is_full(pages) {
                self.await_oldest(shared.page_bytes);
            }
            self.access(Op::WillNeed { open, first: at, pages });
            at = at.saturating_add(pages);
            // Only the last chunk of a step tells that the step has come.
            self.chunks.push_back(Chunk { open, last_page: at - 1, pages, tells: waits && at >= end });
            self.pages = self.pages.saturating_add(pages);
        }
        if critical && !waits {
            self.next.push_back(Next::Critical);
        }
    }

    fn is_full(&self, pages: u64) -> bool {
        let over = self.bound > 0 && self.pages > 0 && self.pages.saturating_add(pages) > self.bound;
        self.chunks.len() >= MOST_CHUNKS || over
    }

    fn drain(&mut self, page_bytes: u64) {
        while !self.chunks.is_empty() {
            self.await_oldest(page_bytes);
        }
    }

    /// One byte of the oldest chunk's last page is read.
    fn await_oldest(&mut self, page_bytes: u64) {
        let Some(chunk) = self.chunks.pop_front() else { return };
        self.pages = self.pages.saturating_sub(chunk.pages);
        let offset = chunk.last_page.saturating_mul(page_bytes);
        self.access(Op::Read { open: chunk.open, offset, bytes: 1 });
        self.next.extend(chunk.tells.then_some(Next::Critical));
    }

    fn access(&mut self, op: Op) {
        self.next.push_back(Next::Step(Step::Access(op)));
    }
}
