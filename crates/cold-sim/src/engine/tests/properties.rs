//! What holds for every start.

use proptest::prelude::*;

use super::*;
use crate::disk::Preset;
use crate::engine::replay::Blocks;

const FILES: u32 = 3;
const EVENTS: u32 = 6;

/// Kind of a step, and two numbers for it.
fn step() -> impl Strategy<Value = (u8, u64, u64)> {
    (0_u8..6, 0_u64..2 * MS, 0_u64..1000)
}

/// Tasks that cannot get stuck: task n signals event n at its end, and awaits only events of earlier ones.
fn tasks(given: &[Vec<(u8, u64, u64)>]) -> Vec<Task> {
    let task = |(n, steps): (usize, &Vec<(u8, u64, u64)>)| {
        let step = |(kind, a, b): &(u8, u64, u64)| match kind {
            0 | 1 => Step::Compute(*a),
            2 => touch((*a % u64::from(FILES)) as u32, *b),
            3 => will_need((*a % u64::from(FILES)) as u32, *b, a % 100),
            4 if n > 0 => Step::Await(Event((*a % n as u64) as u32)),
            4 => Step::Compute(1),
            _ => Step::Sleep(*a),
        };
        let mut steps: Vec<Step> = steps.iter().map(step).collect();
        steps.push(Step::Signal(Event(n as u32)));
        at_once(steps)
    };
    given.iter().enumerate().map(task).collect()
}

fn computing(task: &Task) -> u64 {
    task.steps.iter().map(|s| if let Step::Compute(ns) = s { *ns } else { 0 }).sum()
}

fn world(preset: usize, processors: usize, window: u64) -> World {
    let mut world = World::new(FILES);
    world.model = Preset::ALL[preset].model();
    world.machine = Machine { processors, costs: Costs::default() };
    world.cache = world.cache.with_window(window);
    world
}

proptest! {
    #[test]
    fn times_add_up_and_are_never_below_the_least(
        given in prop::collection::vec(prop::collection::vec(step(), 0..40), 1..EVENTS as usize),
        preset in 0..Preset::ALL.len(),
        processors in 1_usize..5,
        window in 1_u64..64,
        helped in any::<bool>(),
    ) {
        let world = world(preset, processors, window);
        let tasks = tasks(&given);
        let steps = (0..FILES).map(|n| PlanStep::Read {
            file: FileId(n), open: OpenId(100 + n), first: 0, pages: 500, blocks: Blocks::default(), critical: n == 0,
        });
        let plan = Replay {
            steps: steps.collect(),
            blocks: Vec::new(),
            threads: 2,
            lookup_threads: 0,
            chunk_pages: 64,
            in_flight_pages: 256,
            gate: Gate::Issued,
            opens: Event(77),
        };
        let outcome = world.try_run(&tasks, helped.then_some(&plan)).expect("an outcome");
        adds_up(&outcome);
        prop_assert_eq!(&outcome, &world.try_run(&tasks, helped.then_some(&plan)).expect("an outcome"));
        // The processors' work, of all tasks and of the one with most.
        let kinds = [Kind::Computing, Kind::Reading];
        let everybody = outcome.tasks.iter().chain(&outcome.helpers);
        let busy: u64 = everybody.map(|t| kinds.iter().map(|k| t.times.of(*k)).sum::<u64>()).sum();
        prop_assert!(busy <= outcome.time_ns * processors as u64);
        for (task, times) in tasks.iter().zip(&outcome.tasks) {
            prop_assert_eq!(times.times.of(Kind::Computing), computing(task));
        }
        // The disk's work: what came before the end passed its bus, and its limits let it in.
        let came = || outcome.sent.iter().filter(|s| s.done_ns <= outcome.time_ns);
        let bytes: u64 = came().map(|s| s.bytes).sum();
        if let Some(bandwidth) = world.model.bandwidth {
            prop_assert!(u128::from(bytes) * 1_000_000_000 / u128::from(bandwidth)
                <= u128::from(outcome.time_ns) + came().count() as u128);
        }
        prop_assert!(came().all(|s| s.done_ns - s.sent_ns >= world.model.latency_ns));
        prop_assert!(outcome.sent.iter().all(|s| s.bytes <= world.model.request.bytes));
        // No page is read twice, and what was read is what was asked for.
        let pages: u64 = outcome.files.iter().map(FileReads::all_pages).sum();
        prop_assert!(pages <= u64::from(FILES) * 1000);
        prop_assert!(outcome.bytes() <= pages * PAGE);
    }

    /// With a processor for each task nobody waits for one.
    #[test]
    fn enough_processors_are_not_waited_for(
        given in prop::collection::vec(prop::collection::vec(step(), 0..40), 1..EVENTS as usize),
    ) {
        let tasks = tasks(&given);
        let world = world(1, tasks.len(), 16);
        let outcome = world.run(&tasks);
        for task in &outcome.tasks {
            prop_assert_eq!(task.times.of(Kind::Processor), 0);
        }
        prop_assert_eq!(outcome.path.of(Kind::Processor), 0);
    }
}
