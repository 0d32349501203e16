//! Ways to read a file, and the pages that each of them touches: what a recording has to agree with.

/// Bytes per page of the machines that tests run on.
pub const PAGE: u64 = 4096;
/// Pages of each file: a huge page and a half.
pub const PAGES: u64 = 768;

/// How a way reaches the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
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

/// One way to read a file, with the pages that it touches.
#[derive(Debug, Clone)]
pub struct Way {
    /// Its name, and its file's.
    pub name: &'static str,
    /// Through what its pages are reached.
    pub kind: Access,
    pages: Every,
    /// Pages read past the cache.
    pub direct: &'static [u64],
}

/// The pages `from`, `from + step`, … below `to`.
#[derive(Debug, Clone, Copy)]
struct Every {
    from: u64,
    to: u64,
    step: u64,
}

const fn way(name: &'static str, kind: Access, (from, to, step): (u64, u64, u64)) -> Way {
    Way { name, kind, pages: Every { from, to, step }, direct: &[] }
}

/// All of them, in the order in which they are tried.
pub const WAYS: &[Way] = &[
    way("mapped-in-order", Access::Mapped, (0, PAGES, 1)),
    way("mapped-backwards", Access::Mapped, (0, PAGES, 1)),
    way("mapped-every-64th", Access::Mapped, (0, PAGES, 64)),
    way("mapped-random", Access::Mapped, (0, PAGES, 7)),
    way("mapped-sequential", Access::Mapped, (0, PAGES, 1)),
    way("mapped-usual-again", Access::Mapped, (0, PAGES, 7)),
    way("mapped-partly-random", Access::Mapped, (0, PAGES, 7)),
    way("mapped-again", Access::Mapped, (0, PAGES, 7)),
    way("mapped-willneed", Access::Mapped, (0, PAGES, 5)),
    way("mapped-huge", Access::Mapped, (0, PAGES, 97)),
    way("mapped-by-threads", Access::Mapped, (0, PAGES, 3)),
    way("mapped-private-written", Access::Mapped, (0, PAGES, 9)),
    way("mapped-shared-written", Access::Mapped, (0, PAGES, 9)),
    way("populated", Access::Asked, (0, PAGES, 16)),
    way("populated-by-advice", Access::Asked, (0, PAGES, 16)),
    way("locked", Access::Asked, (0, PAGES, 16)),
    way("read", Access::Read, (0, PAGES, 1)),
    way("pread", Access::Read, (3, PAGES, 50)),
    way("pread-random", Access::Read, (3, PAGES, 25)),
    way("pread-sequential", Access::Read, (0, PAGES, 3)),
    way("pread-again", Access::Read, (0, PAGES, 2)),
    way("pread-ends-early", Access::Read, (0, PAGES, 2)),
    way("readv", Access::Read, (0, 4, 1)),
    way("preadv", Access::Read, (100, 104, 1)),
    way("sendfile", Access::Read, (10, 50, 1)),
    way("sendfile-into-pipe", Access::Read, (10, 26, 1)),
    way("spliced", Access::Read, (20, 40, 1)),
    way("io_uring", Access::Uring, (200, 210, 1)),
    Way { direct: &[8, 9, 10, 11], ..way("direct", Access::Direct, (0, 0, 1)) },
    way("written-in-part", Access::Written, (16, PAGES, 16)),
    way("written", Access::Written, (0, 0, 1)),
];

impl Way {
    /// The pages of the cache that it touches, ascending.
    pub fn touched(&self) -> Vec<u64> {
        let Every { from: first, to: end, step } = self.pages;
        (first..end).step_by(step as usize).collect()
    }
    /// Whether it changes its file.
    pub fn writes(&self) -> bool {
        self.kind == Access::Written || self.name == "mapped-shared-written"
    }
}
