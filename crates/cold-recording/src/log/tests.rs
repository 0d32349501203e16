use super::*;

/// Payloads of many sizes, the largest beyond the buffer.
fn payloads() -> Vec<Vec<u8>> {
    [0usize, 1, 7, 4096, 70_000, 70_000, BUFFER - BLOCK_HEADER, BUFFER, 3 * BUFFER, 5]
        .iter()
        .enumerate()
        .map(|(i, n)| (0..*n).map(|b| (b * 31 + i) as u8).collect())
        .collect()
}

fn written(dir: &Path, finish: bool) -> Vec<u8> {
    let mut log = Writer::create(dir, 4096, Nanos(77)).unwrap();
    for (i, p) in payloads().iter().enumerate() {
        log.append(i as u16, p).unwrap();
    }
    if finish {
        log.finish().unwrap();
    } else {
        drop(log);
    }
    std::fs::read(dir.join(NAME)).unwrap()
}

fn read(bytes: &[u8]) -> Result<(Vec<Block>, End)> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(NAME), bytes).unwrap();
    let mut log = Reader::open(dir.path())?;
    assert_eq!((log.page_bytes(), log.start()), (4096, Nanos(77)));
    let blocks = log.by_ref().collect();
    Ok((blocks, log.end().clone()))
}

#[test]
fn what_is_appended_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let (blocks, end) = read(&written(dir.path(), true)).unwrap();
    assert_eq!(blocks.iter().map(|b| b.payload.clone()).collect::<Vec<_>>(), payloads());
    assert!(blocks.iter().enumerate().all(|(i, b)| (b.kind, b.sequence) == (i as u16, i as u64)));
    assert_eq!(end, End { blocks: 10, unreadable_bytes: 0, reason: None, finished: true });
    assert!(matches!(Writer::create(dir.path(), 4096, Nanos(0)), Err(Error::Io { .. })), "never overwritten");
}

#[test]
fn a_log_without_its_end_is_read_and_said_to_be_unfinished() {
    let dir = tempfile::tempdir().unwrap();
    let (blocks, end) = read(&written(dir.path(), false)).unwrap();
    assert_eq!((blocks.len(), end.finished, end.unreadable_bytes), (10, false, 0));
}

#[test]
fn every_cut_leaves_the_blocks_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let whole = written(dir.path(), true);
    let mut ends = vec![HEADER];
    for p in payloads() {
        ends.push(ends.last().unwrap() + BLOCK_HEADER + p.len());
    }
    // Around each boundary, and some places between.
    let cuts = ends.iter().flat_map(|e| [e.saturating_sub(1), *e, e + 1, e + 19, e + 20]);
    for cut in cuts.filter(|c| *c < whole.len()) {
        let Ok((blocks, end)) = read(&whole[..cut]) else {
            assert!(cut < HEADER);
            continue;
        };
        let good = ends.iter().filter(|e| **e <= cut).count() - 1;
        assert_eq!(blocks.len(), good, "cut at {cut}");
        assert_eq!(end.unreadable_bytes as usize, cut - ends[good]);
        assert!(!end.finished && (end.reason.is_some() == (cut > ends[good])));
    }
}

#[test]
fn a_flipped_bit_ends_the_log_at_its_block() {
    let dir = tempfile::tempdir().unwrap();
    let whole = written(dir.path(), true);
    for at in (0..200).chain((200..whole.len()).step_by(40_009)) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        match read(&bytes) {
            Ok((blocks, end)) => {
                assert!(at >= HEADER && end.unreadable_bytes > 0 && !end.finished, "bit in byte {at}");
                let expected = payloads();
                assert!(blocks.iter().zip(&expected).all(|(b, p)| b.payload == *p));
            }
            Err(e) => assert!(at < HEADER, "byte {at}: {e}"),
        }
    }
}

#[test]
fn a_later_version_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = written(dir.path(), true);
    bytes[8] = 9;
    let said = read(&bytes).unwrap_err().to_string();
    assert!(said.contains("version 9") && said.contains("version 1"), "{said}");
}

#[test]
fn a_killed_writer_has_written_all_but_its_buffer() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Writer::create(dir.path(), 4096, Nanos(77)).unwrap();
    for _ in 0..100 {
        log.append(1, &[7; 10_000]).unwrap();
    }
    let on_disk = || std::fs::metadata(dir.path().join(NAME)).unwrap().len();
    assert!(log.bytes() - on_disk() <= BUFFER as u64);
    // Age counts too: after a tick nothing is held.
    log.append(2, &[1]).unwrap();
    std::thread::sleep(FLUSH_AFTER);
    log.tick().unwrap();
    assert_eq!(log.bytes(), on_disk());
    // As after kill -9: no destructor runs.
    std::mem::forget(log);
    let mut log = Reader::open(dir.path()).unwrap();
    assert_eq!(log.by_ref().count(), 101);
}

#[test]
fn only_a_regular_file_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let real = dir.path().join("real");
    std::fs::write(&real, b"x").unwrap();
    std::os::unix::fs::symlink(&real, dir.path().join(NAME)).unwrap();
    assert!(matches!(Reader::open(dir.path()), Err(Error::Open(_))));
}

#[test]
fn blocks_have_a_limit() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Writer::create(dir.path(), 4096, Nanos(77)).unwrap();
    let large = vec![0; MAX_PAYLOAD as usize + 1];
    assert!(matches!(log.append(0, &large), Err(Error::BlockTooLarge { .. })));
    log.append(0, &large[1..]).unwrap();
    log.finish().unwrap();
    assert_eq!(Reader::open(dir.path()).unwrap().count(), 1);
}
