//! The whole analysis: known answers, absent tables, and invariants over random recordings.

use std::time::{Duration, Instant};

use cold_model::layout::Layouts;
use cold_model::recording::manifest::{Device, Load, READY_AT_EXIT, Tier};
use cold_model::recording::tables::Process;
use cold_model::recording::{FileIdx, FillCause, LookupKind, Recording, StallCause, TouchKind};
use cold_model::{Bytes, Dev, Known, Nanos};
use proptest::prelude::*;

use crate::model::{Headline, MappedNeed, Reached};
use crate::{Analysis, analyze};
use cold_model::sample::{PAGE, empty, kib, long, ms};

fn plain(r: &Recording) -> Analysis {
    analyze(r, &Layouts::default())
}

#[test]
fn the_headline_of_a_small_start() {
    let mut r = empty();
    let f = r.file("/a", 1000 * PAGE);
    r.fault(100, 10, f, 10, 8..16);
    r.stall(105, 10, StallCause::Lookup).tid = 11;
    r.request(90, 4, f, 100..108).in_tree = false;
    r.device_reads.as_mut().unwrap()[0].issued = Some(ms(102));
    r.lookup(1, LookupKind::Open, "/x", -2);
    r.lookup(2, LookupKind::Open, "/a", 3);
    r.lookup(3, LookupKind::List, "/", 100);
    r.fault(1500, 20, f, 500, 500..501);
    let h = plain(&r).headline;
    assert_eq!(h.subject, "prog 'two words'");
    assert_eq!(h.ended, None, "it ran on");
    assert_eq!(h.ready, Known::Value(long(1000)));
    assert_eq!(h.waited, Known::Value(long(15)));
    assert_eq!(h.waited_sum, Known::Value(long(20)));
    assert_eq!(h.waited_main, Known::Value(long(10)));
    assert_eq!(h.unattributed, Known::Value(long(10)));
    assert_eq!((h.needed, h.needed_upper), (Known::Value(kib(4)), Known::Value(kib(0))));
    assert_eq!((h.read, h.unused), (Known::Value(kib(32)), Known::Value(kib(28))));
    assert_eq!((h.requests, h.requests_by_others), (Known::Value(1), Known::Value(1)));
    assert_eq!(h.mean_request, Known::Value(kib(32)));
    assert_eq!((h.mean_service, h.mean_queueing), (Known::Value(long(8)), Known::Value(long(2))));
    assert_eq!((h.lookups, h.misses, h.processes), (Known::Value(2), Known::Value(1), Known::Value(1)));
    let after = h.after_ready.unwrap();
    assert_eq!((after.read, after.requests, after.waited_sum), (kib(4), 1, long(20)));
}

#[test]
fn the_tree_ends_when_its_last_process_does() {
    let mut r = empty();
    "stdout:ready".clone_into(&mut r.manifest.ready_means);
    r.processes[0].ended = Some(ms(1800));
    let bystander = Process { pid: 99, in_tree: false, ended: None, ..r.processes[0].clone() };
    let child = Process { pid: 11, ended: Some(ms(1900)), ..r.processes[0].clone() };
    r.processes.extend([bystander, child]);
    assert_eq!(plain(&r).headline.ended, Some(long(1900)));
    r.processes[2].ended = None;
    assert_eq!(plain(&r).headline.ended, None, "a child ran on");
    r.processes[2].ended = Some(ms(1900));
    READY_AT_EXIT.clone_into(&mut r.manifest.ready_means);
    assert_eq!(plain(&r).headline.ended, None, "ready is the end");
    r.manifest.ready = Some(Known::Value(ms(1900)));
    r.processes[0].ended = Some(ms(1850));
    assert_eq!(plain(&r).headline.first_ended, None, "5 % later at least");
    r.processes[0].ended = Some(ms(1200));
    assert_eq!(plain(&r).headline.first_ended, Some(long(1200)));
}

#[test]
fn a_busy_machine_is_told_beside_the_figures() {
    let mut r = empty();
    let load = |others, stolen| {
        Some(Known::Value(Load { capacity: long(1000), others: long(others), stolen: long(stolen) }))
    };
    let mut text_of_load = |load| {
        r.manifest.load = load;
        plain(&r).headline.notes.iter().find(|n| n.contains("idle machine")).cloned()
    };
    assert_eq!((text_of_load(None), text_of_load(load(100, 20))), (None, None));
    assert!(
        text_of_load(load(380, 0))
            .is_some_and(|t| t.starts_with("other processes used 38.0% of the CPUs while"))
    );
    assert!(
        text_of_load(load(0, 60)).is_some_and(|t| t.contains("the hypervisor took 6.0% of the CPU time"))
    );
    assert_eq!(text_of_load(load(600, 0)), None, "a taint says it");
}

