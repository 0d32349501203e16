//! Tables of the experiments below a memory limit.

use std::cmp::Ordering;

use cold_model::Bytes;
use cold_probe::experiments::{compete, pressure};

use super::super::grid::{Grid, Weight};
use super::{bytes, digits, heading, known, ms, print};
use crate::ui::{BAD, GOOD, STRONG, Ui, paint};
use crate::words::{count, percent};

pub(in super::super) fn compete(ui: &Ui, o: &compete::CompeteOptions, found: &compete::CompeteFindings) {
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
            grid.row(vec![
                bytes(o.unit.0 * p.span),
                ms(p.ms[0]),
                ms(p.ms[1]),
                ratio.map_or("-".to_owned(), |r| digits(r.ratio)),
                ratio.map_or("-".to_owned(), |r| {
                    let (low, high) = (digits(r.interval.low), digits(r.interval.high));
                    let level = Some(r.interval).filter(|i| !i.is_full());
                    format!(
                        "{low} to {high}{}",
                        level.map_or_else(String::new, |i| format!(" ({})", i.level_shown()))
                    )
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
    if found.interrupted {
        let (done, all) = (count(found.bouts.len() as u64), count(o.bouts()));
        ui.line(format!(
            "{} after {done} of {all} bouts: these are the figures so far.",
            paint(BAD, "Interrupted")
        ));
    }
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

fn verdict(verdict: &compete::Verdict, options: &compete::CompeteOptions) -> String {
    let [a, b] = verdict.pair.names();
    let Some(r) = &verdict.ratio else {
        return "No verdict: no two bouts in which both do not fit.".to_owned();
    };
    let rest = |low: f64, high: f64| {
        let (low, high) = (digits(low), digits(high));
        format!("interval {low} to {high}, {} bouts with more than {} wanted", verdict.bouts, options.limit)
    };
    let (low, high) = (r.interval.low, r.interval.high);
    let (ratio, as_ratio) = (digits(r.ratio), rest(low, high));
    match (verdict.favoured, verdict.pair) {
        (Some(who), compete::Pair::Control) => {
            format!(
                "{} {who} was ahead of its equal: ratio {ratio} ({as_ratio}). One control in twenty is, by chance; run it again before trusting this run's verdicts.",
                paint(BAD, "Control:")
            )
        }
        (Some(who), _) => {
            let (times, waits) =
                if who == a { (1.0 / r.ratio, rest(1.0 / high, 1.0 / low)) } else { (r.ratio, as_ratio) };
            format!(
                "{} {who} is favoured: the other waits {} times as long per record ({waits}).",
                paint(STRONG, "Verdict:"),
                digits(times)
            )
        }
        (None, compete::Pair::Control) if r.interval.is_full() => {
            format!(
                "{} balanced, as two equals should be: ratio {ratio} ({as_ratio}).",
                paint(STRONG, "Control:")
            )
        }
        (None, _) if r.interval.is_full() => {
            format!(
                "{} neither {a} nor {b} is favoured: ratio {ratio} ({as_ratio}).",
                paint(STRONG, "Verdict:")
            )
        }
        _ => {
            format!(
                "No verdict: {} bouts are too few for an interval of 95% (more with --repeat).",
                verdict.bouts
            )
        }
    }
}

pub(in super::super) fn pressure(ui: &Ui, o: &pressure::PressureOptions, rows: &[pressure::PressureRow]) {
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
        let more = match device.reads.cmp(&misses) {
            Ordering::Equal => "as many".to_owned(),
            Ordering::Greater => format!("{} more", percent(device.reads - misses, misses)),
            Ordering::Less => format!("{} fewer", percent(misses - device.reads, misses)),
        };
        ui.line(format!(
            "Small scattered records, read exactly: the probe counted {} misses, the block layer {} requests ({more}).",
            count(misses),
            count(device.reads)
        ));
    }
}
