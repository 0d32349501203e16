//! Pages on their way: bios, the requests that carry them, and who waits for them.

use std::collections::BTreeMap;

use crate::disk::layout::Submission;
use crate::op::{FileId, PageRead};

/// A run of pages on its way.
#[derive(Debug)]
pub(super) struct OnWay {
    pub(super) read: PageRead,
    /// Requests that have not come yet.
    left: u32,
    pub(super) waiting: Vec<usize>,
}

/// A request of a submission, with its bios as numbers of [`Flight`].
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) disk: usize,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) bios: Vec<u32>,
}

/// Numbers of bios are given again when their pages have come.
#[derive(Debug, Default)]
pub(super) struct Flight {
    bios: Vec<Option<OnWay>>,
    free: Vec<u32>,
    /// By file and first page: the page behind the last one, and the bio.
    pages: BTreeMap<(FileId, u64), (u64, u32)>,
    /// Pages of the longest bio until now.
    longest: u64,
}

impl Flight {
    /// Enters a submission. Returns its requests, and the runs that are there at once because no disk holds them.
    pub(super) fn enter(&mut self, sent: Submission) -> (Vec<Request>, Vec<PageRead>) {
        let mut numbers = Vec::with_capacity(sent.bios.len());
        let mut at_once = Vec::new();
        for bio in sent.bios {
            if bio.requests == 0 {
                at_once.push(bio.read);
                numbers.push(None);
                continue;
            }
            let on_way = OnWay { read: bio.read, left: bio.requests, waiting: Vec::new() };
            let number = self.number(on_way);
            let end = bio.read.first.saturating_add(bio.read.pages);
            self.longest = self.longest.max(bio.read.pages);
            self.pages.insert((bio.read.file, bio.read.first), (end, number));
            numbers.push(Some(number));
        }
        let carried = |(first, last): (usize, usize)| {
            numbers.get(first..=last).unwrap_or_default().iter().copied().flatten().collect()
        };
        let requests = sent.requests.into_iter().map(|r| Request {
            disk: r.disk,
            offset: r.offset,
            bytes: r.bytes,
            bios: carried(r.bios),
        });
        (requests.collect(), at_once)
    }

    fn number(&mut self, on_way: OnWay) -> u32 {
        if let Some(number) = self.free.pop() {
            self.bios[number as usize] = Some(on_way);
            return number;
        }
        self.bios.push(Some(on_way));
        u32::try_from(self.bios.len() - 1).unwrap_or(u32::MAX)
    }

    /// A request of this bio has come. The bio, if it was the last one.
    pub(super) fn came(&mut self, number: u32) -> Option<OnWay> {
        let slot = self.bios.get_mut(number as usize)?;
        let bio = slot.as_mut()?;
        bio.left = bio.left.saturating_sub(1);
        if bio.left > 0 {
            return None;
        }
        let done = slot.take()?;
        self.pages.remove(&(done.read.file, done.read.first));
        self.free.push(number);
        Some(done)
    }

    /// The bio that brings a page. One read may lie within another: where Windows bridges pages that are there or
    /// coming, they are read again.
    pub(super) fn bringing(&mut self, file: FileId, page: u64) -> Option<&mut OnWay> {
        let near = (file, page.saturating_sub(self.longest))..=(file, page);
        let (_, (_, number)) = self.pages.range(near).rev().find(|(_, (end, _))| page < *end)?;
        self.bios.get_mut(*number as usize)?.as_mut()
    }

    /// What has not come.
    pub(super) fn all(self) -> impl Iterator<Item = OnWay> {
        self.bios.into_iter().flatten()
    }

    /// The read that a bio belongs to.
    pub(super) fn read(&self, number: u32) -> Option<PageRead> {
        self.bios.get(number as usize)?.as_ref().map(|b| b.read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Bounds, Layout};
    use crate::op::Why;

    #[test]
    fn a_page_is_found_in_the_read_around_another_and_at_the_far_end_of_a_long_one() {
        let mut layout = Layout::new(4096);
        let file = layout.add(0, 1000 * 4096, None);
        let mut flight = Flight::default();
        for (first, pages) in [(10, 2), (8, 8), (300, 256)] {
            let read = PageRead { file, first, pages, order: 0, why: Why::Demand };
            flight.enter(layout.submission(&[read], |_| Bounds::default()));
        }
        let mut first = |page| flight.bringing(file, page).map(|bio| bio.read.first);
        assert_eq!(
            [7, 8, 9, 10, 11, 12, 15, 16].map(&mut first),
            [None, Some(8), Some(8), Some(10), Some(10), Some(8), Some(8), None]
        );
        assert_eq!([299, 300, 555, 556].map(&mut first), [None, Some(300), Some(300), None]);
        assert!(flight.bringing(FileId(1), 10).is_none());
    }
}
