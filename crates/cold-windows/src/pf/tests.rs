use proptest::prelude::*;

use super::sample::{packed, small, write};
use super::*;
use crate::Error;

fn name(most: usize) -> impl Strategy<Value = Name> {
    // Unpaired surrogates are names, too.
    prop::collection::vec(prop_oneof![1..0xd800_u16, 0xd800..0xe000_u16, 0xe000..=0xffff_u16], 0..most)
        .prop_map(Name)
}

fn page(version: Version) -> impl Strategy<Value = Page> {
    (any::<u32>(), any::<u8>(), any::<u8>(), any::<u8>(), 0..1_u32 << 24).prop_map(
        move |(at, flags, used, prefetched, phases)| {
            let (old, newest) = (version == Version::V17, version.number() >= 30);
            let told = (0..8).filter(|n| phases >> (3 * n) & 7 != 7).fold(0, |used, n| used | 1 << n);
            Page {
                offset: if old { at.into() } else { u64::from(at) * 512 },
                flags: if old { flags & 7 } else { flags },
                used: if newest { told } else { used },
                prefetched: (!newest).then_some(prefetched),
                phases: newest.then_some(phases),
            }
        },
    )
}

prop_compose! {
    fn file(version: Version)(
        name in name(20), flags in any::<u32>(), to_prefetch in any::<u32>(), reference in any::<u64>(),
        pages in prop::collection::vec(page(version), 0..9),
    ) -> File {
        let old = version == Version::V17;
        let (to_prefetch, reference) = ((!old).then_some(to_prefetch), (!old).then_some(reference));
        File { name, flags, to_prefetch, reference, pages }
    }
}

prop_compose! {
    fn volume()(
        device in name(20), created in any::<u64>(), serial in any::<u32>(), three in any::<bool>(),
        references in prop::collection::vec(any::<u64>(), 0..5), directories in prop::collection::vec(name(9), 0..5),
    ) -> Volume {
        Volume { device, created, serial, references_version: if three { 3 } else { 1 }, references, directories }
    }
}

prop_compose! {
    fn prefetch()(version in prop::sample::select(Version::ALL.to_vec()))(
        executable in name(30), numbers in any::<[u32; 4]>(), boot in any::<bool>(),
        times in prop::collection::vec(prop::option::of(1..u64::MAX), 8), string in prop::option::of(name(20)),
        files in prop::collection::vec(file(version), 0..6), volumes in prop::collection::vec(volume(), 0..4),
        version in Just(version),
    ) -> Prefetch {
        let [hash, run_count, threshold, directories] = numbers;
        let slots = if version >= Version::V26 { 8 } else { 1 };
        let mut p = Prefetch {
            version, size: 0, executable, hash, boot, run_times: times[..slots].to_vec(), run_count, threshold,
            directories: (version != Version::V17).then_some(directories),
            hash_string: string.filter(|_| version >= Version::V30First),
            files, volumes,
        };
        p.size = write(&p).len() as u32;
        p
    }
}

proptest! {
    #[test]
    fn every_model_of_every_version_comes_back(p in prefetch(), crc in any::<bool>()) {
        prop_assert_eq!(Prefetch::read(&write(&p)), Ok(p.clone()));
        prop_assert_eq!(Prefetch::read(&packed(&p, crc)), Ok(p.clone()));
        // Whatever stands in it, what is worked out of it does not fail.
        let needs = p.needs();
        prop_assert!(needs.needed <= needs.known && needs.runs <= needs.needed);
        let _ = (p.hash_check(), p.executable.text());
    }

    #[test]
    fn damage_anywhere_is_an_error_or_a_file_no_larger_than_its_bytes(
        version in prop::sample::select(Version::ALL.to_vec()), at in any::<prop::sample::Index>(), value in any::<[u8; 4]>(),
    ) {
        let mut bytes = write(&small(version));
        let at = at.index(bytes.len() - 4);
        bytes[at..at + 4].copy_from_slice(&value);
        if let Ok(p) = Prefetch::read(&bytes) {
            let names: usize = p.files.iter().map(|f| 2 * f.name.0.len()).sum();
            prop_assert!(names + 8 * p.pages().count() <= bytes.len());
        }
    }
}

