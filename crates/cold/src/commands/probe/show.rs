//! The tables of the experiments.

mod answer;
mod kernel;
mod large_pages;
mod memory;
mod pauses;

use cold_model::Bytes;
use cold_probe::experiments::table::WhyNot;
use cold_probe::experiments::{Measured, OwnCost, State, records, table, timeline};
use cold_probe::script::Ran;

use super::grid::{Grid, Weight};
use crate::ui::{FAINT, STRONG, Ui, paint};
use crate::words::{count, percent};

pub(super) use kernel::{device, exec, prefetch};
pub(super) use large_pages::large_pages;
pub(super) use memory::{compete, pressure};
pub(super) use pauses::pauses;

const UNKNOWN: &str = "?";

/// A ratio with three significant digits, at most six of them behind the point.
fn digits(v: f64) -> String {
    let behind = if v > 0.0 { (2.0 - v.log10().floor()).clamp(0.0, 6.0) as usize } else { 0 };
    format!("{v:.behind$}")
}

/// Milliseconds with about four digits that say something.
fn ms(v: f64) -> String {
    match v {
        v if v >= 100.0 => format!("{v:.1}"),
        v if v >= 1.0 => format!("{v:.3}"),
        v if v >= 0.01 => format!("{v:.4}"),
        v => format!("{v:.5}"),
    }
}

fn known<T>(v: Option<T>, f: impl Fn(T) -> String) -> String {
    v.map_or(UNKNOWN.to_owned(), f)
}

fn bytes(n: u64) -> String {
    Bytes(n).to_string()
}

/// Megabytes per second.
fn rate(v: f64) -> String {
    format!("{:.1}", v / 1e6)
}

fn print(ui: &Ui, grid: &Grid) {
    let (lines, left) = grid.lines(ui.width());
    for l in lines {
        ui.line(l);
    }
    if left > 0 {
        let note = format!("({left} columns do not fit: a wider terminal, COLUMNS=200 or --json shows all)");
        ui.line(paint(FAINT, note));
    }
}

fn heading(ui: &Ui, text: &str) {
    ui.line("");
    ui.line(paint(STRONG, text));
}

/// What the probe itself costs.
fn own_cost<'a>(ui: &Ui, all: impl Iterator<Item = &'a Measured>) {
    if let Some(OwnCost { most_ns, between_ns, cheapest_ns }) = OwnCost::of(all) {
        ui.line(paint(
            FAINT,
            format!(
                "Own cost: up to {most_ns:.0} ns per record (clock, finding its pages), taken off (the cheapest line \
                 takes {cheapest_ns:.0} ns); {between_ns:.0} ns between two records, in no figure."
            ),
        ));
    }
}

const FIGURES: [(&str, Weight); 13] = [
    ("MEAN ms", Weight::High),
    ("SD", Weight::High),
    ("MIN", Weight::Middle),
    ("P50", Weight::Low),
    ("P99", Weight::Low),
    ("MAX", Weight::Middle),
    ("COUNT", Weight::Low),
    ("MISSES", Weight::High),
    ("MAJFLT", Weight::Middle),
    ("REQUESTS", Weight::High),
    ("NEEDED", Weight::High),
    ("READ", Weight::High),
    ("FLUSH ms", Weight::Low),
];

fn figures(m: &Measured) -> Vec<String> {
    vec![
        ms(m.ms.mean),
        ms(m.ms.sd),
        ms(m.ms.min),
        ms(m.ms.p50),
        ms(m.ms.p99),
        ms(m.ms.max),
        count(m.ms.count),
        m.misses.map_or("-".to_owned(), count),
        count(m.major_faults),
        known(m.device, |d| count(d.reads)),
        bytes(m.needed_bytes),
        bytes(m.read_bytes),
        m.flush_ms.map_or("-".to_owned(), ms),
    ]
}

