//! One program and its disk: known times.

use super::*;
use crate::disk::{Limit, Preset, Unit};

#[test]
fn a_thread_alone_takes_the_sum_of_computing_and_waiting() {
    let world = World::new(1);
    let outcome = world.run(&[at_once(vec![
        Step::Compute(2 * MS),
        touch(0, 5),
        Step::Compute(3 * MS),
        touch(0, 5),
        touch(0, 6),
        Step::Sleep(7 * MS),
        Step::Ready,
        Step::Compute(100 * MS),
    ])]);
    assert_eq!(outcome.time_ns, 2 * MS + MS + 3 * MS + MS + 7 * MS);
    let task = &outcome.tasks[0];
    assert_eq!((ns(task, Kind::Computing), ns(task, Kind::Demand)), (5 * MS, 2 * MS));
    assert_eq!((ns(task, Kind::Timer), task.waits), (7 * MS, 2));
    assert_eq!(outcome.path, task.times);
    assert_eq!(outcome.bytes(), 2 * PAGE);
    let sent: Vec<_> = outcome.sent.iter().map(|s| (s.sent_ns, s.done_ns)).collect();
    assert_eq!(sent, [(2 * MS, 3 * MS), (6 * MS, 7 * MS)]);
    assert_eq!(file(&outcome, FileId(0)), FileReads { requests: 2, pages: [2, 0, 0], waited_ns: 2 * MS });
}

#[test]
fn reading_takes_cpu_time_before_the_request_and_after_the_wait() {
    let mut world = World::new(1);
    world.cache = world.cache.with_window(8);
    world.machine.costs = Costs { request_ns: 5 * US, page_ns: US, wait_ns: 3 * US, ..Costs::NONE };
    let outcome = world.run(&[at_once(vec![touch(0, 5), touch(0, 0), touch(0, 7)])]);
    assert_eq!(outcome.sent[0].sent_ns, 13 * US);
    assert_eq!(outcome.time_ns, 13 * US + MS + 3 * US);
    assert_eq!(ns(&outcome.tasks[0], Kind::Reading), 16 * US);
}

#[test]
fn two_threads_overlap_and_who_comes_second_waits_for_the_rest() {
    let mut world = World::new(1);
    world.machine.processors = 2;
    world.cache = world.cache.with_window(8);
    let outcome = world.run(&[
        at_once(vec![touch(0, 0), Step::Compute(MS)]),
        at_once(vec![Step::Compute(400 * US), touch(0, 3), Step::Compute(2 * MS)]),
    ]);
    assert_eq!(outcome.sent.len(), 1);
    assert_eq!(ns(&outcome.tasks[0], Kind::Demand), MS);
    assert_eq!(ns(&outcome.tasks[1], Kind::Ahead), 600 * US);
    assert_eq!(outcome.time_ns, 3 * MS);
    assert_eq!(outcome.path, outcome.tasks[1].times);
}

#[test]
fn what_is_still_waited_for_at_the_end_counts_up_to_it() {
    let mut world = World::new(1);
    world.machine.processors = 2;
    let ready = at_once(vec![Step::Compute(300 * US), Step::Ready]);
    let outcome = world.run(&[ready, at_once(vec![touch(0, 0)])]);
    assert_eq!(ns(&outcome.tasks[1], Kind::Demand), 300 * US);
    assert_eq!(file(&outcome, FileId(0)).waited_ns, 300 * US);
}

#[test]
fn as_many_requests_at_a_time_as_there_are_channels() {
    let mut world = World::new(1);
    world.model.channels = 2;
    let thread = |n: u64| at_once(vec![touch(0, 10 * n)]);
    let outcome = world.run(&(0..5).map(thread).collect::<Vec<_>>());
    let waited: Vec<u64> = outcome.tasks.iter().map(|t| ns(t, Kind::Demand)).collect();
    assert_eq!(waited, [MS, MS, 2 * MS, 2 * MS, 3 * MS]);
}

#[test]
fn who_finds_the_queue_full_waits_to_send() {
    let mut world = World::new(1);
    world.model.channels = 1;
    world.model.queue = 2;
    let far: Vec<Step> = (0..5).map(|n| will_need(0, 10 * n, 1)).collect();
    let outcome = world.run(&[at_once([far, vec![touch(0, 40)]].concat())]);
    let sent: Vec<u64> = outcome.sent.iter().map(|s| s.sent_ns / MS).collect();
    assert_eq!(sent, [0, 0, 1, 2, 3]);
    assert_eq!(ns(&outcome.tasks[0], Kind::Queue), 3 * MS);
    assert_eq!(ns(&outcome.tasks[0], Kind::Advice), 2 * MS);
    assert_eq!(outcome.time_ns, 5 * MS);
}

