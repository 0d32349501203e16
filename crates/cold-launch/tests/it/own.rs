//! A program that replays its own plan.

use std::time::Duration;

use cold_launch::{Options, Skip, replay_self};

use crate::world::{MIB, add_whole, cached, directory, evict, file, plan, save};

#[test]
fn a_thread_of_the_program_reads_its_plan() {
    let dir = directory();
    let at = dir.path().join("plan");
    let data = file(&dir.path().join("data"), 4 * MIB);
    let mut p = plan();
    add_whole(&mut p, &data, true);
    save(&p, &at);
    assert!(evict(&data), "nobody else knows the file");
    let replay = replay_self(&at, &Options::new(Vec::new())).expect("followed");
    assert!(replay.wait_critical(Duration::from_mins(1)));
    let tally = replay.join().expect("no panic");
    assert_eq!((tally.bytes, tally.calls, tally.files, tally.gone), (4 * MIB, 32, 1, 0));
    cold_testbed::until("all came", || (cached(&data) == 1024).then_some(()));
    let again = replay_self(&at, &Options::new(Vec::new()));
    assert!(matches!(again, Err(Skip::Warm)), "{again:?}");
}
