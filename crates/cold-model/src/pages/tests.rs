use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn ranges() -> impl Strategy<Value = Vec<Range>> {
    proptest::collection::vec((0u64..200, 0u64..20).prop_map(|(s, n)| s..s + n), 0..30)
}

fn set(ranges: &[Range]) -> BTreeSet<u64> {
    ranges.iter().cloned().flatten().collect()
}

proptest! {
    #[test]
    fn runs_are_the_sets_they_stand_for(a in ranges(), b in ranges()) {
        let (sa, sb) = (set(&a), set(&b));
        let mut one_by_one = Runs::default();
        for range in &a {
            one_by_one.insert(range);
        }
        let (ra, rb) = (Runs::of(a), Runs::of(b));
        prop_assert_eq!(&one_by_one, &ra);
        prop_assert_eq!(set(ra.runs()), sa.clone());
        prop_assert_eq!(ra.pages(), sa.len() as u64);
        prop_assert!(ra.runs().windows(2).all(|w| w[0].end < w[1].start));
        prop_assert_eq!(set(ra.and(&rb).runs()), &sa & &sb);
        prop_assert_eq!(set(ra.or(&rb).runs()), &sa | &sb);
        prop_assert_eq!(set(ra.minus(&rb).runs()), &sa - &sb);
        for r in rb.runs() {
            let inside: Vec<Range> = ra.within(r).collect();
            prop_assert_eq!(set(&inside), &sa & &set(std::slice::from_ref(r)));
        }
        for page in 0..230 {
            prop_assert_eq!(ra.contains(page), sa.contains(&page));
        }
    }

    #[test]
    fn live_runs_follow_every_insertion_and_removal(
        steps in proptest::collection::vec((any::<bool>(), 0u64..200, 0u64..30), 0..60),
        probe in (0u64..200, 0u64..60),
    ) {
        let (mut live, mut truth) = (LiveRuns::default(), BTreeSet::new());
        for (insert, s, n) in steps {
            if insert {
                live.insert(&(s..s + n));
                truth.extend(s..s + n);
            } else {
                live.remove(&(s..s + n));
                truth.retain(|p| !(s..s + n).contains(p));
            }
        }
        for page in 0..240 {
            prop_assert_eq!(live.contains(page), truth.contains(&page));
        }
        let r = probe.0..probe.0 + probe.1;
        let inside: BTreeSet<u64> = r.clone().filter(|p| truth.contains(p)).collect();
        prop_assert_eq!(set(&live.within(&r)), inside.clone());
        prop_assert_eq!(set(&live.holes(&r)), &set(std::slice::from_ref(&r)) - &inside);
    }
}
