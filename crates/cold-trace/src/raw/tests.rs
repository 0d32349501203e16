mod layout;

use cold_model::Dev;

use super::{Error, Event, FILE_FULL, records};

/// A record of this kind with this body, as the kernel side writes it.
fn record(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&5_u64.to_le_bytes());
    bytes.extend_from_slice(&10_u32.to_le_bytes());
    bytes.extend_from_slice(&11_u32.to_le_bytes());
    bytes.extend_from_slice(&kind.to_le_bytes());
    bytes.extend_from_slice(&u16::try_from(24 + body.len()).unwrap().to_le_bytes());
    bytes.extend_from_slice(&1_u32.to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}

fn file(names: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend_from_slice(&42_u64.to_le_bytes());
    body.extend_from_slice(&((8_u32 << 20) + 300).to_le_bytes());
    body.extend_from_slice(&7_u32.to_le_bytes());
    body.extend_from_slice(&4096_u64.to_le_bytes());
    body.extend_from_slice(&(-1_i64).to_le_bytes());
    for word in [9_u32, 0o100_644, 1, 0, FILE_FULL] {
        body.extend_from_slice(&word.to_le_bytes());
    }
    body.extend_from_slice(&u16::try_from(names.len()).unwrap().to_le_bytes());
    body.extend_from_slice(&3_u16.to_le_bytes());
    body.extend_from_slice(b"ext4\0\0\0\0\0\0\0\0\0\0\0\0");
    body.extend_from_slice(&[0; 16]);
    assert_eq!(24 + body.len(), 112, "events.h asserts this size");
    body.extend_from_slice(names);
    body.resize(body.len().next_multiple_of(8), 0);
    record(1, &body)
}

#[test]
fn a_file_has_its_path_from_the_root_down() {
    let stream = file(b"libc.so.6\0lib\0usr\0");
    let all: Vec<_> = records(&stream).map(Result::unwrap).collect();
    let [one] = &all[..] else { panic!("{all:?}") };
    assert!(one.head.in_tree());
    assert_eq!((one.head.at, one.head.pid, one.head.tid), (5, 10, 11));
    let Event::File(file) = one.event else { panic!("{one:?}") };
    assert_eq!(file.file.dev, Dev::new(8, 300));
    assert_eq!((file.file.inode, file.file.generation, file.mtime_sec), (42, 7, -1));
    assert_eq!((file.path(), file.fs), (b"/usr/lib/libc.so.6".to_vec(), &b"ext4"[..]));
    assert_eq!(file.shown.known(), None);
}

#[test]
fn a_cut_stream_gives_what_is_whole_and_says_where_it_ends() {
    let mut stream = file(b"a\0");
    let whole = stream.len();
    stream.extend_from_slice(&file(b"b\0"));
    for cut in whole + 1..stream.len() {
        let mut iterator = records(&stream[..cut]);
        assert!(iterator.next().unwrap().is_ok());
        assert_eq!(iterator.next(), Some(Err(Error::Truncated { at: whole })));
        assert_eq!(iterator.position(), whole);
        assert_eq!(iterator.next(), None);
    }
}

#[test]
fn lengths_that_do_not_fit_are_damage_and_unknown_kinds_are_skipped() {
    let mut lying = file(b"a\0");
    lying[24 + 52] = 0xff; // path_bytes
    lying[24 + 53] = 0xff;
    assert!(matches!(records(&lying).next(), Some(Err(Error::Damaged { at: 0, kind: 1, bytes: 120 }))));
    let mut odd = record(4, &[0; 8]);
    odd[18] = 31;
    assert!(matches!(records(&odd).next(), Some(Err(Error::Damaged { .. }))));
    for kind in (1..=20).filter(|kind| *kind != 6) {
        let short = record(kind, &[]);
        assert!(matches!(records(&short).next(), Some(Err(Error::Damaged { .. }))), "kind {kind}");
    }
    let mut stream = record(999, &[1; 8]);
    stream.extend_from_slice(&file(b"a\0"));
    let kinds: Vec<_> = records(&stream).map(|r| r.unwrap().head.kind).collect();
    assert_eq!(kinds, [999, 1]);
}