/// Fills of tiers C and D are booked at the end, after the touches that needed them, and after ready.
#[test]
fn fills_without_a_time_of_their_own_still_brought_what_was_needed() {
    let mut r = empty();
    r.manifest.tier = Tier::C;
    let f = r.file("/a", 1000 * PAGE);
    r.touch(100, f, 0..3, TouchKind::Fault);
    r.touch(100, f, 3..5, TouchKind::FaultAround);
    r.fill(1900, f, 0..8, FillCause::Other).in_tree = false;
    let h = plain(&r).headline;
    // Who read them is not seen, nor what reads by system call needed.
    let mapped = crate::model::MappedNeed { at_least: kib(12), at_most: kib(20) };
    assert_eq!((h.mapped, h.came_in), (Some(mapped), Some(kib(32))));
    for figure in [&h.needed, &h.needed_upper, &h.read, &h.read_by_others, &h.cached, &h.unused] {
        assert_eq!(figure.value(), None);
    }
    assert!(h.after_ready.is_none_or(|after| after.read == kib(0)));
}

#[test]
fn a_tier_without_tables_says_unknown_and_why() {
    let mut r = empty();
    r.manifest.tier = Tier::D;
    let f = r.file("/a", 1000 * PAGE);
    r.touch(1, f, 0..3, TouchKind::Fault);
    (r.fills, r.evictions, r.device_reads, r.transfers) = (None, None, None, None);
    (r.stalls, r.lookups) = (None, None);
    let a = plain(&r);
    let h = &a.headline;
    assert_eq!(h.mapped.map(|m| (m.at_least, m.at_most)), Some((kib(12), kib(12))));
    assert_eq!((h.needed.value(), h.came_in), (None, None));
    assert_eq!(h.read, Known::unknown("tier D has no table of fills"));
    assert_eq!(h.waited, Known::unknown("tier D has no table of stalls"));
    assert_eq!(h.mean_service, Known::unknown("tier D has no table of device reads"));
    for figure in [&h.unused, &h.cached, &h.read_by_others, &h.metadata, &h.refilled] {
        assert_eq!(figure.value(), None);
    }
    assert_eq!((h.misses.value(), h.requests.value(), h.waited_main.value()), (None, None, None));
    assert!(a.suggestions.is_empty());
    assert_eq!(plain(&Recording::default()).headline.needed.value(), None);
    // A container that refuses perf events: no fault was seen, which is not "none was needed".
    r.touches = None;
    let h = plain(&r).headline;
    assert_eq!((h.needed.value(), h.mapped.map(|m| m.at_most)), (None, None));
}

#[test]
fn a_tier_that_does_not_see_reads_knows_no_unused_bytes() {
    let mut r = empty();
    let f = r.file("/a", 1000 * PAGE);
    r.fault(1, 1, f, 0, 0..8);
    for (tier, unused) in
        [(Tier::A, Some(kib(28))), (Tier::B, Some(kib(28))), (Tier::C, None), (Tier::D, None)]
    {
        r.manifest.tier = tier;
        assert_eq!(plain(&r).headline.unused.value().copied(), unused, "{tier}");
    }
}

/// A lost touch makes a page look unused, a lost fill makes it look as if it had been cached before.
#[test]
fn what_depends_on_lost_events_is_unknown() {
    let mut r = empty();
    let f = r.file("/a", 1000 * PAGE);
    r.fault(1, 1, f, 0, 0..8);
    r.manifest.lost.insert("touches".into(), 3);
    let h = plain(&r).headline;
    assert_eq!((h.unused, h.cached), (Known::unknown("3 of touches were lost"), Known::Value(kib(0))));
    r.manifest.lost = [("fills".into(), 1)].into();
    let h = plain(&r).headline;
    assert_eq!((h.unused, h.cached), (Known::Value(kib(28)), Known::unknown("1 of fills were lost")));
}

