//! Where files lie on disks, and what requests a read of pages becomes.
//!
//! As the block layer does it: a run of pages is cut where its place on the disk jumps and where a bio is full; a
//! bio above the device's largest request is split from its beginning; and a bio that begins where the request
//! before it ends joins that request whole, if both fit (a plug looks at its last request only). Pages arrive when
//! their whole bio has.

use std::collections::BTreeMap;

use cold_model::io_model::Extent;

use crate::op::{FileId, PageRead};

/// Pages of a bio: 256 vectors (`BIO_MAX_VECS`), each one page where pages are not neighbours in memory. Where they
/// are, a bio has more, up to the 2 MiB that one piece of a call asks for, and they come later.
pub(crate) const BIO_PAGES: u64 = 256;
/// Between files whose place is not known.
const GAP: u64 = 1 << 20;

/// Where a file lies.
#[derive(Debug, Clone)]
struct Place {
    disk: usize,
    pages: u64,
    /// Ascending by their place in the file.
    extents: Vec<Extent>,
}

/// Where all files lie; [`FileId`]s count from 0 in the order in which files are added.
#[derive(Debug, Clone)]
pub struct Layout {
    page_bytes: u64,
    files: Vec<Place>,
    /// Behind everything known of each disk.
    ends: BTreeMap<usize, u64>,
}

/// A run of pages that arrives as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bio {
    pub(crate) read: PageRead,
    /// Requests that carry it; none where nothing of it lies on a disk (holes).
    pub(crate) requests: u32,
}

/// What is sent to a disk at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) disk: usize,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// The bios that it carries, as indices of the submission: first and last.
    pub(crate) bios: (usize, usize),
}

/// What one access sends.
#[derive(Debug, Default)]
pub(crate) struct Submission {
    pub(crate) bios: Vec<Bio>,
    pub(crate) requests: Vec<Request>,
}

