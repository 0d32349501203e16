//! Where files lie on disks, and what requests a read of pages becomes.
//!
//! As the block layer does it: a run of pages is cut where its place on the disk jumps and where a bio is full; a
//! bio that is more than one request of the device holds, by its bytes or by its segments, is split from its
//! beginning; and a bio that begins where the request before it ends joins that request whole, if both fit (a plug
//! looks at its last request only). A large folio is one segment, and so is what a cut leaves of it; of single pages
//! some are neighbours in memory ([`TOGETHER`]). Pages arrive when their whole bio has.

use std::collections::BTreeMap;

use cold_model::io_model::Extent;

use super::Bounds;
use crate::op::{FileId, PageRead};

/// Folios of a bio: 256 vectors (`BIO_MAX_VECS`), each one folio where folios are not neighbours in memory. Where they
/// are, a bio has more, up to the 2 MiB that one piece of a call asks for, and they come later.
const BIO_FOLIOS: usize = 256;
/// Single pages to a segment. How many are neighbours in memory depends on what is free: the allocator takes single
/// free pages before it divides pairs, and pairs before fours. Windows of 512 single pages on a disk of 254 segments
/// were seen as one request, as 508 and 4, and as 254, 2, 254, 2; over the starts of five programs two is the number
/// that comes nearest (docs/concepts/simulation.md).
const TOGETHER: u64 = 2;
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
    /// Pieces of memory that it fills.
    pub(crate) segments: u32,
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

    /// The bios and requests of reads that are sent together, within the bounds of each disk's requests.
    pub(crate) fn submission(&self, reads: &[PageRead], bounds: impl Fn(usize) -> Bounds) -> Submission {
        let mut out = Submission::default();
        for read in reads {
            let Some(place) = self.files.get(read.file.0 as usize) else {
                // Nobody knows the file: its pages are there at once.
                out.bios.push(Bio { read: *read, requests: 0 });
                continue;
            };
            let end = read.first.saturating_add(read.pages);
            let within = bounds(place.disk);
            let mut page = read.first;
            while page < end {
                let piece = self.piece(place, read, page);
                let bio = PageRead { first: page, pages: piece.pages, ..*read };
                let parts = piece.at.into_iter().flat_map(|at| self.parts(read, &bio, at, within));
                out.add(bio, place.disk, within, parts);
                page = page.saturating_add(piece.pages);
            }
        }
        out
    }

    /// What a bio at this byte of a disk is alone: whole, or cut so that each part is within the bounds.
    fn parts(
        &self,
        read: &PageRead,
        bio: &PageRead,
        at: u64,
        bounds: Bounds,
    ) -> impl Iterator<Item = LaidPart> {
        let (read, bio, page_bytes) = (*read, *bio, self.page_bytes);
        let (most, bytes) = (bounds.bytes.max(1), bio.pages.saturating_mul(page_bytes));
        let mut done = 0_u64;
        std::iter::from_fn(move || {
            let (from, mut segments) = (done, 0_u32);
            while done < bytes && done - from < most && segments < bounds.segments.max(1) {
                let page = bio.first.saturating_add(done / page_bytes);
                let end = if read.order == 0 { page.saturating_add(TOGETHER) } else { read.folio_end(page) };
                let segment = (end - bio.first).saturating_mul(page_bytes);
                done = segment.min(bytes).min(from.saturating_add(most));
                segments = segments.saturating_add(1);
            }
            (done > from).then(|| LaidPart { offset: at.saturating_add(from), bytes: done - from, segments })
        })
    }

    /// The next bio of a read, from page `first` on.
    fn piece(&self, place: &Place, read: &PageRead, first: u64) -> LaidPiece {
        let end = read.first.saturating_add(read.pages);
        if first >= place.pages {
            return LaidPiece { pages: end - first, at: None };
        }
        let end = end.min(place.pages);
        let at = first.saturating_mul(self.page_bytes);
        let next = place.extents.partition_point(|e| e.logical.saturating_add(e.bytes) <= at);
        let folios = std::iter::successors(Some(first), |at| (*at < end).then(|| read.folio_end(*at)));
        let full = folios.take(BIO_FOLIOS + 1).last().unwrap_or(end);
        let within = end.min(full).saturating_mul(self.page_bytes);
        // Up to the byte before which everything is in one piece, a page in two pieces comes with the first.
        let pages_to = |byte: u64| (byte.div_ceil(self.page_bytes)).clamp(first + 1, end) - first;
        match place.extents.get(next) {
            Some(e) if e.logical <= at => {
                let pages = pages_to(within.min(e.logical.saturating_add(e.bytes)));
                LaidPiece { pages, at: Some(e.physical.saturating_add(at - e.logical)) }
            }
            // A hole, up to the page with the next extent's beginning.
            Some(e) => {
                let pages = (e.logical / self.page_bytes).clamp(first + 1, end) - first;
                LaidPiece { pages, at: None }
            }
            None => LaidPiece { pages: end - first, at: None },
        }
    }
}

