//! What faults map without an event.

use cold_model::recording::manifest::{Manifest, Tier};

use super::pages::perf_map;
use super::*;

/// The same events on a kernel whose faults map large folios whole.
fn on_new_kernel(
    events: &[Vec<u8>],
    perf: Vec<Vec<u8>>,
    change: impl FnOnce(&mut Manifest),
    machine: &mut dyn FilesNow,
) -> Recording {
    let mut facts = facts();
    if let Fact::Manifest(m) = &mut facts[0] {
        m.machine.kernel = "6.18.1".to_owned();
        change(m);
    }
    let described = blocks::PerfEvent { id: 77, class: blocks::PerfClass::SideBand, sample_type: 0 };
    facts.push(Fact::PerfEvents(vec![described]));
    let mut log = log(&facts, events);
    log.extend(perf.into_iter().map(|record| (blocks::PERF, record)));
    assemble(log, &mut InnermostOnly, machine)
}

fn around(r: &Recording) -> Vec<(u64, u64, u32)> {
    let rows = touches(r).into_iter().filter(|t| t.4 == TouchKind::FaultAround);
    rows.map(|t| (t.0, t.2, t.3)).collect()
}

/// Page 20 is in a folio of 16 pages that came for it, 100 in one that came before, 200 in one of a single page.
fn folios() -> Vec<Vec<u8>> {
    let f = id(5);
    let c = |at, page| fault_context(at, f, page);
    vec![
        named(f, 1000, "lib"),
        task(2, 1, SUPERVISOR, PID, PID, "x"),
        pages(7, 11, c(11, 20), f, 20, 20),
        add(12, c(11, 20), f, 16, 4),
        add(13, c(11, 20), f, 96, 3),
        pages(7, 21, c(21, 100), f, 100, 100),
        pages(7, 31, c(31, 200), f, 200, 200),
        add(32, c(31, 200), f, 200, 0),
    ]
}

#[test]
fn a_fault_may_have_mapped_the_whole_of_its_folio() {
    let none = |_: &mut Manifest| {};
    let r = on_new_kernel(&folios(), Vec::new(), none, &mut Cached(Vec::new(), None));
    // Where the folio came for the fault, at the time when it came: before, its pages were not there.
    assert_eq!(around(&r), [(12, 16, 4), (12, 21, 11), (21, 96, 4), (21, 101, 3)]);
    let r = run(&folios());
    assert_eq!(around(&r), [], "not before 6.18");
}

#[test]
fn what_is_mapped_ends_with_the_mapping() {
    // Pages 18 to 100 of the file; the faults do not say their addresses, but for the first.
    let mut events = folios();
    let f = id(5);
    events[2] = pages_at(7, 11, fault_context(11, f, 20), f, (20, 20), 0x5_2000);
    let map = perf_map(5, PID, 0x5_0000, 83 * 4096, 18 * 4096, 5);
    let r = on_new_kernel(&events, vec![map], |_| {}, &mut Cached(Vec::new(), None));
    assert_eq!(around(&r), [(12, 18, 2), (12, 21, 11), (21, 96, 4), (21, 101, 3)]);
}

/// Both functions of the kernel map a folio whole only where one page table holds it.
#[test]
fn a_folio_that_lies_in_two_page_tables_is_not_mapped_whole() {
    let f = id(5);
    let c = |at, page| fault_context(at, f, page);
    let mapped_at = |address: u64| {
        let events = [
            named(f, 4096, "memory"),
            task(2, 1, SUPERVISOR, PID, PID, "x"),
            pages_at(7, 11, c(11, 700), f, (700, 700), address + 700 * 4096),
            add(12, c(11, 700), f, 512, 9),
            pages_at(8, 13, c(11, 700), f, (688, 703), address + 700 * 4096),
            // A window with a part of another folio at its edge.
            add(20, c(19, 8), f, 0, 9),
            pages_at(8, 21, c(19, 515), f, (505, 520), address + 515 * 4096),
        ];
        let map = perf_map(5, PID, address, 4096 * 4096, 0, 5);
        on_new_kernel(&events, vec![map], |_| {}, &mut Cached(Vec::new(), None))
    };
    let windows = [(13, 688, 12), (13, 701, 3), (21, 505, 10), (21, 516, 5)];
    let around_it = |address| {
        let mut rows = around(&mapped_at(address));
        rows.retain(|row| !windows.contains(row));
        rows
    };
    // Page 512 lies a page before a border of 2 MiB, or at one.
    assert_eq!(around_it(0x7fff_f000), []);
    let pages: u32 = around_it(0x8000_0000).iter().map(|row| row.2).max().unwrap();
    assert!(pages > 300, "{pages}");
}

