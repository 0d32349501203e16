//! Ways to read a file, and the pages that each of them touches: what a recording has to agree with.

/// Bytes per page of the machines that tests run on.
pub const PAGE: u64 = 4096;
/// Pages of each file: a huge page and a half.
pub const PAGES: u64 = 768;

/// How a way reaches the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Through a mapping, page by page.
    Mapped,
    /// Through a mapping whose pages were asked for at once: they never fault.
    Asked,
    /// By a system call that copies or moves them.
    Read,
    /// By `io_uring`, without a system call of its own.
    Uring,
    /// By a write that has to read them first.
    Written,
    /// Not through the page cache.
    Direct,
}

/// One way.
#[derive(Debug, Clone)]
pub struct Way {
    /// Its name, and its file's.
    pub name: &'static str,
    /// How.
    pub kind: Kind,
    /// First page, page behind the last, step.
    pages: (u64, u64, u64),
    /// Pages read past the cache.
    pub direct: &'static [u64],
}

const fn way(name: &'static str, kind: Kind, pages: (u64, u64, u64)) -> Way {
    Way { name, kind, pages, direct: &[] }
}

/// All of them, in the order in which they are tried.
pub const WAYS: &[Way] = &[
    way("mapped-in-order", Kind::Mapped, (0, PAGES, 1)),
    way("mapped-backwards", Kind::Mapped, (0, PAGES, 1)),
    way("mapped-every-64th", Kind::Mapped, (0, PAGES, 64)),
    way("mapped-random", Kind::Mapped, (0, PAGES, 7)),
    way("mapped-sequential", Kind::Mapped, (0, PAGES, 1)),
    way("mapped-willneed", Kind::Mapped, (0, PAGES, 5)),
    way("mapped-huge", Kind::Mapped, (0, PAGES, 97)),
    way("mapped-by-threads", Kind::Mapped, (0, PAGES, 3)),
    way("mapped-private-written", Kind::Mapped, (0, PAGES, 9)),
    way("mapped-shared-written", Kind::Mapped, (0, PAGES, 9)),
    way("populated", Kind::Asked, (0, PAGES, 16)),
    way("populated-by-advice", Kind::Asked, (0, PAGES, 16)),
    way("locked", Kind::Asked, (0, PAGES, 16)),
    way("read", Kind::Read, (0, PAGES, 1)),
    way("pread", Kind::Read, (3, PAGES, 50)),
    way("readv", Kind::Read, (0, 4, 1)),
    way("preadv", Kind::Read, (100, 104, 1)),
    way("sendfile", Kind::Read, (10, 50, 1)),
    way("spliced", Kind::Read, (20, 40, 1)),
    way("io_uring", Kind::Uring, (200, 210, 1)),
    Way { direct: &[8, 9, 10, 11], ..way("direct", Kind::Direct, (0, 0, 1)) },
    way("written-in-part", Kind::Written, (16, PAGES, 16)),
    way("written", Kind::Written, (0, 0, 1)),
];

impl Way {
    /// The pages of the cache that it touches, ascending.
    pub fn touched(&self) -> Vec<u64> {
        let (first, end, step) = self.pages;
        (first..end).step_by(step as usize).collect()
    }
    /// Whether it changes its file.
    pub fn writes(&self) -> bool {
        self.kind == Kind::Written || self.name == "mapped-shared-written"
    }
}
