use cold_plan::plan::{FileKind, Plan};
use proptest::prelude::*;

use super::*;
use crate::sample::{key, start};

fn ranges(plan: &Plan) -> Vec<(u32, u64, u32, u8)> {
    let mut all: Vec<_> = plan.ranges.iter().map(|r| (r.file, r.first_page, r.pages, r.uses)).collect();
    all.sort_unstable();
    all
}

#[test]
fn ranges_are_split_where_starts_differ_and_joined_again() {
    let a = merge(None, &key(), &start(1, &[(0, 10, 10, 5)]), 100);
    assert_eq!(ranges(&a), [(0, 10, 10, 1)]);
    let b = merge(Some(&a), &key(), &start(1, &[(0, 15, 10, 5)]), 200);
    assert_eq!(ranges(&b), [(0, 10, 5, 0b10), (0, 15, 5, 0b11), (0, 20, 5, 0b01)]);
    assert_eq!((b.learnt.starts, b.learnt.first, b.learnt.last), (2, 100, 200));
    let mut plan = b;
    for n in 0..8 {
        plan = merge(Some(&plan), &key(), &start(1, &[(0, 10, 15, 5)]), 300 + n);
    }
    assert_eq!(ranges(&plan), [(0, 10, 15, 0xff)]);
}

#[test]
fn what_eight_starts_did_not_use_vanishes_with_its_file() {
    let mut plan = merge(None, &key(), &start(2, &[(0, 0, 1, 1), (1, 0, 4, 2)]), 1);
    for n in 0..7 {
        plan = merge(Some(&plan), &key(), &start(1, &[(0, 0, 1, 1)]), 2 + n);
        assert_eq!(plan.files.len(), 2, "after {n}");
    }
    plan = merge(Some(&plan), &key(), &start(1, &[(0, 0, 1, 1)]), 20);
    assert_eq!(plan.files.len(), 1);
    assert_eq!(ranges(&plan), [(0, 0, 1, 0xff)]);
}

#[test]
fn a_replaced_file_drops_its_ranges_and_the_others_stay() {
    let plan = merge(None, &key(), &start(2, &[(0, 0, 4, 1), (1, 0, 4, 2)]), 1);
    let mut next = start(2, &[(0, 8, 1, 1), (1, 0, 4, 2)]);
    next.files[0].identity.inode = 8;
    assert_eq!(replaced(&plan, &next), [PathBuf::from("/usr/lib/f0")]);
    let plan = merge(Some(&plan), &key(), &next, 2);
    assert_eq!(ranges(&plan), [(0, 8, 1, 1), (1, 0, 4, 0b11)]);
    assert_eq!(plan.files[0].identity.inode, 8);
}

#[test]
fn what_a_start_cannot_see_it_does_not_call_unused() {
    let mut first = start(3, &[(0, 0, 4, 1), (1, 3, 4, 1)]);
    first.files[1].kind = FileKind::BlockDevice;
    first.files[2].kind = FileKind::Name;
    let plan = merge(None, &key(), &first, 1);
    let mut blind = start(1, &[(0, 0, 2, 1)]);
    blind.sees = Sees { pages: false, lookups: false, metadata: false };
    let plan = merge(Some(&plan), &key(), &blind, 2);
    // The first file's pages 0 and 1 gained a use; nothing else changed.
    let paged = |path: &str| plan.files.iter().position(|f| f.path == Path::new(path)).expect("there") as u32;
    let (f0, f1) = (paged("/usr/lib/f0"), paged("/usr/lib/f1"));
    let mut want = [(f0, 0, 2, 0b11), (f0, 2, 2, 1), (f1, 3, 4, 1)];
    want.sort_unstable();
    assert_eq!(ranges(&plan), want);
    let mut uses: Vec<_> = plan.files.iter().map(|f| (f.path.display().to_string(), f.uses)).collect();
    uses.sort();
    let file = |n, uses| (format!("/usr/lib/f{n}"), uses);
    assert_eq!(uses, [file(0, 0b11), file(1, 1), file(2, 1)]);
}

