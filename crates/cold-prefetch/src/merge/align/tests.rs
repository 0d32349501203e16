use std::collections::BTreeMap;

use cold_plan::plan::FileKind;
use proptest::prelude::*;

use super::*;
use crate::sample::{key, start};
use crate::{lesson, merge};

const MS: u64 = 1_000_000;

/// Need time of each page, of file and number.
fn times(start: &StartNeeds) -> BTreeMap<(u32, u64), u64> {
    let pages = |r: &Range| {
        let (file, need) = (r.file, r.need_ns);
        (r.first_page..r.first_page + u64::from(r.pages)).map(move |page| ((file, page), need))
    };
    start.ranges.iter().flat_map(pages).collect()
}

fn ms(start: &StartNeeds) -> Vec<((u32, u64), u64)> {
    times(start).into_iter().map(|(page, ns)| (page, ns / MS)).collect()
}

fn cold(files: u32, ranges: &[(u32, u64, u32, u64)]) -> StartNeeds {
    StartNeeds { warm: false, proved_cold: true, ..start(files, ranges) }
}

#[test]
fn what_both_needed_has_the_warm_time_and_the_rest_lies_between_its_neighbours() {
    // Cold: 0 at 10, 1 at 20, 2 at 30, 3 at 50, 4 at 60 ms; a half of the time it takes warm, and page 3 comes first.
    let c = cold(1, &[(0, 0, 1, 10), (0, 10, 1, 20), (0, 20, 1, 30), (0, 30, 1, 50), (0, 40, 1, 60)]);
    let w = start(1, &[(0, 0, 1, 5), (0, 20, 1, 15), (0, 30, 1, 1)]);
    let got = aligned(&c, &w);
    // 10 lies half way between 0 (5 ms) and 20 (15 ms); 40 comes 10 ms after 30 by both clocks.
    assert_eq!(ms(&got), [((0, 0), 5), ((0, 10), 10), ((0, 20), 15), ((0, 30), 1), ((0, 40), 11)]);
    assert_eq!(got.ranges[0].first_page, 30);
    // Before all that is known both begin at the exec: a fifth of the way to 10 ms is a fifth of that to 5.
    let early = cold(1, &[(0, 0, 1, 10), (0, 50, 1, 2)]);
    assert_eq!(ms(&aligned(&early, &w)), [((0, 0), 5), ((0, 50), 1)]);
}

#[test]
fn ranges_are_split_where_the_warm_start_has_another_time() {
    let c = cold(2, &[(0, 0, 10, 20), (1, 5, 2, 40)]);
    let w = start(2, &[(0, 2, 3, 4), (0, 6, 1, 9), (1, 0, 9, 30)]);
    let got = aligned(&c, &w);
    // What the cold start needed together with pages 2 to 4 it needed when the warm one needed the first of them.
    let file = |pages: std::ops::Range<u64>, ms: u64| pages.map(move |page| ((0, page), ms));
    let mut want: Vec<_> = file(0..2, 4).chain(file(2..5, 4)).chain(file(5..6, 4)).collect();
    want.extend(file(6..7, 9).chain(file(7..10, 4)).chain([((1, 5), 30), ((1, 6), 30)]));
    assert_eq!(ms(&got), want);
}

#[test]
fn a_page_that_was_only_mapped_around_was_needed_then_or_later() {
    let c = cold(1, &[(0, 0, 1, 10), (0, 1, 1, 30), (0, 2, 1, 12), (0, 90, 1, 50)]);
    let mut w = start(1, &[(0, 0, 1, 10), (0, 1, 2, 20), (0, 90, 1, 50)]);
    w.ranges[1].around = true;
    // By the cold clock page 1 is needed at 30 ms and page 2 at 12, which is before it was mapped.
    assert_eq!(ms(&aligned(&c, &w)), [((0, 0), 10), ((0, 1), 30), ((0, 2), 20), ((0, 90), 50)]);
    // What the cold start does not know for certain, either, has the warm time.
    let mut doubtful = c.clone();
    doubtful.ranges[1].around = true;
    assert_eq!(times(&aligned(&doubtful, &w))[&(0, 1)], 20 * MS);
}

