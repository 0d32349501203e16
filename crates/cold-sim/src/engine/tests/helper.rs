//! A helper that replays a plan beside the program.

use super::*;
use crate::disk::Preset;
use crate::engine::replay::{Block, Blocks};

const GATE: Event = Event(u32::MAX);

fn read(first: u64, pages: u64, critical: bool) -> PlanStep {
    PlanStep::Read { file: FileId(0), open: OpenId(70), first, pages, blocks: Blocks::default(), critical }
}

fn replay(steps: Vec<PlanStep>, gate: Gate) -> Replay {
    Replay {
        steps,
        blocks: Vec::new(),
        threads: 1,
        lookup_threads: 0,
        chunk_pages: 100,
        in_flight_pages: 0,
        gate,
        opens: GATE,
    }
}

/// A millisecond per request and one at a time; the program computes 1 ms before each of its pages.
fn world() -> World {
    let mut world = World::new(1);
    world.model.channels = 1;
    world.machine.processors = 2;
    world
}

fn program(pages: &[u64]) -> Vec<Task> {
    vec![on(GATE.0, pages.iter().flat_map(|p| [Step::Compute(MS), touch(0, *p)]).collect())]
}

#[track_caller]
fn with(world: &World, tasks: &[Task], replay: &Replay) -> Outcome {
    let outcome = world.try_run(tasks, Some(replay)).expect("an outcome");
    adds_up(&outcome);
    outcome
}

#[test]
fn a_plan_in_order_of_need_overlaps_reading_with_computing() {
    let world = world();
    let tasks = program(&[0, 100, 200, 300]);
    let none = with(&world, &tasks, &replay(vec![], Gate::None));
    assert_eq!(none.time_ns, 8 * MS);
    let steps: Vec<PlanStep> = [0, 100, 200, 300].map(|p| read(p, 1, false)).to_vec();
    let outcome = with(&world, &tasks, &replay(steps.clone(), Gate::None));
    assert_eq!((outcome.time_ns, outcome.path.storage()), (4 * MS, 0));
    assert_eq!(file(&outcome, FileId(0)).pages, [0, 0, 4]);
    // The wrong order: the first page comes last.
    let outcome = with(&world, &tasks, &replay(steps.into_iter().rev().collect(), Gate::None));
    assert_eq!(outcome.time_ns, 7 * MS);
    assert_eq!(ns(&outcome.tasks[0], Kind::Advice), 3 * MS);
}

#[test]
fn the_gate_holds_the_program_back() {
    let world = world();
    let tasks = program(&[0, 100]);
    let steps = vec![read(0, 1, true), read(100, 1, true), read(500, 1, false)];
    for (gate, begins) in [(Gate::None, 0), (Gate::Issued, 0), (Gate::Arrived, 2 * MS)] {
        let outcome = with(&world, &tasks, &replay(steps.clone(), gate));
        assert_eq!(outcome.tasks[0].lived.map(|l| l.0), Some(begins), "{gate:?}");
    }
    // Where a queue is full, even asking takes time.
    let mut world = world;
    world.model.queue = 1;
    let outcome = with(&world, &tasks, &replay(steps, Gate::Issued));
    assert_eq!(outcome.tasks[0].lived.map(|l| l.0), Some(MS));
    // Nothing critical: at once; and a plan that ends opens every gate.
    let outcome = with(&world, &tasks, &replay(vec![], Gate::Arrived));
    assert_eq!(outcome.tasks[0].lived.map(|l| l.0), Some(0));
}

#[test]
fn no_more_is_in_flight_than_allowed_and_chunks_are_no_larger() {
    let world = world();
    let mut plan = replay(vec![read(0, 40, false), read(100, 5, false)], Gate::None);
    plan.chunk_pages = 10;
    plan.in_flight_pages = 20;
    let tasks = [at_once(vec![Step::Sleep(100 * MS)])];
    let outcome = with(&world, &tasks, &plan);
    let sent: Vec<_> = outcome.sent.iter().map(|s| (s.bytes / PAGE, s.sent_ns / MS)).collect();
    assert_eq!(sent, [(10, 0), (10, 0), (10, 1), (10, 2), (5, 3)]);
    assert_eq!(outcome.helpers.len(), 1);
    assert_eq!(outcome.helpers[0].lived, Some((0, 3 * MS)), "it does not wait for what it asked for last");
}

#[test]
fn threads_share_the_plan_and_the_bound() {
    let world = world();
    let steps: Vec<PlanStep> = (0..4).map(|n| read(100 * n, 10, false)).collect();
    let mut plan = replay(steps, Gate::None);
    (plan.threads, plan.in_flight_pages) = (2, 20);
    let outcome = with(&world, &[at_once(vec![Step::Sleep(100 * MS)])], &plan);
    let sent: Vec<_> = outcome.sent.iter().map(|s| (s.offset / PAGE, s.sent_ns / MS)).collect();
    // The first has taken its second step before it waits for room: threads put a plan out of order.
    assert_eq!(sent, [(256, 0), (456, 0), (356, 1), (556, 2)]);
}

#[test]
fn lookups_take_cpu_time_of_their_own_threads_or_of_those_that_read() {
    let mut world = world();
    world.machine.processors = 3;
    let look_up = PlanStep::LookUp { ns: 2 * MS, blocks: Blocks::default(), critical: true };
    let mut plan = replay(vec![look_up, read(0, 1, true)], Gate::Issued);
    let tasks = program(&[0]);
    let outcome = with(&world, &tasks, &plan);
    assert_eq!(outcome.tasks[0].lived.map(|l| l.0), Some(2 * MS));
    assert_eq!(outcome.sent[0].sent_ns, 2 * MS);
    plan.lookup_threads = 1;
    let outcome = with(&world, &tasks, &plan);
    assert_eq!(outcome.sent[0].sent_ns, 0);
    assert_eq!(outcome.tasks[0].lived.map(|l| l.0), Some(2 * MS));
    assert_eq!(outcome.time_ns, 3 * MS);
}

