//! Operations as programs may do them, by chance: several files, opened and mapped several times, read and touched
//! forward, backward, in jumps, with and without advice.

use cold_stats::Pcg;

use crate::SimFile;
use crate::op::{FileId, Huge, MapAdvice, MapId, Op, OpenId, Pattern};

/// Open files and mappings at one time.
const MOST_OPEN: usize = 5;
const MOST_MAPPED: usize = 5;
/// Address space between two mappings, in pages: so they never become one.
const APART: u64 = 1 << 20;
/// Address of the first mapping, in pages; ordinary programs have nothing there.
const ADDRESSES: u64 = 1 << 28;

/// An endless series of operations; the same for the same seed.
#[derive(Debug)]
pub struct Workload {
    rng: Pcg,
    page_bytes: u64,
    files: Vec<SimFile>,
    opens: Vec<Opened>,
    maps: Vec<Mapped>,
    next_open: u32,
    next_map: u32,
    by_parts: bool,
}

#[derive(Debug)]
struct Opened {
    id: OpenId,
    file: FileId,
    /// Where the last read ended.
    at: u64,
}

#[derive(Debug)]
struct Mapped {
    id: MapId,
    open: OpenId,
    first: u64,
    /// One past its last page that the file has.
    end: u64,
    /// Pages; some may lie behind the end of the file.
    pages: u64,
    exec: bool,
    /// The last page touched.
    at: u64,
}

impl Workload {
    /// Operations on these files. Different `case`s of one seed are independent.
    pub fn new(seed: u64, case: u64, page_bytes: u64, files: &[SimFile]) -> Self {
        Self {
            rng: Pcg::new(seed, case),
            page_bytes: page_bytes.max(1),
            files: files.to_vec(),
            opens: Vec::new(),
            maps: Vec::new(),
            next_open: 0,
            next_map: 0,
            by_parts: false,
        }
    }

    /// The same with advice on parts of mappings, and parts of them populated and forgotten. Other operations: what
    /// has been written down of kernels that are not at hand is of those without.
    #[must_use]
    pub fn by_parts(self) -> Self {
        Self { by_parts: true, ..self }
    }

    fn below(&mut self, n: u64) -> u64 {
        u64::from(self.rng.below(u32::try_from(n).unwrap_or(u32::MAX)))
    }

    fn pages(&self, file: FileId) -> u64 {
        let bytes = self.files.get(file.0 as usize).map_or(0, |f| f.bytes);
        bytes.div_ceil(self.page_bytes)
    }

    fn window(&self, file: FileId) -> u64 {
        self.files.get(file.0 as usize).map_or(1, |f| f.window_pages.max(1))
    }

    fn open(&mut self) -> Op {
        let file = FileId(self.rng.below(self.files.len() as u32));
        let open = OpenId(self.next_open);
        self.next_open += 1;
        self.opens.push(Opened { id: open, file, at: 0 });
        Op::Open { open, file }
    }

    fn any_open(&mut self) -> Option<usize> {
        let n = self.opens.len() as u64;
        (n > 0).then(|| self.below(n) as usize)
    }

    fn map(&mut self) -> Option<Op> {
        let i = self.any_open()?;
        let (open, file) = self.opens.get(i).map(|o| (o.id, o.file))?;
        let all = self.pages(file);
        // Half of the mappings have all of the file, the others a part; some reach beyond its end.
        let (first, pages) = if self.below(2) == 0 {
            (0, all)
        } else {
            let first = self.below(all);
            (first, 1 + self.below(all - first + 20))
        };
        let map = MapId(self.next_map);
        self.next_map += 1;
        let address = ADDRESSES + u64::from(map.0) * APART + self.below(1024);
        let exec = self.below(3) == 0;
        self.maps.push(Mapped {
            id: map,
            open,
            first,
            end: (first + pages).min(all),
            pages,
            exec,
            at: first,
        });
        Some(Op::Map { map, open, address, first, pages, exec })
    }

    fn unmap(&mut self) -> Option<Op> {
        let n = self.maps.len() as u64;
        let i = (n > 0).then(|| self.below(n) as usize)?;
        Some(Op::Unmap { map: self.maps.swap_remove(i).id })
    }

    /// A page near or far from the last one, in `first..end`.
    fn page(&mut self, last: u64, first: u64, end: u64, window: u64) -> u64 {
        let near = window * 3;
        let page = match self.below(16) {
            0..=4 => last + 1,
            5 | 6 => last.saturating_sub(1),
            7 | 8 => last + 1 + self.below(window),
            9 => last.saturating_sub(1 + self.below(window)),
            10 | 11 => (last + self.below(near)).saturating_sub(near / 2),
            12 => end.saturating_sub(1 + self.below(8)),
            _ => first + self.below(end - first),
        };
        page.clamp(first, end - 1)
    }