#[test]
fn another_file_of_the_same_name_tells_nothing_and_names_have_their_time() {
    let mut c = cold(2, &[(0, 0, 1, 10), (1, 0, 1, 20)]);
    c.files[1].kind = FileKind::Directory;
    c.ranges.truncate(1);
    let mut w = start(2, &[(0, 0, 1, 99), (1, 0, 1, 8)]);
    w.files[1].kind = FileKind::Directory;
    w.files[0].identity.inode = 8;
    let got = aligned(&c, &w);
    assert_eq!((got.files[0].need_ns, got.files[1].need_ns), (4 * MS, 8 * MS));
    assert_eq!(ms(&got), [((0, 0), 4)]);
}

#[test]
fn a_lesson_plans_cold_starts_in_the_time_of_its_warm_one() {
    // The warm start needs page 7 first, the cold ones last; page 9 they need right before it.
    let first = cold(1, &[(0, 0, 1, 20), (0, 9, 1, 80), (0, 7, 1, 90)]);
    let w = start(1, &[(0, 7, 1, 5), (0, 0, 1, 10)]);
    let plan = lesson(None, &key(), &[first.clone(), w.clone(), first.clone()], 1).unwrap();
    let needs: Vec<(u64, u64)> = plan.ranges.iter().map(|r| (r.first_page, r.need_ns / MS)).collect();
    // Page 9: six sevenths of the way from 20 (10) to 90 ms (5).
    assert_eq!(needs, [(7, 5), (9, 5), (0, 10)]);
    assert_eq!((plan.learnt.starts, plan.learnt.cold_starts), (3, 2));
    assert!(plan.ranges.iter().all(|r| r.uses == if r.first_page == 9 { 0b101 } else { 0b111 }));
    // Without a warm one they are in their own time, and without starts a plan stays what it was.
    let own = lesson(None, &key(), std::slice::from_ref(&first), 1).unwrap();
    assert_eq!(own.ranges, merge(None, &key(), &first, 1).ranges);
    assert_eq!(lesson(Some(own.clone()), &key(), &[], 2), Some(own));
}

/// Pages of two files with their cold times, and which of them the warm start needed.
fn any_pages() -> impl Strategy<Value = Vec<(u32, u64, u64, bool)>> {
    let page = (0..2_u32, 0..60_u64, 1..200_u64, any::<bool>());
    proptest::collection::btree_map((0..2_u32, 0..60_u64), page, 1..60).prop_map(|pages| {
        pages.into_iter().map(|((file, n), (_, _, at, known))| (file, n, at, known)).collect()
    })
}

proptest! {
    /// Where the warm order is the cold one, so is that of the result, and no page gets lost.
    #[test]
    fn the_order_of_the_cold_start_stays_where_the_warm_one_has_the_same(
        pages in any_pages(), slower in 1..5_u64, around in any::<bool>(),
    ) {
        let all: Vec<_> = pages.iter().map(|p| (p.0, p.1, 1, p.2)).collect();
        let both: Vec<_> = pages.iter().filter(|p| p.3).map(|p| (p.0, p.1, 1, p.2.div_ceil(slower))).collect();
        let c = cold(2, &all);
        let mut w = start(2, &both);
        w.ranges.iter_mut().for_each(|r| r.around = around && r.first_page % 3 == 0);
        let got = aligned(&c, &w);
        let (before, after, warm) = (times(&c), times(&got), times(&w));
        prop_assert!(before.keys().eq(after.keys()));
        for (page, time) in &warm {
            prop_assert!(around || after[page] == *time);
        }
        if !around {
            let mut order: Vec<_> = before.iter().map(|(page, at)| (*at, after[page])).collect();
            order.sort_unstable();
            prop_assert!(order.is_sorted_by_key(|o| o.1), "{:?}", order);
        }
    }

    /// Whatever the orders are, every page stays, once, and has a time between those that are known around it.
    #[test]
    fn no_page_is_lost_whatever_the_orders_are(
        c in proptest::collection::vec((0..3_u32, 0..60_u64, 1..9_u32, 0..100_u64), 1..30),
        w in proptest::collection::vec((0..3_u32, 0..60_u64, 1..9_u32, 0..100_u64), 1..30),
    ) {
        let (c, w) = (cold(3, &c), start(3, &w));
        let got = aligned(&c, &w);
        let sum = |s: &StartNeeds| s.ranges.iter().map(|r| u64::from(r.pages)).sum::<u64>();
        prop_assert!(times(&c).keys().eq(times(&got).keys()));
        prop_assert_eq!(sum(&c), sum(&got));
        prop_assert!(got.ranges.is_sorted_by_key(|r| r.need_ns));
    }
}