#[test]
fn damaged_indexes_and_numbers_do_no_harm() {
    let mut r = empty();
    let f = r.file("/a", 0);
    for file in [f, 77] {
        r.touch(1, file, u64::MAX - 3..u64::MAX, TouchKind::Fault).pages = u32::MAX;
        r.touch(1, file, 5..6, TouchKind::FaultAround).pages = u32::MAX;
        r.fill(1, file, u64::MAX - 3..u64::MAX, FillCause::DemandFault).pages = u32::MAX;
        r.request(1, 1, file, 0..1);
        let s = r.stall(5, 1, StallCause::Fault);
        (s.file, s.page, s.stack, s.lookup) = (Some(file), Some(u64::MAX), Some(9), Some(9));
        s.woken = Some(Nanos(0));
        r.lookup(1, LookupKind::Exec, "", -2).file = Some(file);
    }
    r.transfers.as_mut().unwrap()[0].request = 99;
    (r.manifest.page_bytes, r.manifest.ready) = (0, Some(Known::Value(Nanos(0))));
    let a = plain(&r);
    assert_eq!(a.headline.ready.value(), None);
}

/// One event of a random recording: what, when, file, first page, pages, cause, own.
type Event = (u8, u64, FileIdx, u64, u64, usize, bool);

const FILES: FileIdx = 4;
const CAUSES: [FillCause; 6] = [
    FillCause::DemandFault,
    FillCause::ReadAround,
    FillCause::BufferedRead,
    FillCause::Metadata,
    FillCause::Write,
    FillCause::Advice,
];

fn build(events: &[Event]) -> Recording {
    let mut r = empty();
    for i in 0..FILES {
        r.file(&format!("/f{i}"), (20 + 10 * u64::from(i)) * PAGE);
    }
    for &(what, at, file, first, pages, cause, own) in events {
        let range = first..first + pages;
        match what {
            0 => drop(*r.touch(at, file, first..first + 1, TouchKind::Fault)),
            1 => drop(*r.touch(at, file, range, TouchKind::Read)),
            2 => drop(*r.touch(at, file, range, TouchKind::FaultAround)),
            3 | 4 => r.fill(at, file, range, CAUSES[cause]).in_tree = own,
            5 => r.evict(at, file, range),
            6 => r.request(at, pages, file, range).in_tree = own,
            _ => {
                let s = r.stall(at, pages, if own { StallCause::Fault } else { StallCause::Lock });
                (s.file, s.page) = (Some(file), Some(first));
            }
        }
    }
    r
}

fn event() -> impl Strategy<Value = Event> {
    (0u8..8, 0u64..1100, 0..FILES, 0u64..70, 1u64..12, 0..CAUSES.len(), any::<bool>())
}

proptest! {
    #[test]
    fn figures_hang_together(mut events in proptest::collection::vec(event(), 0..80)) {
        events.sort_by_key(|e| e.1);
        let r = build(&events);
        let a = plain(&r);
        let h = &a.headline;
        let value = |k: &Known<Bytes>| k.value().unwrap().0;
        let sum = |f: fn(&crate::model::FileUse) -> Bytes| a.files.iter().map(|x| f(x).0).sum::<u64>();
        prop_assert_eq!(value(&h.needed), sum(|f| f.needed));
        prop_assert_eq!(value(&h.read), sum(|f| f.read));
        prop_assert_eq!(value(&h.unused), sum(|f| f.unused));
        prop_assert_eq!(value(&h.cached), sum(|f| f.cached));
        let by_others = a.files.iter().filter(|f| f.reached != Reached::ByOthers);
        prop_assert_eq!(value(&h.read_by_others), by_others.map(|f| f.read_by_others.0).sum::<u64>());
        for f in &a.files {
            prop_assert!(f.needed.0 <= f.size.unwrap().0 && f.read.0 <= f.size.unwrap().0);
            prop_assert!(f.needed_upper <= f.needed && f.unused <= f.read && f.cached <= f.needed);
            let written = f.causes.get(&FillCause::Write).map_or(0, |b| b.0);
            prop_assert!(f.needed.0 <= f.read.0 - f.unused.0 + f.cached.0 + f.read_by_others.0 + written);
            prop_assert!(f.fragments * PAGE <= f.needed.0);
        }
        let stalls: Nanos = a.stacks.iter().map(|s| s.stall).sum();
        prop_assert_eq!(Known::Value(stalls), h.waited_sum.clone());
        prop_assert!(h.waited.value() <= h.waited_sum.value());
        prop_assert!(h.waited_main.value() <= h.waited_sum.value());
        prop_assert!(*h.waited.value().unwrap() <= long(1000));
        for s in &a.suggestions {
            prop_assert!(s.saves_time.is_none_or(|t| t <= *h.waited_sum.value().unwrap()), "{:?}", s);
        }
    }

    #[test]
    fn the_numbering_of_files_does_not_matter(mut events in proptest::collection::vec(event(), 0..60)) {
        events.sort_by_key(|e| e.1);
        let r = build(&events);
        let mut turned = r.clone();
        turned.files.reverse();
        let map = |f: &mut FileIdx| *f = FILES - 1 - *f;
        turned.touches.iter_mut().flatten().for_each(|t| map(&mut t.file));
        turned.fills.iter_mut().flatten().for_each(|t| map(&mut t.file));
        turned.evictions.iter_mut().flatten().for_each(|t| map(&mut t.file));
        turned.transfers.iter_mut().flatten().for_each(|t| t.file.iter_mut().for_each(map));
        turned.stalls.iter_mut().flatten().for_each(|t| t.file.iter_mut().for_each(map));
        let (x, mut y) = (plain(&r), plain(&turned));
        prop_assert_eq!(&x.headline, &y.headline);
        prop_assert_eq!(&x.checks.len(), &y.checks.len());
        y.files.iter_mut().for_each(|f| map(&mut f.file));
        prop_assert_eq!(x.files, y.files);
    }
}