#[test]
fn the_folio_of_a_page_that_was_cached_before_is_asked_for_or_taken_for_the_largest() {
    let f = id(5);
    let events =
        [named(f, 2000, "lib"), pages(7, 11, fault_context(11, f, 700), f, 700, 700), delete(90, f, 900, 0)];
    let told = |folios| on_new_kernel(&events, Vec::new(), |_| {}, &mut Cached(Vec::new(), folios));
    assert_eq!(around(&told(Some(vec![(640, 64)]))), [(11, 640, 60), (11, 701, 3)]);
    assert_eq!(around(&told(Some(vec![(700, 1)]))), []);
    // Not told: any folio that one page table can map.
    assert_eq!(around(&told(None)), [(11, 512, 188), (11, 701, 323)]);
}

/// `filemap_map_folio_range`, since 6.18: folios that reach out of the window that the event tells of. Seen with
/// `MAP_POPULATE`, whose next event came behind the folio.
#[test]
fn a_window_may_have_mapped_the_whole_of_the_folios_at_its_edges() {
    let f = id(5);
    let c = |at, page| fault_context(at, f, page);
    // Two folios of 64 pages and single pages behind them.
    let events = [
        named(f, 1000, "lib"),
        task(2, 1, SUPERVISOR, PID, PID, "x"),
        add_run(11, c(11, 128), f, 64, 6, 1),
        add_run(12, c(11, 128), f, 192, 0, 15),
        // Between the two folios, with the fault's page in the first; then within the second; then beyond it.
        pages(8, 21, c(21, 120), f, 120, 135),
        pages(8, 31, c(31, 0), f, 160, 175),
        pages(8, 41, c(41, 200), f, 196, 207),
    ];
    let cached = || Cached(vec![(5, vec![(64, 144)])], None);
    let r = on_new_kernel(&events, Vec::new(), |_| {}, &mut cached());
    let of = |at| -> Vec<_> { around(&r).into_iter().filter(|row| row.0 == at).collect() };
    // The first folio is its own page's, the second is mapped to its end.
    assert_eq!(of(21), [(21, 121, 15), (21, 136, 56), (21, 64, 56), (21, 121, 7)]);
    assert_eq!(of(31), [(31, 160, 16), (31, 128, 32), (31, 176, 16)], "no fault told");
    assert_eq!(of(41), [(41, 196, 4), (41, 201, 7)], "pages of their own");
    let old = run_on(&events, cached().0);
    let of = |at| -> Vec<_> { around(&old).into_iter().filter(|row| row.0 == at).collect() };
    assert_eq!(of(21), [(21, 121, 15)], "not before 6.18");
}

/// Page 35 and what is behind it came only after the window had been mapped; the mapping begins at page 18.
#[test]
fn what_a_window_may_have_mapped_was_there_and_lies_within_the_mapping() {
    let f = id(5);
    let c = |at, page| fault_context(at, f, page);
    let events = [
        named(f, 1000, "lib"),
        task(2, 1, SUPERVISOR, PID, PID, "x"),
        add(11, c(11, 30), f, 16, 3),
        add(12, c(11, 30), f, 30, 0),
        pages_at(8, 21, c(21, 30), f, (20, 35), 0x5_c000),
        add(90, c(90, 35), f, 32, 4),
    ];
    let map = perf_map(5, PID, 0x5_0000, 83 * 4096, 18 * 4096, 5);
    let cached = Cached(vec![(5, vec![(16, 8), (30, 1), (32, 16)])], None);
    let r = on_new_kernel(&events, vec![map], |_| {}, &mut { cached });
    assert_eq!(around(&r), [(21, 20, 4), (21, 18, 2)]);
}

/// A folio that was cached before is looked up; told by nobody, it may be the largest.
#[test]
fn folios_at_the_edges_of_windows_that_were_cached_before_are_asked_for() {
    let f = id(5);
    let events =
        [named(f, 2000, "lib"), pages(8, 11, fault_context(11, f, 700), f, 700, 715), delete(90, f, 1100, 0)];
    let told = |folios| on_new_kernel(&events, Vec::new(), |_| {}, &mut Cached(Vec::new(), folios));
    let own = (11, 701, 15);
    assert_eq!(around(&told(Some(vec![(700, 1), (704, 64)]))), [own, (11, 716, 52)]);
    assert_eq!(around(&told(Some(vec![(700, 1), (715, 1)]))), [own]);
}