    fn touch(&mut self) -> Option<Op> {
        let n = self.maps.len() as u64;
        let i = (n > 0).then(|| self.below(n) as usize)?;
        let (last, first, end, exec, open) =
            self.maps.get(i).map(|m| (m.at, m.first, m.end, m.exec, m.open))?;
        let window = self.opens.iter().find(|o| o.id == open).map_or(1, |o| self.window(o.file));
        let page = self.page(last, first, end, window);
        let write = !exec && self.below(16) == 0;
        let mapped = self.maps.get_mut(i)?;
        mapped.at = page;
        Some(Op::Touch { map: mapped.id, page, write })
    }

    fn read(&mut self) -> Option<Op> {
        let i = self.any_open()?;
        let (last, file) = self.opens.get(i).map(|o| (o.at, o.file))?;
        let (all, window) = (self.pages(file), self.window(file));
        let page = self.page_bytes;
        let offset = match self.below(8) {
            0..=3 => last,
            4 => last + self.below(4 * page),
            _ => self.page(last / page, 0, all, window) * page + self.below(2) * self.below(page),
        };
        let bytes = match self.below(8) {
            0 => 1 + self.below(page),
            1..=3 => page * (1 + self.below(8)),
            4 => page * (1 + self.below(window)),
            5 => page * (window.saturating_sub(2) + self.below(4)).max(1),
            6 => 1 + self.below(page * window * 2),
            _ => page * (1 + self.below(window * 4)),
        };
        let opened = self.opens.get_mut(i)?;
        opened.at = if offset < all * page { offset + bytes } else { 0 };
        Some(Op::Read { open: opened.id, offset, bytes })
    }

    fn advise(&mut self) -> Option<Op> {
        if self.below(2) == 0 {
            let pattern = pattern(self.below(7));
            let i = self.any_open()?;
            return Some(Op::AdviseOpen { open: self.opens.get(i)?.id, pattern });
        }
        let advice = match self.below(7) {
            4 => MapAdvice::Huge(Huge::Wanted),
            5 if self.by_parts => MapAdvice::Huge(Huge::Unwanted),
            n => MapAdvice::Pattern(pattern(n)),
        };
        let (map, first, pages) = self.part()?;
        Some(Op::AdviseMap { map, first, pages, advice })
    }

    /// A mapping, or a part of one.
    fn part(&mut self) -> Option<(MapId, u64, u64)> {
        let n = self.maps.len() as u64;
        let i = (n > 0).then(|| self.below(n) as usize)?;
        let (map, first, pages) = self.maps.get(i).map(|m| (m.id, m.first, m.pages))?;
        if !self.by_parts || self.below(3) == 0 {
            return Some((map, first, pages));
        }
        let from = self.below(pages);
        let most = if self.below(2) == 0 { 64 } else { pages };
        Some((map, first + from, (1 + self.below(most)).min(pages - from)))
    }

    fn populate(&mut self) -> Option<Op> {
        let (map, first, pages) = self.part()?;
        Some(Op::Populate { map, first, pages: pages.min(1 + self.below(200)) })
    }

    fn range(&mut self) -> Option<(OpenId, FileId, u64, u64)> {
        let i = self.any_open()?;
        let (open, file) = self.opens.get(i).map(|o| (o.id, o.file))?;
        let all = self.pages(file);
        let first = self.below(all);
        let pages = 1 + if self.below(2) == 0 { self.below(all - first) } else { self.below(64) };
        Some((open, file, first, pages))
    }
}

fn pattern(n: u64) -> Pattern {
    match n {
        0 | 1 => Pattern::Random,
        2 | 3 => Pattern::Sequential,
        _ => Pattern::Normal,
    }
}

impl Iterator for Workload {
    type Item = Op;

    fn next(&mut self) -> Option<Op> {
        if self.opens.is_empty() {
            return Some(self.open());
        }
        let op = match self.below(100) {
            0..=2 if self.opens.len() < MOST_OPEN => Some(self.open()),
            3..=6 if self.maps.len() < MOST_MAPPED => self.map(),
            7 if self.maps.len() == MOST_MAPPED => self.unmap(),
            8..=11 => self.advise(),
            12..=13 => self.range().map(|(open, _, first, pages)| Op::WillNeed { open, first, pages }),
            14..=15 => self.range().map(|(_, file, first, pages)| Op::DontNeed { file, first, pages }),
            16..=17 if self.by_parts => self.populate(),
            18..=19 if self.by_parts => {
                self.part().map(|(map, first, pages)| Op::Forget { map, first, pages })
            }
            16..=40 => self.read(),
            _ => self.touch(),
        };
        Some(op.or_else(|| self.map()).unwrap_or_else(|| self.open()))
    }
}
