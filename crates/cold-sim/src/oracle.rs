//! A helper that knows what will be needed: exactly these pages, in the order of their first need, as many in flight
//! as the disk takes. What no read-ahead and no plan that keeps this order can beat by much.
//!
//! It is no strict bound: a disk that serves in order of arrival can be faster with another order, and where
//! requests are dear a hole read along is cheaper than exactness. `cold_prefetch::bound` is one.

use std::collections::BTreeSet;

use crate::disk::{Disk, Layout};
use crate::engine::{Blocks, Costs, Error, Event, Gate, Input, Machine, PlanStep, Replay, run};
use crate::names::Names;
use crate::op::{Access, FileId, Op, OpenId, PageCache, PageRead, Progress};

/// Open files of the helper count from here down.
const OPENS: u32 = u32::MAX;

/// The plan of such a helper for a program: its needs are taken from a start in which nothing has to be read, on so
/// many processors. Needed pages that are neighbours on a file are asked for together, in reads of at most
/// `most_pages`. The program begins at once, which is the event `opens`.
pub fn plan(input: &Input<'_>, processors: usize, most_pages: u64, opens: Event) -> Result<Replay, Error> {
    let mut needs = Needs::new(input.layout);
    let machine = Machine { processors, costs: Costs::NONE };
    let mut plan = Replay {
        steps: Vec::new(),
        blocks: Vec::new(),
        threads: 1,
        lookup_threads: 0,
        chunk_pages: most_pages.max(1),
        in_flight_pages: 0,
        gate: Gate::None,
        opens,
    };
    let warm: &mut [Disk] = &mut [];
    run(&Input { replay: Some(&plan), ..*input }, &machine, &mut needs, warm)?;
    plan.steps = needs.steps(most_pages.max(1));
    Ok(plan)
}

/// A cache in which everything is there, and which writes down what is needed.
#[derive(Debug)]
struct Needs<'a> {
    layout: &'a Layout,
    names: Names,
    order: Vec<(FileId, u64)>,
    known: BTreeSet<(FileId, u64)>,
}

impl<'a> Needs<'a> {
    fn new(layout: &'a Layout) -> Self {
        Self { layout, names: Names::default(), order: Vec::new(), known: BTreeSet::new() }
    }

    fn steps(mut self, most: u64) -> Vec<PlanStep> {
        let mut steps = Vec::new();
        for (file, page) in std::mem::take(&mut self.order) {
            if !self.known.remove(&(file, page)) {
                continue;
            }
            let mut end = page.saturating_add(1);
            while end - page < most && self.known.remove(&(file, end)) {
                end += 1;
            }
            let mut first = page;
            while first > 0 && end - first < most && self.known.remove(&(file, first - 1)) {
                first -= 1;
            }
            let open = OpenId(OPENS.saturating_sub(file.0));
            steps.push(PlanStep::Read {
                file,
                open,
                first,
                pages: end - first,
                blocks: Blocks::default(),
                critical: false,
            });
        }
        steps
    }
}

