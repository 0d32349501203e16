mod cache;
mod cooling;
mod costs;
mod depends;
mod helper;
mod properties;

use crate::disk::{Disk, Layout, Model};
use crate::op::{FileId, MapId, Op, OpenId};

use super::*;
use cache::Plain;

const PAGE: u64 = 4096;
const MS: u64 = 1_000_000;
const US: u64 = 1_000;

/// Files of 1000 pages on one disk, the n-th open as n and mapped as n.
struct World {
    layout: Layout,
    model: Model,
    cache: Plain,
    machine: Machine,
}

impl World {
    /// One processor, reading takes no CPU time, a request 1 ms, whatever it is; misses read single pages.
    fn new(files: u32) -> Self {
        let mut layout = Layout::new(PAGE);
        for _ in 0..files {
            layout.add(0, 1000 * PAGE, None);
        }
        Self {
            layout,
            model: Model { latency_ns: MS, ..Model::default() },
            cache: Plain::new(files, 1000, 1),
            machine: Machine { processors: 1, costs: Costs::NONE },
        }
    }

    fn try_run(&self, tasks: &[Task], replay: Option<&Replay>) -> Result<Outcome, Error> {
        let mut disks = [Disk::new(self.model.clone(), 1 << 30, 0)];
        run(
            &Input { tasks, replay, layout: &self.layout },
            &self.machine,
            &mut self.cache.clone(),
            &mut disks,
        )
    }

    #[track_caller]
    fn run(&self, tasks: &[Task]) -> Outcome {
        let outcome = self.try_run(tasks, None).expect("an outcome");
        adds_up(&outcome);
        outcome
    }
}

/// Each task's time, and the whole time, are divided without a remainder.
#[track_caller]
fn adds_up(outcome: &Outcome) {
    for task in outcome.tasks.iter().chain(&outcome.helpers) {
        assert_eq!(task.lived.map_or(0, |(from, to)| to - from), task.times.total(), "{task:?}");
    }
    assert_eq!(outcome.path.total(), outcome.time_ns, "{:?}", outcome.path);
    assert_eq!(outcome.path.of(Kind::Tasks), 0);
}

fn at_once(steps: Vec<Step>) -> Task {
    Task { start: TaskStart::AtOnce, steps }
}

fn on(event: u32, steps: Vec<Step>) -> Task {
    Task { start: TaskStart::On(Event(event)), steps }
}

fn touch(file: u32, page: u64) -> Step {
    Step::Access(Op::Touch { map: MapId(file), page, write: false })
}

fn will_need(file: u32, first: u64, pages: u64) -> Step {
    Step::Access(Op::WillNeed { open: OpenId(file), first, pages })
}

fn ns(task: &TaskTimes, kind: Kind) -> u64 {
    task.times.of(kind)
}

fn file(outcome: &Outcome, id: FileId) -> FileReads {
    outcome.files[id.0 as usize]
}
