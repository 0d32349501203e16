//! A series of starts: cost against index, with the control program and the fitted curve, for terminals, as
//! SVG and as a page.

use std::fmt::Write;

use cold_spawn::report::Series;
use cold_stats::median;

use crate::axis::Axis;

mod html;
mod svg;
mod words;

pub use html::html;
pub use svg::svg;
pub use words::{
    baseline_words, cause_words, class_words, code_words, confirmation_words, counts_words,
    not_observed_words, part_words, remaining_words, series_words,
};

/// A plot in characters: the median of each column's starts, and of the control program's.
pub fn terminal(s: &Series, width: usize, unicode: bool) -> String {
    const HEIGHT: usize = 10;
    let columns = width.saturating_sub(14).clamp(20, 120).min(s.starts.len().max(1));
    let medians: Vec<[Option<f64>; 2]> = (0..columns)
        .map(|c| {
            let from = c * s.starts.len() / columns;
            let to = ((c + 1) * s.starts.len() / columns).max(from + 1).min(s.starts.len());
            let of = |f: fn(&cold_spawn::report::TimedStart) -> u64| {
                median(&s.starts[from.min(to)..to].iter().map(|t| f(t) as f64).collect::<Vec<_>>())
            };
            [of(|t| t.control_ns), of(|t| t.ns)]
        })
        .collect();
    let highest = medians.iter().flatten().flatten().copied().fold(1.0, f64::max);
    let scale = Axis::new(0.0, highest, 4);
    let mut grid = vec![vec![' '; columns]; HEIGHT + 1];
    let row = |v: f64| HEIGHT - (scale.place(v).clamp(0.0, 1.0) * HEIGHT as f64).round() as usize;
    let (own, control, edge) = if unicode { ('●', '·', '│') } else { ('o', '.', '|') };
    for (c, both) in medians.iter().enumerate() {
        for (value, glyph) in both.iter().zip([control, own]) {
            if let Some(v) = value {
                grid[row(*v)][c] = glyph;
            }
        }
    }
    let mut out = String::new();
    for (r, cells) in grid.iter().enumerate() {
        let tick = scale.ticks.iter().find(|t| row(**t) == r);
        let label = tick.map_or(String::new(), |t| scale.time_label(*t));
        let cells: String = cells.iter().collect();
        let _ = writeln!(out, "{label:>11} {edge}{}", cells.trim_end());
    }
    let last = s.starts.last().map_or(0, |t| t.index);
    let _ = writeln!(out, "{:>13}0{last:>pad$}", "", pad = columns.saturating_sub(1));
    let _ = write!(out, "{:>13}{own} the command   {control} the empty program in between", "");
    if unicode { out } else { out.replace('µ', "u") }
}