#[test]
fn an_exhausted_bucket_slows_the_start_down_to_its_rate() {
    let mut world = World::new(1);
    world.model = Model::default();
    world.model.limits = vec![Limit { unit: Unit::Requests { of: PAGE }, per_second: 1000, burst: 10 }];
    let steps = (0..50).map(|n| touch(0, 2 * n)).collect();
    let outcome = world.run(&[at_once(steps)]);
    assert_eq!(outcome.time_ns, 40 * MS);
}

#[test]
fn heads_make_backward_cost_more_than_forward_in_one_piece() {
    let mut world = World::new(1);
    world.model = Preset::Hdd.model();
    let pages = 100;
    let forward = world.run(&[at_once((0..pages).map(|n| touch(0, n)).collect())]);
    let backward = world.run(&[at_once((0..pages).rev().map(|n| touch(0, n)).collect())]);
    // One way, then each page takes the controller's 50 µs and 41 µs on the bus.
    let each = 50 * US + 40_960;
    let way = forward.time_ns - pages * each;
    assert!((5 * MS..6 * MS).contains(&way), "{way}");
    assert!(backward.time_ns > pages * 5 * MS, "{}", backward.time_ns);
}

#[test]
fn pages_that_no_disk_holds_are_there_at_once() {
    let mut world = World::new(0);
    world.layout.add(0, 1000 * PAGE, Some(&[]));
    world.cache = Plain::new(1, 1000, 4);
    let outcome = world.run(&[at_once(vec![touch(0, 3), Step::Compute(US)])]);
    assert_eq!((outcome.time_ns, outcome.sent.len()), (US, 0));
}

#[test]
fn a_read_waits_page_by_page_for_what_it_copies() {
    let world = World::new(1);
    let read = |offset, bytes| Step::Access(Op::Read { open: OpenId(0), offset, bytes });
    let outcome = world.run(&[at_once(vec![read(100, 2 * PAGE), read(0, 3 * PAGE)])]);
    assert_eq!((outcome.time_ns, outcome.sent.len()), (3 * MS, 3));
}

#[test]
fn files_on_two_disks_are_read_at_the_same_time() {
    let mut layout = Layout::new(PAGE);
    layout.add(0, 1000 * PAGE, None);
    layout.add(1, 1000 * PAGE, None);
    let model = Model { latency_ns: MS, channels: 1, ..Model::default() };
    let tasks = [at_once(vec![will_need(0, 0, 1), touch(1, 0), touch(0, 0)])];
    let input = Input { tasks: &tasks, replay: None, layout: &layout };
    let machine = Machine { processors: 1, costs: Costs::NONE };
    let disk = || Disk::new(model.clone(), 1 << 30, 0);
    let mut cache = Plain::new(2, 1000, 1);
    let outcome = run(&input, &machine, &mut cache.clone(), &mut [disk(), disk()]).expect("an outcome");
    assert_eq!(outcome.time_ns, MS);
    let missing = run(&input, &machine, &mut cache, &mut [disk()]);
    assert_eq!(missing, Err(Error::NoDisk { disk: 1, disks: 1 }));
}

/// Lets everybody wait, and reads nothing.
struct Broken;

impl crate::op::PageCache for Broken {
    fn access(
        &mut self,
        _: &Op,
        _: &mut crate::op::Progress,
        _: &mut Vec<crate::op::PageRead>,
    ) -> crate::op::Access {
        crate::op::Access::Waits { file: FileId(3), page: 7 }
    }
    fn arrived(&mut self, _: &crate::op::PageRead) {}
}

#[test]
fn a_wait_for_what_nobody_reads_is_an_error() {
    let world = World::new(1);
    let input = Input { tasks: &[at_once(vec![touch(0, 0)])], replay: None, layout: &world.layout };
    let outcome = run(&input, &world.machine, &mut Broken, &mut [Disk::new(Model::default(), 1, 0)]);
    assert_eq!(outcome, Err(Error::NotInFlight { file: 3, page: 7 }));
}