impl PageCache for Needs<'_> {
    fn access(&mut self, op: &Op, _: &mut Progress, _: &mut Vec<PageRead>) -> Access {
        self.names.hear(op);
        if let Some((file, pages)) = self.names.needed(op, self.layout) {
            for page in pages {
                if self.known.insert((file, page)) {
                    self.order.push((file, page));
                }
            }
        }
        Access::Done
    }

    fn arrived(&mut self, _: &PageRead) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cache;
    use crate::disk::{Limit, Model, Unit};
    use crate::engine::{Outcome, Step, Task, TaskStart};
    use crate::op::MapId;

    const PAGE: u64 = 4096;
    const MS: u64 = 1_000_000;

    /// Opens and maps file 0 as number 0, then touches each page after a millisecond.
    fn program(pages: &[u64]) -> [Task; 1] {
        let (open, map) = (OpenId(0), MapId(0));
        let mut steps = vec![
            Step::Access(Op::Open { open, file: FileId(0) }),
            Step::Access(Op::Map { map, open, address: 0, first: 0, pages: 1000, exec: false }),
        ];
        let touch = |page: &u64| Step::Access(Op::Touch { map, page: *page, write: false });
        steps.extend(pages.iter().flat_map(|page| [Step::Compute(MS), touch(page)]));
        [Task { start: TaskStart::AtOnce, steps }]
    }

    fn layout() -> Layout {
        let mut layout = Layout::new(PAGE);
        layout.add(0, 1000 * PAGE, None);
        layout
    }

    fn read(first: u64, pages: u64) -> PlanStep {
        PlanStep::Read {
            file: FileId(0),
            open: OpenId(OPENS),
            first,
            pages,
            blocks: Blocks::default(),
            critical: false,
        }
    }

    fn simulate(tasks: &[Task], layout: &Layout, model: Model, replay: Option<&Replay>) -> Outcome {
        let input = Input { tasks, replay, layout };
        let machine = Machine { processors: 2, costs: Costs::NONE };
        let mut disks = [Disk::new(model, 1 << 30, 0)];
        run(&input, &machine, &mut Cache::exact(layout), &mut disks).expect("an outcome")
    }

    #[test]
    fn it_asks_for_what_is_needed_once_and_in_order() {
        let layout = layout();
        let input =
            Input { tasks: &program(&[500, 7, 8, 500, 6, 501, 9, 2000]), replay: None, layout: &layout };
        let steps = |most| plan(&input, 1, most, Event(0)).map(|p| p.steps);
        assert_eq!(steps(100), Ok(vec![read(500, 2), read(6, 4)]));
        assert_eq!(steps(2), Ok(vec![read(500, 2), read(7, 2), read(6, 1), read(9, 1)]));
        // One that waits for a gate is let in.
        let [task] = program(&[3]);
        let tasks = [Task { start: TaskStart::On(Event(5)), ..task }];
        let input = Input { tasks: &tasks, replay: None, layout: &layout };
        assert_eq!(plan(&input, 1, 9, Event(5)).map(|p| p.steps), Ok(vec![read(3, 1)]));
    }

    #[test]
    fn bytes_are_needed_up_to_the_end_of_the_file() {
        let layout = layout();
        let open = OpenId(3);
        let read_at = |offset, bytes| Step::Access(Op::Read { open, offset, bytes });
        let steps = vec![
            Step::Access(Op::Open { open, file: FileId(0) }),
            read_at(998 * PAGE + 1, 10 * PAGE),
            read_at(3 * PAGE, 0),
            read_at(PAGE - 1, 2),
        ];
        let tasks = [Task { start: TaskStart::AtOnce, steps }];
        let input = Input { tasks: &tasks, replay: None, layout: &layout };
        assert_eq!(plan(&input, 1, 9, Event(0)).map(|p| p.steps), Ok(vec![read(998, 2), read(0, 2)]));
    }

    #[test]
    fn the_start_takes_what_the_disk_takes_or_what_it_computes() {
        let layout = layout();
        let pages: Vec<u64> = (0..100).map(|n| n * 7 % 100 * 10).collect();
        let tasks = program(&pages);
        let input = Input { tasks: &tasks, replay: None, layout: &layout };
        let oracle = plan(&input, 2, 128, Event(0)).expect("a plan");
        let time = |per_second, replay| {
            let limit = Limit { unit: Unit::Requests { of: u64::MAX }, per_second, burst: 1 };
            let model = Model { limits: vec![limit], ..Model::default() };
            simulate(&tasks, &layout, model, replay).time_ns / MS
        };
        // 10 ms per request: the disk decides, with and without.
        assert_eq!((time(100, None), time(100, Some(&oracle))), (991, 990));
        // 0.2 ms: computing decides, where reading does not come on top.
        let slow = Model { latency_ns: 5 * MS, ..Model::default() };
        assert_eq!(simulate(&tasks, &layout, slow.clone(), None).time_ns, 600 * MS);
        assert_eq!(simulate(&tasks, &layout, slow, Some(&oracle)).time_ns, 104 * MS);
    }
}
