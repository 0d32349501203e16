//! A plot of the runs in the order they were made, for a terminal.

use cold_bench::summary::Analysis;
use cold_model::bench::Report;

use crate::escape;
use crate::scene::{Scene, figures};

/// Rows of the plot itself.
const HEIGHT: usize = 12;
/// Below this width no plot says anything.
const LEAST_WIDTH: usize = 30;

const COUNTED: [char; 8] = ['●', '■', '▲', '◆', '▼', '★', '✚', '✖'];
const TAINTED: [char; 8] = ['○', '□', '△', '◇', '▽', '☆', '+', '×'];

/// Characters to draw with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charset {
    /// Shapes and box drawing.
    Unicode,
    /// Letters: upper case counts, lower case is tainted.
    Ascii,
}

/// Draws the runs in at most `width` columns; times upwards, runs to the right, medians with their
/// intervals in one column per series at the right edge, a legend below. Empty without runs; narrower
/// than 30 columns (and more for many series) it is drawn as if there were that many.
pub fn plot(report: &Report, analysis: &Analysis, width: usize, charset: Charset) -> String {
    let scene = Scene::new(report, analysis, 4);
    if scene.points.is_empty() {
        return String::new();
    }
    let glyphs = glyphs(report, charset);
    let width = width.max(LEAST_WIDTH);
    let labels: Vec<(usize, String)> =
        scene.axis.ticks.iter().map(|t| (row(&scene, *t), scene.axis.time_label(*t))).collect();
    let label_width = labels.iter().map(|(_, l)| l.chars().count()).max().unwrap_or(0);
    let strip = scene.series.len() * 2 + 1;
    let columns = width.saturating_sub(label_width + 2 + strip).min(scene.points.len() * 3).max(12);

    let mut grid = vec![vec![' '; columns + strip]; HEIGHT];
    draw_points(&scene, &glyphs, &mut grid, columns, charset);
    draw_strips(&scene, &glyphs, &mut grid, columns, charset);

    let (tick, bar, corner, line) = match charset {
        Charset::Unicode => ('┤', '│', '└', '─'),
        Charset::Ascii => ('+', '|', '+', '-'),
    };
    let mut out = String::new();
    for (i, cells) in grid.iter().enumerate() {
        let here = labels.iter().find(|(row, _)| *row == i);
        let text = here.map_or("", |(_, l)| l.as_str());
        let edge = if here.is_some() { tick } else { bar };
        let cells: String = cells.iter().collect();
        push(&mut out, &format!("{text:>label_width$} {edge}{cells}"));
    }
    let axis: String = std::iter::repeat_n(line, columns).collect();
    push(&mut out, &format!("{:label_width$} {corner}{axis}", ""));
    let last = if scene.points.len() > 1 { format!("run {}", scene.points.len()) } else { String::new() };
    push(&mut out, &format!("{:label_width$}  1{last:>pad$}", "", pad = columns.saturating_sub(1)));
    for (i, s) in scene.series.iter().enumerate() {
        let tainted = if s.tainted > 0 { format!(" {}", glyphs[i].1) } else { String::new() };
        let words = figures(s) + &tainted;
        let name = scene.short_name(i, width.saturating_sub(words.chars().count() + 4).max(20));
        let text = format!("{} {name}: {words}", glyphs[i].0);
        push(&mut out, &escape::line(&text, width));
    }
    let beyond = scene.points.iter().filter(|p| p.beyond).count();
    if beyond > 0 {
        let above = if charset == Charset::Unicode { '↑' } else { '^' };
        push(&mut out, &format!("{above} {beyond} tainted above the axis"));
    }
    if charset == Charset::Ascii { out.replace('µ', "u").replace('…', "~") } else { out }
}

fn push(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

/// Row of a time, from 0 at the top.
fn row(scene: &Scene<'_>, time: f64) -> usize {
    let place = scene.axis.place(time).clamp(0.0, 1.0);
    HEIGHT - 1 - (place * (HEIGHT - 1) as f64).round() as usize
}

/// A counted and a tainted glyph for each series.
fn glyphs(report: &Report, charset: Charset) -> Vec<(char, char)> {
    let initials: Vec<char> =
        report.series.iter().filter_map(|s| s.state.to_string().chars().next()).collect();
    let distinct = initials.iter().enumerate().all(|(i, c)| !initials[..i].contains(c));
    let letter = |i: usize| if distinct { initials[i] } else { char::from(b'a' + (i % 26) as u8) };
    (0..report.series.len())
        .map(|i| match charset {
            Charset::Unicode => (COUNTED[i % COUNTED.len()], TAINTED[i % TAINTED.len()]),
            Charset::Ascii => (letter(i).to_ascii_uppercase(), letter(i)),
        })
        .collect()
}

fn draw_points(
    scene: &Scene<'_>,
    glyphs: &[(char, char)],
    grid: &mut [Vec<char>],
    columns: usize,
    charset: Charset,
) {
    let above = if charset == Charset::Unicode { '↑' } else { '^' };
    let last = (scene.points.len() - 1).max(1);
    // Tainted ones first, so that counted ones are not hidden.
    for counts in [false, true] {
        for (i, p) in scene.points.iter().enumerate().filter(|(_, p)| p.run.counts() == counts) {
            let Some((counted, tainted)) = glyphs.get(p.run.series) else { continue };
            let glyph = if p.beyond {
                above
            } else if counts {
                *counted
            } else {
                *tainted
            };
            grid[row(scene, p.time)][i * (columns - 1) / last] = glyph;
        }
    }
}

/// Median and interval of each series, one column each.
fn draw_strips(
    scene: &Scene<'_>,
    glyphs: &[(char, char)],
    grid: &mut [Vec<char>],
    columns: usize,
    charset: Charset,
) {
    let bar = if charset == Charset::Unicode { '│' } else { '|' };
    for (i, s) in scene.series.iter().enumerate() {
        let Some(d) = s.ready() else { continue };
        let column = columns + 2 + 2 * i;
        if let Some(interval) = d.interval {
            for cells in &mut grid[row(scene, interval.high)..=row(scene, interval.low)] {
                cells[column] = bar;
            }
        }
        grid[row(scene, d.median)][column] = glyphs[i].0;
    }
}

#[cfg(test)]
mod tests;
