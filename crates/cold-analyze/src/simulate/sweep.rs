//! One start under many settings, beside what was recorded; and which small change gives most.

use std::fmt;

use cold_model::pages::Runs;
use cold_model::recording::FileIdx;
use cold_model::{Bytes, Nanos};
use cold_sim::Policy;
use cold_sim::disk::Model;
use cold_sim::engine::{Error, Kind, Replay, Times};
use cold_sim::op::FileId;
use serde::Serialize;

use super::{Again, FileRead, Helper, Recorded, Setting, Simulated, Windows};

/// Windows of read-ahead that are tried where nobody names some, in KiB.
pub const WINDOWS_KIB: [u64; 8] = [16, 32, 64, 128, 256, 512, 1024, 2048];
/// Files larger than this in all are not read whole: that is no way to start a program, and a damaged recording may
/// say any size. 64 GiB of pages of 4 KiB.
const MOST_WHOLE: u64 = 1 << 24;
/// A change is worth a word from this part of the time on.
const WORTH: f64 = 0.03;
/// A smaller change that gives this part of what the best one gives is the better advice.
const NEARLY: f64 = 0.8;

/// Who reads ahead, as a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reader {
    /// The kernel alone.
    Kernel,
    /// A helper with the plan at hand.
    Plan,
    /// One that knows what is needed: about the best there can be in this order of needs.
    Exact,
}

/// One way to read a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// What the page cache reads.
    pub policy: Policy,
    /// The read-ahead windows.
    pub windows: Windows,
    /// Who reads ahead.
    pub reader: Reader,
}

/// What a start comes to under a choice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Policy, disk and setting that this row is about.
    pub choice: Choice,
    /// Requests to disks.
    pub requests: u64,
    /// Bytes that these requests read.
    pub read: Bytes,
    /// Bytes of file pages that nothing needed.
    pub unused: Bytes,
    /// Pages read more than once.
    pub again: Again,
    /// Waiting for storage on the chain that the time hung on.
    pub stall: Nanos,
    /// Time to ready.
    pub time: Nanos,
    /// That chain by what it did.
    pub path: Times,
    /// The time divided by that of today's choice on the same disk.
    pub ratio: f64,
    /// What of it belongs to the files that were asked about.
    pub part: Option<Part>,
}

impl Row {
    /// What to show: of the files that were asked about, else of the whole start.
    pub fn shown(&self) -> Part {
        let all = Part { requests: self.requests, read: self.read, unused: self.unused, waited: self.stall };
        self.part.unwrap_or(all)
    }
}

/// What of a row belongs to some of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Requests that begin with one of their pages.
    pub requests: u64,
    /// Bytes of their pages that were read.
    #[serde(rename = "read_bytes")]
    pub read: Bytes,
    /// Those that nothing needed.
    #[serde(rename = "unused_bytes")]
    pub unused: Bytes,
    /// Waiting for their pages, of all threads added up.
    #[serde(rename = "waited_ns")]
    pub waited: Nanos,
}

/// The smallest change that gives most on a disk.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WindowAdvice {
    /// The window to set.
    #[serde(rename = "window_bytes")]
    pub window: Bytes,
    /// The window of today.
    #[serde(rename = "instead_of_bytes")]
    pub instead_of: Bytes,
    /// Time to ready that it saves.
    #[serde(rename = "saves_ns")]
    pub saves: Nanos,
    /// The part of today's time.
    pub part: f64,
}

impl Recorded {
    /// The kernel, the window and the reader that were recorded.
    pub fn today(&self) -> Choice {
        Choice { policy: self.policy, windows: Windows::Usual, reader: Reader::Kernel }
    }

