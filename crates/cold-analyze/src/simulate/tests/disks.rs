//! The disk that a start is put on.

use cold_model::Cooling;
use cold_sim::disk::Preset;

use super::*;

/// Two pages 1 GiB apart, on a recorded disk of so many bytes, simulated on a disk with heads.
fn far_apart(size: Known<Bytes>) -> u64 {
    let mut r = recording();
    r.manifest.devices[0].size = size;
    for (at, page, sector) in [(10, 20, 0), (20, 60, 1 << 21)] {
        faults(&mut r, at, page, 5, 10);
        r.request(at, 5, 0, page..page + 1).sector = sector;
    }
    let start = Recorded::of(&r).unwrap();
    let model = Preset::Hdd.model();
    let setting = start.setting(&start.today(), &model, None).unwrap();
    let setting = Setting { policy: Policy::Nothing, ..setting };
    let sent = start.simulate(&setting).unwrap().outcome.sent;
    assert_eq!(sent.len(), 2);
    sent[1].done_ns - sent[1].sent_ns
}

#[test]
fn heads_move_as_far_as_the_recorded_places_lie_apart_on_the_recorded_disk() {
    // 1 ms, 5.6 ms times the root of the part of the disk, half a turn, the controller, the bytes of a page.
    let way = |part: f64| ((1.0 + 5.6 * part.sqrt() + 4.17 + 0.05) * 1e6) as u64 + 40_960;
    assert!(far_apart(Known::Value(Bytes(4 << 30))).abs_diff(way(0.25)) < 1000);
    assert!(far_apart(Known::Value(Bytes(256 << 30))).abs_diff(way(1.0 / 256.0)) < 1000);
    assert!(far_apart(Known::unknown("not told")).abs_diff(way(1.0 / 64.0)) < 1000);
    // A size that the places contradict is none.
    assert!(far_apart(Known::Value(Bytes(1 << 20))) < way(1.0) + 1000);
}

#[test]
fn waits_cost_by_their_length_where_that_was_measured() {
    let mut r = recording();
    faults(&mut r, 10, 5, 20, 10);
    let mut start = Recorded::of(&r).unwrap();
    let law = Cooling { most_ns: 2 * MS, sleep_ns: 3 * MS, work_ns: MS };
    start.cool(law);
    let model = Model { latency_ns: 8 * MS, ..Model::default() };
    let time = |start: &Recorded| {
        let setting = start.setting(&start.today(), &model, None).unwrap();
        start.simulate(&Setting { policy: Policy::Nothing, ..setting }).unwrap().time.0
    };
    let longer = time(&start) - time(&Recorded::of(&r).unwrap());
    // After it the program computes 70 ms: all that the processor lost is paid.
    assert!(longer.abs_diff(law.slept(0.0, 8 * MS) as u64) < 1000, "{longer}");
}
