use cold_model::Known;
use cold_model::recording::{FillCause, Recording, StallCause, TouchKind};
use cold_model::sample::{empty, ms};

use super::*;
use crate::{compile, merge, sample};

/// `/usr/lib/f0` and a file that is not planned, ready after 100 ms.
fn recording() -> Recording {
    let mut r = empty();
    r.manifest.ready = Some(Known::Value(ms(100)));
    for (n, path) in ["/usr/lib/f0", "/usr/lib/other"].into_iter().enumerate() {
        r.file(path, 1 << 30);
        (r.files[n].inode, r.files[n].mtime_ns) = (7 + n as u64, Some(1));
    }
    r
}

/// Pages that came into the cache, and by which request; what was asked for came by another process.
fn fill(r: &mut Recording, at: u64, done: u64, file: u32, first: u64, pages: u64, cause: FillCause) {
    let pid = if cause == FillCause::Advice { 11 } else { 10 };
    let row = r.fill(at, file, first..first + pages, cause);
    (row.pid, row.tid) = (pid, pid);
    let row = r.request(at, done - at, file, first..first + pages);
    (row.pid, row.tid) = (pid, pid);
}

fn touch(r: &mut Recording, at: u64, file: u32, first: u64, pages: u64, kind: TouchKind) {
    r.touch(at, file, first..first + pages, kind);
}

fn stall(r: &mut Recording, at: u64, until: u64, file: u32, page: u64) {
    let row = r.stall(at, until - at, StallCause::Fault);
    (row.file, row.page) = (Some(file), Some(page));
}

#[test]
fn each_page_is_used_unused_late_or_missing() {
    let mut plan = merge(None, &sample::key(), &sample::start(1, &[(0, 0, 10, 1), (0, 50, 4, 9)]), 1);
    compile(&mut plan, &sample::KNOBS, None, &|_| None);
    let mut r = recording();
    // Pages 0 to 9 were asked for at 1 ms and came at 20; 4 of them were needed later, one too early.
    fill(&mut r, 1, 20, 0, 0, 10, FillCause::Advice);
    touch(&mut r, 5, 0, 2, 1, TouchKind::Fault);
    stall(&mut r, 5, 20, 0, 2);
    touch(&mut r, 30, 0, 4, 3, TouchKind::Read);
    touch(&mut r, 31, 0, 9, 1, TouchKind::Fault);
    // Pages 50 and 51 were wanted before the plan came to them, 52 and 53 came in time and nobody wanted them.
    fill(&mut r, 40, 50, 0, 50, 2, FillCause::DemandFault);
    touch(&mut r, 40, 0, 50, 1, TouchKind::Fault);
    stall(&mut r, 40, 50, 0, 50);
    fill(&mut r, 45, 55, 0, 52, 2, FillCause::Advice);
    // Not planned: one page of it, and a whole other file.
    fill(&mut r, 60, 68, 0, 80, 1, FillCause::DemandFault);
    touch(&mut r, 60, 0, 80, 1, TouchKind::Fault);
    stall(&mut r, 60, 68, 0, 80);
    fill(&mut r, 70, 78, 1, 0, 2, FillCause::BufferedRead);
    touch(&mut r, 78, 1, 0, 2, TouchKind::Read);
    let w = waste(&plan, &r, &[]).expect("all tables");
    let pages = |b: Bytes| b.0 / 4096;
    assert_eq!(w.files.len(), 2);
    let f = &w.files[0];
    assert_eq!((f.path.as_path(), f.planned), (Path::new("/usr/lib/f0"), true));
    let a = f.amounts;
    assert_eq!((pages(a.planned), pages(a.prefetched), pages(a.used), pages(a.unused)), (14, 12, 5, 7));
    assert_eq!((pages(a.late), pages(a.in_flight), a.late_wait), (2, 1, Nanos(25_000_000)));
    assert_eq!((pages(a.missing), a.missing_wait), (1, Nanos(8_000_000)));
    assert_eq!((w.files[1].planned, pages(w.files[1].amounts.missing)), (false, 2));
    assert_eq!((w.steps, w.step_bytes), (2, Bytes(14 * 4096)));
    assert_eq!((w.requests, w.request_bytes), (Some(2), Some(Bytes(12 * 4096))));
    assert_eq!(pages(w.total.missing), 3);
    // The launcher's own files count only where they are planned.
    let w = waste(&plan, &r, &["/usr/lib/f0".into(), "/usr/lib/other".into()]).expect("all tables");
    assert_eq!((w.files.len(), w.files[0].amounts, pages(w.total.missing)), (1, a, 1));
}

#[test]
fn pages_of_64_kib_are_counted_in_their_size() {
    // The first 64 KiB, in two pieces, and half of the third.
    let needs = [(0, 0, 4, 1), (0, 4, 12, 9), (0, 32, 8, 9)];
    let mut plan = merge(None, &sample::key(), &sample::start(1, &needs), 1);
    compile(&mut plan, &sample::KNOBS, None, &|_| None);
    let mut r = recording();
    r.manifest.page_bytes = 64 << 10;
    fill(&mut r, 1, 20, 0, 0, 1, FillCause::Advice);
    fill(&mut r, 1, 20, 0, 2, 1, FillCause::Advice);
    touch(&mut r, 30, 0, 2, 1, TouchKind::Fault);
    let a = waste(&plan, &r, &[]).expect("all tables").total;
    assert_eq!((a.planned, a.prefetched), (Bytes(128 << 10), Bytes(128 << 10)));
    assert_eq!((a.used, a.unused, a.missing), (Bytes(64 << 10), Bytes(64 << 10), Bytes(0)));
}

#[test]
fn a_recording_without_fills_says_nothing() {
    let plan = merge(None, &sample::key(), &sample::start(1, &[(0, 0, 1, 1)]), 1);
    assert_eq!(waste(&plan, &Recording { fills: None, ..recording() }, &[]), None);
    let w = waste(&plan, &recording(), &[]).expect("tables");
    assert_eq!(w.files, []);
}

#[test]
fn what_a_start_did_not_need_of_its_plan_is_told_of_warm_ones_too() {
    let mut plan = merge(None, &sample::key(), &sample::start(1, &[(0, 0, 10, 1), (0, 50, 4, 9)]), 1);
    compile(&mut plan, &sample::KNOBS, None, &|_| None);
    let mut r = recording();
    // Nothing was filled. One page was touched, three were mapped beside it, one of another file and one unplanned.
    touch(&mut r, 5, 0, 2, 1, TouchKind::Fault);
    touch(&mut r, 5, 0, 3, 3, TouchKind::FaultAround);
    touch(&mut r, 6, 0, 80, 1, TouchKind::Fault);
    touch(&mut r, 7, 1, 0, 1, TouchKind::Read);
    // Too late: it was ready.
    touch(&mut r, 101, 0, 50, 4, TouchKind::Fault);
    let told = unneeded(&plan, &r).expect("touches");
    assert_eq!((told.planned.0 / 4096, told.unneeded.0 / 4096), (14, 10));
    // Another file by that name now.
    r.files[0].inode += 1;
    assert_eq!(unneeded(&plan, &r).expect("touches").unneeded.0 / 4096, 14);
    r.touches = None;
    assert_eq!(unneeded(&plan, &r), None);
}
