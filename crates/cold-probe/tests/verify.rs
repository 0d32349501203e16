//! The model of Linux' page cache against the running kernel.

use cold_journal::Journal;
use cold_probe::subject::ProbeTarget;
use cold_probe::verify::{Effort, Ground, verify};
use cold_sim::{LinuxVersion, Policy};
use cold_sys::procfs::ProcFs;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn the_running_kernel_follows_the_policy_of_its_version() {
    let place = std::env::var("COLD_VERIFY_DIR").unwrap_or_else(|_| "/var/tmp".to_owned());
    let state = tempfile::tempdir().unwrap();
    let journal = Journal::open_in(state.path());
    let target = ProbeTarget::Directory(place.into());
    let sizes = [16 << 20, (4 << 20) + 100, 700 << 10, (40 << 10) + 1, 4096];
    let ground = Ground::new(&target, &sizes, &journal).unwrap();
    let release = ProcFs::default().sysctl("kernel.osrelease").unwrap();
    let version = LinuxVersion::of_release(release.trim());
    let effort = Effort {
        cases: number("COLD_VERIFY_CASES", 20),
        operations: number("COLD_VERIFY_OPERATIONS", 200),
        seed: number("COLD_VERIFY_SEED", 1),
    };
    let outcome = verify(&ground, &[Policy::Linux(version)], effort).unwrap();
    let own = &outcome.followed[0];
    println!(
        "{version:?}: window {} pages, {} operations, {} by timing, {} cases differ, {} void",
        ground.files(own.policy)[0].window_pages,
        own.operations,
        own.timing,
        own.differences.len(),
        outcome.void
    );
    for difference in &own.differences {
        println!("{difference:?}");
    }
    assert_eq!(own.differences, []);
}
