//! One recording → what that start needed: files, page ranges, metadata, each with its need time.
//!
//! Need is recorded on cache hits too, so warm starts teach as well as cold ones. The **need time** of a page is
//! the time from the exec to its first touch by the dependency clock (`cold_analyze::clock`): when it would be needed
//! if nothing had to be read.
//!
//! Not learnt, because a later start cannot use it: files that this start wrote, deleted ones, files of
//! file systems in memory, of the kernel or on a network, whatever has no path, lookups that found nothing,
//! names whose blocks another one's lookup reads (module `names`).

mod left_out;
mod metadata;
mod names;
mod pages;
mod select;
mod unseen;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use cold_analyze::Window;
use cold_analyze::clock::DependencyClock;
use cold_model::Dev;
use cold_model::bench::STILL_COLD;
use cold_model::file_system::Inode;
use cold_model::observed;
use cold_model::recording::manifest::{Subject, Tier};
use cold_model::recording::{Recording, TouchKind, tables};
use cold_plan::plan::{FileKind, PAGE, PlanFile, Range};

pub use left_out::LeftOut;
use select::Selection;
pub use unseen::{Unseen, not_shown};

/// Adjacent pages whose first needs are at most so far apart are one range.
pub(crate) const JOIN_NS: u64 = 1_000_000;

/// Where a name's inode is kept, for file systems that keep neighbours together.
pub type InodeOf = fn(&Path) -> Option<Inode>;

/// Device (major and minor number) and page where a name's inode lies, for file systems that say.
pub type InodePage = fn(&Path) -> Option<(Dev, u64)>;

/// The names that the kernel looks up by itself to execute a file: its interpreter, and where links lead.
pub type Interpreter = fn(&Path) -> Vec<PathBuf>;

/// What else is known beside the recording.
#[derive(Debug, Clone, Copy, Default)]
pub struct With<'a> {
    /// Files at or below these are not learnt: the place of the plans, of the recordings.
    pub excluded: &'a [PathBuf],
    /// Files that the command was seen to open, for tiers that see no buffered reads.
    pub opened: Option<&'a observed::ObservedStart>,
    /// Whether a block device may be read here: a container's root often may not, and then no launch may.
    pub readable: Option<fn(&Path) -> bool>,
    /// Which inodes are read together: not every name has to be looked up again then.
    pub inode: Option<InodeOf>,
    /// Where inodes lie.
    pub inode_page: Option<InodePage>,
    /// What the kernel looks up at an exec, which no system call names.
    pub interpreter: Option<Interpreter>,
}

/// Which kinds of need the recording could show. What a start could not see, it cannot call unused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sees {
    /// Every touch of a regular file's page, by mapping or by reading.
    pub pages: bool,
    /// Lookups and listings.
    pub lookups: bool,
    /// Blocks of the file systems' metadata: only while they are read, so only in cold starts.
    pub metadata: bool,
}

/// What one start needed.
#[derive(Debug, Clone, PartialEq)]
pub struct StartNeeds {
    /// Files by first need; each use history is this one start.
    pub files: Vec<PlanFile>,
    /// Regular files of which it needed pages beside those, by why no plan can hold them.
    pub left_out: BTreeMap<LeftOut, u64>,
    /// Ranges by first need.
    pub ranges: Vec<Range>,
    /// The start was cold: what stayed cached before it is known, and little beside what it needed ([`STILL_COLD`]).
    pub proved_cold: bool,
    /// It was asked to be warm.
    pub warm: bool,
    /// Tier of the recording, `A` to `D`.
    pub tier: char,
    /// Faults were exact to the page, or all that was mapped around them had been read for itself.
    pub exact: bool,
    /// No other thread or process of the command was there until ready.
    pub one_thread: bool,
    /// It went on after it was ready. Not in every recording: false until the caller, who knows what it waited
    /// for, sets it.
    pub goes_on: bool,
    /// Start to ready, nanoseconds.
    pub ready_ns: u64,
    /// The same with the waits of the first process' line taken out.
    pub computing_ns: u64,
    /// CPU time of the started process itself until ready. Not in a recording: 0 until the caller, who has
    /// waited for the process, sets it.
    pub own_cpu_ns: u64,
    /// What it could see.
    pub sees: Sees,
    /// What this start could not show.
    pub missing: Vec<Unseen>,
    /// What went wrong in recording it, in sentences.
    pub faults: Vec<String>,
}

impl StartNeeds {
    /// Regular files that a plan can read ahead.
    pub fn readable(&self) -> u64 {
        self.files.iter().filter(|f| f.kind == FileKind::Regular).count() as u64
    }

    /// The same start as if it had not needed these files.
    #[must_use]
    pub fn without(self, hidden: &dyn Fn(&PlanFile) -> bool) -> Self {
        let mut numbers = Vec::with_capacity(self.files.len());
        let mut files = Vec::new();
        for file in self.files {
            let shown = !hidden(&file);
            numbers.push(shown.then_some(files.len() as u32));
            files.extend(shown.then_some(file));
        }
        let number = |file: u32| numbers.get(file as usize).copied().flatten();
        let ranges = self.ranges.into_iter().filter_map(|r| Some(Range { file: number(r.file)?, ..r }));
        Self { ranges: ranges.collect(), files, ..self }
    }

    /// Regular files of which it needed pages.
    pub fn needed(&self) -> u64 {
        self.readable() + self.left_out.values().sum::<u64>()
    }
}

