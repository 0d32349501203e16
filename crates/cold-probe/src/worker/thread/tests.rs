use std::path::{Path, PathBuf};

use super::*;
use crate::spec::actions;
use crate::variate::{Normal, Seek};

const PAGE: u64 = 4096;

fn file_of(pages: u64) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
    let path = dir.path().join("f");
    std::fs::write(&path, vec![1; (pages * PAGE) as usize]).unwrap();
    (dir, path)
}

fn work(file: &Path, pages: u64, action: &str) -> Work {
    let reads = Work::reads(file.to_owned(), pages * PAGE, PAGE, Mode::BUFFERED, Seek::Sequential);
    Work { action: actions(action).unwrap(), ..reads }
}

/// One thread alone does `work` until it has used so many records; intervals are an hour.
fn ran(work: &Work, records: u64, stop: &AtomicBool) -> io::Result<ThreadReport> {
    let limit = Limit::Records { records };
    let crew = Crew { name: "t".into(), threads: vec![], limit, seed: 1, stream: 0, tick_ms: 3_600_000 };
    let prepared = Prepared::new(work, &crew, 0, None)?;
    let gate = Gate::default();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| prepared.run(&gate, stop));
        gate.open(1);
        thread.join().unwrap()
    })
}

fn counted(action: &str, pages: u64, records: u64) -> ThreadReport {
    let (_dir, path) = file_of(pages);
    ran(&work(&path, pages, action), records, &AtomicBool::new(false)).unwrap()
}

#[test]
fn each_letter_is_a_record_and_each_string_a_cycle() {
    for (action, records, cycles) in [("R", 5, 5), ("RW", 6, 3), ("RRWRR", 10, 2), ("rw", 2, 1)] {
        let r = counted(action, 16, records);
        assert_eq!((r.records.count, r.cycles.count), (records, cycles), "{action}");
    }
    // A string that was begun is ended.
    let r = counted("RRW", 16, 4);
    assert_eq!((r.records.count, r.cycles.count), (6, 2));
}

#[test]
fn a_write_takes_the_record_that_was_read_last_or_else_the_next() {
    for (action, records, used) in
        [("R", 4, 4), ("RW", 8, 4), ("RWW", 12, 4), ("RRW", 6, 4), ("WR", 8, 8), ("W", 4, 4), ("WW", 4, 4)]
    {
        assert_eq!(counted(action, 16, records).touched_bytes, used * PAGE, "{action}");
    }
}

#[test]
fn after_the_last_record_comes_the_first() {
    let r = counted("R", 3, 10);
    assert_eq!((r.records.count, r.touched_bytes), (10, 3 * PAGE));
}

#[test]
fn a_cycle_is_as_many_action_strings_as_it_repeats() {
    let (_dir, path) = file_of(16);
    let thrice = Work { repeats: Normal::fixed(3.0), ..work(&path, 16, "RW") };
    let r = ran(&thrice, 12, &AtomicBool::new(false)).unwrap();
    assert_eq!((r.records.count, r.cycles.count), (12, 2));
}

#[test]
fn only_each_nth_record_is_asked_about_and_none_past_the_cache() {
    let (_dir, path) = file_of(16);
    let asked = |watch, mode| {
        let work = Work { mode, watch, ..work(&path, 16, "R") };
        let r = ran(&work, 10, &AtomicBool::new(false)).unwrap();
        (r.asked, r.missed)
    };
    if !cold_testbed::need(asked(1, Mode::BUFFERED).0.is_some(), "cachestat") {
        return;
    }
    // It was just written: nothing of it is missing.
    assert_eq!(asked(1, Mode::BUFFERED), (Some(10), Some(0)));
    assert_eq!(asked(4, Mode::BUFFERED), (Some(3), Some(0)), "records 0, 4 and 8");
    assert_eq!(asked(0, Mode::BUFFERED), (None, None));
    assert_eq!(asked(1, Mode::Direct), (None, None));
}

#[test]
fn who_only_reads_has_nothing_to_flush() {
    assert!(counted("R", 4, 4).flush_ns.is_none());
    assert!(counted("RW", 4, 4).flush_ns.is_some());
}

#[test]
fn intervals_hold_every_record_once() {
    let r = counted("RRW", 16, 30);
    assert_eq!(r.ticks.iter().map(|t| t.records).sum::<u64>(), r.records.count);
    assert_eq!(r.ticks.iter().map(|t| t.asked).sum::<u64>(), r.asked.unwrap_or(0));
}

#[test]
fn the_first_to_end_stops_the_others_and_who_is_stopped_before_it_begins_does_nothing() {
    let (_dir, path) = file_of(4);
    let (work, stop) = (work(&path, 4, "R"), AtomicBool::new(false));
    assert_eq!(ran(&work, 4, &stop).unwrap().records.count, 4);
    assert!(stop.load(Ordering::Relaxed));
    let r = ran(&work, 4, &stop).unwrap();
    assert_eq!((r.records.count, r.cycles.count, r.touched_bytes), (0, 0, 0));
}

#[test]
fn a_trial_that_is_given_up_before_it_begins_reads_nothing() {
    let (_dir, path) = file_of(4);
    let work = work(&path, 4, "R");
    let limit = Limit::Records { records: 4 };
    let crew = Crew { name: "t".into(), threads: vec![], limit, seed: 1, stream: 0, tick_ms: 0 };
    let gate = Gate::default();
    gate.give_up();
    let r = Prepared::new(&work, &crew, 0, None).unwrap().run(&gate, &AtomicBool::new(false)).unwrap();
    assert_eq!((r.records.count, r.touched_bytes), (0, 0));
}

#[test]
fn a_file_that_is_too_short_ends_the_thread_with_an_error() {
    let (_dir, path) = file_of(2);
    let e = ran(&work(&path, 4, "R"), 8, &AtomicBool::new(false)).unwrap_err();
    assert_eq!(e.kind(), io::ErrorKind::UnexpectedEof);
}
