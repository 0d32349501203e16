//! What of a start is still to come when it needs a page: the least time from then to ready, whoever has to be waited
//! for on the way.
//!
//! A page that comes at `a` puts ready at `a + tail` at the earliest, in whatever order the others come. So tails give
//! bounds where the order of reads is free, which the [oracle](crate::oracle) keeps. Nobody waits for a processor here,
//! and reading costs none.

use std::collections::{BTreeMap, HashMap};

use crate::disk::Layout;
use crate::engine::{Event, Step, Task, TaskStart};
use crate::names::Names;
use crate::op::FileId;

/// Pages that a task needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// The task, by its place among the tasks.
    pub task: usize,
    /// The file that they belong to.
    pub file: FileId,
    /// The first of them.
    pub first: u64,
    /// The one behind the last.
    pub end: u64,
    /// From having them to ready, nanoseconds.
    pub tail_ns: u64,
}

/// All needs that ready hangs on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tails {
    /// Of each task from its last need to its first; a page that is needed more than once is there more than once.
    pub needs: Vec<Need>,
    /// From the beginning to ready where nothing is waited for.
    pub whole_ns: u64,
}

/// The tails of a program. Open files and mappings are taken to mean the same thing all the time.
pub fn tails(tasks: &[Task], layout: &Layout) -> Tails {
    let mut walk = Walk::new(tasks, layout);
    let mut runnable: Vec<usize> = (0..tasks.len()).collect();
    while let Some(task) = runnable.pop() {
        runnable.extend(walk.back(task));
    }
    walk.out
}

/// A task from its end on.
struct Walker<'a> {
    task: &'a Task,
    /// Steps before this one are still to be passed.
    at: usize,
    /// To ready from here; `None`: nothing from here on leads there.
    tail_ns: Option<u64>,
}

#[derive(Default)]
struct Happening {
    /// Tasks that have not been passed back to where they wait for it.
    waiting: usize,
    /// Signals in the program. Of several nobody knows which one counts: then none is waited for.
    signals: usize,
    /// To ready from when it happens.
    tail_ns: Option<u64>,
    /// A task that is to be passed on when nobody waits any more.
    held: Vec<usize>,
}

struct Walk<'a> {
    layout: &'a Layout,
    names: Names,
    tasks: Vec<Walker<'a>>,
    events: HashMap<Event, Happening>,
    out: Tails,
}

impl<'a> Walk<'a> {
    fn new(tasks: &'a [Task], layout: &'a Layout) -> Self {
        let mut names = Names::default();
        let mut events: HashMap<Event, Happening> = HashMap::new();
        for task in tasks {
            if let TaskStart::On(event) = task.start {
                events.entry(event).or_default().waiting += 1;
            }
            for step in &task.steps {
                match step {
                    Step::Access(op) => names.hear(op),
                    Step::Await(event) => events.entry(*event).or_default().waiting += 1,
                    Step::Signal(event) => events.entry(*event).or_default().signals += 1,
                    _ => {}
                }
            }
        }
        let tasks = tasks.iter().map(|task| Walker { task, at: task.steps.len(), tail_ns: None }).collect();
        Self { layout, names, tasks, events, out: Tails::default() }
    }

