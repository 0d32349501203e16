//! The same start many times on a disk whose times vary: an interval instead of one figure.

use cold_stats::{quantile_sorted, sorted};

use crate::engine::{Error, Outcome};

/// Times of simulated starts, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// 2.5 of 100 are shorter.
    pub low_ns: f64,
    /// Half of them are shorter.
    pub median_ns: f64,
    /// 2.5 of 100 are longer.
    pub high_ns: f64,
}

/// Simulates with the seeds 0 to `runs` - 1; `start` makes disks with the seed and an empty cache each time. `None`
/// where no run is wanted. It tells how the disk's jitter ([`crate::disk::Model::jitter`]) spreads the start, and
/// nothing of other errors of the model.
pub fn spread(
    runs: u64,
    mut start: impl FnMut(u64) -> Result<Outcome, Error>,
) -> Result<Option<Spread>, Error> {
    let times = (0..runs).map(|seed| start(seed).map(|o| o.time_ns as f64));
    let times = sorted(&times.collect::<Result<Vec<_>, _>>()?);
    let at = |share| quantile_sorted(&times, share);
    let all = at(0.025).zip(at(0.5)).zip(at(0.975));
    Ok(all.map(|((low_ns, median_ns), high_ns)| Spread { low_ns, median_ns, high_ns }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cache;
    use crate::disk::{Disk, Layout, Model};
    use crate::engine::{Costs, Input, Machine, Step, Task, TaskStart, run};
    use crate::op::{FileId, Op, OpenId};

    #[test]
    fn the_interval_is_that_of_a_sum_of_lognormal_times() {
        const READS: u64 = 200;
        const SIGMA: f64 = 0.5;
        let mut layout = Layout::new(4096);
        layout.add(0, READS * 4096, None);
        let open = OpenId(0);
        let read = |n| Step::Access(Op::Read { open, offset: n * 4096, bytes: 1 });
        let mut steps = vec![Step::Access(Op::Open { open, file: FileId(0) })];
        steps.extend((0..READS).map(read));
        let tasks = [Task { start: TaskStart::AtOnce, steps }];
        let simulate = |jitter| {
            let layout = &layout;
            let tasks = &tasks;
            move |seed| {
                let model = Model { latency_ns: 1_000_000, jitter, ..Model::default() };
                let input = Input { tasks, replay: None, layout };
                let machine = Machine { processors: 1, costs: Costs::NONE };
                run(&input, &machine, &mut Cache::exact(layout), &mut [Disk::new(model, 1 << 30, seed)])
            }
        };
        let s = spread(1000, simulate(SIGMA)).expect("outcomes").expect("some");
        // Mean and variance of a lognormal time of median 1 ms; the sum of 200 is all but normal.
        let square = SIGMA * SIGMA;
        let mean = READS as f64 * (square / 2.0).exp() * 1e6;
        let sd = (READS as f64 * (square.exp() - 1.0) * square.exp()).sqrt() * 1e6;
        assert!((s.median_ns - mean).abs() < 0.2 * sd, "{s:?}");
        assert!((s.high_ns - s.low_ns - 2.0 * 1.96 * sd).abs() < 0.5 * sd, "{s:?}, {sd}");
        // Without jitter there is one time.
        let none = spread(3, simulate(0.0)).expect("outcomes").expect("some");
        assert_eq!((none.low_ns, none.high_ns), (READS as f64 * 1e6, READS as f64 * 1e6));
        assert_eq!(spread(0, simulate(SIGMA)), Ok(None));
    }
}
