//! What a pause costs a program: the starts, and the law.

use cold_model::{Known, Nanos};
use cold_probe::experiments::pauses::{PausesFindings, PausesOptions};

use super::super::grid::{Grid, Weight};
use super::{heading, ms, print};
use crate::ui::{FAINT, Ui, paint};
use crate::words::wrap;

pub(in super::super) fn pauses(ui: &Ui, o: &PausesOptions, found: &PausesFindings) {
    heading(ui, &format!("{}, warm, stopped again and again", o.words().join(" ")));
    let mut grid = Grid::new(&[
        ("PAUSE ms", Weight::High),
        ("EVERY ms", Weight::High),
        ("PAUSES", Weight::Middle),
        ("CPU ms", Weight::High),
        ("A PAUSE us", Weight::High),
    ]);
    grid.row(vec!["none".to_owned(), String::new(), String::new(), ms(found.cpu_ns / 1e6), String::new()]);
    for r in &found.rows {
        grid.row(vec![
            ms(r.paused_ns / 1e6),
            ms(r.every.0 as f64 / 1e6),
            format!("{:.0}", r.pauses),
            ms(r.cpu_ns / 1e6),
            format!("{:.0}", r.each_ns / 1e3),
        ]);
    }
    print(ui, &grid);
    for line in said(found).iter().flat_map(|s| wrap(s, ui.width())) {
        ui.line(line);
    }
    let drift = 100.0 * (found.drift - 1.0);
    let note = format!(
        "CPU: of all its processes, the median of {} starts. A PAUSE: what one costs more than none, stopping itself \
         included. Starts without pauses took {drift:+.0} % in the later rounds: what moves by as much tells nothing.",
        o.repeats
    );
    for line in wrap(&note, ui.width()) {
        ui.line(paint(FAINT, line));
    }
}

fn said(found: &PausesFindings) -> Vec<String> {
    match &found.cooling {
        Known::Value(law) => vec![
            format!(
                "After a long wait it computes up to {} longer; after {} of waiting that is 63 % of it, and by {} of \
                 work 63 % of it is over.",
                Nanos(law.most_ns),
                Nanos(law.sleep_ns),
                Nanos(law.work_ns)
            ),
            format!(
                "So each wait of 8 ms costs {} where 0.2 ms of work follow, {} where it is 1 ms.",
                Nanos(law.each(8e6, 0.2e6) as u64),
                Nanos(law.each(8e6, 1e6) as u64)
            ),
        ],
        Known::Unknown { unknown } => vec![format!("Nothing to be told of waits: {unknown}.")],
    }
}