    /// The setting of a choice. `None` where it needs a plan and there is none.
    pub fn setting<'a>(
        &self,
        choice: &Choice,
        disk: &'a Model,
        plan: Option<&'a Replay>,
    ) -> Option<Setting<'a>> {
        let helper = match choice.reader {
            Reader::Kernel => Helper::None,
            Reader::Plan => Helper::Plan(plan?),
            Reader::Exact => Helper::Exact,
        };
        Some(self.under(choice, disk, helper))
    }

    fn under<'a>(&self, choice: &Choice, disk: &'a Model, helper: Helper<'a>) -> Setting<'a> {
        let (policy, windows) = (choice.policy, choice.windows);
        let (machine, memory) = (self.machine(), self.memory);
        Setting { policy, windows, disk, seed: 0, helper, machine, memory }
    }

    /// All choices on a disk, today's first, the others by time. Those that need a plan are left out without one, and
    /// reading files whole where they are larger than 64 GiB together.
    /// `files` are asked about besides. `begins` hears of each before it is simulated.
    ///
    /// # Errors
    /// See [`Recorded::simulate`].
    pub fn sweep(
        &self,
        choices: &[Choice],
        disk: &Model,
        plan: Option<&Replay>,
        files: &[FileId],
        mut begins: impl FnMut(&Choice),
    ) -> Result<Vec<Row>, Error> {
        let today = self.today();
        let mut rows: Vec<Row> = Vec::new();
        let can = |c: &&Choice| c.policy != Policy::Whole || self.pages_of_all() <= MOST_WHOLE;
        let others = choices.iter().filter(|c| !self.is_today(c)).filter(can);
        for choice in std::iter::once(&today).chain(others) {
            let Some(setting) = self.setting(choice, disk, plan) else { continue };
            begins(choice);
            let base = rows.first().map(|r| r.time);
            let simulated = self.simulate(&setting)?;
            let part = (!files.is_empty()).then(|| self.part(&simulated, files));
            rows.push(Row { part, ..row(*choice, &simulated, base) });
        }
        if let Some((_, others)) = rows.split_first_mut() {
            others.sort_by_key(|r| (r.time, r.read, r.requests));
        }
        Ok(rows)
    }

    fn pages_of_all(&self) -> u64 {
        self.ids()
            .filter(|id| !self.is_metadata(*id))
            .map(|id| self.layout.pages(id))
            .fold(0, u64::saturating_add)
    }

    fn part(&self, simulated: &Simulated, files: &[FileId]) -> Part {
        let (none, nothing) = (Runs::default(), FileRead::default());
        let mut part = Part { requests: 0, read: Bytes(0), unused: Bytes(0), waited: Nanos(0) };
        for id in files {
            let read = simulated.read.get(id).unwrap_or(&nothing);
            let unused = read.pages.minus(self.needed.get(id).unwrap_or(&none)).pages();
            let bytes = |pages: u64| Bytes(pages.saturating_mul(self.page_bytes));
            let sums = simulated.outcome.files.get(id.0 as usize).copied().unwrap_or_default();
            part.requests = part.requests.saturating_add(sums.requests);
            part.read = Bytes(part.read.0.saturating_add(bytes(read.all).0));
            part.unused = Bytes(part.unused.0.saturating_add(bytes(unused).0));
            part.waited = Nanos(part.waited.0.saturating_add(sums.waited_ns));
        }
        part
    }

    /// It names what is recorded in other words.
    fn is_today(&self, choice: &Choice) -> bool {
        let same_window = match choice.windows {
            Windows::Usual => true,
            Windows::Recorded => false,
            Windows::Of(bytes) => self.window() == Some(bytes),
        };
        choice.policy == self.policy && choice.reader == Reader::Kernel && same_window
    }

    /// What the model makes of the start exactly as it was recorded: with the windows in force then. That is one of
    /// `rows`, the choices on this disk, where these are the usual ones.
    ///
    /// # Errors
    /// See [`Recorded::simulate`].
    pub fn as_recorded(&self, rows: &[Row], disk: &Model) -> Result<Row, Error> {
        let choice = Choice { windows: Windows::Recorded, ..self.today() };
        let today = rows.iter().find(|r| r.choice == self.today());
        if let Some(today) = today.filter(|_| self.memory.is_none() && self.was_as_usual()) {
            return Ok(Row { choice, part: None, ..*today });
        }
        let setting = Setting { memory: None, ..self.under(&choice, disk, Helper::None) };
        Ok(row(choice, &self.simulate(&setting)?, None))
    }

    /// The usual read-ahead window of all files on disks, where it is the same one.
    pub fn window(&self) -> Option<Bytes> {
        let mut windows = self.files.iter().filter(|f| !f.metadata).map(|f| f.usual_window);
        let first = windows.next()?;
        windows.all(|w| w == first).then(|| Bytes(first.saturating_mul(self.page_bytes)))
    }

    /// The read-ahead window under a choice, where its policy has one and it is the same for all files.
    pub fn window_of(&self, choice: &Choice) -> Option<Bytes> {
        match choice.windows {
            _ if !matches!(choice.policy, Policy::Linux(_)) || choice.reader == Reader::Exact => None,
            Windows::Of(bytes) => Some(bytes),
            Windows::Usual | Windows::Recorded => self.window(),
        }
    }

    /// Whether other windows than the recorded one are among these rows of one disk.
    pub fn tries_windows(&self, rows: &[Row]) -> bool {
        rows.iter().any(|r| matches!(r.choice.windows, Windows::Of(_)) && r.choice.policy == self.policy)
    }

    /// The file that the start needs most of.
    pub fn most_needed(&self) -> Option<FileIdx> {
        let (id, _) = self.needed.iter().max_by_key(|(id, runs)| (runs.pages(), id.0))?;
        self.names.get(id.0 as usize).copied()
    }

    /// Which of the windows in these rows of one disk to set: the nearest to today's of those that give nearly as much
    /// as the best one. `None` where none is worth a word, or today's is not one for all files.
    pub fn advice(&self, rows: &[Row]) -> Option<WindowAdvice> {
        let today = rows.iter().find(|r| self.is_today(&r.choice))?;
        let instead_of = self.window()?;
        let saved = |r: &Row| today.time.saturating_sub(r.time);
        let windows = rows.iter().filter_map(|r| {
            let own = r.choice.policy == self.policy && r.choice.reader == Reader::Kernel;
            match r.choice.windows {
                Windows::Of(bytes) if own => Some((bytes, saved(r))),
                _ => None,
            }
        });
        let windows: Vec<(Bytes, Nanos)> = windows.collect();
        let best = windows.iter().map(|(_, saved)| *saved).max()?;
        if (best.0 as f64) < WORTH * today.time.0 as f64 {
            return None;
        }
        // Doublings between them.
        let distance = |w: Bytes| ((w.0.max(1) as f64) / (instead_of.0.max(1) as f64)).log2().abs();
        let enough = windows.into_iter().filter(|(_, saved)| saved.0 as f64 >= NEARLY * best.0 as f64);
        let (window, saves) = enough.min_by(|a, b| distance(a.0).total_cmp(&distance(b.0)))?;
        let part = saves.0 as f64 / today.time.0.max(1) as f64;
        Some(WindowAdvice { window, instead_of, saves, part })
    }
}