/// The next pages of a read, and where on the disk they begin.
struct LaidPiece {
    pages: u64,
    at: Option<u64>,
}

/// A part of a bio that fits into one request.
struct LaidPart {
    offset: u64,
    bytes: u64,
    segments: u32,
}

impl Submission {
    /// Adds a bio and what it is alone.
    fn add(&mut self, read: PageRead, disk: usize, within: Bounds, parts: impl Iterator<Item = LaidPart>) {
        let index = self.bios.len();
        let mut requests = 0_u32;
        for part in parts {
            requests = requests.saturating_add(1);
            // What was cut fills a request: only a whole bio can join.
            let joins = self.requests.last_mut().filter(|r| {
                r.disk == disk
                    && r.offset.saturating_add(r.bytes) == part.offset
                    && part.bytes <= within.bytes.saturating_sub(r.bytes)
                    && part.segments <= within.segments.saturating_sub(r.segments)
            });
            let Some(last) = joins else {
                let LaidPart { offset, bytes, segments } = part;
                self.requests.push(Request { disk, offset, bytes, segments, bios: (index, index) });
                continue;
            };
            last.bytes = last.bytes.saturating_add(part.bytes);
            last.segments = last.segments.saturating_add(part.segments);
            last.bios.1 = index;
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
        folios(file, first, pages, 0)
    }

    fn folios(file: u32, first: u64, pages: u64, order: u32) -> PageRead {
        PageRead { file: FileId(file), first, pages, order, why: Why::Demand }
    }

    /// Requests of so many pages, whatever their segments.
    fn pages(largest: u64) -> Bounds {
        Bounds { bytes: largest * PAGE, segments: u32::MAX }
    }

    fn extent(logical: u64, physical: u64, pages: u64) -> Extent {
        Extent { logical: logical * PAGE, physical: physical * PAGE, bytes: pages * PAGE }
    }

    /// Offset and length of each request, in pages.
    fn requests(layout: &Layout, reads: &[PageRead], within: Bounds) -> Vec<(u64, u64)> {
        let sent = layout.submission(reads, |_| within);
        sent.requests.iter().map(|r| (r.offset / PAGE, r.bytes / PAGE)).collect()
    }

    #[test]
    fn files_of_unknown_place_follow_each_other_with_a_gap() {
        let mut layout = Layout::new(PAGE);
        layout.add(0, 10 * PAGE - 7, None);
        layout.add(0, 10 * PAGE, Some(&[extent(0, 1000, 10)]));
        layout.add(0, 10 * PAGE, None);
        assert_eq!(
            requests(&layout, &[read(0, 0, 10), read(2, 3, 2)], pages(100)),
            [(256, 10), (1010 + 256 + 3, 2)]
        );
        assert_eq!((layout.files(), layout.used(0)), (3, (1010 + 256 + 10) * PAGE));
    }

    #[test]
    fn reads_are_cut_at_extents_and_at_the_largest_request() {
        let mut layout = Layout::new(PAGE);
        layout.add(0, 100 * PAGE, Some(&[extent(0, 500, 10), extent(10, 100, 90)]));
        assert_eq!(requests(&layout, &[read(0, 5, 60)], pages(32)), [(505, 5), (100, 32), (132, 23)]);
        let sent = layout.submission(&[read(0, 5, 60)], |_| pages(32));
        // The second bio arrives when both of its requests have.
        assert_eq!(sent.bios.iter().map(|b| b.requests).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn neighbours_join_whole_or_not_at_all_and_only_the_last_request() {
        let mut layout = Layout::new(PAGE);
        layout.add(0, 1000 * PAGE, Some(&[extent(0, 0, 1000)]));
        let sent = |reads: &[PageRead]| requests(&layout, reads, pages(32));
        assert_eq!(sent(&[read(0, 0, 4), read(0, 4, 4), read(0, 9, 1)]), [(0, 8), (9, 1)]);
        assert_eq!(sent(&[read(0, 0, 24), read(0, 24, 24)]), [(0, 24), (24, 24)]);
        assert_eq!(sent(&[read(0, 0, 4), read(0, 50, 1), read(0, 4, 4)]), [(0, 4), (50, 1), (4, 4)]);
        let two = layout.submission(&[read(0, 0, 4), read(0, 4, 4)], |_| pages(32));
        assert_eq!((two.requests.len(), two.requests[0].bios), (1, (0, 1)));
    }

    #[test]
    fn requests_are_cut_at_their_segments_of_a_folio_or_two_pages() {
        let mut layout = Layout::new(PAGE);
        layout.add(0, 4000 * PAGE, Some(&[extent(0, 0, 4000)]));
        let virtio = Bounds { bytes: 4 << 20, segments: 254 };
        let sent = |reads: &[PageRead]| requests(&layout, reads, virtio);
        // The second bio of 128 segments does not fit to the first.
        assert_eq!(sent(&[read(0, 0, 512)]), [(0, 256), (256, 256)]);
        assert_eq!(sent(&[read(0, 0, 257)]), [(0, 257)]);
        assert_eq!(sent(&[folios(0, 4, 508, 2)]), [(4, 508)]);
        assert_eq!(sent(&[folios(0, 0, 1200, 2)]), [(0, 254 * 4), (254 * 4, 1200 - 254 * 4)]);
        // Folios of 1, 2, 4 and 8 pages, then of 16: here bytes are the bound.
        assert_eq!(sent(&[folios(0, 1, 1999, 4)]), [(1, 1024), (1025, 975)]);
        // Neighbours join up to the bound.
        assert_eq!(sent(&[read(0, 4, 252), folios(0, 256, 512, 2)]), [(4, 764)]);
        assert_eq!(sent(&[read(0, 3, 253), folios(0, 256, 512, 2)]), [(3, 253), (256, 512)]);
        let few = Bounds { segments: 100, ..virtio };
        assert_eq!(requests(&layout, &[read(0, 7, 256)], few), [(7, 200), (207, 56)]);
        let none = Bounds { bytes: 0, segments: 0 };
        assert_eq!(layout.submission(&[read(0, 0, 1)], |_| none).requests.len(), 4096, "one byte each");
    }

    #[test]
    fn bios_are_full_at_256_folios() {
        let mut layout = Layout::new(PAGE);
        layout.add(0, 2000 * PAGE, None);
        let bios = |read| {
            let sent = layout.submission(&[read], |_| pages(1 << 18));
            assert_eq!(sent.requests.len(), 1, "and join again");
            sent.bios.iter().map(|b| b.read.pages).collect::<Vec<_>>()
        };
        assert_eq!(bios(read(0, 0, 600)), [256, 256, 88]);
        assert_eq!(bios(folios(0, 0, 1100, 2)), [1024, 76]);
        assert_eq!(bios(folios(0, 1, 1100, 2)), [1 + 2 + 254 * 4, 81]);
    }

    #[test]
    fn holes_and_what_lies_behind_the_end_are_no_requests() {
        let mut layout = Layout::new(PAGE);
        layout.add(0, 20 * PAGE, Some(&[extent(0, 0, 4), extent(8, 8, 4)]));
        let sent = layout.submission(&[read(0, 0, 40), read(9, 0, 1)], |_| pages(1 << 18));
        assert_eq!(
            sent.bios.iter().map(|b| (b.read.first, b.read.pages, b.requests)).collect::<Vec<_>>(),
            [(0, 4, 1), (4, 4, 0), (8, 4, 1), (12, 8, 0), (20, 20, 0), (0, 1, 0)]
        );
    }

    proptest! {
        /// Whatever the extents: every page is in one bio, in order; every request within its bounds; bytes agree.
        #[test]
        fn nothing_is_lost_or_read_twice(
            pieces in prop::collection::vec((0_u64..5, 1_u64..50, 0_u64..10_000), 0..10),
            reads in prop::collection::vec((0_u64..300, 1_u64..300, 0_u32..6), 1..10),
            within in (1_u64..100, 1_u32..40),
        ) {
            let mut layout = Layout::new(PAGE);
            let mut at = 0;
            let mut extents = Vec::new();
            for (hole, pages, physical) in pieces {
                extents.push(extent(at + hole, physical, pages));
                at += hole + pages;
            }
            layout.add(0, at * PAGE, Some(&extents));
            let reads: Vec<_> = reads.iter().map(|(first, pages, order)| folios(0, *first, *pages, *order)).collect();
            let within = Bounds { bytes: within.0 * PAGE, segments: within.1 };
            let sent = layout.submission(&reads, |_| within);
            let pages = |r: &PageRead| (r.first..r.first + r.pages).collect::<Vec<_>>();
            let asked: Vec<u64> = reads.iter().flat_map(pages).collect();
            prop_assert_eq!(sent.bios.iter().flat_map(|b| pages(&b.read)).collect::<Vec<_>>(), asked.clone());
            let on_disk = |p: &u64| extents.iter().any(|e| (e.logical..e.logical + e.bytes).contains(&(p * PAGE)));
            let bytes: u64 = sent.requests.iter().map(|r| r.bytes).sum();
            prop_assert_eq!(bytes, asked.iter().filter(|p| on_disk(p)).count() as u64 * PAGE);
            prop_assert!(sent.requests.iter().all(|r| r.bytes <= within.bytes));
            // Requests have the pages in the order in which they were asked for.
            let folio = |(read, (page, first))| on_disk(&page).then_some((read, first));
            let mut folios = reads.iter().enumerate().flat_map(|(n, read)| laid_out(read).map(move |at| (n, at)))
                .filter_map(folio);
            for request in &sent.requests {
                let mut has: Vec<_> = folios.by_ref().take((request.bytes / PAGE) as usize).collect();
                has.dedup();
                let segments = has.chunk_by(|a, b| a.0 == b.0).map(|of| match reads[of[0].0].order {
                    0 => of.len().div_ceil(TOGETHER as usize),
                    _ => of.len(),
                });
                prop_assert!(segments.sum::<usize>() as u32 <= within.segments);
            }
            let carried: usize = sent.requests.iter().map(|r| r.bios.1 - r.bios.0 + 1).sum();
            // A bio without requests may lie between two that one request carries.
            prop_assert!(carried >= sent.bios.iter().map(|b| b.requests as usize).sum::<usize>());
        }
    }

    /// Each page of a read with the first page of its folio, from the left as a kernel lays them out: the largest that
    /// is aligned and ends within the read.
    fn laid_out(read: &PageRead) -> impl Iterator<Item = (u64, u64)> {
        let (mut at, end) = (read.first, read.first + read.pages);
        let mut out = Vec::new();
        while at < end {
            let mut size = 1 << read.order;
            while at % size > 0 || at + size > end {
                size /= 2;
            }
            out.extend((at..at + size).map(|page| (page, at)));
            at += size;
        }
        out.into_iter()
    }
}
