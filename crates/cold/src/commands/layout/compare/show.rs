//! A comparison for people: counts first, because they are the same in every start, then time.

use cold_bench::metric::{Metric, Unit};
use cold_bench::summary::{self, SeriesSummary};
use cold_model::Known;
use cold_model::bench::{Report, State};
use cold_stats::Verdict;

use super::Compared;
use crate::commands::bench;
use crate::table::{Table, width};
use crate::ui::{FAINT, STRONG, Ui, WARN, paint};

/// Figures of a state, and what they are called.
const COLD: [(Metric, &str); 6] = [
    (Metric::Code, "code in the cache after it"),
    (Metric::MajorFaults, "major faults"),
    (Metric::Requests, "requests to the disk"),
    (Metric::ReadBytes, "read from the disk"),
    (Metric::Stall, "waited for the disk"),
    (Metric::Ready, "time"),
];
const WARM: [(Metric, &str); 2] = [(Metric::MinorFaults, "minor faults"), (Metric::Ready, "time")];

/// The states that are compared, in the order in which they are shown.
pub(super) const STATES: [(State, &[(Metric, &str)]); 3] =
    [(State::Cold, &COLD), (State::Prefetched, &COLD), (State::Warm, &WARM)];

/// All that was measured of one start.
pub(super) fn compared(ui: &Ui, compared: &Compared) {
    let Compared { name, report, gates } = compared;
    let analysis = summary::analyze(report, 0.0);
    if let Some(name) = name {
        ui.line(paint(STRONG, name));
    }
    for (state, figures) in STATES {
        let Some(series) = of_state(report, &state) else { continue };
        let rows = series.map(|i| &analysis.summary[i]);
        let mut table = Table::new(&["old", "new", "new/old", "old again/old", "FIGURE"]);
        for (metric, words) in figures {
            row(&mut table, report, rows, *metric, &format!("{state}: {words}"));
        }
        if rows.iter().all(|s| s.counted == 0) {
            ui.line(format!("  {state}: no run counts"));
        } else {
            table.lines(width()).iter().for_each(|line| ui.line(line));
        }
        control(ui, report, series, &state);
        for s in rows {
            bench::show::proof(ui, report, s);
        }
    }
    bench::show::findings(ui, report, &analysis);
    ui.line(paint(FAINT, format!("  eviction: {}; seed {}", report.machine.eviction, report.seed)));
    for g in gates {
        bench::show::gate(ui, g);
    }
    if let Some(why) = &report.stopped {
        ui.line(format!("{} {why}", paint(WARN, "stopped early:")));
    }
    ui.line("");
}

/// Series of the three commands in a state, where it was measured.
fn of_state(report: &Report, state: &State) -> Option<[usize; 3]> {
    let of = |command| report.series.iter().position(|s| s.command == command && s.state == *state);
    Some([of(0)?, of(1)?, of(2)?])
}

/// Nothing of a figure that is unknown for all of them; why it is stands in the report of `cold bench`.
fn row(table: &mut Table, report: &Report, rows: [&SeriesSummary; 3], metric: Metric, words: &str) {
    let median = |s: &SeriesSummary| match s.metrics.get(metric.name()) {
        Some(Known::Value(d)) => Ok(d.median),
        Some(Known::Unknown { unknown }) => Err(unknown.clone()),
        None => Err("it was not measured".to_owned()),
    };
    let medians = rows.map(median);
    let shown = |m: &Result<f64, String>| m.as_ref().map_or("unknown".into(), |v| metric.unit().show(*v));
    let ratio = |i: usize| match metric.unit() {
        // A run that does not know it may be the quicker one.
        Unit::Time if medians[i].is_err() || medians[0].is_err() => "unknown".into(),
        Unit::Time => summary::compare_by(report, rows[i].series, rows[0].series, metric)
            .map_or("unknown".into(), |c| {
                format!("{:.3} [{:.3}, {:.3}]", c.ratio, c.interval.low, c.interval.high)
            }),
        Unit::Bytes | Unit::Count => match (&medians[i], &medians[0]) {
            (Ok(own), Ok(old)) if *old > 0.0 => format!("{:.3}", own / old),
            (Ok(own), Ok(_)) if *own == 0.0 => "same".into(),
            _ => "unknown".into(),
        },
    };
    let below = medians.iter().find_map(|m| m.as_ref().err()).map(|why| format!("unknown: {why}"));
    let cells = vec![shown(&medians[0]), shown(&medians[1]), ratio(1), ratio(2), words.to_owned()];
    table.row(cells, below.into_iter().collect());
}

/// Says so when the program differs from itself: then the machine decides, not the layout.
fn control(ui: &Ui, report: &Report, [old, _, again]: [usize; 3], state: &State) {
    let Some(c) = summary::compare(report, again, old) else { return };
    if matches!(c.verdict(0.0), Verdict::Faster | Verdict::Slower) {
        ui.warn(format!(
            "{state}: the old program takes {:.3} times as long as itself [{:.3}, {:.3}]: the machine is not quiet, \
             believe no smaller difference",
            c.ratio, c.interval.low, c.interval.high
        ));
    }
}
