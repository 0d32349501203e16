//! Time against record size (figure 4.14): which size moves the most bytes, and t(size) = a + b size.

use serde::Serialize;

use super::{Lab, Measured, State};
use crate::Result;
use crate::spec::{Limit, Mapping, Mode, Work};
use crate::variate::{Normal, Seek};

/// The file, the range of record sizes, the time.
#[derive(Debug, Clone, Serialize)]
pub struct RecordsOptions {
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of the smallest record; below 512 it is 512.
    pub from: u64,
    /// Largest; sizes double from `from` on.
    pub to: u64,
    /// Time per line, seconds.
    pub seconds: f64,
}

impl RecordsOptions {
    /// 1 to 16 pages, as published.
    pub const PUBLISHED: Self = Self { bytes: 16 << 20, from: 4096, to: 64 << 10, seconds: 0.5 };
    /// Up to 2 MB.
    pub const MODERN: Self = Self { bytes: 256 << 20, from: 4096, to: 2 << 20, seconds: 0.5 };
}

/// What one record size came to in one order and mode.
#[derive(Debug, Clone, Serialize)]
pub struct RecordRow {
    /// Bytes of a record.
    pub record: u64,
    /// `fixed`, `sequential`, `uniform`.
    pub order: &'static str,
    /// `direct`, `buffered`, `mapped`.
    pub mode: &'static str,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Times and counts that it rests on.
    #[serde(flatten)]
    pub measured: Measured,
}

/// A straight line through the mean times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Fit {
    /// Time at no bytes, milliseconds.
    pub fixed_ms: f64,
    /// Time per byte, nanoseconds.
    pub ns_per_byte: f64,
    /// Share of the variance that it explains.
    pub r2: f64,
}

/// Measures all lines, each on a cold file.
pub fn run(lab: &Lab<'_>, o: &RecordsOptions) -> Result<Vec<RecordRow>> {
    let subject = lab.subject(o.bytes)?;
    lab.log.watch_files(&[("records", &subject)]);
    let copy = Mode::Mapped(Mapping { shared: true, copy: true, ..Mapping::default() });
    let mut rows = Vec::new();
    let mut record = o.from.max(512);
    while record <= o.to.min(o.bytes) {
        let records = o.bytes / record;
        let uniform = Seek::Uniform { from: 0, to: records };
        let fixed = Seek::Normal(Normal::fixed(0.0));
        // Once round the file at most: a second round would find it cached.
        for (mode, order, seek, most) in [
            (Mode::Direct, "fixed", fixed, u64::MAX),
            (Mode::Direct, "sequential", Seek::Sequential, u64::MAX),
            (Mode::Direct, "uniform", uniform, u64::MAX),
            (Mode::BUFFERED, "sequential", Seek::Sequential, records),
            (Mode::BUFFERED, "uniform", uniform, records / 4),
            (copy, "sequential", Seek::Sequential, records),
            (copy, "uniform", uniform, records / 4),
        ] {
            lab.say(&format!("{} {order}, {record} bytes", mode.word()));
            let work = Work {
                variate: lab.variate,
                ..Work::reads(subject.path().to_owned(), o.bytes, record, mode, seek)
            };
            let limit = if most == u64::MAX {
                Limit::Time { ms: (o.seconds * 1e3) as u64, settle: 0.1 }
            } else {
                Limit::Records { records: most.clamp(1, 512) }
            };
            let measured = lab.measure(&subject, State::Cold, work, limit, 0)?;
            let ms = measured.ms.mean;
            let bytes_per_second = if ms > 0.0 { record as f64 / ms * 1e3 } else { 0.0 };
            rows.push(RecordRow { record, order, mode: mode.word(), bytes_per_second, measured });
        }
        record *= 2;
    }
    Ok(rows)
}

