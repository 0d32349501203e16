//! What was recorded beside what is simulated.

use super::*;

#[test]
fn what_was_recorded_is_counted_as_the_model_counts_it() {
    let mut r = recording();
    let file = 0;
    r.fault(10, 10, file, 50, 34..66);
    let observed = |r: &Recording| {
        let seen = Observed::of(r, &crate::replay(r));
        (seen.requests, seen.read, seen.time)
    };
    let all = (Some(1), Some(Bytes(32 * 4096)), Some(Nanos(100 * MS)));
    assert_eq!(observed(&r), all);
    let model = Recorded::of(&r).unwrap().as_recorded(&[], &Model::default()).unwrap();
    assert_eq!((model.requests, model.read), (1, Bytes(32 * 4096)));
    // Read past the cache, into the memory of the program.
    r.request(20, 5, file, 70..90);
    // A hole: nothing asks a disk for it.
    r.fill(30, file, 90..95, FillCause::BufferedRead);
    // Somebody else's, and one behind ready.
    r.request(40, 5, file, 34..66).in_tree = false;
    r.request(200, 5, file, 34..66);
    assert_eq!(observed(&r), all);
    // Pages that went and came again were read twice.
    r.fill(60, file, 34..66, FillCause::BufferedRead);
    r.request(60, 5, file, 34..66);
    assert_eq!(observed(&r), (Some(2), Some(Bytes(64 * 4096)), Some(Nanos(100 * MS))));
    r.device_reads = None;
    assert_eq!(observed(&r), (None, None, Some(Nanos(100 * MS))));
}

#[test]
fn a_start_that_was_recorded_as_usual_is_not_simulated_for_that_again() {
    let mut r = recording();
    let file = r.file("/b", 400 * 4096);
    r.fault(10, 10, file, 100, 84..116);
    let disk = Model::default();
    let rows = |start: &Recorded| start.sweep(&[], &disk, None, &[], |_| {}).unwrap();
    let of = |start: &Recorded, rows: &[sweep::Row]| start.as_recorded(rows, &disk).unwrap();
    let mut start = Recorded::of(&r).unwrap();
    let told = rows(&start);
    assert_eq!(of(&start, &told), of(&start, &[]), "the same either way");
    let marked = [sweep::Row { requests: 77, ..told[0] }];
    assert_eq!(of(&start, &marked).requests, 77, "taken, not made again");
    // The room that is asked about was not that of the recording.
    start.memory = Some(Bytes(4096));
    assert_eq!(of(&start, &marked).requests, 1);
    // The recorder had turned reading ahead off.
    r.manifest.fault_around = Known::Value(Bytes(4096));
    let start = Recorded::of(&r).unwrap();
    assert_eq!(of(&start, &marked), of(&start, &[]));
    assert_eq!(of(&start, &marked).requests, 1);
}
