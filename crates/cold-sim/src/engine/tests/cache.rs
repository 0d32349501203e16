//! A page cache of the plainest kind: a miss reads the aligned window around it.

use std::collections::BTreeMap;

use crate::op::{Access, FileId, Op, OpenId, PageCache, PageRead, Progress, Why};

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Absent,
    OnWay,
    There,
}

#[derive(Clone)]
pub(super) struct Plain {
    files: Vec<Vec<State>>,
    opens: BTreeMap<OpenId, FileId>,
    window: u64,
}

impl Plain {
    /// Files of so many pages, the n-th open as n and mapped as n.
    pub(super) fn new(files: u32, pages: usize, window: u64) -> Self {
        let opens = (0..files).map(|n| (OpenId(n), FileId(n))).collect();
        Self { files: vec![vec![State::Absent; pages]; files as usize], opens, window }
    }

    pub(super) fn with_window(self, window: u64) -> Self {
        Self { window, ..self }
    }

    /// The absent runs of `first..end`.
    fn ask(&mut self, file: FileId, (first, end): (u64, u64), why: Why, reads: &mut Vec<PageRead>) {
        let pages = &mut self.files[file.0 as usize];
        for page in first..end.min(pages.len() as u64) {
            let state = &mut pages[page as usize];
            if *state != State::Absent {
                continue;
            }
            *state = State::OnWay;
            match reads.last_mut() {
                Some(last) if last.file == file && last.first + last.pages == page => last.pages += 1,
                _ => reads.push(PageRead { file, first: page, pages: 1, order: 0, why }),
            }
        }
    }

    fn need(&mut self, file: FileId, page: u64, reads: &mut Vec<PageRead>) -> Access {
        match self.files[file.0 as usize][page as usize] {
            State::There => return Access::Done,
            State::OnWay => {}
            State::Absent => {
                let first = page - page % self.window;
                self.ask(file, (first, first + self.window), Why::Demand, reads);
            }
        }
        Access::Waits { file, page }
    }
}

impl PageCache for Plain {
    fn access(&mut self, op: &Op, progress: &mut Progress, reads: &mut Vec<PageRead>) -> Access {
        match *op {
            Op::Open { open, file } => drop(self.opens.insert(open, file)),
            Op::Touch { map, page, .. } => return self.need(FileId(map.0), page, reads),
            Op::Read { open, offset, bytes } => {
                let file = self.opens[&open];
                for page in (offset + progress.copied) / 4096..(offset + bytes).div_ceil(4096) {
                    let waits = self.need(file, page, reads);
                    if waits != Access::Done {
                        return waits;
                    }
                    progress.copied = (page + 1) * 4096 - offset;
                }
            }
            Op::WillNeed { open, first, pages } => {
                self.ask(self.opens[&open], (first, first + pages), Why::Advice, reads);
            }
            _ => {}
        }
        Access::Done
    }

    fn arrived(&mut self, read: &PageRead) {
        for page in read.first..read.first + read.pages {
            let state = &mut self.files[read.file.0 as usize][page as usize];
            assert!(*state == State::OnWay, "page {page} was not on its way");
            *state = State::There;
        }
    }
}
