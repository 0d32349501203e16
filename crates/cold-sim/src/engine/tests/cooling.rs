//! Processors that sleep while a disk is waited for compute longer afterwards.

use cold_model::Cooling;

use super::*;

const LAW: Cooling = Cooling { most_ns: 600 * US, sleep_ns: 3 * MS, work_ns: MS };

fn world() -> World {
    let mut world = World::new(1);
    world.machine.costs = Costs { cooling: LAW, ..Costs::NONE };
    world
}

#[test]
fn a_wait_costs_by_its_length_and_by_the_work_behind_it() {
    let mut world = world();
    for (wait, work) in [(MS / 10, 10 * MS), (MS, 10 * MS), (8 * MS, 10 * MS), (8 * MS, MS / 5)] {
        world.model.latency_ns = wait;
        let outcome = world.run(&[at_once(vec![touch(0, 5), Step::Compute(work)])]);
        let owed = LAW.pays(LAW.slept(0.0, wait), work).floor() as u64;
        assert_eq!(outcome.time_ns, wait + owed + work);
        assert_eq!(ns(&outcome.tasks[0], Kind::Reading), owed);
        assert_eq!(ns(&outcome.tasks[0], Kind::Computing), work);
    }
}

#[test]
fn work_in_pieces_pays_what_it_pays_in_one() {
    let world = world();
    let piece = |n: u64| vec![Step::Compute(4 * MS / n); n as usize];
    let time = |n| world.run(&[at_once([vec![touch(0, 5)], piece(n)].concat())]).time_ns;
    for n in [2, 10, 400] {
        assert!(time(n).abs_diff(time(1)) <= n, "{n}");
    }
}

#[test]
fn a_processor_that_another_task_uses_does_not_sleep() {
    let world = world();
    let busy = at_once(vec![Step::Compute(20 * MS)]);
    let outcome = world.run(&[at_once(vec![touch(0, 5), Step::Compute(MS)]), busy]);
    assert_eq!(ns(&outcome.tasks[0], Kind::Reading), 0);
    assert_eq!(outcome.time_ns, 21 * MS);
}

#[test]
fn sleep_of_the_programs_own_is_in_its_recorded_computing() {
    let mut world = world();
    world.machine.processors = 2;
    let outcome = world.run(&[at_once(vec![Step::Sleep(50 * MS), Step::Compute(MS)])]);
    assert_eq!(outcome.time_ns, 51 * MS);
    // One who sleeps while another one waits for the disk was not seen to do so with that disk.
    let reader = at_once(vec![Step::Compute(20 * MS), touch(0, 5), Step::Signal(Event(1))]);
    let waiter = at_once(vec![Step::Await(Event(1)), Step::Compute(30 * MS)]);
    let outcome = world.run(&[waiter, reader]);
    let owed = LAW.pays(LAW.slept(0.0, MS), 30 * MS).floor() as u64;
    assert_eq!(outcome.time_ns, 21 * MS + owed + 30 * MS);
}
