use std::path::PathBuf;

use cold_model::Dev;
use cold_model::DeviceModel;
use cold_model::io_model::AtDepth;
use proptest::prelude::*;

use super::*;
use crate::plan::*;
use crate::sample::sample;

mod strategy;
use strategy::plans;

/// Changes one field's bytes in the encoded plan and mends the checksums, so that the rules behind them
/// are reached.
fn forged(bytes: &[u8], section: usize, at: usize, value: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let start = layout::u64_at(&bytes, layout::HEADER + section * layout::ENTRY + layout::entry::OFFSET);
    let at = start as usize + at;
    bytes[at..at + value.len()].copy_from_slice(value);
    seal(&mut bytes);
    bytes
}

proptest! {
    #[test]
    fn every_plan_comes_back_as_it_was(plan in plans()) {
        let bytes = encode(&plan).unwrap();
        prop_assert_eq!(decode(&bytes).unwrap(), plan);
    }

    #[test]
    fn one_flipped_bit_is_refused(plan in plans(), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let mut bytes = encode(&plan).unwrap();
        let i = at.index(bytes.len());
        bytes[i] ^= 1 << bit;
        prop_assert!(decode(&bytes).is_err(), "byte {} bit {}", i, bit);
    }

    #[test]
    fn a_plan_cut_off_is_refused(plan in plans(), at in any::<prop::sample::Index>()) {
        let bytes = encode(&plan).unwrap();
        prop_assert!(decode(&bytes[..at.index(bytes.len())]).is_err());
    }
}

#[test]
fn every_single_bit_of_a_small_plan_counts() {
    let bytes = encode(&sample()).unwrap();
    for i in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[i / 8] ^= 1 << (i % 8);
        assert!(decode(&bytes).is_err(), "bit {i}");
    }
}

#[test]
fn a_view_gives_files_and_steps_in_place() {
    let plan = sample();
    let bytes = encode(&plan).unwrap();
    let view = View::parse(&bytes).unwrap();
    assert!(view.is_for(&plan.key));
    assert!(!view.is_for(&Key { scenario: "other".into(), ..plan.key.clone() }));
    assert!(!view.is_for(&Key { script: None, ..plan.key.clone() }));
    assert_eq!(view.steps().collect::<Vec<_>>(), plan.steps);
    let critical = plan.steps.iter().filter(|s| s.critical).count();
    assert!(critical > 0 && critical < plan.steps.len());
    assert_eq!(view.critical_steps().collect::<Vec<_>>(), plan.steps[..critical]);
    assert_eq!(view.tail_steps().collect::<Vec<_>>(), plan.steps[critical..]);
    assert_eq!(view.read_bytes(), plan.steps.iter().map(|s| u64::from(s.bytes)).sum::<u64>());
    assert_eq!(view.files().len(), plan.files.len());
    for (i, file) in plan.files.iter().enumerate() {
        let seen = view.file(i as u32).unwrap();
        assert_eq!((seen.path(), seen.kind(), seen.identity()), (&*file.path, file.kind, file.identity));
        assert_eq!(seen.path_cstr().to_bytes(), file.path.as_os_str().as_encoded_bytes());
    }
    assert!(view.file(plan.files.len() as u32).is_none());
    let other = encode(&Plan { trial: None, ..plan }).unwrap();
    assert_ne!(View::parse(&other).unwrap().id(), view.id());
}

/// A cold launch does not read the evidence, so damage there does not stop it.
#[test]
fn the_evidence_is_checked_when_it_is_read() {
    let mut bytes = encode(&sample()).unwrap();
    let last = bytes.len() - 10;
    bytes[last] ^= 1;
    let view = View::parse(&bytes).unwrap();
    assert_eq!(view.ranges().err(), Some(FormatError::Checksum("ranges")));
    assert_eq!(view.to_plan().err(), Some(FormatError::Checksum("ranges")));
}

#[test]
fn what_it_is_not_is_said() {
    let bytes = encode(&sample()).unwrap();
    let length = bytes.len() as u64;
    assert_eq!(decode(b"COLDSNAP").err(), Some(FormatError::Magic));
    assert_eq!(decode(b"").err(), Some(FormatError::Magic));
    let cut = decode(&bytes[..5]).err();
    assert_eq!(cut, Some(FormatError::Length { expected: layout::HEAD as u64, found: 5 }));
    let cut = decode(&bytes[..bytes.len() - 8]).err();
    assert_eq!(cut, Some(FormatError::Length { expected: length, found: length - 8 }));
    let long = [&bytes[..], &[0; 8]].concat();
    assert_eq!(decode(&long).err(), Some(FormatError::Length { expected: length, found: length + 8 }));
    let mut future = bytes.clone();
    future[layout::header::VERSION] = 3;
    assert_eq!(decode(&future).err(), Some(FormatError::Version(3)));
    assert!(FormatError::Version(3).to_string().contains("newer than this program"));
    let mut changed = bytes;
    changed[layout::HEAD + layout::meta::STARTS] ^= 1;
    assert_eq!(decode(&changed).err(), Some(FormatError::Checksum("facts")));
}

