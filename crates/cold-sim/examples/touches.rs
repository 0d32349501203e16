//! How many touches a second are simulated, on the processor that runs it: by the page cache alone, and as whole starts
//! (the engine, tasks that compute between their touches, a disk) with all pages cached and with none.
//!
//!     cargo run --release -p cold-sim --example touches
#![allow(clippy::print_stdout, clippy::expect_used)] // a program

use std::time::Instant;

use cold_sim::disk::{Disk, Layout, Model};
use cold_sim::engine::{Costs, Input, Machine, Step, Task, TaskStart, run};
use cold_sim::op::{Access, FileId, MapId, Op, OpenId, PageCache, Progress};
use cold_sim::{Cache, LinuxVersion, Paging, Policy, SimFile};

const PAGES: u64 = 40_000;
const FILES: u32 = 4;
const TASKS: u64 = 4;
const TOUCHES: u64 = 20_000_000;

fn main() {
    println!("{:.0} touches a second by the cache alone", alone());
    for cached in [true, false] {
        let (rate, requests) = start(cached);
        let of = if cached { "all cached" } else { "nothing cached" };
        println!("{rate:.0} touches a second in a start, {of}, {requests} requests");
    }
}

/// Files of 160 MB, each open and mapped.
fn setup() -> (Cache, Vec<Op>) {
    let about = SimFile { bytes: PAGES << 12, window_pages: 32, io_pages: 1024, large_folios: true };
    let cache = Cache::new(Policy::Linux(LinuxVersion::V6_18), Paging::default(), &[about; FILES as usize]);
    let ops = (0..FILES).flat_map(|n| {
        let (open, map) = (OpenId(n), MapId(n));
        let map = Op::Map { map, open, address: 1 << 20, first: 0, pages: PAGES, exec: n % 2 == 0 };
        [Op::Open { open, file: FileId(n) }, map]
    });
    (cache, ops.collect())
}

/// Touches at random places. Any numbers do; these cost next to nothing.
fn touches(mut state: u64) -> impl Iterator<Item = Op> {
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        Op::Touch { map: MapId((state >> 62) as u32), page: (state >> 20) % PAGES, write: false }
    })
}

fn alone() -> f64 {
    let (mut cache, setup) = setup();
    let mut reads = Vec::new();
    for op in setup {
        cache.access(&op, &mut Progress::default(), &mut reads);
    }
    let begun = Instant::now();
    for op in touches(1).take(TOUCHES as usize) {
        let mut progress = Progress::default();
        while cache.access(&op, &mut progress, &mut reads) != Access::Done {
            reads.drain(..).for_each(|read| cache.arrived(&read));
        }
    }
    TOUCHES as f64 / begun.elapsed().as_secs_f64()
}

/// Four tasks on two processors, each computing up to a microsecond before each touch.
fn start(cached: bool) -> (f64, usize) {
    let (mut cache, setup) = setup();
    if cached {
        (0..FILES).for_each(|file| cache.preload(FileId(file), 0, PAGES));
    }
    let tasks: Vec<Task> = (0..TASKS)
        .map(|n| {
            let opens = setup.iter().filter(|_| n == 0).map(|op| Step::Access(*op));
            let steps = touches(n).take((TOUCHES / TASKS) as usize).enumerate();
            let steps = steps.flat_map(|(i, op)| [Step::Compute(i as u64 % 1000), Step::Access(op)]);
            Task { start: TaskStart::AtOnce, steps: opens.chain(steps).collect() }
        })
        .collect();
    let mut layout = Layout::new(4096);
    for _ in 0..FILES {
        layout.add(0, PAGES << 12, None);
    }
    let model = Model { latency_ns: 100_000, ..Model::default() };
    let mut disks = [Disk::new(model, (u64::from(FILES) * PAGES) << 12, 0)];
    let machine = Machine { processors: 2, costs: Costs::default() };
    let begun = Instant::now();
    let input = Input { tasks: &tasks, replay: None, layout: &layout };
    let outcome = run(&input, &machine, &mut cache, &mut disks).expect("every task ends");
    (TOUCHES as f64 / begun.elapsed().as_secs_f64(), outcome.sent.len())
}
