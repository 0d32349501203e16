//! A page cache without read-ahead: every call reads what it names.

use std::collections::BTreeMap;

use cold_sim::op::{Access, FileId, Op, OpenId, PageCache, PageRead, Progress, Why};

use crate::programs::PAGE;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    OnWay,
    There,
}

#[derive(Default)]
pub(crate) struct Exact {
    pages: BTreeMap<u64, State>,
}

impl Exact {
    fn ask(&mut self, pages: std::ops::Range<u64>, why: Why, reads: &mut Vec<PageRead>) {
        for page in pages {
            if self.pages.contains_key(&page) {
                continue;
            }
            self.pages.insert(page, State::OnWay);
            match reads.last_mut() {
                Some(last) if last.first + last.pages == page => last.pages += 1,
                _ => reads.push(PageRead { file: FileId(0), first: page, pages: 1, why }),
            }
        }
    }
}

/// What the programs' only file is open as, by all of them.
pub(crate) const OPEN: OpenId = OpenId(0);

impl PageCache for Exact {
    fn access(&mut self, op: &Op, _: &mut Progress, reads: &mut Vec<PageRead>) -> Access {
        match *op {
            Op::Read { offset, bytes, .. } => {
                let pages = offset / PAGE..(offset + bytes).div_ceil(PAGE);
                self.ask(pages.clone(), Why::Demand, reads);
                let missing = pages.into_iter().find(|p| self.pages.get(p) != Some(&State::There));
                missing.map_or(Access::Done, |page| Access::Waits { file: FileId(0), page })
            }
            Op::WillNeed { first, pages, .. } => {
                self.ask(first..first + pages, Why::Advice, reads);
                Access::Done
            }
            _ => Access::Done,
        }
    }

    fn arrived(&mut self, read: &PageRead) {
        self.pages.extend((read.first..read.first + read.pages).map(|page| (page, State::There)));
    }
}
