use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::*;
use crate::variate::Seek;

const COPIED: Mode = Mode::Mapped(Mapping { exec: false, shared: true, copy: true, advice: Advice::Normal });
const PRIVATE: Mode =
    Mode::Mapped(Mapping { exec: false, shared: false, copy: false, advice: Advice::Normal });

/// A file of so many zeros, on a disk: past the cache of memory there is nothing.
fn zeros(bytes: u64) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
    let path = dir.path().join("f");
    std::fs::write(&path, vec![0; bytes as usize]).unwrap();
    (dir, path)
}

fn work(file: &Path, bytes: u64, record: u64, mode: Mode, action: Act) -> Work {
    Work { action: vec![action], ..Work::reads(file.to_owned(), bytes, record, mode, Seek::Sequential) }
}

/// Offsets of the bytes that are not 0 after records of `record` bytes were written.
fn written(mode: Mode, record: u64, records: &[u64]) -> BTreeSet<u64> {
    let (_dir, path) = zeros(4 * PAGE);
    let mut target = Target::open(&work(&path, 4 * PAGE, record, mode, Act::W)).unwrap();
    for n in records {
        target.act(Act::W, *n).unwrap();
    }
    target.flush().unwrap();
    let found = std::fs::read(&path).unwrap();
    (0..).zip(found).filter(|(_, b)| *b != 0).map(|(at, _)| at).collect()
}

#[test]
fn a_record_is_written_where_it_lies_and_nothing_beside_it() {
    for mode in [Mode::BUFFERED, COPIED] {
        assert_eq!(written(mode, 1000, &[0, 2]), (0..1000).chain(2000..3000).collect(), "{mode:?}");
    }
    assert_eq!(written(Mode::Direct, 4096, &[3]), (3 * PAGE..4 * PAGE).collect());
}

#[test]
fn a_touched_record_has_one_byte_of_each_of_its_pages_written_and_none_before_it() {
    // 6000 bytes from 6000 on: in the page where it begins its first byte, in the next the page's.
    assert_eq!(written(Mode::MAPPED, 6000, &[1]), [6000, 8192].into());
    assert_eq!(written(Mode::MAPPED, 512, &[9]), [9 * 512].into());
}

#[test]
fn a_private_mapping_never_changes_the_file() {
    assert_eq!(written(PRIVATE, 4096, &[0, 1]), BTreeSet::new());
}

#[test]
fn a_record_has_one_place_in_each_page_that_it_touches() {
    for (offset, len, expected) in [
        (0, 1, vec![0]),
        (0, 4096, vec![0]),
        (0, 4097, vec![0, 4096]),
        (4095, 1, vec![4095]),
        (4095, 2, vec![4095, 4096]),
        (512, 512, vec![512]),
        (6000, 6000, vec![6000, 8192]),
        (8192, 8192, vec![8192, 12288]),
    ] {
        assert_eq!(pages(offset, len).collect::<Vec<_>>(), expected, "{len} bytes from {offset}");
    }
}

#[test]
fn used_pages_are_counted_once_and_each_that_a_record_reaches_into() {
    let (_dir, path) = zeros(70 * PAGE);
    for (record, records) in
        [(512, vec![0, 1, 7, 8]), (6000, vec![0, 1]), (4096, vec![69, 0, 69]), (PAGE * 65, vec![0])]
    {
        let mut target = Target::open(&work(&path, 70 * PAGE, record, Mode::BUFFERED, Act::R)).unwrap();
        assert_eq!(target.touched_bytes(), 0);
        for n in &records {
            target.mark(*n);
        }
        let each: BTreeSet<u64> =
            records.iter().flat_map(|n| n * record..(n + 1) * record).map(|byte| byte / PAGE).collect();
        assert_eq!(target.touched_bytes(), each.len() as u64 * PAGE, "records of {record}");
    }
}

#[test]
fn a_record_beyond_the_end_is_an_error_and_no_short_read() {
    let (_dir, path) = zeros(10_000);
    for mode in [Mode::BUFFERED, Mode::MAPPED, COPIED] {
        let mut target = Target::open(&work(&path, 10_000, 4096, mode, Act::R)).unwrap();
        target.act(Act::R, 1).unwrap();
        // Of the third record only 1808 bytes are there; none of the fourth.
        let kind = target.act(Act::R, 3).unwrap_err().kind();
        assert_eq!(kind, io::ErrorKind::UnexpectedEof, "{mode:?}");
    }
    let mut target = Target::open(&work(&path, 10_000, 4096, COPIED, Act::R)).unwrap();
    assert_eq!(target.act(Act::R, 2).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn a_file_that_shrinks_under_calls_is_an_error() {
    let (_dir, path) = zeros(4 * PAGE);
    let mut target = Target::open(&work(&path, 4 * PAGE, 4096, Mode::BUFFERED, Act::R)).unwrap();
    target.act(Act::R, 3).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(PAGE).unwrap();
    assert_eq!(target.act(Act::R, 3).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    target.act(Act::R, 0).unwrap();
}

#[test]
fn a_record_is_cached_when_all_of_its_pages_are() {
    let (_dir, path) = zeros(8 * PAGE);
    let target = Target::open(&work(&path, 8 * PAGE, 2 * PAGE, Mode::BUFFERED, Act::R)).unwrap();
    if !cold_testbed::need(target.is_cached(0).is_some(), "cachestat") {
        return;
    }
    target.flush().unwrap();
    evict::advise_dontneed(&target.file).unwrap();
    evict::advise_random(&target.file).unwrap();
    assert_eq!(target.is_cached(1), Some(false));
    let mut page = [0; PAGE as usize];
    target.file.read_exact_at(&mut page, 2 * PAGE).unwrap();
    assert_eq!((target.is_cached(1), target.is_cached(0)), (Some(false), Some(false)), "half of it is");
    target.file.read_exact_at(&mut page, 3 * PAGE).unwrap();
    assert_eq!((target.is_cached(1), target.is_cached(0)), (Some(true), Some(false)));
    // Records smaller than a page: 8 to 15 lie in the second page, which is not cached, 16 to 31 in the next two.
    let small = Target::open(&work(&path, 8 * PAGE, 512, Mode::BUFFERED, Act::R)).unwrap();
    assert_eq!(
        [9, 15, 16, 31].map(|n| small.is_cached(n)),
        [Some(false), Some(false), Some(true), Some(true)]
    );
}

#[test]
fn what_cannot_be_opened_says_how_it_was_tried() {
    let why = |file: &str, mode| {
        let e = Target::open(&work(Path::new(file), 4096, 4096, mode, Act::R)).err().unwrap();
        e.to_string()
    };
    assert!(why("/nowhere/f", Mode::Direct).starts_with("cannot open /nowhere/f: "));
    let direct = why("/proc/self/status", Mode::Direct);
    assert_eq!(direct, "cannot open past the cache /proc/self/status: its file system has no O_DIRECT");
    let mapped = why("/proc/self/status", Mode::MAPPED);
    assert!(mapped.starts_with("cannot map /proc/self/status: "), "{mapped}");
}
