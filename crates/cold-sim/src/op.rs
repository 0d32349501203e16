//! What programs do with files, and what a page cache answers: the words that policies and the clock share.
//!
//! Pages are of one size, given with the files; page numbers count from the start of the file.

/// A file, as a number of the simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// An open file (Linux' `struct file`): read-ahead state belongs to it, cached pages to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpenId(pub u32);

/// A mapping of a file into one address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MapId(pub u32);

/// What a program told the kernel of its accesses (`madvise`, `posix_fadvise`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pattern {
    /// Nothing was said: read ahead as usual.
    #[default]
    Normal,
    /// `MADV_SEQUENTIAL`, `POSIX_FADV_SEQUENTIAL`.
    Sequential,
    /// `MADV_RANDOM`, `POSIX_FADV_RANDOM`.
    Random,
}

/// Whether huge pages are wanted in a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Huge {
    /// Nobody said whether huge pages are wanted.
    #[default]
    Untold,
    /// `MADV_HUGEPAGE`.
    Wanted,
    /// `MADV_NOHUGEPAGE`.
    Unwanted,
}

/// What a program says of a part of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapAdvice {
    /// How it will be accessed.
    Pattern(Pattern),
    /// Whether huge pages are wanted. The pattern stays.
    Huge(Huge),
}

/// One thing a program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Opens a file.
    Open {
        /// A number that no other open file has.
        open: OpenId,
        /// The file that is opened.
        file: FileId,
    },
    /// Maps a part of an open file.
    Map {
        /// A number that no other mapping has.
        map: MapId,
        /// The open file, whose read-ahead state faults use.
        open: OpenId,
        /// Address of its first page, in pages: faults map around in aligned windows of addresses.
        address: u64,
        /// First page of the file.
        first: u64,
        /// How many pages are mapped, from `first` on.
        pages: u64,
        /// It may be executed: Linux reads code forward since 6.17.
        exec: bool,
    },
    /// Unmaps all of a mapping.
    Unmap {
        /// The mapping that goes.
        map: MapId,
    },
    /// Touches a page through a mapping. A fault where the page is not mapped yet, else nothing.
    Touch {
        /// Through which it is touched.
        map: MapId,
        /// Page of the file.
        page: u64,
        /// A write: no pages are mapped around it.
        write: bool,
    },
    /// Reads by `read` or `pread`.
    Read {
        /// The open file.
        open: OpenId,
        /// First byte in the file.
        offset: u64,
        /// Bytes asked for; what lies behind the end of the file is not read.
        bytes: u64,
    },
    /// Asks for pages: `readahead`, `POSIX_FADV_WILLNEED`, `MADV_WILLNEED`.
    WillNeed {
        /// The open file.
        open: OpenId,
        /// First page of the file.
        first: u64,
        /// Pages; the kernel caps them for each call.
        pages: u64,
    },
    /// Tells the pattern of an open file.
    AdviseOpen {
        /// The open file.
        open: OpenId,
        /// Its pattern from now on.
        pattern: Pattern,
    },
    /// Says something of a part of a mapping, which from then on is a mapping of its own to the kernel: read-around of
    /// code and what is mapped around a fault end there.
    AdviseMap {
        /// The mapping of which it is a part.
        map: MapId,
        /// First page of the file.
        first: u64,
        /// Pages; what lies outside of the mapping is left out.
        pages: u64,
        /// What is said.
        advice: MapAdvice,
    },
    /// Touches all pages of a part of a mapping, in order (`MADV_POPULATE_READ`, `MAP_POPULATE`).
    Populate {
        /// Where they are mapped.
        map: MapId,
        /// First page of the file.
        first: u64,
        /// How many pages, from `first` on.
        pages: u64,
    },
    /// Takes pages out of a mapping, which stay in the cache: the next touch is a fault (`MADV_DONTNEED`).
    Forget {
        /// The mapping that loses them.
        map: MapId,
        /// First page of the file.
        first: u64,
        /// How many pages, from `first` on.
        pages: u64,
    },
    /// Drops clean pages that nobody maps (`POSIX_FADV_DONTNEED`).
    DontNeed {
        /// The file whose pages go, whoever opened it.
        file: FileId,
        /// First page of the file.
        first: u64,
        /// How many pages, from `first` on.
        pages: u64,
    },
}

/// Why pages are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// Somebody waits for one of them.
    Demand,
    /// A marker was met: nobody waits yet.
    Ahead,
    /// Asked for by advice or a plan.
    Advice,
}

/// A run of missing pages that the cache wants read. They are in flight until [`PageCache::arrived`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRead {
    /// The file whose pages they are.
    pub file: FileId,
    /// First missing page of the file.
    pub first: u64,
    /// Pages, at least one.
    pub pages: u64,
    /// They come in folios of up to `1 << order` pages: each begins at a multiple of its size, and is as large as the
    /// run's ends allow.
    pub order: u32,
    /// What asked for it.
    pub why: Why,
}

impl PageRead {
    /// One past the last page of the folio that holds a page of the run.
    pub(crate) fn folio_end(&self, page: u64) -> u64 {
        let end = self.first.saturating_add(self.pages);
        let folios = (1..=self.order.min(u64::BITS - 1)).rev().map(|order| {
            let first = page >> order << order;
            (first, first.saturating_add(1 << order))
        });
        let mut inside = folios.filter(|(from, to)| *from >= self.first && *to <= end);
        inside.next().map_or(page.saturating_add(1), |(_, to)| to)
    }
}

/// How far an access came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It is done.
    Done,
    /// It waits for a page that is in flight. When that has arrived, do it again with the same progress.
    Waits {
        /// The file that holds it.
        file: FileId,
        /// Its index in that file.
        page: u64,
    },
    /// It goes on, but what it has asked for is sent first. Do it again with the same progress.
    GoesOn,
}

/// Where an access goes on after it waited. Of a new access: the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Bytes that a read has copied; pages that were populated.
    pub copied: u64,
    /// The fault is a retry: the kernel counts and decides nothing a second time.
    pub retried: bool,
}

/// A page cache under some policy: decides what is read, knows nothing of time.
pub trait PageCache {
    /// Does what the program does. Appends what is to be read, in the order in which it is sent: runs of
    /// one call go to the disk together, where neighbours may become one request.
    fn access(&mut self, op: &Op, progress: &mut Progress, reads: &mut Vec<PageRead>) -> Access;

    /// The pages of a read are there. Of a run that takes several requests it is called for each part that comes as
    /// one, in the order in which they come.
    fn arrived(&mut self, read: &PageRead);
}
