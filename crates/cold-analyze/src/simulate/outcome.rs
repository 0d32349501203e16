//! A recorded start under a setting: what it reads, and when it is ready.

use std::borrow::Cow;
use std::collections::BTreeMap;

use cold_model::pages::Runs;
use cold_model::{Bytes, Cooling, Nanos};
use cold_sim::disk::{Disk, Model};
use cold_sim::engine::{Error, Event, Input, Machine, Outcome, Replay, Step, Task, TaskStart, run};
use cold_sim::op::{FileId, Op};
use cold_sim::tails::{Tails, tails};
use cold_sim::{Cache, Policy, oracle};

use super::read::{self, Again, FileRead};
use super::{Recorded, Windows, launch};

/// Event on which the program begins where a helper reads ahead. Recorded events count from 1.
pub const OPENS: Event = Event(0);
/// Bytes of a simulated disk at least where nobody knows how large the recorded one was: moves of heads are measured
/// against it.
const UNKNOWN_DISK: u64 = 64 << 30;
/// Largest read of a helper that knows what is needed, in bytes.
const MOST_EXACT: u64 = 512 << 10;

/// Who reads ahead, besides the kernel.
#[derive(Debug, Clone, Copy)]
pub enum Helper<'a> {
    /// No helper reads ahead.
    None,
    /// One with a plan, which lets the program begin with [`OPENS`].
    Plan(&'a Replay),
    /// One that knows which pages will be needed, and reads no others ([`cold_sim::oracle`]). Nothing is read around.
    Exact,
}

/// What a start is simulated with.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// What the page cache reads.
    pub policy: Policy,
    /// The read-ahead windows (`read_ahead_kb`).
    pub windows: Windows,
    /// Each disk of the recording is such a one, but for those that [`Recorded::keep_disks_but`] keeps.
    pub disk: &'a Model,
    /// Seed of its jitter, where it has some.
    pub seed: u64,
    /// Who reads ahead.
    pub helper: Helper<'a>,
    /// Processors, at least one, and what reading costs them.
    pub machine: Machine,
    /// Room for cached pages; `None`: enough for all.
    pub memory: Option<Bytes>,
}

/// A simulated start.
#[derive(Debug, Clone)]
pub struct Simulated {
    /// Requests to disks, and their bytes, those for metadata of file systems included.
    pub requests: u64,
    /// Bytes of all requests.
    pub bytes: Bytes,
    /// Bytes of file pages that were read and that nothing needed, each page once.
    pub unused: Bytes,
    /// Pages read more than once.
    pub again: Again,
    /// Waiting for storage on the chain of tasks that the time to ready hung on.
    pub stall: Nanos,
    /// Time to ready, or to the end where the recording knows no ready. With a plan from the launcher's exec on, which
    /// itself has to be read.
    pub time: Nanos,
    /// What was read of each file.
    pub read: BTreeMap<FileId, FileRead>,
    /// What the model says beside time: reads, waits, unused bytes. Its clock begins when the helper exists.
    pub outcome: Outcome,
}

impl Recorded {
    /// Processors of the machine that was recorded, with the usual costs of reading, or those of [`Recorded::warm`].
    pub fn machine(&self) -> Machine {
        Machine { processors: self.processors, costs: self.costs }
    }

    /// Lets waits cost a processor by their length.
    pub fn cool(&mut self, cooling: Cooling) {
        self.costs.cooling = cooling;
    }

    /// What waits cost by their length; `None`: not known, each costs the same.
    pub fn cooling(&self) -> Option<Cooling> {
        Some(self.costs.cooling).filter(|law| *law != Cooling::NONE)
    }