/// Of the rows of one disk, today's first, those that differ most: of each policy and reader the first, of today's two,
/// so that it stands there as it is and with its best window; at most `most`.
pub fn most_different(rows: &[Row], most: usize) -> Vec<&Row> {
    let alike = |a: &Choice, b: &Choice| a.policy == b.policy && a.reader == b.reader;
    let mut out: Vec<&Row> = Vec::new();
    for row in rows {
        let known = out.iter().filter(|r| alike(&r.choice, &row.choice)).count();
        let room = if out.first().is_some_and(|r| alike(&r.choice, &row.choice)) { 2 } else { 1 };
        if known < room && out.len() < most {
            out.push(row);
        }
    }
    out
}

fn row(choice: Choice, simulated: &Simulated, base: Option<Nanos>) -> Row {
    let base = base.unwrap_or(simulated.time);
    Row {
        choice,
        requests: simulated.requests,
        read: simulated.bytes,
        unused: simulated.unused,
        again: simulated.again,
        stall: simulated.stall,
        time: simulated.time,
        path: simulated.outcome.path,
        ratio: simulated.time.0 as f64 / base.0.max(1) as f64,
        part: None,
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.reader == Reader::Exact {
            return f.write_str("exactly what is needed, in its order");
        }
        write!(f, "{}", self.policy)?;
        match self.windows {
            Windows::Of(bytes) => write!(f, ", read-ahead {bytes}")?,
            Windows::Recorded => f.write_str(", read-ahead as recorded")?,
            Windows::Usual => {}
        }
        if self.reader == Reader::Plan {
            f.write_str(", with the plan")?;
        }
        Ok(())
    }
}

/// The stable name of a kind of time, for programs.
pub fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Computing => "computing",
        Kind::Reading => "reading",
        Kind::Demand => "demand",
        Kind::Ahead => "ahead",
        Kind::Advice => "advice",
        Kind::Queue => "queue",
        Kind::Tasks => "tasks",
        Kind::Timer => "timer",
        Kind::Processor => "processor",
    }
}

/// What a kind of time is called, for people.
pub fn kind_words(kind: Kind) -> &'static str {
    match kind {
        Kind::Computing => "computing",
        Kind::Reading => "CPU time of reading",
        Kind::Demand => "waiting for pages it asked for",
        Kind::Ahead => "waiting for pages already on their way",
        Kind::Advice => "waiting for pages of the plan",
        Kind::Queue => "waiting for room in the queue",
        Kind::Tasks => "waiting for other threads",
        Kind::Timer => "timers and others",
        Kind::Processor => "waiting for a CPU",
    }
}
