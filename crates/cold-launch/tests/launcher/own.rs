//! A program that replays its own plan.

use std::time::Duration;

use cold_launch::{Options, Skip, replay_self};
use cold_testbed::attempts;

use crate::world::{MIB, Whole, came, evict, whole};

#[test]
fn a_thread_of_the_program_reads_its_plan() {
    let Whole { dir: _dir, data, at } = whole(4 * MIB, true, |_| {});
    let options = Options { deadline: Duration::from_mins(1), ..Options::new(Vec::new()) };
    attempts(|| {
        evict(&data);
        let replay = match replay_self(&at, &options) {
            Err(Skip::Busy(_) | Skip::Memory { .. }) => return Err("strangers are in need".to_owned()),
            other => other.expect("followed"),
        };
        assert!(replay.wait_critical(Duration::from_mins(1)));
        let tally = replay.join().expect("no panic");
        assert_eq!((tally.bytes, tally.calls, tally.files, tally.gone), (4 * MIB, 32, 1, 0));
        came(&data, 1024)?;
        match replay_self(&at, &options) {
            Err(Skip::Warm) => Ok(()),
            other => came(&data, 1024).map(|()| panic!("{other:?}")),
        }
    });
}
