//! The model against disks that keep their own account: programs whose accesses are known run on each test disk,
//! and in the simulation.
#![allow(clippy::panic)] // the lint knows only functions marked as tests

mod programs;

mod root {
    use std::sync::Mutex;

    use cold_probe::device::{DeviceEffort, measure};
    use cold_sim::disk::{Disk, Model, Preset};
    use cold_testbed::disk::{Op, Preset as OnTestbed, Request};
    use cold_testbed::{SlowDisk, attempts, needs_root};

    use crate::programs::{DISK, Truth, programs};

    const DISKS: [(Preset, OnTestbed); 3] = [
        (Preset::Hdd, OnTestbed::Hdd),
        (Preset::Cloud, OnTestbed::Cloud),
        (Preset::SataSsd, OnTestbed::SataSsd),
    ];
    /// One disk at a time: two would take each other's processors.
    static ALONE: Mutex<()> = Mutex::new(());
    /// Simulated and measured times differ by at most so much.
    const WITHIN: f64 = 0.1;
    /// The same of a disk of which only a measurement is known.
    const WITHIN_AS_MEASURED: f64 = 0.25;

    /// What the server adds at most to the model's time of a request: it is woken by a timer, on a busy machine.
    const LATE_NS: f64 = 300_000.0;

    /// Mean time of the log's requests, nanoseconds: by the model, arriving as they did, and by the log.
    fn alone(model: Model, log: &[Request]) -> (f64, f64) {
        let mut log = log.to_vec();
        log.sort_by_key(|r| r.arrival);
        let began = log.first().map_or(0, |r| r.arrival.0);
        let mut disk = Disk::new(model, DISK.0, 0);
        let mut serve = |r: &Request| {
            let arrival = r.arrival.0 - began;
            (disk.submit(arrival, r.offset, r.len.0).done_ns - arrival) as f64
        };
        let simulated: Vec<f64> = log.iter().map(&mut serve).collect();
        let took: Vec<f64> = log.iter().map(|r| (r.done.0 - r.arrival.0) as f64).collect();
        let mean = |times: &[f64]| cold_stats::mean(times).expect("requests");
        (mean(&simulated), mean(&took))
    }

    fn is_close(ratio: f64, within: f64) -> bool {
        (ratio - 1.0).abs() <= within
    }

    /// Prints the table of docs/concepts/simulation.md, too.
    #[test]
    fn known_programs_take_on_each_disk_what_the_model_says() {
        needs_root!();
        let _alone = ALONE.lock();
        eprintln!(
            "| disk | program | requests | measured ms | simulated ms | ratio | a request ms | by the model ms |"
        );
        for (preset, on_testbed) in DISKS {
            let slow = SlowDisk::create(on_testbed, DISK).expect("a test disk");
            let truth = Truth::new(&slow);
            for program in programs() {
                attempts(|| {
                    let way = truth.way(&slow);
                    let ran = truth.run(&slow, &program);
                    let simulated = truth.simulate(&program, &ran, way.model(preset.model()));
                    let log: Vec<Request> = ran.log.iter().copied().filter(|r| r.op == Op::Read).collect();
                    let mut asked: Vec<_> = log.iter().map(|r| (r.offset, r.len.0)).collect();
                    let mut told: Vec<_> = simulated.sent.iter().map(|s| (s.offset, s.bytes)).collect();
                    asked.sort_unstable();
                    told.sort_unstable();
                    if let Some(other) = asked.iter().find(|r| !truth.holds(r.0)) {
                        return Err(format!("the file system reads of itself: {other:?}"));
                    }
                    // Nothing here asks for a page again that has come, and two that ask at once get it once.
                    if let Some(again) = asked.windows(2).find(|w| w[0].0 + w[0].1 > w[1].0) {
                        return Err(format!("somebody has taken pages away: {again:?} were both read"));
                    }
                    // A program and its helper that ask for the same pages at once get some each.
                    let bytes = |all: &[(u64, u64)]| all.iter().map(|r| r.1).sum::<u64>();
                    assert_eq!(bytes(&told), bytes(&asked), "{} on {}", program.name, preset.name());
                    if program.helper.is_none() {
                        assert_eq!(told, asked, "{} on {}: request for request", program.name, preset.name());
                    }
                    let ratio = simulated.time_ns as f64 / ran.took_ns as f64;
                    let (alone, served) = alone(preset.model(), &log);
                    let line = format!(
                        "| {} | {} | {} | {:.1} | {:.1} | {ratio:.3} | {:.2} | {:.2} |",
                        preset.name(),
                        program.name,
                        log.len(),
                        ran.took_ns as f64 / 1e6,
                        simulated.time_ns as f64 / 1e6,
                        served / 1e6,
                        alone / 1e6,
                    );
                    eprintln!("{line}");
                    // The server is never early; heads stood elsewhere before the first request.
                    let in_time = served >= 0.95 * alone && served <= (1.0 + WITHIN) * alone + LATE_NS;
                    if is_close(ratio, WITHIN) && in_time { Ok(()) } else { Err(line) }
                });
            }
        }
    }