/// The fit of one mode and order, weighted alike; `None` below three sizes.
pub fn fit(rows: &[RecordRow], mode: &str, order: &str) -> Option<Fit> {
    let points: Vec<(f64, f64)> = rows
        .iter()
        .filter(|r| r.mode == mode && r.order == order && r.measured.ms.count > 0)
        .map(|r| (r.record as f64, r.measured.ms.mean))
        .collect();
    line(&points).map(|l| Fit { fixed_ms: l.intercept, ns_per_byte: l.slope * 1e6, r2: l.r2 })
}

/// Of reading one place past the cache again and again, the size of record that brings most bytes in a second.
pub fn best_in_one_place(rows: &[RecordRow]) -> Option<&RecordRow> {
    let fixed = rows.iter().filter(|r| r.mode == "direct" && r.order == "fixed");
    fixed.max_by(|a, b| a.bytes_per_second.total_cmp(&b.bytes_per_second))
}

struct FittedLine {
    intercept: f64,
    slope: f64,
    /// Share of the variance that it explains.
    r2: f64,
}

/// The line of least squares.
fn line(points: &[(f64, f64)]) -> Option<FittedLine> {
    if points.len() < 3 {
        return None;
    }
    let n = points.len() as f64;
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let xx: f64 = points.iter().map(|p| (p.0 - mx).powi(2)).sum();
    let xy: f64 = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
    let yy: f64 = points.iter().map(|p| (p.1 - my).powi(2)).sum();
    let slope = xy / xx;
    let r2 = if yy > 0.0 { slope * xy / yy } else { 1.0 };
    Some(FittedLine { intercept: my - slope * mx, slope, r2 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::Times;

    #[test]
    fn a_fit_is_of_one_way_and_order_and_of_sizes_that_were_timed() {
        let row = |record: u64, mode, order, count, mean| RecordRow {
            record,
            order,
            mode,
            bytes_per_second: 0.0,
            measured: Measured { ms: Times { count, mean, ..Times::default() }, ..Measured::default() },
        };
        // 2 ms and 5 ns a byte.
        let ms = |record: u64| 2.0 + 5e-6 * record as f64;
        let mut rows: Vec<RecordRow> =
            [4096, 8192].into_iter().map(|n| row(n, "direct", "uniform", 1, ms(n))).collect();
        rows.push(row(16384, "direct", "sequential", 1, 77.0));
        rows.push(row(16384, "mapped", "uniform", 1, 77.0));
        rows.push(row(16384, "direct", "uniform", 0, 77.0));
        assert_eq!(fit(&rows, "direct", "uniform"), None, "two sizes are no line");
        rows.push(row(1 << 20, "direct", "uniform", 1, ms(1 << 20)));
        let found = fit(&rows, "direct", "uniform").unwrap();
        assert!((found.fixed_ms - 2.0).abs() < 1e-9 && (found.ns_per_byte - 5.0).abs() < 1e-9, "{found:?}");
        assert!((found.r2 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_line_is_that_of_least_squares() {
        let exact: Vec<(f64, f64)> = (1..=5).map(|n| (f64::from(n), 3.0 + 2.0 * f64::from(n))).collect();
        let super::FittedLine { intercept: a, slope: b, r2 } = super::line(&exact).unwrap();
        assert!((a - 3.0).abs() < 1e-9 && (b - 2.0).abs() < 1e-9 && (r2 - 1.0).abs() < 1e-9);
        // R: lm(c(1,3,2,5) ~ c(1,2,3,4)): intercept 0, slope 1.1, R² 0.6914286.
        let super::FittedLine { intercept: a, slope: b, r2 } =
            super::line(&[(1.0, 1.0), (2.0, 3.0), (3.0, 2.0), (4.0, 5.0)]).unwrap();
        assert!(a.abs() < 1e-9 && (b - 1.1).abs() < 1e-9 && (r2 - 0.691_428_6).abs() < 1e-6);
        assert!(super::line(&exact[..2]).is_none());
    }
}
