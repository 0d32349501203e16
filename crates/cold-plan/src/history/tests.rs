use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;

use super::*;

fn record(n: u64) -> Record {
    Record {
        when_ns: 1_763_000_000_000_000_000 + n,
        plan: 7,
        kind: LaunchKind::Prefetched,
        mark: Some(Mark { wall_ns: 400_000_000, cpu_ns: 290_000_000, exited: false, rested: false }),
        bytes: 20 << 20,
        requests: 180,
        late: true,
    }
}

fn records() -> impl Strategy<Value = Record> {
    let kind = prop_oneof![
        Just(LaunchKind::Prefetched),
        Just(LaunchKind::Control),
        prop::sample::select(Skip::ALL).prop_map(LaunchKind::Skipped),
    ];
    let mark = any::<Option<(u64, u64, bool, bool)>>()
        .prop_map(|m| m.map(|(wall_ns, cpu_ns, exited, rested)| Mark { wall_ns, cpu_ns, exited, rested }));
    (any::<(u64, u64, u64, u32, bool)>(), kind, mark).prop_map(
        |((when_ns, plan, bytes, requests, late), kind, mark)| Record {
            when_ns,
            plan,
            kind,
            mark,
            bytes,
            requests,
            late,
        },
    )
}

proptest! {
    #[test]
    fn records_come_back(record in records()) {
        prop_assert_eq!(Record::decode(&record.encode()), Some(record));
    }

    #[test]
    fn one_flipped_bit_loses_one_record(before in records(), hit in records(), behind in records(), bit in 0..512_usize) {
        let mut damaged = hit.encode();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let bytes = [before.encode(), damaged, behind.encode()].concat();
        prop_assert_eq!(parse(&bytes), vec![before, behind]);
    }

    #[test]
    fn a_torn_record_loses_only_itself(before in records(), torn in records(), behind in records(), cut in 0..64_usize) {
        let bytes = [&before.encode()[..], &torn.encode()[..cut], &behind.encode()].concat();
        prop_assert_eq!(parse(&bytes), vec![before, behind]);
    }
}

/// Other programs and later versions read these bytes.
#[test]
fn the_bytes_stay() {
    let bytes = record(0).encode();
    assert_eq!(&bytes[..8], b"CLH1\x01\0\x05\0");
    assert_eq!(bytes[24..32], 400_000_000_u64.to_le_bytes());
    let skipped = Record { kind: LaunchKind::Skipped(Skip::Stale), mark: None, late: false, ..record(0) };
    assert_eq!(&skipped.encode()[..8], b"CLH1\x03\x04\0\0");
}

#[test]
fn a_history_is_made_where_it_is_missing_and_grows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("coldstart/plans/x-0.log");
    assert_eq!(read(&path).unwrap(), []);
    append(&path, &record(1)).unwrap();
    append(&path, &record(2)).unwrap();
    assert_eq!(read(&path).unwrap(), [record(1), record(2)]);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(path.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let trial = path.with_file_name("trial-7-0123456789abcdef").join("x-0.log");
    append(&trial, &record(3)).unwrap_err();
    assert!(!trial.parent().unwrap().exists(), "a trial that has ended does not come back");
}

#[test]
fn the_last_4096_records_stay() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x-0.log");
    let full: Vec<u8> = (0..2 * KEPT as u64 - 1).flat_map(|n| record(n).encode()).collect();
    std::fs::write(&path, full).unwrap();
    append(&path, &record(9_999)).unwrap();
    let left = read(&path).unwrap();
    assert_eq!((left.len(), left[0], left[KEPT - 1]), (KEPT, record(KEPT as u64), record(9_999)));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left behind");
    append(&path, &record(10_000)).unwrap();
    assert_eq!(read(&path).unwrap().len(), KEPT + 1);
}

#[test]
fn two_processes_append_whole_records() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x-0.log");
    std::thread::scope(|s| {
        for t in 0..4 {
            let path = &path;
            s.spawn(move || (0..100).for_each(|n| append(path, &record(t * 1000 + n)).unwrap()));
        }
    });
    assert_eq!(read(&path).unwrap().len(), 400);
    assert_eq!(path.metadata().unwrap().len(), 400 * RECORD as u64);
}

#[test]
fn a_link_a_fifo_and_an_open_file_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("target");
    std::fs::write(&target, "precious").unwrap();
    let link = dir.path().join("link.log");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    assert!(append(&link, &record(1)).is_err());
    assert_eq!(std::fs::read(&target).unwrap(), b"precious");
    let fifo = dir.path().join("fifo.log");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    assert!(append(&fifo, &record(1)).is_err());
    assert!(read(&fifo).is_err());
    let open = dir.path().join("open.log");
    std::fs::write(&open, "").unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert!(append(&open, &record(1)).unwrap_err().to_string().contains("not trusted"));
}