#[test]
fn pages_mapped_around_a_fault_do_not_widen_what_exact_starts_know() {
    let exact = merge(None, &key(), &start(1, &[(0, 4, 2, 1)]), 1);
    let mut wide = start(1, &[(0, 4, 1, 1), (0, 5, 11, 1)]);
    wide.exact = false;
    wide.ranges[1].around = true;
    let plan = merge(Some(&exact), &key(), &wide, 2);
    assert_eq!(ranges(&plan), [(0, 4, 2, 0b11)]);
    // And an exact one takes back what only widened ones said.
    let plan = merge(None, &key(), &wide, 1);
    let plan = merge(Some(&plan), &key(), &start(1, &[(0, 4, 2, 1)]), 2);
    assert_eq!(ranges(&plan), [(0, 4, 2, 0b11)], "page 5 was needed before, as far as anybody knows");
    // One that mapped pages around a fault all the same (a folio that was cached before) leaves these in doubt.
    let plan = merge(None, &key(), &wide, 1);
    let mut folio = start(1, &[(0, 4, 2, 1), (0, 8, 2, 1)]);
    folio.ranges[1].around = true;
    let plan = merge(Some(&plan), &key(), &folio, 2);
    assert_eq!(ranges(&plan), [(0, 4, 2, 0b11), (0, 8, 2, 0b11)]);
    assert_eq!(plan.ranges.iter().map(|r| r.around).collect::<Vec<_>>(), [false, true]);
    // Widened ones add to neither.
    let plan = merge(Some(&plan), &key(), &wide, 3);
    assert_eq!(ranges(&plan), [(0, 4, 2, 0b111), (0, 8, 2, 0b111)]);
    assert_eq!(plan.ranges.iter().map(|r| r.around).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn a_file_that_no_exact_start_touched_keeps_what_was_mapped_around() {
    // An exact start of the first file alone; then widened ones, which touch a second one, too.
    let exact = start(1, &[(0, 4, 2, 1)]);
    let mut wide = start(2, &[(0, 4, 1, 1), (0, 5, 11, 1), (1, 0, 1, 2), (1, 1, 15, 2)]);
    wide.exact = false;
    (wide.ranges[1].around, wide.ranges[3].around) = (true, true);
    let mut plan = merge(None, &key(), &exact, 1);
    for at in 2..4 {
        plan = merge(Some(&plan), &key(), &wide, at);
    }
    assert_eq!(ranges(&plan), [(0, 4, 2, 0b111), (1, 0, 1, 0b11), (1, 1, 15, 0b11)]);
    // An exact start that does not touch it says nothing of its pages but that it did not need them.
    plan = merge(Some(&plan), &key(), &exact, 4);
    assert_eq!(ranges(&plan)[1..], [(1, 0, 1, 0b110), (1, 1, 15, 0b110)]);
    // One that does, knows better, until the file is replaced.
    plan = merge(Some(&plan), &key(), &start(2, &[(0, 4, 2, 1), (1, 0, 1, 2)]), 5);
    plan = merge(Some(&plan), &key(), &wide, 6);
    assert_eq!(ranges(&plan)[1..], [(1, 0, 1, 0b11011)]);
    wide.files[1].identity.inode = 8;
    plan = merge(Some(&plan), &key(), &wide, 7);
    assert_eq!(ranges(&plan)[1..], [(1, 0, 1, 1), (1, 1, 15, 1)]);
}

#[test]
fn one_odd_start_does_not_reorder_a_plan() {
    let mut plan = merge(None, &key(), &start(2, &[(0, 0, 1, 10), (1, 0, 1, 20)]), 1);
    for n in 0..4 {
        plan = merge(Some(&plan), &key(), &start(2, &[(0, 0, 1, 10), (1, 0, 1, 20)]), 2 + n);
    }
    plan = merge(Some(&plan), &key(), &start(2, &[(0, 0, 1, 900), (1, 0, 1, 20)]), 9);
    assert_eq!(plan.ranges.iter().map(|r| r.file).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(plan.ranges[0].need_ns, 11_250_000);
}

#[test]
fn times_come_from_the_right_starts() {
    let cold = |ready, computing| StartNeeds {
        exact: false,
        proved_cold: true,
        warm: false,
        ready_ns: ready,
        computing_ns: computing,
        ..start(1, &[(0, 0, 1, 1)])
    };
    let plan = merge(None, &key(), &cold(900, 200), 1);
    assert_eq!((plan.learnt.cpu_ns, plan.learnt.cold_ready_ns), (200, 900));
    let plan = merge(Some(&plan), &key(), &start(1, &[(0, 0, 1, 1)]), 2);
    assert_eq!((plan.learnt.cpu_ns, plan.learnt.cold_ready_ns), (100_000_000, 900));
    let plan = merge(Some(&plan), &key(), &cold(1100, 7), 3);
    assert_eq!((plan.learnt.cpu_ns, plan.learnt.cold_ready_ns), (100_000_000, 1000));
    let exact = StartNeeds { exact: true, ..cold(9_000_000, 7) };
    let slow = merge(Some(&plan), &key(), &exact, 4);
    assert_eq!(slow.learnt.cold_ready_ns, 1000, "nothing was read ahead");
    assert_eq!(merge(None, &key(), &exact, 1).learnt.cold_ready_ns, 9_000_000, "better than nothing");
    assert_eq!((plan.learnt.starts, plan.learnt.cold_starts), (3, 2));
}

fn any_start() -> impl Strategy<Value = Vec<(u32, u64, u32, u64)>> {
    proptest::collection::vec((0..3_u32, 0..60_u64, 1..12_u32, 0..50_u64), 0..12).prop_map(|all| {
        // As learning makes them: no page twice.
        let mut seen = std::collections::HashSet::new();
        let pages =
            all.into_iter().flat_map(|(f, p, n, ms)| (p..p + u64::from(n)).map(move |p| (f, p, 1, ms)));
        pages.filter(|(f, p, _, _)| seen.insert((*f, *p))).collect()
    })
}

proptest! {
    /// Each page's history is exactly the list of the last 8 starts that used it.
    #[test]
    fn every_page_has_the_history_of_its_uses(starts in proptest::collection::vec(any_start(), 1..12)) {
        let mut plan: Option<Plan> = None;
        for s in &starts {
            plan = Some(merge(plan.as_ref(), &key(), &start(3, s), 1));
        }
        let plan = plan.expect("at least one");
        let mut got = std::collections::BTreeMap::new();
        for r in &plan.ranges {
            let path = plan.files[r.file as usize].path.clone();
            for p in r.first_page..r.first_page + u64::from(r.pages) {
                prop_assert!(got.insert((path.clone(), p), r.uses).is_none(), "a page twice");
            }
        }
        let mut want = std::collections::BTreeMap::new();
        for s in &starts {
            for uses in want.values_mut() {
                *uses <<= 1;
            }
            for (f, p, _, _) in s {
                *want.entry((PathBuf::from(format!("/usr/lib/f{f}")), *p)).or_insert(0_u8) |= 1;
            }
        }
        want.retain(|_, uses| *uses != 0);
        prop_assert_eq!(got, want);
        prop_assert!(plan.ranges.is_sorted_by_key(|r| r.need_ns));
    }
}
