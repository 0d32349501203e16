//! What a simulated start came to.

use crate::op::{FileId, Op, PageRead, Why};

/// What a task's time goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Computing, as the program does it.
    Computing,
    /// CPU time of reading: [`super::Costs`].
    Reading,
    /// Waiting for a page that this very access asked for.
    Demand,
    /// Waiting for a page that was on its way already, by another's access or by read-ahead.
    Ahead,
    /// Waiting for a page that was on its way by advice or a plan.
    Advice,
    /// Waiting until a full queue of the disk takes one more request.
    Queue,
    /// Waiting for an event of another task.
    Tasks,
    /// Asleep for a time.
    Timer,
    /// Able to run, but all processors are taken.
    Processor,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Computing,
        Self::Reading,
        Self::Demand,
        Self::Ahead,
        Self::Advice,
        Self::Queue,
        Self::Tasks,
        Self::Timer,
        Self::Processor,
    ];

    /// Storage is waited for.
    pub fn is_storage(self) -> bool {
        matches!(self, Self::Demand | Self::Ahead | Self::Advice | Self::Queue)
    }
}

/// Nanoseconds by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times([u64; Kind::ALL.len()]);

impl Times {
    /// Nanoseconds of one kind.
    pub fn of(&self, kind: Kind) -> u64 {
        self.0[kind as usize]
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |a, b| a.saturating_add(*b))
    }

    /// Waiting for storage, whatever for.
    pub fn storage(&self) -> u64 {
        let kinds = Kind::ALL.into_iter().filter(|k| k.is_storage());
        kinds.fold(0, |a, k| a.saturating_add(self.of(k)))
    }

    pub(super) fn add(&mut self, kind: Kind, ns: u64) {
        let of = &mut self.0[kind as usize];
        *of = of.saturating_add(ns);
    }
}

/// A task's life, up to the end of the simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskTimes {
    /// When it began, and when it ended or the simulation did. `None`: it never began.
    pub lived: Option<(u64, u64)>,
    /// What the time between went to.
    pub times: Times,
    /// Accesses that waited.
    pub waits: u64,
}

/// What was read of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileReads {
    /// Requests that began with one of its pages.
    pub requests: u64,
    /// Pages asked for because somebody waited, by read-ahead, and by advice.
    pub pages: [u64; 3],
    /// Time that tasks of the program waited for its pages, nanoseconds; several may wait at once.
    pub waited_ns: u64,
}

impl FileReads {
    /// Pages asked for.
    pub fn all_pages(&self) -> u64 {
        self.pages.iter().sum()
    }

    pub(super) fn add(&mut self, why: Why, pages: u64) {
        let of = &mut self.pages[why as usize];
        *of = of.saturating_add(pages);
    }
}

/// A request that was sent to a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Number of the disk.
    pub disk: u32,
    /// First byte on it.
    pub offset: u64,
    /// Size of the request in bytes.
    pub bytes: u64,
    /// When it was sent, nanoseconds from the beginning.
    pub sent_ns: u64,
    /// When it was, or would have been, done.
    pub done_ns: u64,
    /// File and reason of its first page.
    pub of: (FileId, Why),
}

/// A touch of a page or a read of the program's that was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// The program's task.
    pub task: usize,
    /// What it did.
    pub op: Op,
    /// When it began, nanoseconds from the beginning.
    pub began_ns: u64,
    /// When it was done.
    pub done_ns: u64,
    /// It waited for storage in between.
    pub waited: bool,
}

/// Pages that entered the cache, to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filled {
    /// Who asked: tasks of the program first, then the helper's.
    pub task: usize,
    /// When, nanoseconds from the beginning.
    pub at_ns: u64,
    /// The pages, and why.
    pub read: PageRead,
}

/// A simulated start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Time to ready, or to the end of the last task of the program, nanoseconds.
    pub time_ns: u64,
    /// That time as the chain of tasks spent it that the end hung on: through each wait for an event it leads on to
    /// the task that made it happen. The kinds add up to [`Self::time_ns`], without [`Kind::Tasks`].
    pub path: Times,
    /// The program's tasks, as they were given.
    pub tasks: Vec<TaskTimes>,
    /// The helper's threads.
    pub helpers: Vec<TaskTimes>,
    /// What was read of each file, indexed by [`FileId`].
    pub files: Vec<FileReads>,
    /// All requests, in the order in which they were sent.
    pub sent: Vec<Sent>,
    /// Pages in the order in which they were asked for.
    pub filled: Vec<Filled>,
    /// The program's touches and reads in the order in which they were done.
    pub done: Vec<Done>,
}

impl Outcome {
    /// Bytes of all requests.
    pub fn bytes(&self) -> u64 {
        self.sent.iter().fold(0, |sum, r| sum.saturating_add(r.bytes))
    }
}

/// Why there is no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The cache lets an access wait for a page that is not on its way.
    #[error("the page cache waits for page {page} of file {file}, which nobody reads")]
    NotInFlight {
        /// Number of the file.
        file: u32,
        /// Index of the page in that file.
        page: u64,
    },
    /// A file lies on a disk that was not given.
    #[error("disk {disk} is asked for, but there are {disks}")]
    NoDisk {
        /// The number asked for.
        disk: usize,
        /// How many there are.
        disks: usize,
    },
    /// All wait for events that nobody makes happen.
    #[error("task {task} waits for event {event}, which never happens; so do {others} others")]
    Stuck {
        /// The first task that waits.
        task: usize,
        /// What it waits for.
        event: u32,
        /// How many more wait.
        others: usize,
    },
}
