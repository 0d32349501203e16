//! The tables of the experiments.

use cold_model::Bytes;
use cold_probe::experiments::{
    Measured, State, compete, device, exec, prefetch, pressure, records, table, timeline,
};
use cold_probe::script::Ran;

use super::grid::{Grid, Weight};
use crate::ui::{BAD, FAINT, GOOD, STRONG, Ui, paint};
use crate::words::{count, percent};

const UNKNOWN: &str = "?";

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
    let (mut clock, mut between, mut least, mut n) = (0.0_f64, 0.0, f64::MAX, 0.0);
    for m in all.filter(|m| m.ms.count > 0) {
        clock = clock.max(m.clock_ns);
        between += m.between_ns;
        least = least.min(m.ms.mean * 1e6);
        n += 1.0;
    }
    if n > 0.0 {
        ui.line(paint(
            FAINT,
            format!(
                "Own cost: {clock:.0} ns of clock per record, taken off (the cheapest line takes {least:.0} ns); {:.0} ns between two records, in no figure.",
                between / n
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

/// `table`.
pub(super) fn table(ui: &Ui, o: &table::Options, rows: &[table::Row]) {
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
    ui.line(paint(
        FAINT,
        "MISSES: records not cached when used, as the probe saw it; REQUESTS: reads of the device, everybody's; \
         READ: bytes the thread had read, NEEDED: bytes of pages it used. exact: buffered, told that access is \
         random, so nothing is read ahead and MISSES and REQUESTS must agree.",
    ));
    own_cost(ui, rows.iter().map(|r| &r.measured));
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
    for (order, action, [direct, buffered, mapped], holds) in table::ranking(rows) {
        let old = table::PUBLISHED.iter().find(|p| p.order == order && p.action == action);
        let of = |f: fn(&table::Published) -> f64| old.map_or("-".to_owned(), |p| format!("{:.2}", f(p)));
        grid.row(vec![
            order.to_owned(),
            action.to_owned(),
            of(|p| p.direct),
            of(|p| p.buffered),
            of(|p| p.mapped),
            ms(direct),
            ms(buffered),
            ms(mapped),
            if holds { "holds" } else { "does not hold" }.to_owned(),
        ]);
    }
    print(ui, &grid);
}

/// `ramp`, `small`.
pub(super) fn timeline(ui: &Ui, modern: bool, o: &timeline::Options, found: &timeline::Found) {
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

/// `records`.
pub(super) fn records(ui: &Ui, rows: &[records::Row], fit: Option<records::Fit>) {
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
            "Direct, scattered: t(size) = {} ms + {:.3} ns per byte ({speed}); the line explains {:.1}% of the variance.",
            ms(f.fixed_ms),
            f.ns_per_byte,
            f.r2 * 100.0
        ));
    }
    let best = rows.iter().filter(|r| r.mode == "direct" && r.order == "fixed");
    if let Some(b) = best.max_by(|a, b| a.bytes_per_second.total_cmp(&b.bytes_per_second)) {
        ui.line(format!(
            "One place again and again, past the cache: most with records of {} ({} MB/s).",
            bytes(b.record),
            rate(b.bytes_per_second)
        ));
    }
    own_cost(ui, rows.iter().map(|r| &r.measured));
}

/// `compete`.
pub(super) fn compete(ui: &Ui, o: &compete::Options, found: &compete::Found) {
    for pair in compete::Pair::ALL {
        let [a, b] = pair.names();
        heading(ui, &format!("{a} against {b}, {} for both", o.limit));
        let mut grid = Grid::new(&[
            ("SPAN EACH", Weight::High),
            ("FIRST ms", Weight::High),
            ("SECOND ms", Weight::High),
            ("RATIO", Weight::High),
            ("INTERVAL", Weight::High),
            ("FIRST CACHED", Weight::Middle),
            ("SECOND CACHED", Weight::Middle),
        ]);
        for p in found.points.iter().filter(|p| p.pair == pair) {
            let ratio = p.ratio.as_ref();
            let level = |l: f64| if l >= 0.95 { String::new() } else { format!(" ({:.0}%)", l * 100.0) };
            grid.row(vec![
                bytes(o.unit.0 * p.span),
                ms(p.ms[0]),
                ms(p.ms[1]),
                ratio.map_or("-".to_owned(), |r| format!("{:.3}", r.ratio)),
                ratio.map_or("-".to_owned(), |r| {
                    format!("{:.3} to {:.3}{}", r.interval.low, r.interval.high, level(r.interval.level))
                }),
                known(p.cached[0], |b| bytes(b as u64)),
                known(p.cached[1], |b| bytes(b as u64)),
            ]);
        }
        print(ui, &grid);
        if let Some(v) = found.verdicts.iter().find(|v| v.pair == pair) {
            ui.line(verdict(v, o));
        }
    }
    ui.line("");
    ui.line(match found.limit_held {
        Some(true) => format!(
            "{}: at no time was more than {} charged to both.",
            paint(GOOD, "The limit held"),
            o.limit
        ),
        Some(false) => format!(
            "{}: more than {} was charged at some time.",
            paint(BAD, "The limit did not hold"),
            o.limit
        ),
        None => "Whether the limit held is unknown: this kernel keeps no high-water mark.".to_owned(),
    });
}

fn verdict(verdict: &compete::Verdict, options: &compete::Options) -> String {
    let [a, b] = verdict.pair.names();
    let Some(r) = &verdict.ratio else {
        return "No verdict: no two bouts in which both do not fit.".to_owned();
    };
    let rest = format!(
        "interval {:.3} to {:.3}, {} bouts with more than {} wanted",
        r.interval.low, r.interval.high, verdict.bouts, options.limit
    );
    match (verdict.favoured, verdict.pair) {
        (Some(who), _) => {
            let times = if who == a { 1.0 / r.ratio } else { r.ratio };
            format!(
                "{} {who} is favoured: the other waits {times:.1} times as long per record ({rest}).",
                paint(STRONG, "Verdict:")
            )
        }
        (None, compete::Pair::Control) if r.interval.is_full() => {
            format!(
                "{} balanced, as two equals should be: ratio {:.3} ({rest}).",
                paint(STRONG, "Control:"),
                r.ratio
            )
        }
        (None, _) if r.interval.is_full() => {
            format!(
                "{} neither {a} nor {b} is favoured: ratio {:.3} ({rest}).",
                paint(STRONG, "Verdict:"),
                r.ratio
            )
        }
        _ => {
            format!(
                "No verdict: {} bouts are too few for an interval of 95 % (more with --repeat).",
                verdict.bouts
            )
        }
    }
}

/// `exec`.
pub(super) fn exec(ui: &Ui, found: &exec::Found) {
    heading(ui, "One fault in the middle of a cold file");
    let mut grid = Grid::new(&[
        ("MAPPING", Weight::Word),
        ("PAGE", Weight::High),
        ("CACHED AFTERWARDS", Weight::High),
        ("PAGES", Weight::High),
        ("POLICY", Weight::Word),
    ]);
    for w in &found.windows {
        let policy = match w.policy {
            exec::Policy::Exact => "the page alone",
            exec::Policy::Forward => "forward from the page",
            exec::Policy::Around => "around the page",
            exec::Policy::Backward => "backward from the page",
        };
        grid.row(vec![
            w.kind.word().to_owned(),
            count(w.page),
            format!("{}-{}", w.first, w.end.saturating_sub(1).max(w.first)),
            count(w.end - w.first),
            policy.to_owned(),
        ]);
    }
    print(ui, &grid);
    heading(ui, "Series of touches (every fourth page of 256, or one in each mebibyte)");
    let mut grid = Grid::new(&[
        ("MAPPING", Weight::Word),
        ("ORDER", Weight::Word),
        ("TOUCHES", Weight::High),
        ("MAJFLT", Weight::High),
        ("BYTES/TOUCH", Weight::High),
        ("MEAN ms", Weight::High),
    ]);
    for r in &found.rows {
        grid.row(vec![
            r.kind.word().to_owned(),
            r.order.to_owned(),
            count(r.touches),
            count(r.major_faults),
            bytes(r.bytes_per_touch as u64),
            ms(r.ms),
        ]);
    }
    print(ui, &grid);
    for (kind, why) in &found.refused {
        ui.warn(format!("{}: {why} (code cannot be mapped on a file system mounted noexec)", kind.word()));
    }
}

/// `prefetch`.
pub(super) fn prefetch(ui: &Ui, found: &prefetch::Found) {
    heading(ui, "Asked of a cold file, and come");
    let mut grid = Grid::new(&[
        ("CALL", Weight::Word),
        ("ASKED", Weight::High),
        ("CAME", Weight::High),
        ("CALL ms", Weight::High),
        ("THERE ms", Weight::High),
        ("REQUESTS", Weight::High),
    ]);
    for r in &found.rows {
        grid.row(vec![
            r.call.word().to_owned(),
            bytes(r.asked),
            bytes(r.delivered),
            ms(r.call_ms),
            ms(r.there_ms),
            known(r.requests, count),
        ]);
    }
    print(ui, &grid);
    for call in prefetch::Call::ALL {
        if let Some((_, why)) = found.refused.iter().find(|(c, _)| *c == call) {
            ui.line(format!("{} is refused: {why}", call.word()));
        } else {
            match found.caps.iter().find(|(c, _)| *c == call) {
                Some((_, cap)) => ui.line(format!("{} is cut at {}, silently.", call.word(), bytes(*cap))),
                None => ui.line(format!("{} brings all that is asked.", call.word())),
            }
        }
    }
}

/// `device`.
pub(super) fn device(ui: &Ui, found: &device::Found) {
    let m = &found.model;
    heading(ui, "Reads past the cache");
    ui.line(format!(
        "{}, {}: t(size) = {} ms + {:.3} ns per byte ({:.0} MB/s), one at a time, scattered",
        m.name,
        if m.rotational { "which the kernel calls rotational" } else { "not rotational" },
        ms(m.latency_ns / 1e6),
        m.ns_per_byte,
        1e3 / m.ns_per_byte
    ));
    ui.line(format!("one readahead call delivers at most {}", bytes(m.readahead_cap)));
    let mut grid = Grid::new(&[
        ("IN FLIGHT", Weight::High),
        ("READS/s", Weight::High),
        ("GAP WORTH READING", Weight::High),
    ]);
    for d in &m.depths {
        grid.row(vec![count(u64::from(d.depth)), count(d.iops as u64), bytes(m.break_even(d.depth))]);
    }
    print(ui, &grid);
    heading(ui, "Distance and direction (4 KiB each)");
    let mut grid = Grid::new(&[
        ("STRIDE", Weight::High),
        ("DIRECTION", Weight::Word),
        ("MEAN ms", Weight::High),
        ("P50", Weight::High),
        ("P99", Weight::High),
    ]);
    for r in &found.strides {
        let direction = if r.stride > 0 { "forward" } else { "backward" };
        grid.row(vec![
            bytes(r.stride.unsigned_abs()),
            direction.to_owned(),
            ms(r.ms.mean),
            ms(r.ms.p50),
            ms(r.ms.p99),
        ]);
    }
    print(ui, &grid);
}

/// `pressure`.
pub(super) fn pressure(ui: &Ui, o: &pressure::Options, rows: &[pressure::Row]) {
    heading(ui, &format!("A file of {} with {} of memory", Bytes(o.bytes), o.limit));
    let mut grid = Grid::new(&[
        ("MODE", Weight::Word),
        ("ORDER", Weight::Word),
        ("THREADS", Weight::High),
        ("RECORDS/s FIRST", Weight::High),
        ("LAST FIFTH", Weight::High),
        ("MEAN ms", Weight::High),
        ("P99", Weight::Middle),
        ("MISSES", Weight::High),
        ("MAJFLT", Weight::Middle),
        ("REQUESTS", Weight::High),
        ("SHOOTDOWNS", Weight::Middle),
        ("CPUS", Weight::Low),
        ("PEAK", Weight::Low),
    ]);
    for r in rows {
        grid.row(vec![
            r.mode.to_owned(),
            r.order.to_owned(),
            count(r.threads),
            count(r.first_per_second as u64),
            count(r.last_per_second as u64),
            ms(r.ms.mean),
            ms(r.ms.p99),
            r.misses.map_or("-".to_owned(), count),
            count(r.major_faults),
            known(r.device, |d| count(d.reads)),
            known(r.shootdowns, count),
            format!("{:.2}", r.cpus),
            known(r.peak, bytes),
        ]);
    }
    print(ui, &grid);
    let agreed = rows.first().and_then(|r| r.misses.zip(r.device));
    if let Some((misses, device)) = agreed {
        let apart = (device.reads as f64 / misses.max(1) as f64 - 1.0) * 100.0;
        ui.line(format!(
            "Small scattered records, read exactly: the probe counted {} misses, the block layer {} requests ({apart:+.1}%).",
            count(misses),
            count(device.reads)
        ));
    }
}

/// `script`.
pub(super) fn script(ui: &Ui, ran: &[Ran], rows: &[Vec<String>]) {
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|i| rows.iter().filter_map(|r| r.get(i)).map(|c| c.chars().count()).max().unwrap_or(0))
        .collect();
    for r in rows {
        let cells: Vec<String> = r.iter().zip(&widths).map(|(c, w)| format!("{c:>w$}", w = *w)).collect();
        ui.line(cells.join(" "));
    }
    let clock = ran.iter().map(|r| r.report.clock_ns).fold(0.0, f64::max);
    ui.line(paint(
        FAINT,
        format!("Times in ms, of the second half of the trial; {clock:.0} ns of clock taken off each."),
    ));
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
