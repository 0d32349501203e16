use std::collections::HashMap;

use cold_model::recording::tables::{FillCause, StallCause, TouchKind};

use super::*;

/// Rules that every recording of tier A keeps, checked independently of how the sample was made.
fn check(r: &Recording) {
    let completed: Vec<u64> = r.device_reads.iter().flatten().map(|d| d.completed.unwrap().0).collect();
    // When each page arrived, by the transfers; all transfers are of absent pages unless evicted before.
    let mut arrived: HashMap<(u32, u64), u64> = HashMap::new();
    let mut transferred = 0u64;
    for t in r.transfers.iter().flatten() {
        let read = r.device_reads.as_ref().unwrap()[t.request as usize];
        assert_eq!(u64::from(read.bytes), u64::from(t.pages) * u64::from(PAGE));
        transferred += u64::from(t.pages);
        for p in t.first_page..t.first_page + u64::from(t.pages) {
            let at = arrived.entry((t.file.unwrap(), p)).or_insert(u64::MAX);
            *at = (*at).min(completed[t.request as usize]);
        }
    }
    let filled: u64 = r.fills.iter().flatten().map(|f| u64::from(f.pages)).sum();
    assert_eq!(filled, transferred, "each page filled was brought by a request");
    for f in r.fills.iter().flatten() {
        assert!(f.pages.is_power_of_two() && f.first_page % u64::from(f.pages) == 0);
        assert!(arrived.contains_key(&(f.file, f.first_page)));
    }
    let cached = |file: u32, page: u64| {
        let rows = r.residency.iter().flatten().filter(|c| c.file == file);
        rows.clone().any(|c| (c.first_page..c.first_page + u64::from(c.pages)).contains(&page))
    };
    let mut touched = 0;
    for t in r.touches.iter().flatten() {
        let size = r.files[t.file as usize].size.unwrap().div_ceil(u64::from(PAGE));
        assert!(t.pages > 0 && t.first_page + u64::from(t.pages) <= size);
        for p in t.first_page..t.first_page + u64::from(t.pages) {
            touched += 1;
            assert!(cached(t.file, p) || arrived.contains_key(&(t.file, p)), "needed but never read: {t:?}");
        }
    }
    assert!(touched > 100);
    let ends: std::collections::HashSet<u64> = completed.iter().copied().collect();
    for s in r.stalls.iter().flatten() {
        assert!(s.began < s.woken.unwrap() && s.woken < s.ended);
        assert!(ends.contains(&s.woken.unwrap().0), "a wait ends with a request");
        if let Some(l) = s.lookup {
            let lookup = &r.lookups.as_ref().unwrap()[l as usize];
            assert!(s.cause == StallCause::Lookup && lookup.at < s.began && s.ended.unwrap() < lookup.ended);
            assert_eq!((lookup.pid, lookup.tid), (s.pid, s.tid));
        }
    }
    assert!(r.stalls.iter().flatten().any(|s| s.lookup.is_some()));
    assert!(r.lookups.iter().flatten().any(|l| l.result == -2));
    for kind in [TouchKind::Fault, TouchKind::FaultAround, TouchKind::Read] {
        assert!(r.touches.iter().flatten().any(|t| t.kind == kind), "{kind:?}");
    }
    for cause in [
        FillCause::DemandFault,
        FillCause::ReadAround,
        FillCause::BufferedRead,
        FillCause::ReadAhead,
        FillCause::Metadata,
    ] {
        assert!(r.fills.iter().flatten().any(|f| f.cause == cause), "{cause:?}");
    }
    for pid in [MAIN, CHILD] {
        assert!(r.touches.iter().flatten().any(|t| t.pid == pid));
    }
    assert!(r.manifest.end > r.manifest.ready.as_ref().unwrap().value().copied().unwrap());
}

#[test]
fn samples_are_consistent_and_repeatable() {
    check(&small());
    let one = firefox_like(40_000, 1);
    check(&one);
    // In a sample the intervals without a CPU say again what the stalls say.
    let own = |table: &&(&str, usize)| table.0 != "off_cpu";
    let events: usize = one.counts().iter().skip(3).filter(own).map(|(_, n)| n).sum();
    assert!((40_000..40_400).contains(&events), "{events}");
    assert_eq!(one, firefox_like(40_000, 1));
    assert_ne!(one.touches, firefox_like(40_000, 2).touches);
    assert!(one.fills.iter().flatten().any(|f| !f.in_tree));
    assert!(one.advice.iter().flatten().count() > 10 && one.evictions.iter().flatten().count() > 0);
}