    /// The start under a setting.
    ///
    /// # Errors
    /// [`Error`] where the recording contradicts itself: a wait that nobody ends.
    pub fn simulate(&self, setting: &Setting<'_>) -> Result<Simulated, Error> {
        let exact = matches!(setting.helper, Helper::Exact);
        let pages = match setting.windows {
            Windows::Recorded => cold_sim::Paging { fault_around: self.fault_around, ..self.paging },
            Windows::Usual | Windows::Of(_) => self.paging,
        };
        let files = self.files(setting.policy, setting.windows);
        let mut cache =
            if exact { Cache::exact(&self.layout) } else { Cache::new(setting.policy, pages, &files) };
        if let Some(memory) = setting.memory {
            cache = cache.with_room(memory.0 / self.page_bytes);
        }
        for (file, first, pages) in &self.cached {
            cache.preload(*file, *first, *pages);
        }
        let mut disks: Vec<Disk> = (0..self.layout.disks())
            .map(|n| {
                let model = match self.own.get(n).and_then(Option::as_ref) {
                    // A start that asks for one page after another does not show how many the disk would take at once.
                    Some(own) => Model { channels: own.channels.max(setting.disk.channels), ..own.clone() },
                    None => setting.disk.clone(),
                };
                Disk::new(model, self.disk_bytes(n), setting.seed)
            })
            .collect();
        let tasks = self.tasks_under(setting);
        let input = |replay| Input { tasks: &tasks, replay, layout: &self.layout };
        let plan = match setting.helper {
            Helper::None => None,
            Helper::Plan(plan) => Some(Cow::Borrowed(plan)),
            Helper::Exact => {
                let most = MOST_EXACT / self.page_bytes;
                Some(Cow::Owned(oracle::plan(&input(None), setting.machine.processors, most, OPENS)?))
            }
        };
        let outcome = run(&input(plan.as_deref()), &setting.machine, &mut cache, &mut disks)?;
        let launch = match setting.helper {
            Helper::Plan(plan) => {
                // The launcher lies where the start's first file lies, as far as anybody knows.
                let window = files.first().map_or(0, |f| f.window_pages).saturating_mul(self.page_bytes);
                launch::before_helper(plan, setting.disk, self.disk_bytes(0), window)
            }
            Helper::None | Helper::Exact => Nanos(0),
        };
        let read = read::by_file(&outcome.filled);
        Ok(Simulated {
            requests: outcome.sent.len() as u64,
            bytes: Bytes(outcome.bytes()),
            again: Again::of(&read, self.page_bytes),
            unused: Bytes(self.unused_pages(&read).saturating_mul(self.page_bytes)),
            stall: Nanos(outcome.path.storage()),
            time: Nanos(outcome.time_ns.saturating_add(launch.0)),
            read,
            outcome,
        })
    }

    /// Bytes of a disk of the layout: places are those of the recorded disk, and so are distances between them as parts of
    /// the whole.
    fn disk_bytes(&self, disk: usize) -> u64 {
        let dev = self.disks.get(disk).copied().flatten();
        let known = dev.and_then(|dev| self.sizes.get(&dev).copied());
        self.layout.used(disk).max(known.unwrap_or(UNKNOWN_DISK))
    }

    /// What is still to come when the program has what it needs, whatever reads it.
    pub fn tails(&self) -> Tails {
        tails(&self.tasks, &self.layout)
    }

    /// All files, added ones included.
    pub(super) fn ids(&self) -> impl Iterator<Item = FileId> {
        (0..self.files.len()).map(|n| FileId(n as u32))
    }

    /// The tasks: the program's first one waits for a helper's gate, and what it asked of Linux ahead
    /// (`readahead`, `MADV_WILLNEED`) it asks of no other system, nor where a helper knows better. That also knows which
    /// pages are populated and never used.
    fn tasks_under(&self, setting: &Setting<'_>) -> Cow<'_, [Task]> {
        let (linux, exact) =
            (matches!(setting.policy, Policy::Linux(_)), matches!(setting.helper, Helper::Exact));
        if linux && matches!(setting.helper, Helper::None) {
            return Cow::Borrowed(&self.tasks);
        }
        let mut tasks = self.tasks.clone();
        if let Some(first) = tasks.first_mut().filter(|_| !matches!(setting.helper, Helper::None)) {
            first.start = TaskStart::On(OPENS);
        }
        let asks = |step: &Step| match step {
            Step::Access(Op::WillNeed { .. }) => true,
            Step::Access(Op::Populate { .. }) => exact,
            _ => false,
        };
        if !matches!(setting.helper, Helper::None) {
            for step in tasks.iter_mut().flat_map(|task| &mut task.steps) {
                if let Step::Compute(ns) = step {
                    *ns = (*ns as f64 / self.first_use) as u64;
                }
            }
        }
        if !linux || exact {
            for task in &mut tasks {
                task.steps.retain(|step| !asks(step));
            }
        }
        Cow::Owned(tasks)
    }

    fn unused_pages(&self, read: &BTreeMap<FileId, FileRead>) -> u64 {
        let none = Runs::default();
        let data = read.iter().filter(|(file, _)| !self.is_metadata(**file));
        let unused = |(file, read): (&FileId, &FileRead)| {
            read.pages.minus(self.needed.get(file).unwrap_or(&none)).pages()
        };
        data.map(unused).fold(0, u64::saturating_add)
    }
}