    /// Passes a task back to its beginning, or to a signal of which it is not known yet who waits for it. Gives the
    /// tasks that can be passed on by that.
    fn back(&mut self, index: usize) -> Vec<usize> {
        let mut freed = Vec::new();
        let Some(walker) = self.tasks.get_mut(index) else { return freed };
        while let Some(step) = walker.at.checked_sub(1).and_then(|n| walker.task.steps.get(n)) {
            match step {
                Step::Ready => walker.tail_ns = Some(0),
                Step::Compute(ns) | Step::Sleep(ns) => {
                    walker.tail_ns = walker.tail_ns.map(|tail| tail.saturating_add(*ns));
                }
                Step::Access(op) => {
                    if let Some((tail_ns, (file, pages))) =
                        walker.tail_ns.zip(self.names.needed(op, self.layout))
                    {
                        self.out.needs.push(Need {
                            task: index,
                            file,
                            first: pages.start,
                            end: pages.end,
                            tail_ns,
                        });
                    }
                }
                Step::Await(event) => freed.extend(awaited(&mut self.events, *event, walker.tail_ns)),
                Step::Signal(event) => {
                    if let Some(happening) = self.events.get_mut(event) {
                        if happening.waiting > 0 {
                            happening.held.push(index);
                            return freed;
                        }
                        if happening.signals == 1 {
                            walker.tail_ns = walker.tail_ns.max(happening.tail_ns);
                        }
                    }
                }
            }
            walker.at -= 1;
        }
        match walker.task.start {
            TaskStart::AtOnce => self.out.whole_ns = self.out.whole_ns.max(walker.tail_ns.unwrap_or(0)),
            TaskStart::On(event) => freed.extend(awaited(&mut self.events, event, walker.tail_ns)),
        }
        freed
    }
}

/// A task waits for the event, with so long to ready from there. Gives those that were held back for it.
fn awaited(events: &mut HashMap<Event, Happening>, event: Event, tail_ns: Option<u64>) -> Vec<usize> {
    let happening = events.entry(event).or_default();
    happening.tail_ns = happening.tail_ns.max(tail_ns);
    happening.waiting = happening.waiting.saturating_sub(1);
    if happening.waiting == 0 { std::mem::take(&mut happening.held) } else { Vec::new() }
}

/// Pages of a file with what is still to come when they are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageTail {
    /// The first page.
    pub first: u64,
    /// The one behind the last.
    pub end: u64,
    /// Nanoseconds from then to ready.
    pub tail_ns: u64,
}