/// Why a recording teaches nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TeachesNothing {
    /// Made of another system's evidence: its files are not here, and what was in memory is not told.
    #[error("the recording was imported from another system, whose files are not here")]
    Imported,
    /// Not the start of a command.
    #[error("the recording is not of a command's start")]
    NotACommand,
    /// Ready is not known.
    #[error("the command did not become ready while it was recorded ({0})")]
    NeverReady(String),
    /// It has no table of touches: neither perf events nor BPF recorded it.
    #[error("the recording does not show which pages were needed: that takes perf events or BPF")]
    NoTouches,
    /// What else the start needed was left out of the recording; its path.
    #[error("only what concerns {0} was recorded (--only-file)")]
    OneFile(String),
    /// Pages that are no whole number of a plan's, which no machine has.
    #[error("the recording has pages of {0} bytes, which is no multiple of a plan's {PAGE}: it is damaged")]
    PageSize(u32),
    /// Nothing that a plan could hold.
    #[error("the start touched no file that a plan could hold")]
    Nothing,
}

/// What the recorded start needed.
pub fn observe(recording: &Recording, with: &With<'_>) -> Result<StartNeeds, TeachesNothing> {
    let m = &recording.manifest;
    if m.tier == Tier::Imported {
        return Err(TeachesNothing::Imported);
    }
    if let Some(path) = &m.only_file {
        return Err(TeachesNothing::OneFile(path.clone()));
    }
    if m.subject != Subject::Command {
        return Err(TeachesNothing::NotACommand);
    }
    let page = u64::from(m.page_bytes);
    if page == 0 || !page.is_multiple_of(PAGE) {
        return Err(TeachesNothing::PageSize(m.page_bytes));
    }
    let window = Window::of(recording);
    if !window.ready {
        return Err(TeachesNothing::NeverReady(m.ready_means.clone()));
    }
    if recording.touches.is_none() {
        return Err(TeachesNothing::NoTouches);
    }
    let clock = DependencyClock::of(recording, window);
    let cold = m.state.is_cold();
    let complete = m.complete && m.lost_events() == 0;
    let full = m.tier.sees_all();
    let touches = recording.touches.as_deref().unwrap_or_default();
    let reads = m.tier == Tier::A || touches.iter().any(|t| t.kind == TouchKind::Read);
    let sees = Sees {
        pages: complete && reads,
        lookups: complete && recording.lookups.is_some(),
        metadata: complete && full && cold && recording.fills.is_some(),
    };
    let mut selection = Selection::of(recording, with.excluded);
    let mut ranges = pages::ranges(recording, &clock, &mut selection, reads);
    if !reads && let Some(opened) = with.opened {
        pages::add_opened(&mut ranges, opened, &clock, &mut selection, page);
    }
    metadata::interpreters(recording, &clock, with, &mut selection);
    metadata::lookups(recording, &clock, with, &mut selection);
    metadata::blocks(recording, &clock, with, &mut selection, &mut ranges);
    if let Some(inode) = with.inode {
        names::thin(&mut selection, &ranges, inode);
    }
    let left_out = selection.left_out();
    let files = selection.finish(&mut ranges);
    let ranges = pages::in_plan_pages(&ranges, &files, page);
    if ranges.is_empty() && !files.iter().any(|f| f.kind == FileKind::Regular) {
        return Err(TeachesNothing::Nothing);
    }
    // Without a window of one page exactness comes from reading nothing ahead, which shows in cold starts only.
    let one_page = m.fault_around.value().is_some_and(|b| b.0 <= page);
    let exact = m.exact_need && (one_page || cold);
    let proved = absent_before(recording, &ranges);
    let mut missing = missing(recording, sees, reads, exact, with);
    if cold && !proved {
        missing.push(Unseen::Coldness);
    }
    Ok(StartNeeds {
        files,
        left_out,
        ranges,
        proved_cold: cold && proved,
        warm: m.state.is_warm(),
        tier: m.tier.to_string().chars().next().unwrap_or('D'),
        exact,
        one_thread: one_thread(recording, window),
        goes_on: false,
        ready_ns: window.until.saturating_sub(window.start).0,
        computing_ns: clock.computing(),
        own_cpu_ns: 0,
        sees,
        missing,
        faults: faults(recording),
    })
}

/// What it needs was not cached before it, as far as a measured start has to be cold.
fn absent_before(recording: &Recording, ranges: &[Range]) -> bool {
    let residual = recording.manifest.state.residual.as_ref().and_then(|r| r.value());
    let needed = ranges.iter().map(|r| u64::from(r.pages)).sum::<u64>() * PAGE;
    residual.is_some_and(|r| (r.bytes + r.unknown_bytes).0 as f64 <= STILL_COLD * needed as f64)
}

/// Threads that were there before the exec are the recorder's way to start the command.
fn one_thread(recording: &Recording, window: Window) -> bool {
    let began = |t: &&tables::Thread| t.in_tree && t.began < window.until;
    recording.threads.iter().filter(began).map(|t| t.tid).collect::<HashSet<_>>().len() == 1
}

fn faults(recording: &Recording) -> Vec<String> {
    let m = &recording.manifest;
    let mut out = Vec::new();
    if !m.complete {
        out.push("the recorder was killed: what was needed after that is missing".to_owned());
    }
    if m.lost_events() > 0 {
        let n = m.lost_events();
        out.push(format!("{n} events were lost: what they would have shown is missing"));
    }
    out
}

fn missing(recording: &Recording, sees: Sees, reads: bool, exact: bool, with: &With<'_>) -> Vec<Unseen> {
    let tier = recording.manifest.tier;
    let all = [
        (!reads).then_some(Unseen::Reads { tier, opened: with.opened.is_some() }),
        recording.stalls.is_none().then_some(Unseen::Waits(tier)),
        recording.lookups.is_none().then_some(Unseen::Lookups(tier)),
        (!sees.metadata).then_some(Unseen::Metadata),
        (!exact).then_some(Unseen::Exactness),
    ];
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests;
