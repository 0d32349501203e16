//! What a benchmark or a recording puts into a history.

use cold_analyze::budget::{BudgetedStart, known};
use cold_bench::metric::Metric;
use cold_bench::summary::Analysis;
use cold_gate::Unit;
use cold_model::bench::{Report, State};
use cold_stats::Interval;

/// Figures of one command at one time.
pub(crate) struct Point {
    /// CPU and memory: only points of the same are compared.
    pub(crate) machine: String,
    pub(crate) kernel: String,
    pub(crate) command: String,
    pub(crate) figures: Vec<Figure>,
}

/// A figure by its name in gates and budgets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) unit: Unit,
    pub(crate) value: f64,
    /// Its 95% interval, where it has one.
    pub(crate) interval: Option<(f64, f64)>,
}

/// What is kept of each state of a benchmark: the median.
const KEPT: [Metric; 4] = [Metric::Ready, Metric::MajorFaults, Metric::ReadBytes, Metric::Requests];

/// One point per command of a benchmark.
pub(crate) fn of_bench(report: &Report, analysis: &Analysis) -> Vec<Point> {
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

/// The counts of a recording.
pub(crate) fn of_start(start: BudgetedStart<'_>) -> Point {
    let m = &start.recording.manifest.machine;
    let figure = |(quantity, value): (cold_analyze::budget::Quantity, f64)| Figure {
        name: quantity.name().to_owned(),
        unit: quantity.unit(),
        value,
        interval: None,
    };
    Point {
        // As a benchmark writes it.
        machine: format!("{} × {}, {}", m.cpus, m.cpu, m.memory),
        kernel: m.kernel.clone(),
        command: start.analysis.headline.subject.clone(),
        figures: known(start).into_iter().map(figure).collect(),
    }
}
