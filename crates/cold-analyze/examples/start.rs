//! A recorded start simulated with the policy and the read-ahead that it was recorded with, beside what was recorded,
//! then with other windows and on other disks.

#![allow(clippy::print_stdout)] // what an example is for

use std::path::Path;
use std::time::Instant;

use cold_analyze::simulate::Recorded;
use cold_model::Bytes;
use cold_sim::disk::{Disk, Preset};
use cold_sim::engine::{Costs, Input, Kind, Machine, run};

use cold_sim::{Cache, Policy};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let name = args.next().ok_or("usage: start NAME.cold [DISK] [READ_AHEAD_KB…]")?;
    let disk = args.next().unwrap_or_else(|| "sata-ssd".to_owned());
    let recording = cold_recording::read(Path::new(&name))?;
    let start = Recorded::of(&recording)?;
    let in_tree = || recording.device_reads.iter().flatten().filter(|d| d.in_tree);
    println!(
        "recorded: {} requests, {:.1} MB, {:.0} ms; needed {:.1} MB; {} threads",
        in_tree().count(),
        in_tree().map(|d| u64::from(d.bytes)).sum::<u64>() as f64 / 1e6,
        (cold_analyze::Window::of(&recording).until.0 - recording.manifest.start.0) as f64 / 1e6,
        start.needed_pages() as f64 * f64::from(recording.manifest.page_bytes) / 1e6,
        start.tasks.len(),
    );
    let windows: Vec<u64> = args.map(|w| w.parse()).collect::<Result<_, _>>()?;
    let windows = std::iter::once(None).chain(windows.into_iter().map(Some));
    for window in windows {
        simulate(&start, start.policy, &disk, window)?;
    }
    for policy in [Policy::Windows, Policy::FreeBsd, Policy::Nothing, Policy::Whole] {
        simulate(&start, policy, &disk, None)?;
    }
    Ok(())
}

fn simulate(
    start: &Recorded,
    policy: Policy,
    disk: &str,
    window: Option<u64>,
) -> Result<(), Box<dyn std::error::Error>> {
    let files = start.files(policy, window.map(|w| Bytes(w << 10)));
    let mut cache = Cache::new(policy, cold_sim::Machine::default(), &files);
    for (file, first, pages) in &start.cached {
        cache.preload(*file, *first, *pages);
    }
    let model = Preset::named(disk).ok_or("no such disk")?.model();
    let mut disks: Vec<Disk> =
        (0..start.layout.disks()).map(|_| Disk::new(model.clone(), 1 << 40, 0)).collect();
    let machine = Machine { processors: 2, costs: Costs::default() };
    let input = Input { tasks: &start.tasks, replay: None, layout: &start.layout };
    let began = Instant::now();
    let out = run(&input, &machine, &mut cache, &mut disks)?;
    println!(
        "{policy:?} {window:?} on {disk}: {} requests, {:.1} MB, {:.0} ms, of it storage {:.0} (path), processor {:.0}, \
         timer {:.0}; took {:.2} s",
        out.sent.len(),
        out.bytes() as f64 / 1e6,
        out.time_ns as f64 / 1e6,
        out.path.storage() as f64 / 1e6,
        out.path.of(Kind::Processor) as f64 / 1e6,
        out.path.of(Kind::Timer) as f64 / 1e6,
        began.elapsed().as_secs_f64()
    );
    Ok(())
}
