use std::io::Write;

use super::*;
use crate::residency::{Backing, backing};

fn file(bytes: usize) -> File {
    // Not /tmp, which is tmpfs on many machines.
    let mut file = tempfile::tempfile_in("/var/tmp").expect("a file");
    file.write_all(&vec![7; bytes]).expect("written");
    file
}

fn run(first: u64, pages: u64) -> PageRun {
    PageRun { first, pages }
}

#[test]
fn a_run_is_read_as_far_as_the_file_goes_whatever_the_buffer() {
    let page = page_size();
    let file = file(2 * page as usize + 10);
    for (asked, came) in [
        (run(0, 1), page),
        (run(0, 2), 2 * page),
        (run(0, 3), 2 * page + 10),
        (run(1, 100), page + 10),
        (run(2, 1), 10),
        (run(3, 1), 0),
    ] {
        for size in [1000, page as usize, 1 << 20] {
            let read = read_run(&file, asked, &mut vec![0; size]).expect("read");
            assert_eq!(read, came, "{asked:?} by {size} bytes");
        }
    }
    assert_eq!(read_run(&file, run(0, 1), &mut []).expect("nowhere to put it"), 0);
}

#[test]
fn a_run_does_not_read_beyond_its_last_page() {
    let page = page_size() as usize;
    let mut buffer = vec![0; 4 * page];
    assert_eq!(read_run(&file(4 * page), run(1, 2), &mut buffer).expect("read"), 2 * page as u64);
    assert_eq!(buffer.iter().rposition(|b| *b == 7), Some(2 * page - 1));
}

#[test]
fn what_cannot_be_read_is_an_error_at_its_place() {
    let directory = File::open("/var/tmp").expect("opens");
    let error = read_run(&directory, run(3, 1), &mut [0; 512]).expect_err("a directory");
    assert_eq!(error.errno(), Some(libc::EISDIR));
    assert!(error.to_string().contains(&format!("offset {}", 3 * page_size())), "{error}");
}

#[test]
fn what_has_no_pages_takes_no_advice() {
    let (pipe, _other) = std::io::pipe().expect("a pipe");
    let pipe = File::from(std::os::fd::OwnedFd::from(pipe));
    for refused in [
        advise_dontneed(&pipe),
        advise_dontneed_run(&pipe, run(0, 1)),
        advise_random(&pipe),
        start_reading(&pipe, run(0, 1)),
    ] {
        let error = refused.expect_err("a pipe");
        assert_eq!(error.errno(), Some(libc::ESPIPE), "{error}");
    }
    start_reading(&pipe, run(5, 0)).expect("nothing was asked for");
}

/// Strangers may read or evict, too: one of many attempts has to be undisturbed.
fn once(attempt: impl Fn() -> bool) -> bool {
    (0..50).any(|_| attempt())
}

const WAITS: [Duration; 10] = [Duration::from_millis(2); 10];

#[test]
fn changed_pages_are_written_and_then_evicted() {
    if backing(&file(1)).expect("told") != Backing::PageCache || !crate::residency::has_cachestat() {
        eprintln!("SKIPPED (needs a disk and cachestat)");
        return;
    }
    let evicted = |pages: usize| {
        let file = file(pages * page_size() as usize);
        let meta = file.metadata().expect("stat");
        let first = evict_file(&file, &meta, &[]).expect("evicted");
        let again = evict_file(&file, &meta, &WAITS).expect("evicted");
        let bytes = std::os::unix::fs::FileExt::read_at(&file, &mut [0; 1], 0).expect("read");
        assert_eq!(bytes, 1, "what it holds is there");
        (first, again)
            == (
                FileEviction { before: Some(pages as u64), after: Some(0) },
                FileEviction { before: Some(0), after: Some(0) },
            )
    };
    assert!([1, 20].into_iter().all(|pages| once(|| evicted(pages))));
}

#[test]
fn pages_that_somebody_has_mapped_are_left_and_told_of() {
    use crate::mapped::{MapAdvice, MapKind, MappedFile};
    let bytes = 8 * page_size();
    let left = || {
        let file = file(bytes as usize);
        file.sync_all().expect("written");
        let meta = file.metadata().expect("stat");
        let map = MappedFile::new(&file, bytes, MapKind::default()).expect("mapped");
        if map.advise(MapAdvice::PopulateRead, 0, bytes).is_err() {
            return true; // before Linux 5.14
        }
        let held = evict_file(&file, &meta, &[]).expect("asked").after;
        drop(map);
        let freed = evict_file(&file, &meta, &WAITS).expect("asked").after;
        backing(&file).expect("told") != Backing::PageCache || (held, freed) == (Some(8), Some(0))
    };
    assert!(once(left));
}

#[test]
fn caches_are_dropped_by_the_kernels_numbers() {
    let dir = tempfile::tempdir().expect("a directory");
    let (proc, knob) = (ProcFs::new(dir.path()), dir.path().join("sys/vm/drop_caches"));
    std::fs::create_dir_all(knob.parent().expect("above")).expect("made");
    let error = drop_caches(&proc, DropCaches::All).expect_err("no such setting");
    assert!(error.to_string().contains("sys/vm/drop_caches") && !knob.exists(), "{error}");
    std::fs::write(&knob, "").expect("written");
    for (what, number) in
        [(DropCaches::PageCache, "1\n"), (DropCaches::Slab, "2\n"), (DropCaches::All, "3\n")]
    {
        drop_caches(&proc, what).expect("dropped");
        assert_eq!(std::fs::read_to_string(&knob).expect("read"), number);
    }
}
