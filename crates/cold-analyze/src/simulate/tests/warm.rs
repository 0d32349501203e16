//! What a warm start tells of a cold one.

use super::*;

/// The cold start computes 40 ms where the warm one takes 20, and waits twice.
#[test]
fn a_warm_start_tells_the_work_and_the_rest_is_what_waits_cost() {
    let mut cold = recording();
    cold.manifest.ready = Some(Known::Value(ms(100)));
    for (at, page) in [(10, 5), (50, 50)] {
        faults(&mut cold, at, page, 30, 10);
        cold.stall(at, 30, StallCause::Fault);
    }
    let mut warm = recording();
    warm.manifest.ready = Some(Known::Value(ms(20)));
    warm.off_cpu = Some(Vec::new());
    let mut start = Recorded::of(&cold).unwrap();
    let warmed = start.warm(&cold, &warm, None).unwrap();
    assert!((warmed.part - 0.5).abs() < 1e-3, "{warmed:?}");
    // 10 ms for each wait: that is no cost of waiting, so it is bounded.
    assert_eq!(warmed.wait_ns, Costs::default().wait_ns + 10_000);
    assert_eq!(start.machine().costs.wait_ns, warmed.wait_ns);
    assert_eq!(whole_ms(&simulated(&start, 7)), 20 + 2 * 7);

    // Others took half the time of the recorded warm one, or half as much again: so does what it computes.
    let mut start = Recorded::of(&cold).unwrap();
    assert!((start.warm(&cold, &warm, Some(Nanos(10_000_000))).unwrap().part - 0.25).abs() < 1e-3);
    let mut start = Recorded::of(&cold).unwrap();
    assert!((start.warm(&cold, &warm, Some(Nanos(30_000_000))).unwrap().part - 0.75).abs() < 1e-3);
    assert_eq!(whole_ms(&simulated(&start, 7)), 30 + 2 * 7);

    // A start that computes less than the warm one is left as it is.
    let mut slow = warm.clone();
    slow.manifest.ready = Some(Known::Value(ms(70)));
    let mut start = Recorded::of(&cold).unwrap();
    let same = start.warm(&cold, &slow, None).unwrap();
    assert_eq!((same.part, same.wait_ns), (1.0, Costs::default().wait_ns));

    let mut start = Recorded::of(&cold).unwrap();
    assert_eq!(start.warm(&cold, &cold, None), Err(NotWarm::Cold));
    assert_eq!((read_as_cold(&cold), read_as_cold(&warm)), (true, false));
    assert_eq!(start.warm(&cold, &Recording { off_cpu: None, ..warm.clone() }, None), Err(NotWarm::NoClock));
    warm.manifest.command.push("other".into());
    assert_eq!(start.warm(&cold, &warm, None), Err(NotWarm::OtherCommand));
}

#[test]
fn each_page_that_was_read_takes_longer_at_its_first_use_but_not_behind_a_helper() {
    let mut cold = recording();
    cold.touch(10, 0, 0..80, TouchKind::Read);
    cold.fill(10, 0, 0..60, FillCause::BufferedRead);
    let mut warm = cold.clone();
    (warm.fills, warm.off_cpu) = (Some(Vec::new()), Some(Vec::new()));
    let mut start = Recorded::of(&cold).unwrap();
    let warmed = start.warm(&cold, &warm, None).unwrap();
    assert_eq!((warmed.first_uses, warmed.first_use_ns), (60, 1_500));
    let computed = start.tasks.iter().flat_map(|task| &task.steps);
    let computed: u64 = computed.map(|step| if let Step::Compute(ns) = step { *ns } else { 0 }).sum();
    assert!(computed.abs_diff(100 * MS + 60 * 1_500) < 1000, "60 of 80 were read: {computed}");
    let disk = Model::default();
    let setting = start.setting(&start.today(), &disk, None).unwrap();
    let computes =
        |helper| start.simulate(&Setting { helper, ..setting }).unwrap().outcome.path.of(Kind::Computing);
    assert!(computes(Helper::None) > 100 * MS + 75_000, "{}", computes(Helper::None));
    assert!(computes(Helper::Exact).abs_diff(100 * MS) < 1000, "{}", computes(Helper::Exact));
}

#[test]
fn a_start_was_warm_where_it_had_to_read_a_tenth_of_its_pages_at_most() {
    let mut start = recording();
    start.touch(50, 0, 10..60, TouchKind::Read);
    start.fill(5, 0, 10..15, FillCause::DemandFault);
    // A slow disk says nothing.
    start.stall(5, 90, StallCause::Fault);
    assert!(!read_as_cold(&start), "5 of 50");
    let mut wrote = start.clone();
    wrote.fill(6, 0, 15..60, FillCause::Write);
    assert!(!read_as_cold(&wrote), "what it wrote it did not read");
    start.fill(6, 0, 15..16, FillCause::DemandFault);
    assert!(read_as_cold(&start), "6 of 50");
    assert!(!read_as_cold(&Recording { fills: None, ..start.clone() }), "nobody saw it read");
    assert!(!read_as_cold(&Recording { touches: None, ..start }), "nobody saw what it needed");
}