impl Layout {
    /// No files yet; pages of so many bytes (at least 1).
    pub fn new(page_bytes: u64) -> Self {
        Self { page_bytes: page_bytes.max(1), files: Vec::new(), ends: BTreeMap::new() }
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// Number of files.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// Number of disks that files lie on, those between them included.
    pub fn disks(&self) -> usize {
        self.ends.keys().next_back().map_or(0, |last| last + 1)
    }

    /// Pages of a file; 0 of one that was not added.
    pub fn pages(&self, file: FileId) -> u64 {
        self.files.get(file.0 as usize).map_or(0, |place| place.pages)
    }

    /// Bytes of a disk that files lie in, from its beginning on.
    pub fn used(&self, disk: usize) -> u64 {
        self.ends.get(&disk).copied().unwrap_or(0)
    }

    /// Adds a file of `bytes` on the disk of this number. Where nobody knows its extents, it lies in one piece, a gap
    /// behind all that was added to that disk before.
    pub fn add(&mut self, disk: usize, bytes: u64, extents: Option<&[Extent]>) -> FileId {
        let id = FileId(u32::try_from(self.files.len()).unwrap_or(u32::MAX));
        let pages = bytes.div_ceil(self.page_bytes);
        let mut extents = match extents {
            Some(known) => known.to_vec(),
            None => vec![Extent {
                logical: 0,
                physical: self.used(disk).saturating_add(GAP),
                bytes: pages.saturating_mul(self.page_bytes),
            }],
        };
        extents.sort_by_key(|e| e.logical);
        let end = extents.iter().map(|e| e.physical.saturating_add(e.bytes)).max().unwrap_or(0);
        let known = self.ends.entry(disk).or_default();
        *known = end.max(*known);
        self.files.push(Place { disk, pages, extents });
        id
    }

    /// The bios and requests of reads that are sent together; `largest` is the limit of each disk's requests.
    pub(crate) fn submission(&self, reads: &[PageRead], largest: impl Fn(usize) -> u64) -> Submission {
        let mut out = Submission::default();
        for read in reads {
            let Some(place) = self.files.get(read.file.0 as usize) else {
                // Nobody knows the file: its pages are there at once.
                out.bios.push(Bio { read: *read, requests: 0 });
                continue;
            };
            let end = read.first.saturating_add(read.pages);
            let mut page = read.first;
            while page < end {
                let piece = self.piece(place, page, end);
                let bio = PageRead { first: page, pages: piece.pages, ..*read };
                out.add(bio, place.disk, piece.range, largest(place.disk));
                page = page.saturating_add(piece.pages);
            }
        }
        out
    }

    /// The next bio of pages `first..end` of a file.
    fn piece(&self, place: &Place, first: u64, end: u64) -> Piece {
        if first >= place.pages {
            return Piece { pages: end - first, range: None };
        }
        let end = end.min(place.pages);
        let at = first.saturating_mul(self.page_bytes);
        let next = place.extents.partition_point(|e| e.logical.saturating_add(e.bytes) <= at);
        let within = end.min(first.saturating_add(BIO_PAGES)).saturating_mul(self.page_bytes);
        // Up to the byte before which everything is in one piece, a page in two pieces comes with the first.
        let pages_to = |byte: u64| (byte.div_ceil(self.page_bytes)).clamp(first + 1, end) - first;
        match place.extents.get(next) {
            Some(e) if e.logical <= at => {
                let pages = pages_to(within.min(e.logical.saturating_add(e.bytes)));
                let offset = e.physical.saturating_add(at - e.logical);
                Piece { pages, range: Some((offset, pages.saturating_mul(self.page_bytes))) }
            }
            // A hole, up to the page with the next extent's beginning.
            Some(e) => {
                let pages = (e.logical / self.page_bytes).clamp(first + 1, end) - first;
                Piece { pages, range: None }
            }
            None => Piece { pages: end - first, range: None },
        }
    }
}

/// The next pages of a read, and where they lie: offset and bytes.
struct Piece {
    pages: u64,
    range: Option<(u64, u64)>,
}

impl Submission {
    fn add(&mut self, read: PageRead, disk: usize, range: Option<(u64, u64)>, largest: u64) {
        let index = self.bios.len();
        let mut requests = 0_u32;
        if let Some((mut offset, mut bytes)) = range {
            let largest = largest.max(1);
            let joins = self.requests.last_mut().filter(|r| {
                r.disk == disk
                    && r.offset.saturating_add(r.bytes) == offset
                    && bytes <= largest.saturating_sub(r.bytes)
            });
            if let Some(last) = joins {
                last.bytes = last.bytes.saturating_add(bytes);
                last.bios.1 = index;
                requests = 1;
                bytes = 0;
            }
            while bytes > 0 {
                let part = bytes.min(largest);
                self.requests.push(Request { disk, offset, bytes: part, bios: (index, index) });
                requests = requests.saturating_add(1);
                offset = offset.saturating_add(part);
                bytes -= part;
            }
        }
        self.bios.push(Bio { read, requests });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::op::Why;

    const PAGE: u64 = 4096;

    fn read(file: u32, first: u64, pages: u64) -> PageRead {
        PageRead { file: FileId(file), first, pages, why: Why::Demand }
    }

    fn extent(logical: u64, physical: u64, pages: u64) -> Extent {
        Extent { logical: logical * PAGE, physical: physical * PAGE, bytes: pages * PAGE }
    }

    /// Offset and length of each request, in pages.
    fn requests(layout: &Layout, reads: &[PageRead], largest: u64) -> Vec<(u64, u64)> {
        let sent = layout.submission(reads, |_| largest * PAGE);
        sent.requests.iter().map(|r| (r.offset / PAGE, r.bytes / PAGE)).collect()
    }

    #[test]
    fn files_of_unknown_place_follow_each_other_with_a_gap() {
        let mut layout = Layout::new(PAGE);
        layout.add(0, 10 * PAGE - 7, None);
        layout.add(0, 10 * PAGE, Some(&[extent(0, 1000, 10)]));
        layout.add(0, 10 * PAGE, None);
        assert_eq!(
            requests(&layout, &[read(0, 0, 10), read(2, 3, 2)], 100),
            [(256, 10), (1010 + 256 + 3, 2)]
        );
        assert_eq!((layout.files(), layout.used(0)), (3, (1010 + 256 + 10) * PAGE));
    }

    #[test]
    fn reads_are_cut_at_extents_and_at_the_largest_request() {
        let mut layout = Layout::new(PAGE);
        layout.add(0, 100 * PAGE, Some(&[extent(0, 500, 10), extent(10, 100, 90)]));
        assert_eq!(requests(&layout, &[read(0, 5, 60)], 32), [(505, 5), (100, 32), (132, 23)]);
        let sent = layout.submission(&[read(0, 5, 60)], |_| 32 * PAGE);
        // The second bio arrives when both of its requests have.
        assert_eq!(sent.bios.iter().map(|b| b.requests).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn neighbours_join_whole_or_not_at_all_and_only_the_last_request() {
        let mut layout = Layout::new(PAGE);
        layout.add(0, 1000 * PAGE, Some(&[extent(0, 0, 1000)]));
        let sent = |reads: &[PageRead]| requests(&layout, reads, 32);
        assert_eq!(sent(&[read(0, 0, 4), read(0, 4, 4), read(0, 9, 1)]), [(0, 8), (9, 1)]);
        assert_eq!(sent(&[read(0, 0, 24), read(0, 24, 24)]), [(0, 24), (24, 24)]);
        assert_eq!(sent(&[read(0, 0, 4), read(0, 50, 1), read(0, 4, 4)]), [(0, 4), (50, 1), (4, 4)]);
        let two = layout.submission(&[read(0, 0, 4), read(0, 4, 4)], |_| 32 * PAGE);
        assert_eq!((two.requests.len(), two.requests[0].bios), (1, (0, 1)));
    }

    #[test]
    fn bios_are_full_at_256_pages() {
        let mut layout = Layout::new(PAGE);
        layout.add(0, 1000 * PAGE, None);
        let sent = layout.submission(&[read(0, 0, 600)], |_| 1 << 30);
        assert_eq!(sent.bios.iter().map(|b| b.read.pages).collect::<Vec<_>>(), [256, 256, 88]);
        assert_eq!(sent.requests.len(), 1, "and join again");
    }

    #[test]
    fn holes_and_what_lies_behind_the_end_are_no_requests() {
        let mut layout = Layout::new(PAGE);
        layout.add(0, 20 * PAGE, Some(&[extent(0, 0, 4), extent(8, 8, 4)]));
        let sent = layout.submission(&[read(0, 0, 40), read(9, 0, 1)], |_| 1 << 30);
        assert_eq!(
            sent.bios.iter().map(|b| (b.read.first, b.read.pages, b.requests)).collect::<Vec<_>>(),
            [(0, 4, 1), (4, 4, 0), (8, 4, 1), (12, 8, 0), (20, 20, 0), (0, 1, 0)]
        );
    }

    proptest! {
        /// Whatever the extents: every page is in one bio, in order; every request within the limit; bytes agree.
        #[test]
        fn nothing_is_lost_or_read_twice(
            pieces in prop::collection::vec((0_u64..5, 1_u64..50, 0_u64..10_000), 0..10),
            reads in prop::collection::vec((0_u64..300, 1_u64..300), 1..10),
            largest in 1_u64..100,
        ) {
            let mut layout = Layout::new(PAGE);
            let mut at = 0;
            let mut extents = Vec::new();
            for (hole, pages, physical) in pieces {
                extents.push(extent(at + hole, physical, pages));
                at += hole + pages;
            }
            layout.add(0, at * PAGE, Some(&extents));
            let reads: Vec<_> = reads.iter().map(|(first, pages)| read(0, *first, *pages)).collect();
            let sent = layout.submission(&reads, |_| largest * PAGE);
            let pages = |r: &PageRead| (r.first..r.first + r.pages).collect::<Vec<_>>();
            let asked: Vec<u64> = reads.iter().flat_map(pages).collect();
            prop_assert_eq!(sent.bios.iter().flat_map(|b| pages(&b.read)).collect::<Vec<_>>(), asked.clone());
            let on_disk = |p: &&u64| extents.iter().any(|e| (e.logical..e.logical + e.bytes).contains(&(**p * PAGE)));
            let bytes: u64 = sent.requests.iter().map(|r| r.bytes).sum();
            prop_assert_eq!(bytes, asked.iter().filter(on_disk).count() as u64 * PAGE);
            prop_assert!(sent.requests.iter().all(|r| r.bytes <= largest * PAGE));
            let carried: usize = sent.requests.iter().map(|r| r.bios.1 - r.bios.0 + 1).sum();
            // A bio without requests may lie between two that one request carries.
            prop_assert!(carried >= sent.bios.iter().map(|b| b.requests as usize).sum::<usize>());
        }
    }
}
