use std::collections::BTreeMap;

use cold_sys::residency::{Backing, CacheStat, PageMap, PageRun};

use super::explain::{Evidence, reasons};
use super::*;
use crate::holders::{FileHolders, Holder, SystemHolder};

fn holder(pid: i32) -> Holder {
    Holder { pid, name: format!("p{pid}"), mapped: 4096, resident: None, locked: 0, open: 0, executes: false }
}

fn map(runs: &[(u64, u64)]) -> PageMap {
    PageMap::from_runs(2000, runs.iter().map(|(first, pages)| PageRun { first: *first, pages: *pages }))
}

fn evidence<'a>(holders: &'a FileHolders, resident: &[(u64, u64)]) -> Evidence<'a> {
    let resident = map(resident);
    let pages = resident.resident();
    let backing = Backing::PageCache;
    Evidence { backing, stat: None, resident, holders, mapped: BTreeMap::new(), uninspected: 0, pages }
}

#[test]
fn pages_beside_mapped_ones_are_a_large_folio_and_lonely_ones_are_busy() {
    let holders = FileHolders { processes: vec![holder(7)], system: vec![] };
    let mut e = evidence(&holders, &[(0, 16), (600, 3)]);
    e.mapped.insert(7, map(&[(4, 4)]));
    let expected = [
        Reason::LargeFolio { pages: 12 },
        Reason::Mapped { pid: 7, name: "p7".into(), pages: Some(4), locked: 0 },
        Reason::Busy { pages: 3, uninspected: 0 },
    ];
    assert_eq!(reasons(&e), expected);
}

#[test]
fn a_mapper_that_could_not_be_read_explains_all_and_an_empty_one_nothing() {
    let holders = FileHolders { processes: vec![holder(7)], system: vec![SystemHolder::Swap] };
    let mut e = evidence(&holders, &[(0, 5)]);
    let mapped = Reason::Mapped { pid: 7, name: "p7".into(), pages: None, locked: 0 };
    assert_eq!(reasons(&e), [mapped, Reason::Swap]);
    let both = FileHolders { processes: vec![holder(7), holder(8)], system: vec![] };
    let mut known = evidence(&both, &[(0, 5)]);
    known.mapped.insert(8, map(&[(0, 5)]));
    assert!(matches!(&reasons(&known)[..], [Reason::Mapped { pid: 8, .. }, Reason::Mapped { pid: 7, .. }]));
    e.mapped.insert(7, map(&[]));
    assert_eq!(reasons(&e), [Reason::Busy { pages: 5, uninspected: 0 }, Reason::Swap]);
}

#[test]
fn dirty_and_written_pages_come_from_cachestat_and_nothing_is_left_without_a_reason() {
    let nobody = FileHolders::default();
    let mut e = evidence(&nobody, &[(0, 5)]);
    e.stat = Some(CacheStat { cached: 5, dirty: 3, writeback: 2, ..CacheStat::default() });
    assert_eq!(reasons(&e), [Reason::Dirty { pages: 3 }, Reason::Writeback { pages: 2 }]);
    let mut gone = evidence(&nobody, &[]);
    gone.uninspected = 9;
    assert_eq!(reasons(&gone), [Reason::Busy { pages: 1, uninspected: 9 }]);
    gone.backing = Backing::Memory;
    assert_eq!(reasons(&gone), [Reason::InMemory]);
}
