//! How many touches a second the page cache takes, on the processor that runs it.
#![allow(clippy::print_stdout)] // a program

use std::time::Instant;

use cold_sim::op::{Access, FileId, MapId, Op, OpenId, PageCache, Progress};
use cold_sim::{Cache, LinuxVersion, Paging, Policy, SimFile};

const PAGES: u64 = 40_000;
const TOUCHES: u64 = 20_000_000;

fn main() {
    let about = SimFile { bytes: PAGES << 12, window_pages: 32, io_pages: 1024, large_folios: true };
    let mut cache = Cache::new(Policy::Linux(LinuxVersion::V6_18), Paging::default(), &[about; 4]);
    let mut reads = Vec::new();
    for n in 0..4 {
        let (open, map) = (OpenId(n), MapId(n));
        let map = Op::Map { map, open, address: 1 << 20, first: 0, pages: PAGES, exec: n % 2 == 0 };
        for op in [Op::Open { open, file: FileId(n) }, map] {
            cache.access(&op, &mut Progress::default(), &mut reads);
        }
    }
    let begun = Instant::now();
    let (mut state, mut requests) = (1_u64, 0);
    for _ in 0..TOUCHES {
        // Any numbers do; these cost next to nothing.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let op = Op::Touch { map: MapId((state >> 62) as u32), page: (state >> 20) % PAGES, write: false };
        let mut progress = Progress::default();
        while cache.access(&op, &mut progress, &mut reads) != Access::Done {
            requests += reads.len();
            reads.drain(..).for_each(|read| cache.arrived(&read));
        }
    }
    let rate = TOUCHES as f64 / begun.elapsed().as_secs_f64();
    println!("{rate:.0} touches a second, {requests} requests");
}
