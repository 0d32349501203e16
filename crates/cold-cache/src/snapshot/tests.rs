use proptest::prelude::*;

use super::*;

fn file(path: &str, pages: u64, runs: &[(u64, u64)]) -> SnapshotFile {
    SnapshotFile {
        path: path.into(),
        id: FileId { dev: 7, ino: 9 },
        size: pages * 4096,
        mtime: (-1, 999_999_999),
        runs: runs.iter().map(|(first, pages)| PageRun { first: *first, pages: *pages }).collect(),
    }
}

fn snapshot(files: Vec<SnapshotFile>) -> Snapshot {
    Snapshot { page_size: 4096, created: 1_790_000_000, files }
}

/// The same bytes with a checksum that fits.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let body = bytes.len() - 8;
    let sum = bytes[..body]
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
    bytes[body..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn the_bytes_of_format_1_are_fixed() {
    let bytes = snapshot(vec![file("/a", 300, &[(1, 2), (200, 100)])]).encode();
    let expected = [
        b"COLDSNAP".to_vec(),
        vec![1, 0, 0, 0, 0, 16, 0, 0],
        1_790_000_000_u64.to_le_bytes().to_vec(),
        vec![1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, b'/', b'a'],
        vec![7, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0],
        (300 * 4096_u64).to_le_bytes().to_vec(),
        (-1_i64).to_le_bytes().to_vec(),
        999_999_999_u32.to_le_bytes().to_vec(),
        vec![2, 1, 2, 0xc5, 1, 100],
    ]
    .concat();
    assert_eq!(bytes[..bytes.len() - 8], expected);
}

#[test]
fn other_kinds_versions_and_damage_are_told_apart() {
    let good = snapshot(vec![file("/a", 3, &[(0, 3)])]).encode();
    assert_eq!(Snapshot::decode(b"PK\x03\x04"), Err(CodecError::Magic));
    assert_eq!(Snapshot::decode(b""), Err(CodecError::Magic));
    let mut newer = good.clone();
    newer[8] = 2;
    assert_eq!(Snapshot::decode(&newer), Err(CodecError::Version(2)));
    let mut flipped = good.clone();
    flipped[40] ^= 1;
    assert_eq!(Snapshot::decode(&flipped), Err(CodecError::Checksum));
    for cut in 12..good.len() {
        assert!(Snapshot::decode(&good[..cut]).is_err(), "cut at {cut}");
    }
}

#[test]
fn contradictions_with_a_fitting_checksum_are_refused() {
    let invalid = |files| matches!(Snapshot::decode(&snapshot(files).encode()), Err(CodecError::Invalid(_)));
    assert!(invalid(vec![file("relative", 3, &[])]));
    assert!(invalid(vec![file("/a", 3, &[(2, 2)])]), "beyond the end");
    assert!(invalid(vec![file("/a", 9, &[(2, 2), (4, 1)])]), "touching runs");
    let mut bytes = snapshot(vec![]).encode();
    bytes[24..32].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(Snapshot::decode(&sealed(bytes)), Err(CodecError::Invalid("more files than bytes"))));
}

prop_compose! {
    fn any_file()(pages in 0_u64..5000, cuts in prop::collection::btree_set(0_u64..5000, 0..40), name in "[a-z/]{0,20}")
        -> SnapshotFile {
        let cuts: Vec<u64> = cuts.into_iter().filter(|c| *c <= pages).collect();
        let runs: Vec<(u64, u64)> =
            cuts.chunks_exact(2).map(|c| (c[0], c[1] - c[0])).collect();
        let mut file = file(&format!("/{name}"), pages, &runs);
        file.runs = file.map().runs().collect();
        file
    }
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(files in prop::collection::vec(any_file(), 0..10)) {
        let s = snapshot(files);
        prop_assert_eq!(Snapshot::decode(&s.encode()), Ok(s));
    }

    #[test]
    fn arbitrary_changes_never_panic_and_never_break_the_bounds(
        files in prop::collection::vec(any_file(), 0..4),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let mut bytes = snapshot(files).encode();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(s) = Snapshot::decode(&sealed(bytes)) {
            for f in s.files {
                prop_assert!(f.runs.last().is_none_or(|r| r.end() <= f.size.div_ceil(u64::from(s.page_size))));
            }
        }
    }
}
