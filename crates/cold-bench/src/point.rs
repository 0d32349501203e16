//! What a benchmark puts into a history.

use cold_gate::{Figure, Point, Unit};
use cold_model::bench::{Report, State};
use cold_stats::Interval;

use crate::metric::Metric;
use crate::summary::Analysis;

/// What is kept of each state of a benchmark: the median.
const KEPT: [Metric; 4] = [Metric::Ready, Metric::MajorFaults, Metric::ReadBytes, Metric::Requests];

/// One point per command of a benchmark.
pub fn of_report(report: &Report, analysis: &Analysis) -> Vec<Point> {
    let m = &report.machine;
    let mut out = Vec::new();
    for (i, command) in report.commands.iter().enumerate() {
        let mut figures = Vec::new();
        for (name, count) in [("files", &command.files), ("lookups-missed", &command.misses)] {
            if let Some(n) = count.value() {
                let (name, unit) = (name.to_owned(), Unit::Count);
                figures.push(Figure { name, unit, value: *n as f64, interval: None });
            }
        }
        for s in &analysis.summary {
            let Some(series) = report.series.get(s.series).filter(|series| series.command == i) else {
                continue;
            };
            // Each snapshot is a state of its own; which one is not told by a name that stays.
            if matches!(series.state, State::Snapshot(_)) {
                continue;
            }
            for metric in KEPT {
                if let Some(d) = s.metrics.get(metric.name()).and_then(|d| d.value()) {
                    figures.push(Figure {
                        name: format!("{}.{}", series.state, metric.name()),
                        unit: metric.unit(),
                        value: d.median,
                        interval: d.interval.filter(Interval::is_full).map(|i| (i.low, i.high)),
                    });
                }
            }
        }
        out.push(Point {
            machine: format!("{}, {}", m.cpu, m.memory),
            kernel: m.kernel.clone(),
            command: command.name.clone(),
            figures,
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{sample, summary};

    #[test]
    fn medians_of_each_state_are_kept_and_those_of_snapshots_are_not() {
        let times = vec![100.0, 110.0, 120.0, 130.0, 140.0, 150.0, 160.0];
        let snapshot = State::Snapshot("/tmp/a.snap".into());
        let series =
            [("a", State::Cold, times.clone()), ("a", snapshot, times.clone()), ("b", State::Warm, times)];
        let report = sample::report(&series);
        let points = of_report(&report, &summary::analyze(&report, 0.0));
        let names = |p: &Point| p.figures.iter().map(|f| f.name.clone()).collect::<Vec<_>>();
        assert_eq!(points.len(), report.commands.len());
        let a = &points[0];
        assert!(names(a).contains(&"cold.ready".to_owned()), "{:?}", names(a));
        assert!(names(a).iter().all(|n| !n.contains("snapshot") && !n.starts_with("warm")), "{:?}", names(a));
        let ready = a.figures.iter().find(|f| f.name == "cold.ready").expect("kept");
        let median = summary::analyze(&report, 0.0).summary[0].ready().expect("counts").median;
        assert_eq!((ready.value, ready.unit), (median, Unit::Time));
        assert!(ready.interval.is_some_and(|(low, high)| low <= median && median <= high));
        assert_eq!(a.machine, format!("{}, {}", report.machine.cpu, report.machine.memory));
    }
}