#[test]
fn whoever_opens_a_file_first_waits_for_each_block_of_its_name() {
    // Three blocks of a second file stand for the device. Each takes 1 ms, and the next is asked for when it has come.
    let mut world = World::new(2);
    world.machine.processors = 3;
    let block = |first| Block { file: FileId(1), first, pages: 1 };
    let blocks = Blocks { from: 1, count: 2 };
    let read =
        PlanStep::Read { file: FileId(0), open: OpenId(70), first: 0, pages: 1, blocks, critical: false };
    let plan =
        Replay { blocks: vec![block(900), block(0), block(500)], ..replay(vec![read, read], Gate::None) };
    let sent = |plan: &Replay, tasks: &[Task]| -> Vec<(u32, u64, u64)> {
        let outcome = with(&world, tasks, plan);
        // Files of unknown place lie in one piece each, 1 MiB apart.
        let begin = |file: FileId| 256 + u64::from(file.0) * (1000 + 256);
        let told = |s: &Sent| (s.of.0.0, s.offset / PAGE - begin(s.of.0), s.sent_ns / MS);
        outcome.sent.iter().map(told).collect()
    };
    let idle = [at_once(vec![Step::Sleep(100 * MS)])];
    assert_eq!(
        sent(&plan, &idle),
        [(1, 0, 0), (1, 500, 1), (0, 0, 2)],
        "the other file's blocks are not its"
    );
    // A thread that looks names up does so before; the reader finds the first block on its way, and the second one there.
    let look_up = PlanStep::LookUp { ns: 0, blocks, critical: false };
    let steps = vec![look_up, PlanStep::LookUp { ns: MS / 2, blocks, critical: false }, read];
    let ahead = Replay { steps, lookup_threads: 1, ..plan.clone() };
    assert_eq!(sent(&ahead, &idle), [(1, 0, 0), (1, 500, 1), (0, 0, 2)]);
    // The program finds them there.
    let device = Op::Read { open: OpenId(1), offset: 500 * PAGE, bytes: PAGE };
    let late = [at_once(vec![Step::Sleep(50 * MS), Step::Access(device)])];
    assert_eq!(sent(&plan, &late).len(), 3);
}

#[test]
fn who_comes_while_a_file_is_being_opened_waits_and_reads() {
    // Two threads, two steps of one file whose name takes two blocks: the second thread comes while the first waits for
    // them, and has its own page to read all the same.
    let mut world = World::new(2);
    world.machine.processors = 3;
    let blocks = Blocks { from: 0, count: 2 };
    let read = |first| PlanStep::Read {
        file: FileId(0),
        open: OpenId(70),
        first,
        pages: 1,
        blocks,
        critical: false,
    };
    let block = |first| Block { file: FileId(1), first, pages: 1 };
    let plan = Replay {
        blocks: vec![block(0), block(500)],
        threads: 2,
        ..replay(vec![read(0), read(100)], Gate::None)
    };
    let outcome = with(&world, &[at_once(vec![Step::Sleep(100 * MS)])], &plan);
    let mut of_the_file: Vec<(u64, u64)> = outcome
        .filled
        .iter()
        .filter(|f| f.read.file == FileId(0))
        .map(|f| (f.read.first, f.at_ns / MS))
        .collect();
    of_the_file.sort_unstable();
    assert_eq!(of_the_file, [(0, 2), (100, 2)]);
    let of_the_device: u64 =
        outcome.filled.iter().filter(|f| f.read.file == FileId(1)).map(|f| f.read.pages).sum();
    assert_eq!(of_the_device, 2, "the blocks come once");
}

/// The first table of docs/concepts/replay.md, measured with real launches on the test disks long before there was a
/// simulation: a program touches places of 8 KiB, evenly spread over 256 MiB, and works at each; a plan of exactly
/// these, 1 MiB in flight. What a warm start takes is computing; loop and FUSE are taken to add 0.2 ms.
#[test]
fn launches_that_were_measured_take_what_they_took() {
    let measured = [
        (Preset::SataSsd, 1000, 110, 704, 116),
        (Preset::Cloud, 600, 68, 627, 194),
        (Preset::Hdd, 200, 25, 1476, 1120),
    ];
    for (preset, places, warm, without, with_plan) in measured {
        let mut world = World::new(0);
        let pages = 65_536;
        world.layout.add(0, pages * PAGE, None);
        world.cache = Plain::new(1, pages as usize, 32);
        world.machine.processors = 2;
        world.model = preset.model().behind(200 * US, 0);
        let at = |n: u64| n * pages / places / 4 * 4;
        let steps = (0..places)
            .flat_map(|n| [Step::Compute(warm * MS / places), touch(0, at(n)), touch(0, at(n) + 1)]);
        let tasks = [on(GATE.0, steps.collect())];
        let time = |plan: Vec<PlanStep>| {
            let plan = Replay { in_flight_pages: 256, ..replay(plan, Gate::None) };
            with(&world, &tasks, &plan).time_ns / MS
        };
        let plan = || (0..places).map(|n| read(at(n), 2, false)).collect();
        eprintln!("{}: {} and {} ms", preset.name(), time(vec![]), time(plan()));
        for (is, should) in [(time(vec![]), without), (time(plan()), with_plan)] {
            assert!(is.abs_diff(should) * 10 <= should, "{}: {is} and not {should} ms", preset.name());
        }
    }
}