#[test]
fn folios_that_are_mapped_at_once_have_no_event_at_all() {
    let f = id(5);
    // Three folios of 2 MiB come by read-ahead of page 0; the mapping is aligned as they are, and lacks the third's
    // last page.
    let c = fault_context(11, f, 0);
    let events = [
        named(f, 4096, "data"),
        task(2, 1, SUPERVISOR, PID, PID, "x"),
        pages(7, 11, c, f, 0, 0),
        add_run(12, c, f, 0, 9, 2),
    ];
    let map = perf_map(5, PID, 0x40_0000, 1535 * 4096, 0, 5);
    let with = |mapped| {
        on_new_kernel(&events, vec![map.clone()], |m| m.mapped_huge = mapped, &mut Cached(Vec::new(), None))
    };
    assert_eq!(around(&with(Some(0))), [(12, 1, 511)]);
    assert_eq!(around(&with(Some(1))), [(12, 1, 511), (12, 0, 512), (12, 512, 512)]);
    assert_eq!(around(&with(None)), [(12, 1, 511)], "recordings of earlier versions");
    // At another place within the page tables it cannot be.
    let map = perf_map(5, PID, 0x40_1000, 1535 * 4096, 0, 5);
    let r = on_new_kernel(&events, vec![map], |m| m.mapped_huge = Some(9), &mut Cached(Vec::new(), None));
    assert_eq!(around(&r), [(12, 1, 511)]);
}

/// The count is that of the whole machine: where every fault is told by its address, another program's huge pages do
/// not make all of a file perhaps needed.
#[test]
fn where_faults_are_told_only_blocks_with_one_may_have_been_mapped_at_once() {
    let f = id(5);
    let events = [
        named(f, 4096, "data"),
        task(2, 1, SUPERVISOR, PID, PID, "x"),
        pages(7, 11, fault_context(11, f, 600), f, 600, 600),
    ];
    let map = perf_map(5, PID, 0x40_0000, 2048 * 4096, 0, 5);
    let change = |m: &mut Manifest| (m.tier, m.mapped_huge) = (Tier::C, Some(1));
    let r = on_new_kernel(&events, vec![map], change, &mut Cached(Vec::new(), None));
    let rows = around(&r);
    assert!(rows.contains(&(5, 512, 512)), "{rows:?}");
    assert!(
        rows.iter().all(|(_, first, pages)| *first >= 512 && first + u64::from(*pages) <= 1024),
        "{rows:?}"
    );
}

/// Tiers without events of the page cache's faults: the window by address, cut to what was there.
#[test]
fn without_events_the_window_around_an_address_may_have_been_mapped() {
    let lib = id(5);
    let page_fault = |at, address: u64| Body::new().u64(address).u64(0x11).u32(4).u32(0).record(17, at);
    let c = fault_context(20, NOWHERE, 0);
    let events = [
        named(lib, 100, "lib"),
        task(2, 1, SUPERVISOR, PID, PID, "x"),
        page_fault(20, 0x5_3000),
        add(21, c, lib, 0x13, 0),
        add(22, c, lib, 0x15, 0),
        page_fault(40, 0x5_8000),
        add(50, fault_context(49, NOWHERE, 0), lib, 0x1a, 0),
    ];
    let change = |m: &mut Manifest| {
        m.tier = Tier::B;
        m.fault_around = Known::Value(Bytes(8 * 4096));
    };
    let map = perf_map(10, PID, 0x5_0000, 0x10000, 0x1_0000, 5);
    // 0x10 and 0x11 were cached; 0x15 came while the first fault waited, 0x1a before the thread did anything else.
    let cached = vec![(5, vec![(0x10, 2), (0x13, 1), (0x15, 1), (0x18, 1), (0x1a, 1)])];
    let folios = Some(vec![(0x18, 1)]);
    let r = on_new_kernel(&events, vec![map], change, &mut Cached(cached, folios));
    assert_eq!(around(&r), [(20, 0x10, 2), (22, 0x15, 1), (50, 0x1a, 1)]);
}