#[test]
fn every_cut_is_an_error() {
    for version in Version::ALL {
        let whole = write(&small(version));
        for end in 0..whole.len() {
            let cut = Prefetch::read(&whole[..end]);
            assert!(cut.is_err() || end + 4 >= whole.len(), "{version:?} {end}: {cut:?}");
        }
        let whole = packed(&small(version), false);
        for end in 0..whole.len() - 8 {
            assert!(Prefetch::read(&whole[..end]).is_err(), "{version:?} {end}");
        }
    }
}

#[test]
fn sizes_that_no_data_can_hold_and_other_compressions_are_refused() {
    let mut bytes = packed(&small(Version::V30), false);
    bytes[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(Prefetch::read(&bytes), Err(Error::Damaged { at: 4, .. })));
    bytes[3] = 3;
    assert!(matches!(Prefetch::read(&bytes), Err(Error::Damaged { at: 3, .. })));
    assert!(matches!(Prefetch::read(b"not a prefetch file"), Err(Error::Damaged { .. })));
    assert!(matches!(Prefetch::read(b""), Err(Error::Short { .. })));
}

#[test]
fn needs_count_what_enough_launches_used() {
    for version in Version::ALL {
        let needs = small(version).needs();
        // APP.EXE: 0 and 0x1000 together, 0x5000 alone; GRÖSSE.DAT: 0x200000. The two others are ignored.
        assert_eq!((needs.known, needs.needed, needs.image, needs.data), (6, 4, 3, 1), "{version:?}");
        assert_eq!((needs.stable, needs.runs, needs.requests), (2, 3, [3, 2, 2, 2]), "{version:?}");
    }
    // A page of an image that lies across two windows takes both.
    let mut p = small(Version::V30);
    p.files.truncate(1);
    p.files[0].pages.truncate(1);
    p.files[0].pages[0].offset = 0x3c00;
    assert_eq!(p.needs().requests, [2, 1, 1, 1]);
}

#[test]
fn the_hash_functions_give_the_published_values() {
    let of = |text: &str| Name::from(text).bytes();
    assert_eq!(xp(&of("\\DEVICE\\HARDDISKVOLUME1\\WINDOWS\\NOTEPAD.EXE")), 0x1895_78da);
    assert_eq!(later(&of("\\DEVICE\\HARDDISKVOLUME2\\WINDOWS\\SYSTEM32\\NOTEPAD.EXE")), 0xd841_4f97);
    for version in Version::ALL {
        let mut p = small(version);
        let input = Name::from("\\DEVICE\\HARDDISKVOLUME1\\APP\\APP.EXE");
        assert_eq!(p.hash_check(), HashCheck::Reproduced { input, number: 2 }, "{version:?}");
        p.hash ^= 0x8000_0000;
        assert_eq!(p.hash_check(), HashCheck::NotReproduced);
        p.executable = "SVCHOST.EXE".into();
        assert_eq!(p.hash_check(), HashCheck::Hosting);
        p.boot = true;
        assert_eq!(p.hash_check(), HashCheck::Boot);
    }
    let mut p = small(Version::V31);
    p.hash_string = Some("Microsoft.Windows.Shell_10.0_neutral_neutral_cw5n1h2txyewy".into());
    assert_eq!(p.hash_check(), HashCheck::Packaged);
}

#[test]
fn runs_are_apart_and_in_the_file_in_whatever_order_the_pages_stand() {
    let mut file = small(Version::V30).files.swap_remove(0);
    let mut page = file.pages[0];
    page.used = 1;
    let at = [0x1_0000, 0, 0x400, 0x1000, 0x1_0000, 0x7_f000, u64::MAX - 511];
    file.pages = at.map(|offset| Page { offset, ..page }).to_vec();
    let runs: Vec<(u64, u32)> = file.runs(0x8_0000).into_iter().map(|r| (r.first, r.pages)).collect();
    assert_eq!(runs, [(0, 2), (16, 1), (127, 1)]);
    assert_eq!(file.runs(1).len(), 1, "a file that is shorter here");
}