#[test]
fn contradictions_behind_a_right_checksum_are_refused() {
    use layout::{file, meta, range, step};
    let bytes = encode(&sample()).unwrap();
    let (facts, files, steps, ranges) = (0, 1, 2, 5);
    assert!(decode(&forged(&bytes, facts, layout::meta::STARTS, &9_u32.to_le_bytes())).is_ok());
    for (section, at, value, expected) in [
        (facts, meta::TIER, &b"E"[..], "tier"),
        (facts, meta::GATE, &[3], "choice"),
        (facts, meta::STANDING, &[3], "standing"),
        (facts, meta::EXECUTABLE + 4, &5000_u32.to_le_bytes(), "too long"),
        (facts, meta::EXECUTABLE, &u32::MAX.to_le_bytes(), "passes the end"),
        (facts, meta::PRESENT, &[0], "absent"),
        (facts, meta::TRIAL + 32, &f64::NAN.to_le_bytes(), "infinite"),
        (facts, meta::ONE_THREAD, &[2], "choice"),
        (facts, 147, &[1], "without meaning"),
        (files, file::KIND, &[9], "kind"),
        (files, file::PATH, &[1, 0, 0, 0, 18, 0, 0, 0], "not absolute"),
        (steps, step::OP, &[9], "does not exist"),
        (steps, step::FILE, &99_u32.to_le_bytes(), "its file does not exist"),
        (steps, step::OFFSET, &1_u64.to_le_bytes(), "suit its file"),
        (steps, step::FLAGS, &[0], "critical"),
        (steps, layout::STEP * 3 + step::OFFSET, &1_u64.to_le_bytes(), "whole pages"),
        (steps, layout::STEP * 3 + step::OFFSET, &((1_u64 << 63) - 4096).to_le_bytes(), "beyond the end"),
        (steps, layout::STEP * 3 + step::BYTES, &(1_u32 << 30).to_le_bytes(), "chunk"),
        (ranges, range::PAGES, &0_u32.to_le_bytes(), "no pages"),
        (ranges, range::FIRST_PAGE, &u64::MAX.to_le_bytes(), "beyond the end"),
        (ranges, range::NEED, &u64::MAX.to_le_bytes(), "in front"),
    ] {
        let message = decode(&forged(&bytes, section, at, value)).unwrap_err().to_string();
        assert!(message.contains(expected), "{message} is not about {expected}");
    }
}

#[test]
fn what_no_reader_accepts_is_not_written() {
    let with = |change: fn(&mut Plan)| {
        let mut plan = sample();
        change(&mut plan);
        encode(&plan).unwrap_err().to_string()
    };
    assert!(with(|p| p.files[0].path = "relative".into()).contains("not absolute"));
    assert!(with(|p| p.files[0].path = "/a/../b".into()).contains("\"..\""));
    assert!(
        with(|p| p.files[0].path = PathBuf::from(format!("/{}", "a".repeat(MAX_PATH)))).contains("too long")
    );
    assert!(with(|p| p.key.scenario = String::new()).contains("scenario"));
    assert!(with(|p| p.key.scenario = "two words".into()).contains("scenario"));
    assert!(with(|p| p.steps.reverse()).contains("critical"));
    assert!(with(|p| p.ranges.reverse()).contains("in front"));
    assert!(with(|p| p.learnt.tier = 'é').contains("tier"));
    assert!(with(|p| p.trial.as_mut().unwrap().ratio = -1.0).contains("negative"));
    let many = with(|p| p.files = vec![p.files[0].clone(); MAX_FILES as usize + 1]);
    assert!(many.contains("65537 files are more than a plan may have (65536)"), "{many}");
    let much = with(|p| {
        p.knobs.chunk_bytes = 1 << 30;
        let read = p.steps.iter().find(|s| s.op == Op::Read).copied().unwrap();
        p.steps = vec![Step { bytes: 1 << 30, ..read }; 65];
    });
    assert!(much.contains("bytes to be read"), "{much}");
    // A name with dots is no way up.
    let mut plan = sample();
    plan.files[0].path = "/usr/lib/..hidden/a...b".into();
    assert!(encode(&plan).is_ok());
}
