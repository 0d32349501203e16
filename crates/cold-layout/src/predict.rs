//! What a kernel reads of a program's code in a start, under an order that nobody has linked yet.
//!
//! A start touches the pages of each function when it first enters it, from its first byte to its last: parts that it
//! does not reach count, too. The model of the page cache ([`cold_sim::Cache`]) says what is read for that, one access
//! after another. Code alone: data, relocations and other files are not in the figures.

use std::collections::BTreeSet;
use std::ops::Range;

use cold_model::Bytes;
use cold_model::order::{Function, Text, TracedFile};
use cold_model::pages::Runs;
use cold_sim::op::{Access, FileId, MapId, Op, OpenId, PageCache, Progress};
use cold_sim::{Cache, Paging, Policy, SimFile};
use cold_stats::Pcg;

use crate::place::{base, placed, with_namesakes};

/// Random orders of which the median counts.
const SHUFFLES: u64 = 5;

/// How the file is read.
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    /// Rules of the kernel whose page cache is simulated.
    pub policy: Policy,
    /// Size of a page, and how many a fault maps around it.
    pub paging: Paging,
    /// The read-ahead window (`read_ahead_kb`).
    pub window: Bytes,
    /// The file system keeps files in large folios.
    pub large_folios: bool,
}

/// What a start reads of the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeRead {
    /// Pages that it touches.
    pub touched: u64,
    /// Read requests for code.
    pub requests: u64,
    /// What is read.
    pub read: Bytes,
}

/// A start under several layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prediction {
    /// As the program is linked.
    pub today: CodeRead,
    /// Under the order.
    pub ordered: CodeRead,
    /// Under random orders: the one in the middle by what is read.
    pub random: CodeRead,
    /// Under the order of this start's own first entries.
    pub alone: CodeRead,
    /// What no order goes below: pages that the functions' bytes fill, in requests of a whole window.
    pub least: CodeRead,
}

/// Of a start that enters `entered` of `file`, in this order, under `order`; both are indices of its functions.
/// `None` where the file has no code in which they lie.
pub fn predicted(file: &TracedFile, order: &[u32], entered: &[u32], kernel: &Kernel) -> Option<Prediction> {
    let lowest = entered.iter().filter_map(|n| file.functions.get(*n as usize)).map(|f| f.address).min()?;
    let text = file.texts.iter().filter(|t| t.address <= lowest).max_by_key(|t| t.address)?;
    let inside = |address: u64| (text.address..text.address.saturating_add(text.bytes)).contains(&address);
    let base = base(&file.functions, inside).unwrap_or(lowest);
    let read = |address: &dyn Fn(usize) -> u64| {
        let extent = |n: &u32| {
            let function = file.functions.get(*n as usize)?;
            // Tables that are made to harm have functions outside of the code, or larger than it.
            let first = address(*n as usize).checked_sub(text.address).filter(|at| *at / 2 <= text.bytes)?;
            let first = first.saturating_add(text.offset);
            Some(first..first.saturating_add(function.bytes.clamp(1, text.bytes.max(1))))
        };
        let extents: Vec<Range<u64>> = entered.iter().filter_map(extent).collect();
        code_read(text, &extents, kernel)
    };
    let under = |order: &[u32]| {
        let place = placed(&file.functions, order, base);
        read(&|n| place.get(n).copied().unwrap_or(0))
    };
    let mut all: Vec<u32> = (0..).take(file.functions.len()).collect();
    let shuffled = |seed| {
        Pcg::new(seed, 0).shuffle(&mut all);
        under(&all)
    };
    let mut random: Vec<CodeRead> = (0..SHUFFLES).map(shuffled).collect();
    random.sort_by_key(|r| (r.read, r.requests));
    Some(Prediction {
        today: read(&|n| file.functions.get(n).map_or(0, |f| f.address)),
        ordered: under(&with_namesakes(&file.functions, order)),
        random: *random.get(random.len() / 2)?,
        alone: under(&with_namesakes(&file.functions, entered)),
        least: least(&file.functions, entered, kernel),
    })
}

/// The bytes of functions without a gap, read without a page too much.
fn least(functions: &[Function], entered: &[u32], kernel: &Kernel) -> CodeRead {
    let page = kernel.paging.page_bytes.max(1);
    let once: BTreeSet<u32> = entered.iter().copied().collect();
    let bytes = once.iter().filter_map(|n| functions.get(*n as usize)).map(|f| f.bytes);
    let touched = bytes.fold(0_u64, u64::saturating_add).div_ceil(page).max(1);
    let requests = touched.div_ceil((kernel.window.0 / page).max(1));
    CodeRead { touched, requests, read: Bytes(touched.saturating_mul(page)) }
}

