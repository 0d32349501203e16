//! Tasks that wait for each other, and for processors.

use super::*;

#[test]
fn the_path_leads_through_the_task_that_was_waited_for() {
    let mut world = World::new(1);
    world.machine.processors = 2;
    let outcome = world.run(&[
        at_once(vec![Step::Compute(MS), Step::Await(Event(1)), Step::Compute(2 * MS), Step::Ready]),
        at_once(vec![touch(0, 0), Step::Compute(4 * MS), Step::Signal(Event(1)), Step::Compute(50 * MS)]),
    ]);
    // The second: 1 ms of storage, 4 ms computing; then the first: 2 ms.
    assert_eq!(outcome.time_ns, 7 * MS);
    assert_eq!(outcome.path.of(Kind::Demand), MS);
    assert_eq!(outcome.path.of(Kind::Computing), 6 * MS);
    assert_eq!(ns(&outcome.tasks[0], Kind::Tasks), 4 * MS);
    assert_eq!(outcome.tasks[1].lived, Some((0, 7 * MS)), "the end of the start ends it");
}

#[test]
fn an_event_that_has_happened_is_not_waited_for_and_a_child_leads_to_its_parent() {
    let mut world = World::new(1);
    world.machine.processors = 2;
    let outcome = world.run(&[
        at_once(vec![touch(0, 0), Step::Signal(Event(1)), Step::Signal(Event(1)), Step::Compute(MS)]),
        on(1, vec![Step::Compute(3 * MS), Step::Await(Event(1)), touch(0, 9)]),
    ]);
    assert_eq!(outcome.tasks[1].lived, Some((MS, 5 * MS)));
    assert_eq!(outcome.path.of(Kind::Demand), 2 * MS);
    assert_eq!(outcome.path.of(Kind::Computing), 3 * MS);
}

#[test]
fn a_child_that_never_begins_has_no_times_and_holds_nothing_up_when_the_start_is_ready() {
    let world = World::new(1);
    let tasks = [at_once(vec![Step::Compute(MS), Step::Ready]), on(9, vec![Step::Compute(MS)])];
    let outcome = world.run(&tasks);
    assert_eq!((outcome.time_ns, outcome.tasks[1].lived), (MS, None));
    // Without the mark its end belongs to the start, and never comes.
    let tasks = [at_once(vec![Step::Compute(MS)]), on(9, vec![]), at_once(vec![Step::Await(Event(5))])];
    assert_eq!(world.try_run(&tasks, None), Err(Error::Stuck { task: 1, event: 9, others: 1 }));
}

#[test]
fn fewer_processors_than_tasks_are_shared_in_slices() {
    let mut world = World::new(1);
    let tasks: Vec<Task> = (0..3).map(|_| at_once(vec![Step::Compute(10 * MS)])).collect();
    let ends =
        |outcome: &Outcome| outcome.tasks.iter().filter_map(|t| t.lived.map(|l| l.1)).collect::<Vec<_>>();
    let one = world.run(&tasks);
    assert_eq!(one.time_ns, 30 * MS);
    assert_eq!(one.tasks.iter().map(|t| ns(t, Kind::Processor)).max(), Some(20 * MS));
    // Fair: nobody is done much earlier than the last.
    assert!(ends(&one).iter().all(|end| *end > 25 * MS), "{:?}", ends(&one));
    world.machine.processors = 2;
    let two = world.run(&tasks);
    assert!((15 * MS..18 * MS).contains(&two.time_ns), "{}", two.time_ns);
    world.machine.processors = 3;
    assert_eq!(world.run(&tasks).time_ns, 10 * MS);
}

#[test]
fn who_has_slept_runs_before_those_who_compute() {
    let world = World::new(1);
    let sleeper = (0..10).flat_map(|n| [touch(0, 10 * n), Step::Compute(10 * US)]).collect();
    let outcome = world.run(&[at_once(vec![Step::Compute(100 * MS)]), at_once(sleeper)]);
    // It waited for its pages, and for the processor before its first step only.
    let waited = ns(&outcome.tasks[1], Kind::Processor);
    assert!(waited <= MS, "{waited}");
    assert_eq!(ns(&outcome.tasks[1], Kind::Demand), 10 * MS);
    // And yet it does not keep the other one out.
    assert_eq!(outcome.time_ns, 100 * MS + 100 * US);
}

#[test]
fn two_that_wake_each_other_all_the_time_leave_a_third_its_share() {
    let world = World::new(1);
    let rounds = 1000;
    let ping = |mine: u32, yours: u32| -> Task {
        let steps = (0..rounds).flat_map(|n| {
            [Step::Await(Event(2 * n + mine)), Step::Compute(50 * US), Step::Signal(Event(2 * n + yours))]
        });
        at_once(steps.collect())
    };
    // Each round is 0.1 ms of the pair.
    let first = at_once(vec![Step::Signal(Event(0))]);
    let hog = at_once(vec![Step::Compute(10 * MS)]);
    let outcome = world.run(&[first, ping(0, 1), ping(1, 2), hog]);
    let hog_ends = outcome.tasks[3].lived.map_or(0, |l| l.1);
    assert!(hog_ends < 40 * MS, "{hog_ends}: a third of the processor is 30 ms");
    assert_eq!(outcome.time_ns, 110 * MS);
}

#[test]
fn times_without_end_come_to_one() {
    let mut world = World::new(1);
    let late = || Step::Sleep(u64::MAX - 10 * MS);
    let forever = || at_once(vec![late(), Step::Compute(u64::MAX), touch(0, 0), Step::Compute(u64::MAX)]);
    let outcome = world.try_run(&[forever(), forever(), forever()], None).expect("an outcome");
    assert_eq!(outcome.time_ns, u64::MAX);
    world.machine.processors = usize::MAX;
    assert_eq!(world.run(&[at_once(vec![Step::Compute(MS)])]).time_ns, MS);
}
