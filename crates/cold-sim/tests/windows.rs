//! Windows that were seen on kernels or stand in their sources, one by one.

use cold_sim::op::{
    Access, FileId, Huge, MapAdvice, MapId, Op, OpenId, PageCache, PageRead, Pattern, Progress,
};
use cold_sim::{Cache, LinuxVersion, Paging, Placed, Policy, SimFile};

const FILE: FileId = FileId(0);
const OPEN: OpenId = OpenId(0);
const MAP: MapId = MapId(0);
/// 64 MiB, read ahead by 128 KiB, requests of at most 4 MiB.
const ABOUT: SimFile = SimFile { bytes: 64 << 20, window_pages: 32, io_pages: 1024, large_folios: true };
const MODERN: Policy = Policy::Linux(LinuxVersion::V6_18);

struct Program {
    cache: Cache,
}

impl Program {
    fn on(policy: Policy, paging: Paging, about: SimFile) -> Self {
        let mut cache = Cache::new(policy, paging, &[about]);
        let open = Op::Open { open: OPEN, file: FILE };
        cache.access(&open, &mut Progress::default(), &mut Vec::new());
        Self { cache }
    }

    fn new(policy: Policy) -> Self {
        Self::on(policy, Paging::default(), ABOUT)
    }

    /// With the whole file mapped.
    fn mapped(policy: Policy, exec: bool) -> Self {
        let mut program = Self::new(policy);
        program.does(Op::Map { map: MAP, open: OPEN, address: 1 << 20, first: 0, pages: 16_384, exec });
        program
    }

    /// First and last page of each read; everything arrives at once.
    fn does(&mut self, op: Op) -> Vec<(u64, u64)> {
        let (mut progress, mut reads) = (Progress::default(), Vec::new());
        let mut all: Vec<PageRead> = Vec::new();
        while self.cache.access(&op, &mut progress, &mut reads) != Access::Done {
            for read in &reads {
                self.cache.arrived(read);
            }
            all.append(&mut reads);
        }
        for read in &reads {
            self.cache.arrived(read);
        }
        all.append(&mut reads);
        all.iter().map(|r| (r.first, r.first + r.pages - 1)).collect()
    }

    fn touches(&mut self, page: u64) -> Vec<(u64, u64)> {
        self.does(Op::Touch { map: MAP, page, write: false })
    }

    fn reads(&mut self, page: u64, pages: u64) -> Vec<(u64, u64)> {
        self.does(Op::Read { open: OPEN, offset: page * 4096, bytes: pages * 4096 })
    }

    fn told(self, pattern: Pattern) -> Self {
        self.says(0, u64::MAX, MapAdvice::Pattern(pattern))
    }

    fn says(mut self, first: u64, pages: u64, advice: MapAdvice) -> Self {
        self.does(Op::AdviseMap { map: MAP, first, pages, advice });
        self
    }
}

#[test]
fn linux_reads_around_data_forward_in_code_and_exactly_where_told_random() {
    let mut data = Program::mapped(MODERN, false);
    assert_eq!(data.touches(500), [(484, 515)]);
    assert_eq!(data.touches(520), [(516, 535)], "only the gap, of the window from 504 on");
    assert_eq!(Program::mapped(MODERN, true).touches(500), [(500, 531)]);
    assert_eq!(Program::mapped(MODERN, false).told(Pattern::Sequential).touches(500), [(500, 531)]);
    assert_eq!(Program::mapped(MODERN, false).told(Pattern::Random).touches(500), [(500, 500)]);
    assert_eq!(Program::mapped(MODERN, true).told(Pattern::Random).touches(500), [(500, 531)], "code");
    assert_eq!(Program::mapped(MODERN, false).touches(3), [(0, 31)]);
}

#[test]
fn before_6_16_code_is_read_as_data() {
    for version in [LinuxVersion::V5_10, LinuxVersion::V6_1, LinuxVersion::V6_12] {
        assert_eq!(Program::mapped(Policy::Linux(version), true).touches(500), [(484, 515)], "{version:?}");
    }
    let old = Program::mapped(Policy::Linux(LinuxVersion::V6_12), true);
    assert_eq!(old.told(Pattern::Random).touches(500), [(500, 500)]);
}

#[test]
fn code_is_read_inside_its_mapping_in_folios_of_the_processors_size() {
    let mut x86 = Program::new(MODERN);
    x86.does(Op::Map { map: MAP, open: OPEN, address: 0, first: 490, pages: 20, exec: true });
    assert_eq!(x86.touches(500), [(500, 509)]);
    let paging = Paging { exec_order: 4, ..Paging::default() };
    let mut arm = Program::on(MODERN, paging, ABOUT);
    arm.does(Op::Map { map: MAP, open: OPEN, address: 0, first: 490, pages: 1000, exec: true });
    assert_eq!(arm.touches(500), [(496, 527)]);
    assert_eq!(arm.touches(492), [(490, 495)], "not before the mapping, not what is there");
}

#[test]
fn isolated_misses_never_turn_read_around_off() {
    let mut program = Program::mapped(MODERN, false);
    for n in 1..=80 {
        let page = n * 200;
        assert_eq!(program.touches(page), [(page - 16, page + 15)], "{n}");
    }
}