/// What touching these bytes of a file through the mapping of its code reads, in their order.
fn code_read(text: &Text, extents: &[Range<u64>], kernel: &Kernel) -> CodeRead {
    let page = kernel.paging.page_bytes.max(1);
    let pages = |bytes: &Range<u64>| bytes.start / page..bytes.end.div_ceil(page);
    let end = extents.iter().map(|e| e.end).max().unwrap_or(0).max(text.offset.saturating_add(text.bytes));
    let window_pages = kernel.window.0 / page;
    let file =
        SimFile { bytes: end, window_pages, io_pages: window_pages, large_folios: kernel.large_folios };
    let mut cache = Cache::new(kernel.policy, kernel.paging, &[file]);
    let first = text.offset / page;
    let mut reader = Reader { cache: &mut cache, requests: 0, pages: 0 };
    reader.does(Op::Open { open: OpenId(0), file: FileId(0) });
    reader.does(Op::Map {
        map: MapId(0),
        open: OpenId(0),
        address: text.address / page,
        first,
        pages: end.div_ceil(page).saturating_sub(first),
        exec: true,
    });
    for touched in extents.iter().flat_map(pages) {
        reader.does(Op::Touch { map: MapId(0), page: touched, write: false });
    }
    let (requests, read) = (reader.requests, Bytes(reader.pages.saturating_mul(page)));
    CodeRead { touched: Runs::of(extents.iter().map(pages).collect()).pages(), requests, read }
}

struct Reader<'a> {
    cache: &'a mut Cache,
    requests: u64,
    pages: u64,
}

impl Reader<'_> {
    /// Does it to its end; all that it reads comes at once.
    fn does(&mut self, op: Op) {
        let mut progress = Progress::default();
        loop {
            let mut reads = Vec::new();
            let access = self.cache.access(&op, &mut progress, &mut reads);
            let mut end = None;
            for read in &reads {
                // Neighbours that are sent together are one request.
                self.requests += u64::from(end != Some(read.first));
                self.pages = self.pages.saturating_add(read.pages);
                end = read.first.checked_add(read.pages);
                self.cache.arrived(read);
            }
            // What waits and asks for nothing more has got all that it will.
            if access == Access::Done || reads.is_empty() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cold_sim::LinuxVersion;

    use super::*;

    const KERNEL: Kernel = Kernel {
        policy: Policy::Nothing,
        paging: Paging { page_bytes: 4096, fault_around: 16, exec_order: 0, max_order: 9 },
        window: Bytes(128 << 10),
        large_folios: true,
    };

    /// 400 functions of a quarter of a page, each at the beginning of a page of its own; code begins at page 1.
    fn file() -> TracedFile {
        let one = |n: u64| Function { address: 4096 + n * 4096, bytes: 1024, names: vec![], sources: vec![] };
        TracedFile {
            path: "/p".into(),
            build_id: None,
            linked: cold_model::order::Linked::Pie,
            is_go: false,
            texts: vec![Text { offset: 4096, bytes: 400 * 4096, address: 4096 }],
            functions: (0..400).map(one).collect(),
        }
    }

    #[test]
    fn without_read_around_each_page_is_a_request() {
        let entered: Vec<u32> = (0..40).map(|n| n * 10).collect();
        let p = predicted(&file(), &entered, &entered, &KERNEL).unwrap();
        let pages = |n: u64| CodeRead { touched: n, requests: n, read: Bytes(n * 4096) };
        assert_eq!((p.today, p.ordered, p.alone), (pages(40), pages(10), pages(10)));
        let in_requests = |requests| CodeRead { requests, ..pages(10) };
        assert_eq!(p.least, in_requests(1), "10 pages are less than a window of 32");
        let narrow = Kernel { window: Bytes(16 << 10), ..KERNEL };
        let twice: Vec<u32> = entered.iter().chain(&entered).copied().collect();
        assert_eq!(predicted(&file(), &entered, &twice, &narrow).unwrap().least, in_requests(3));
        // 400 KiB of functions, a quarter of a page each, in 100 pages: 40 of them touch some 34.
        assert!((28..=39).contains(&p.random.touched), "{:?}", p.random);
    }

    #[test]
    fn read_around_makes_few_requests_of_what_lies_together() {
        let kernel = Kernel { policy: Policy::Linux(LinuxVersion::V6_1), ..KERNEL };
        let entered: Vec<u32> = (0..40).map(|n| n * 10).collect();
        let p = predicted(&file(), &entered, &entered, &kernel).unwrap();
        assert!(p.ordered.requests <= 2 && p.today.requests >= 10, "{p:?}");
        assert!(p.ordered.read < p.today.read && p.today.read <= Bytes(401 * 4096), "{p:?}");
    }

    #[test]
    fn tables_that_make_no_sense_do_no_harm() {
        let mut file = file();
        file.functions[3].bytes = u64::MAX >> 20;
        file.functions[4].address = u64::MAX;
        assert!(predicted(&file, &[900, 1], &[1, 3, 4, 77, 4000], &KERNEL).is_some());
        file.texts.clear();
        assert_eq!(predicted(&file, &[], &[1], &KERNEL), None);
        assert_eq!(predicted(&file, &[], &[], &KERNEL), None);
    }
}