fn with_figures(words: &[(&'static str, Weight)]) -> Grid {
    Grid::new(&[words, &FIGURES[..]].concat())
}

pub(super) fn table(ui: &Ui, o: &table::TableOptions, found: &table::TableFindings) {
    let rows = &found.rows;
    heading(ui, &format!("Records of {} in a file of {}", Bytes(o.record), Bytes(o.bytes)));
    let mut grid = with_figures(&[
        ("ORDER", Weight::Word),
        ("ACTION", Weight::Word),
        ("MODE", Weight::Word),
        ("CACHE", Weight::Word),
    ]);
    for r in rows {
        let state = match r.state {
            _ if r.mode == "direct" => "-",
            State::Cold => "cold",
            State::Warm => "warm",
        };
        let words = [r.order, r.action, r.mode, state].map(str::to_owned).to_vec();
        grid.row([words, figures(&r.measured)].concat());
    }
    print(ui, &grid);
    let round = match found.rounds {
        1 => String::new(),
        n => format!("Round {} of {n}, the one nearest to the medians of all. ", found.shown),
    };
    ui.line(paint(
        FAINT,
        format!("{round}\
         MISSES: records not cached when used, as the probe saw it; REQUESTS: reads of the device, everybody's; \
         READ: bytes the thread had read, NEEDED: bytes of pages it used. exact: buffered, told that access is \
         random, so nothing is read ahead and MISSES and REQUESTS must agree."),
    ));
    own_cost(ui, rows.iter().map(|r| &r.measured));
    beside_1993(ui, rows);
    answer::answer(ui, o, found);
}

/// The rankings, published and here.
fn beside_1993(ui: &Ui, rows: &[table::TableRow]) {
    heading(ui, "In 1993 (386SX/25, 12 MB; ms per record, all began cold), and cold here");
    let mut grid = Grid::new(&[
        ("ORDER", Weight::Word),
        ("ACTION", Weight::Word),
        ("DIRECT 1993", Weight::High),
        ("BUFFERED 1993", Weight::High),
        ("MAPPED 1993", Weight::High),
        ("DIRECT", Weight::High),
        ("BUFFERED", Weight::High),
        ("MAPPED", Weight::High),
        ("mapped<=buffered<=direct", Weight::Word),
    ]);
    let rankings = table::rankings(rows);
    for r in &rankings {
        let (order, action) = (r.direct.order, r.direct.action);
        let old = r.published();
        let of = |f: fn(&table::Published) -> f64| old.map_or("-".to_owned(), |p| format!("{:.2}", f(p)));
        grid.row(vec![
            order.to_owned(),
            action.to_owned(),
            of(|p| p.direct),
            of(|p| p.buffered),
            of(|p| p.mapped),
            ms(r.direct.measured.ms.mean),
            ms(r.buffered.measured.ms.mean),
            ms(r.mapped.measured.ms.mean),
            if r.holds() { "holds" } else { "does not hold" }.to_owned(),
        ]);
    }
    print(ui, &grid);
    for r in rankings.iter().filter(|r| !r.holds()) {
        ui.line(paint(FAINT, format!("{} {}: {}", r.direct.order, r.direct.action, why_not(r))));
    }
}

/// What the counts say of a ranking other than that of 1993.
fn why_not(r: &table::Ranking<'_>) -> String {
    let (buffered, mapped) = (&r.buffered.measured, &r.mapped.measured);
    match r.why_not() {
        WhyNot::ReadAlong => format!(
            "buffered had {} read for {} that it used",
            bytes(buffered.read_bytes),
            bytes(buffered.needed_bytes)
        ),
        WhyNot::ReadBeforeWritten => format!(
            "a mapped page is read before it is written ({} in {} faults); a buffered write of whole pages reads nothing",
            bytes(mapped.read_bytes),
            count(mapped.major_faults)
        ),
        WhyNot::Faults => format!(
            "each of {} faults waited for a window of {} or so; buffered reading missed {} times and asked ahead",
            count(mapped.major_faults),
            bytes(mapped.read_bytes / mapped.major_faults.max(1)),
            buffered.misses.map_or(UNKNOWN.to_owned(), count)
        ),
        WhyNot::NothingRead => "neither read from the device".to_owned(),
    }
}

/// The experiments `ramp` and `small`.
pub(super) fn timeline(
    ui: &Ui,
    modern: bool,
    o: &timeline::TimelineOptions,
    found: &timeline::TimelineFindings,
) {
    let place = o.span.map_or("in order".to_owned(), |s| format!("normal over the middle {}", Bytes(s)));
    let size = if modern { "modern sizes" } else { "" };
    heading(
        ui,
        format!("Records of {}, {place}, file of {} {size}", Bytes(o.record), Bytes(o.bytes)).trim_end(),
    );
    let mut grid = Grid::new(&[
        ("AT s", Weight::High),
        ("RECORDS/s", Weight::High),
        ("MEAN ms", Weight::High),
        ("HITS", Weight::High),
        ("CACHED", Weight::High),
        ("DEVICE READS", Weight::High),
        ("WRITES", Weight::Middle),
        ("WRITTEN", Weight::Middle),
    ]);
    // Twenty lines show the course; --json and --log have every interval.
    let step = found.points.len().div_ceil(20).max(1);
    for p in found.points.iter().step_by(step) {
        let n = |v: f64| count(v.max(0.0) as u64);
        grid.row(vec![
            format!("{:.2}", p.at_ms / 1e3),
            n(p.per_second),
            ms(p.ms),
            known(p.hits, |h| percent((h * 1000.0).round() as u64, 1000)),
            known(p.cached_bytes, |b| bytes(b as u64)),
            known(p.device_reads, n),
            known(p.device_writes, n),
            known(p.written_bytes, |b| bytes(b.max(0.0) as u64)),
        ]);
    }
    print(ui, &grid);
    if step > 1 {
        ui.line(paint(FAINT, format!("One interval of {step}; --json and --log have all.")));
    }
    let mut grid = with_figures(&[("ALL", Weight::Word)]);
    grid.row([vec![String::new()], figures(&found.all)].concat());
    ui.line("");
    print(ui, &grid);
    own_cost(ui, std::iter::once(&found.all));
}

pub(super) fn records(ui: &Ui, rows: &[records::RecordRow], fit: Option<records::Fit>) {
    heading(ui, "Time against record size, cold");
    let mut grid = with_figures(&[
        ("RECORD", Weight::High),
        ("MODE", Weight::Word),
        ("ORDER", Weight::Word),
        ("MB/s", Weight::High),
    ]);
    for r in rows {
        let words = vec![bytes(r.record), r.mode.to_owned(), r.order.to_owned(), rate(r.bytes_per_second)];
        grid.row([words, figures(&r.measured)].concat());
    }
    print(ui, &grid);
    if let Some(f) = fit {
        let speed =
            if f.ns_per_byte > 0.0 { format!("{:.0} MB/s", 1e3 / f.ns_per_byte) } else { UNKNOWN.to_owned() };
        ui.line(format!(
            "Direct, scattered: t(size) = {} ms + {:.3} ns per byte ({speed}); the line explains {} of the variance.",
            ms(f.fixed_ms),
            f.ns_per_byte,
            cold_model::figures::percent(f.r2 * 100.0)
        ));
    }
    if let Some(b) = records::best_in_one_place(rows) {
        ui.line(format!(
            "One place again and again, past the cache: most with records of {} ({} MB/s).",
            bytes(b.record),
            rate(b.bytes_per_second)
        ));
    }
    own_cost(ui, rows.iter().map(|r| &r.measured));
}

pub(super) fn script(ui: &Ui, ran: &[Ran], rows: &[Vec<String>], (seconds, repeats): (f64, Option<bool>)) {
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|i| rows.iter().filter_map(|r| r.get(i)).map(|c| c.chars().count()).max().unwrap_or(0))
        .collect();
    for r in rows {
        let cells: Vec<String> = r.iter().zip(&widths).map(|(c, w)| format!("{c:>w$}", w = *w)).collect();
        ui.line(cells.join(" "));
    }
    let own = ran.iter().map(|r| r.report.own_ns).fold(0.0, f64::max);
    ui.line(paint(
        FAINT,
        format!("Times in ms, of the second half of the trial; {own:.0} ns of own cost taken off each."),
    ));
    match repeats {
        None => {}
        Some(true) => ui.line(format!("The means repeat within 5% in a trial of {seconds} s.")),
        Some(false) => {
            ui.warn(format!("the means do not repeat within 5%, not even in a trial of {seconds} s"));
        }
    }
    for r in ran.iter().filter(|r| r.nice != 0) {
        let (process, thread) = r.place;
        let who = format!("process {process}, thread {thread}: its priority is nice {}", r.nice);
        if r.report.nice_refused {
            ui.warn(format!("{who}, which was refused (below 0 takes root); it ran at 0"));
        } else {
            ui.line(paint(FAINT, who));
        }
    }
    if ran.iter().any(|r| r.report.cycles.count == 0) {
        ui.warn("a thread ended no cycle in the second half of the trial (more with --seconds)");
    }
}

#[cfg(test)]
mod tests {
    use super::digits;

    #[test]
    fn ratios_keep_three_digits_however_small() {
        for (v, text) in
            [(0.00037, "0.000370"), (0.0071, "0.00710"), (1.044, "1.04"), (27.64, "27.6"), (235.4, "235")]
        {
            assert_eq!(digits(v), text);
        }
        assert_eq!((digits(0.0), digits(99_999.0)), ("0".to_owned(), "99999".to_owned()));
    }
}