#[test]
fn a_partitions_reads_are_its_disks() {
    let mut r = empty();
    let f = r.file("/a", 1000 * PAGE);
    let (disk, part, other) = (r.manifest.devices[0].dev, Dev::new(8, 99), Dev::new(7, 7));
    let partition = Device { dev: part, partition_of: Some((disk, 2048)), ..r.manifest.devices[0].clone() };
    r.manifest.devices.push(partition);
    assert_eq!([disk, part, other].map(|dev| r.manifest.whole_disk(dev)), [Some(disk), Some(disk), None]);
    assert_eq!(r.busiest_disk(), None);
    for (dev, pages, in_tree) in [(part, 3, true), (disk, 3, true), (other, 5, true), (other, 90, false)] {
        r.request(1, 1, f, 0..pages);
        let read = r.device_reads.as_mut().unwrap().last_mut().unwrap();
        (read.dev, read.in_tree) = (dev, in_tree);
    }
    assert_eq!(r.busiest_disk(), Some(disk), "of both together most, of the start's own reads");
}

#[test]
fn what_the_first_thread_waited_for_and_what_reading_was_for_are_decided_once() {
    let mut h = plain(&empty()).headline;
    let waits = |h: &mut Headline, all, main| {
        (h.waited, h.waited_main) = (Known::Value(Nanos(all)), Known::Value(Nanos(main)));
        h.main_waits_for_others()
    };
    assert!(waits(&mut h, 10, 4) && !waits(&mut h, 10, 5) && !waits(&mut h, 0, 0));
    h.waited_main = Known::unknown("no thread");
    assert!(!h.main_waits_for_others());
    let causes =
        [(FillCause::Write, 900), (FillCause::Other, 0), (FillCause::ReadAhead, 7), (FillCause::Advice, 70)];
    h.causes = causes.map(|(cause, n)| (cause, Bytes(n))).into();
    assert_eq!(h.read_because_of(), [(FillCause::Advice, Bytes(70)), (FillCause::ReadAhead, Bytes(7))]);
    (h.needed, h.needed_upper) = (Known::Value(Bytes(100)), Known::Value(Bytes(30)));
    let between = MappedNeed { at_least: Bytes(70), at_most: Bytes(100) };
    assert_eq!(h.needed_between(), Some(between));
    h.needed_upper = Known::Value(Bytes(0));
    assert_eq!(h.needed_between(), None);
}

/// A start of about a million events: faults over forty files with read-around, folio by folio.
fn million() -> Recording {
    let mut r = empty();
    for i in 0..40 {
        r.file(&format!("/usr/lib/lib{i}.so.1"), 40_000 * PAGE);
    }
    let mut random = 1u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    for i in 0..26_000u64 {
        let (file, page) = (next(40) as FileIdx, next(39_000));
        r.fault(i / 27, 1, file, page, page.saturating_sub(16)..page + 16);
        r.touch(i / 27, file, page.saturating_sub(8)..page + 8, TouchKind::FaultAround);
        r.lookup(i / 27, LookupKind::Open, &format!("/opt/lib/x{page}.so"), -2);
    }
    r
}

#[test]
fn a_million_events_take_seconds_at_most_even_unoptimised() {
    let r = million();
    let events: usize = r.counts().iter().map(|(_, n)| n).sum();
    assert!(events > 950_000, "{events}");
    let before = Instant::now();
    let a = plain(&r);
    eprintln!("{events} events analysed in {:?}", before.elapsed());
    assert!(before.elapsed() < Duration::from_mins(1));
    assert!(a.headline.needed.value().is_some());
}