    #[test]
    fn a_disk_is_predicted_as_it_was_measured() {
        needs_root!();
        let _alone = ALONE.lock();
        eprintln!("| disk | program | measured ms | simulated ms |");
        for (preset, on_testbed) in DISKS {
            let slow = SlowDisk::create(on_testbed, DISK).expect("a test disk");
            let truth = Truth::new(&slow);
            attempts(|| {
                let device = measure(slow.mount_point(), DeviceEffort::Usual).map_err(|e| e.to_string())?;
                let model = Model { request: preset.model().request, ..Model::measured(&device) };
                for program in &programs() {
                    let ran = truth.run(&slow, program);
                    let time_ns = truth.simulate(program, &ran, model.clone()).time_ns;
                    let (took, simulated) = (ran.took_ns as f64 / 1e6, time_ns as f64 / 1e6);
                    let line =
                        format!("| {} | {} | {took:.1} | {simulated:.1} |", preset.name(), program.name);
                    eprintln!("{line}");
                    if !is_close(simulated / took, WITHIN_AS_MEASURED) {
                        return Err(line);
                    }
                }
                Ok(())
            });
        }
    }

    /// Pages of one call that come at once, and requests of half as many.
    #[test]
    fn pages_come_when_their_whole_bio_has() {
        needs_root!();
        let _alone = ALONE.lock();
        let slow = SlowDisk::create(OnTestbed::Hdd, DISK).expect("a test disk");
        // One call asks for all of it; an open file keeps what was set when it was opened.
        let read_ahead = format!("/sys/block/{}/queue/read_ahead_kb", slow.device_name());
        std::fs::write(read_ahead, "8192").expect("read_ahead_kb");
        let truth = Truth::new(&slow);
        attempts(|| {
            let model = truth.way(&slow).model(Preset::Hdd.model());
            let (came, simulated) = (truth.blocks_come()?, truth.blocks_simulated(model));
            eprintln!("pages came after {came:.1?} ms, simulated {simulated:.1?}");
            // The kernel asks in pieces of 2 MiB. A bio has 256 pages at least, and all of such a piece where the pages
            // happen to be neighbours in memory: then they come with the last of it.
            let slack = |ns: f64| WITHIN * ns + 2.0;
            let in_time = came.iter().enumerate().all(|(n, is)| {
                let (first, last) = (simulated[n], simulated[n | 3]);
                *is >= first - slack(first) && *is <= last + slack(last)
            });
            // A request takes 5.3 ms.
            let together = |times: &[f64]| times.chunks(2).filter(|two| two[1] - two[0] < 2.0).count();
            assert_eq!(together(&simulated), simulated.len() / 2);
            let by_bio = together(&came) * 4 >= simulated.len() / 2 * 3;
            if in_time && by_bio { Ok(()) } else { Err(format!("{came:?} {simulated:?}")) }
        });
    }
}