impl Tails {
    /// Pages with the greatest of their tails, by file in order.
    pub fn by_page(&self) -> BTreeMap<FileId, Vec<PageTail>> {
        let mut needs = self.needs.clone();
        needs.sort_by_key(|need| (std::cmp::Reverse(need.tail_ns), need.file, need.first));
        let mut seen: BTreeMap<FileId, cold_model::pages::LiveRuns> = BTreeMap::new();
        let mut out: BTreeMap<FileId, Vec<PageTail>> = BTreeMap::new();
        for need in needs {
            let seen = seen.entry(need.file).or_default();
            let pages = need.first..need.end;
            let new = seen.holes(&pages);
            out.entry(need.file).or_default().extend(new.into_iter().map(|p| PageTail {
                first: p.start,
                end: p.end,
                tail_ns: need.tail_ns,
            }));
            seen.insert(&pages);
        }
        for pages in out.values_mut() {
            pages.sort_unstable();
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cache;
    use crate::disk::{Disk, Model};
    use crate::engine::{Costs, Input, Machine, run};
    use crate::op::{MapId, Op, OpenId};

    const PAGE: u64 = 4096;
    const MS: u64 = 1_000_000;
    const MAP: MapId = MapId(0);

    fn layout() -> Layout {
        let mut layout = Layout::new(PAGE);
        layout.add(0, 100 * PAGE, None);
        layout
    }

    fn touch(page: u64) -> Step {
        Step::Access(Op::Touch { map: MAP, page, write: false })
    }

    /// The first task hands work to a second one and goes on; a third one serves nobody. Pages 1 to 7.
    fn program() -> Vec<Task> {
        let open = OpenId(0);
        let (made, asked, done, idle) = (Event(1), Event(2), Event(3), Event(4));
        let first = vec![
            Step::Access(Op::Open { open, file: FileId(0) }),
            Step::Access(Op::Map { map: MAP, open, address: 0, first: 0, pages: 100, exec: false }),
            touch(1),
            Step::Compute(10 * MS),
            Step::Signal(made),
            touch(2),
            Step::Compute(4 * MS),
            Step::Signal(asked),
            touch(3),
            Step::Compute(MS),
            touch(4),
            Step::Await(done),
            touch(5),
            Step::Compute(2 * MS),
            Step::Ready,
            touch(9),
        ];
        let second = vec![
            Step::Compute(MS),
            touch(6),
            Step::Await(asked),
            Step::Sleep(20 * MS),
            touch(7),
            Step::Signal(idle),
            Step::Compute(3 * MS),
            Step::Signal(done),
            touch(8),
        ];
        let third = vec![Step::Await(idle), touch(8), Step::Compute(500 * MS)];
        [(TaskStart::AtOnce, first), (TaskStart::On(made), second), (TaskStart::On(made), third)]
            .map(|(start, steps)| Task { start, steps })
            .into()
    }

    #[test]
    fn what_follows_a_page_is_the_longest_chain_from_it_to_ready() {
        let got = tails(&program(), &layout());
        let mut by_page: Vec<(u64, u64)> = got.needs.iter().map(|n| (n.first, n.tail_ns / MS)).collect();
        by_page.sort_unstable();
        // By the second task: 20 ms asleep, 3 at work, 2 after it was waited for.
        assert_eq!(by_page, [(1, 39), (2, 29), (3, 3), (4, 2), (5, 2), (6, 25), (7, 5)]);
        assert_eq!(got.whole_ns, 39 * MS);
    }

    #[test]
    fn a_page_that_comes_late_makes_ready_that_late() {
        let (layout, tasks) = (layout(), program());
        let tails = tails(&tasks, &layout);
        for need in &tails.needs {
            // All pages are there but this one, which takes a second.
            let mut cache = Cache::exact(&layout);
            cache.preload(FileId(0), 0, need.first);
            cache.preload(FileId(0), need.end, 100 - need.end);
            let model = Model { latency_ns: 1000 * MS, ..Model::default() };
            let input = Input { tasks: &tasks, replay: None, layout: &layout };
            let machine = Machine { processors: 3, costs: Costs::NONE };
            let got =
                run(&input, &machine, &mut cache, &mut [Disk::new(model, 1 << 30, 0)]).expect("an outcome");
            let came = got.sent.first().expect("a request").done_ns;
            assert_eq!(got.time_ns, came + need.tail_ns, "page {}", need.first);
        }
    }

    #[test]
    fn of_two_signals_nobody_knows_which_counts_and_circles_lead_nowhere() {
        let twice = |task: usize| {
            let mut tasks = program();
            tasks[task].steps.insert(2, Step::Signal(Event(3)));
            tails(&tasks, &layout())
        };
        // Page 7 may no longer be what is waited for.
        assert!(twice(2).needs.iter().all(|n| n.first != 7));
        let circle = [Event(1), Event(2)].map(|event| {
            let other = Event(3 - event.0);
            Task {
                start: TaskStart::AtOnce,
                steps: vec![touch(1), Step::Await(other), Step::Signal(event), Step::Ready],
            }
        });
        assert_eq!(tails(&circle, &layout()), Tails::default());
    }

    #[test]
    fn a_page_has_the_greatest_of_its_tails() {
        let need = |file, first, end, tail_ns| Need { task: 0, file: FileId(file), first, end, tail_ns };
        let needs = vec![need(0, 5, 9, 10), need(1, 5, 6, 7), need(0, 0, 6, 20), need(0, 7, 8, 30)];
        let got = Tails { needs, whole_ns: 0 }.by_page();
        let of = |id: u32| got[&FileId(id)].iter().map(|p| (p.first, p.end, p.tail_ns)).collect::<Vec<_>>();
        assert_eq!(of(0), [(0, 6, 20), (6, 7, 10), (7, 8, 30), (8, 9, 10)]);
        assert_eq!(of(1), [(5, 6, 7)]);
    }
}
