//! The model of Linux' page cache against the running kernel. More operations, another seed, another disk:
//! `COLD_VERIFY_CASES`, `COLD_VERIFY_OPERATIONS`, `COLD_VERIFY_SEED`, `COLD_VERIFY_DIR`.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)] // the lints know only functions marked as tests

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use cold_journal::Journal;
use cold_probe::Error;
use cold_probe::subject::ProbeTarget;
use cold_probe::verify::{Ground, Parts, Verified, VerifyEffort, Watch, verify};
use cold_sim::{LinuxVersion, Policy};
use cold_sys::procfs::ProcFs;

/// The last is aligned to a page, the others are not.
const BYTES: [u64; 5] = [(4 << 20) + 100, 700 << 10, (40 << 10) + 1, 4096, 16 << 20];

/// Mappings lie where the operations say: two series at once would be in each other's way.
static ALONE: Mutex<()> = Mutex::new(());

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Compares; `None` where the directory lies on no disk. Once more where somebody sets the disk meanwhile.
fn compared(policies: &[Policy], cases: u64, parts: Parts) -> Option<Verified> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let place = std::env::var("COLD_VERIFY_DIR").unwrap_or_else(|_| "/var/tmp".to_owned());
    let effort = VerifyEffort {
        cases: number("COLD_VERIFY_CASES", cases),
        operations: number("COLD_VERIFY_OPERATIONS", 200),
        seed: number("COLD_VERIFY_SEED", 1),
        parts,
    };
    let state = tempfile::tempdir().unwrap();
    let journal = Journal::open_in(state.path());
    let target = ProbeTarget::Directory(place.into());
    for _ in 0..10 {
        let never = AtomicBool::new(false);
        let watch = Watch { interrupt: &never, begins: &mut |_| {} };
        let ground = Ground::new(&target, &BYTES, &journal);
        match ground.and_then(|ground| verify(&ground, policies, effort, watch)) {
            Ok(verified) => return Some(verified),
            Err(Error::Reset { .. }) => {}
            Err(Error::Subject { why, .. }) if std::env::var("CI").is_err() => {
                println!("SKIPPED: {why}");
                return None;
            }
            Err(e) => panic!("{e}"),
        }
    }
    panic!("read-ahead was set during each try");
}

fn own_version() -> LinuxVersion {
    LinuxVersion::of_release(ProcFs::default().sysctl("kernel.osrelease").unwrap().trim())
}

fn assert_is_followed(verified: &Verified, version: LinuxVersion) {
    let own = verified.followed.iter().find(|f| f.policy == Policy::Linux(version)).unwrap();
    println!(
        "{:?}: {} operations, {} by timing, {} series differ, {} void",
        own.policy,
        own.operations,
        own.timing,
        own.differences.len(),
        verified.void
    );
    for difference in &own.differences {
        println!("{difference:?}");
    }
    assert_eq!(own.differences, []);
    assert!(own.operations > 1000, "{own:?}");
}

#[test]
fn advice_on_parts_of_mappings_does_what_the_model_says() {
    let version = own_version();
    let Some(verified) = compared(&[Policy::Linux(version)], 25, Parts::Always) else { return };
    assert_is_followed(&verified, version);
}

#[test]
fn the_running_kernel_does_what_the_model_of_its_version_says_and_no_other() {
    let Some(verified) = compared(&Policy::ALL, 25, Parts::Never) else { return };
    let version = own_version();
    assert_is_followed(&verified, version);
    // What is new in 7 shows after a hundred misses and at ends of files, what is new in 6.18 in large folios only.
    let place = |version| LinuxVersion::ALL.iter().position(|v| *v == version).unwrap();
    let alike = |policy| match policy {
        Policy::Linux(other) => place(other).abs_diff(place(version)) <= 1,
        _ => false,
    };
    let follows = verified.follows();
    assert!(follows.iter().all(|p| alike(*p)), "{follows:?}");
}

#[test]
fn an_interrupt_leaves_what_was_compared_and_no_file() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let state = tempfile::tempdir().unwrap();
    let journal = Journal::open_in(state.path());
    let target = ProbeTarget::Directory(dir.path().to_owned());
    let ground = match Ground::new(&target, &BYTES, &journal) {
        Ok(ground) => ground,
        Err(Error::Subject { why, .. }) if std::env::var("CI").is_err() => {
            println!("SKIPPED: {why}");
            return;
        }
        Err(e) => panic!("{e}"),
    };
    let interrupt = AtomicBool::new(false);
    let mut series = Vec::new();
    let mut begins = |case| {
        series.push(case);
        interrupt.store(case == 2, Ordering::Relaxed);
    };
    let watch = Watch { interrupt: &interrupt, begins: &mut begins };
    let effort = VerifyEffort { cases: 100, operations: 20, seed: 1, parts: Parts::ByTurns };
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let verified = verify(&ground, &[Policy::Linux(own_version())], effort, watch).unwrap();
    assert!(verified.interrupted);
    assert_eq!(series, [0, 1, 2], "the third series begins no operation");
    // A series counts operations up to a difference; one that others disturb five times is void.
    assert!(verified.followed[0].operations > 0 || verified.void > 0, "{verified:?}");
    drop(ground);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "its files are gone");
}