#[test]
fn writes_map_nothing_around_them_and_a_hundred_misses_do() {
    let mut program = Program::mapped(MODERN, false);
    for n in 1..=101 {
        let page = n * 100;
        let reads = program.does(Op::Touch { map: MAP, page, write: true });
        let expected = if n <= 100 { (page - 16, page + 15) } else { (page, page) };
        assert_eq!(reads, [expected], "{n}");
    }
}

#[test]
fn windows_of_reads_grow_and_end_at_folios() {
    let mut program = Program::new(MODERN);
    assert_eq!(program.reads(0, 1), [(0, 3)]);
    assert_eq!(program.reads(1, 1), [(4, 11)]);
    assert_eq!(program.reads(4, 1), [(12, 15)], "it would be 12 to 27, and ends at a multiple of 16 pages");
    assert_eq!(Program::new(MODERN).reads(5000, 1), [(5000, 5000)]);
    assert_eq!(Program::new(MODERN).reads(5000, 64), [(5000, 5063)]);
    let mut sequential = Program::new(MODERN);
    sequential.does(Op::AdviseOpen { open: OPEN, pattern: Pattern::Sequential });
    assert_eq!(sequential.reads(0, 40), [(0, 63)], "twice as far");
    assert_eq!(sequential.reads(40, 1), [(64, 127)], "the marker");
    let mut random = Program::new(MODERN);
    random.does(Op::AdviseOpen { open: OPEN, pattern: Pattern::Random });
    assert_eq!((random.reads(0, 1), random.reads(1, 3)), (vec![(0, 0)], vec![(1, 3)]));
}

#[test]
fn a_call_that_asks_for_pages_is_cut_at_the_devices_largest_request() {
    let asked = |about, pages| -> u64 {
        let reads =
            Program::on(MODERN, Paging::default(), about).does(Op::WillNeed { open: OPEN, first: 0, pages });
        reads.iter().map(|(first, last)| last - first + 1).sum()
    };
    assert_eq!(asked(ABOUT, 4000), 1024);
    assert_eq!(asked(SimFile { io_pages: 320, ..ABOUT }, 2560), 320);
    assert_eq!(asked(SimFile { io_pages: 32, window_pages: 2048, ..ABOUT }, 4000), 2048);
}

#[test]
fn a_large_advice_reads_aligned_blocks() {
    let mut program = Program::mapped(MODERN, false).says(0, u64::MAX, MapAdvice::Huge(Huge::Wanted));
    assert_eq!(program.touches(3362), [(3072, 4095)]);
    let single = SimFile { large_folios: false, ..ABOUT };
    let mut without = Program::on(Policy::Linux(LinuxVersion::V6_1), Paging::default(), single);
    without.does(Op::Map { map: MAP, open: OPEN, address: 0, first: 0, pages: 9999, exec: false });
    let mut without = without.says(0, u64::MAX, MapAdvice::Huge(Huge::Wanted));
    assert_eq!(without.touches(3362), [(3072, 4095)], "in single pages");
}

#[test]
fn windows_bridges_gaps_and_freebsd_stops_at_them() {
    let mut windows = Program::mapped(Policy::Windows, true);
    assert_eq!(windows.touches(501), [(496, 503)]);
    assert_eq!(Program::mapped(Policy::Windows, false).touches(501), [(500, 503)]);
    windows.cache.preload(FILE, 803, 1);
    assert_eq!(windows.touches(805), [(800, 807)], "one read, with the page that is there");
    windows.cache.preload(FILE, 1600, 3);
    assert_eq!(windows.touches(1605), [(1603, 1607)], "from the first missing page on");
    let mut bsd = Program::mapped(Policy::FreeBsd, false);
    assert_eq!(bsd.touches(501), [(496, 511)]);
    bsd.cache.preload(FILE, 803, 1);
    bsd.cache.preload(FILE, 810, 1);
    assert_eq!(bsd.touches(805), [(804, 809)]);
}

#[test]
fn the_simplest_policies() {
    let fixed = |placed| Policy::Fixed { pages: 8, placed };
    let mut aligned = Program::mapped(fixed(Placed::Aligned), false);
    assert_eq!(aligned.touches(13), [(8, 15)]);
    let mut centred = Program::mapped(fixed(Placed::Centred), false);
    centred.cache.preload(FILE, 12, 1);
    assert_eq!(centred.touches(13), [(9, 11), (13, 16)], "each hole is a read");
    assert_eq!(Program::mapped(Policy::Whole, false).touches(13), [(0, 16_383)]);
    assert_eq!(Program::mapped(Policy::Nothing, false).touches(13), [(13, 13)]);
    assert_eq!(aligned.reads(20, 9), [(16, 31)]);
    assert_eq!(Program::new(Policy::Nothing).reads(20, 9), [(20, 28)]);
}

#[test]
fn nothing_is_read_behind_the_end_of_a_file() {
    let about = SimFile { bytes: (5 << 12) + 1, ..ABOUT };
    for policy in Policy::ALL {
        let mut program = Program::on(policy, Paging::default(), about);
        program.does(Op::Map { map: MAP, open: OPEN, address: 0, first: 0, pages: 100, exec: false });
        assert!(program.touches(6).is_empty(), "{policy:?}");
        let reads = program.touches(5);
        assert!(!reads.is_empty() && reads.iter().all(|(_, last)| *last <= 5), "{policy:?} {reads:?}");
        assert!(program.does(Op::Read { open: OPEN, offset: (5 << 12) + 1, bytes: 10 }).is_empty());
    }
}
