//! Files to write: the page and the picture.

use cold_analyze::Analysis;
use cold_analyze::simulate::sweep::{Row, most_different};
use cold_model::layout::Layouts;
use cold_model::recording::Recording;
use cold_report::recording::View;
use cold_report::simulate;

use super::args::Args;
use super::{OnDisk, Simulation, show};
use crate::exit::Failure;
use crate::results;
use crate::ui::Ui;

/// Settings that are drawn page by page.
const DRAWN: usize = 4;

/// Writes what was asked for.
pub(super) fn write(args: &Args, s: &Simulation, ui: &Ui) -> Result<(), Failure> {
    if args.html.is_none() && args.svg.is_none() {
        return Ok(());
    }
    let layouts = Layouts::default();
    let drawn = drawn(s)?;
    let views: Vec<View<'_>> = drawn
        .iter()
        .map(|d| View { name: &d.name, recording: &d.recording, layouts: &layouts, analysis: &d.analysis })
        .collect();
    if let Some(path) = &args.svg {
        results::save(path, simulate::offsets(&views))?;
    }
    if let Some(path) = &args.html {
        let disk = |on: &'_ OnDisk| simulate::OnDisk {
            name: on.disk.name.clone(),
            source: on.disk.source.clone(),
            rows: on.rows.clone(),
        };
        let page = simulate::Simulation {
            title: &s.name,
            observed: s.observed,
            window: s.start.window(),
            disks: s.disks.iter().map(disk).collect(),
            findings: show::findings(s),
        };
        results::save(path, simulate::html(&page, &views))?;
    }
    for path in [&args.svg, &args.html].into_iter().flatten() {
        ui.note(format!("wrote {}", cold_model::Shown::shown(path)));
    }
    Ok(())
}

/// A simulated start as a recording.
struct Drawn {
    name: String,
    recording: Recording,
    analysis: Analysis,
}

/// Today's setting on the first disk and the most different others: one of each policy and reader, the best first.
/// With several disks, today's on each.
fn drawn(s: &Simulation) -> Result<Vec<Drawn>, Failure> {
    let mut out: Vec<Drawn> = Vec::new();
    for (on, row) in chosen(&s.disks) {
        let Some(setting) = s.start.setting(&row.choice, &on.disk.model, s.replay.as_ref()) else { continue };
        let simulated = s.start.simulate(&setting)?;
        let name = format!("simulated: {} on {}", row.choice, on.disk.name);
        let recording = s.start.as_recording(&s.recording, &simulated, name.clone());
        let analysis = cold_analyze::analyze(&recording, &Layouts::default());
        out.push(Drawn { name, recording, analysis });
    }
    Ok(out)
}

fn chosen(disks: &[OnDisk]) -> Vec<(&OnDisk, &Row)> {
    let first_rows = disks.iter().filter_map(|on| Some((on, on.rows.first()?)));
    if disks.len() > 1 {
        return first_rows.take(DRAWN).collect();
    }
    let Some(on) = disks.first() else { return Vec::new() };
    most_different(&on.rows, DRAWN).into_iter().map(|row| (on, row)).collect()
}
