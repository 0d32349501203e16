//! Many marks of one look as one path, joined where they overlap, so that a file stays small.

use std::collections::BTreeMap;
use std::fmt::Write;

/// Marks of one kind, on a grid of tenths of a unit in height and half units in time.
#[derive(Debug, Default)]
pub(super) struct Strokes {
    vertical: BTreeMap<i64, Vec<(i64, i64)>>,
    horizontal: BTreeMap<i64, Vec<(i64, i64)>>,
}

/// Grid across, and along, per unit.
const ACROSS: f64 = 1.0;
const ALONG: f64 = 2.0;

/// Joins intervals that touch or overlap.
fn joined(intervals: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut sorted = intervals.to_vec();
    sorted.sort_unstable();
    let mut out: Vec<(i64, i64)> = Vec::with_capacity(sorted.len());
    for (from, to) in sorted {
        match out.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => out.push((from, to)),
        }
    }
    out
}

impl Strokes {
    /// A line up and down.
    pub(super) fn vertical(&mut self, x: f64, top: f64, bottom: f64) {
        let (from, to) = ((top * ALONG).floor() as i64, (bottom * ALONG).ceil() as i64);
        self.vertical.entry((x * ACROSS).round() as i64).or_default().push((from, to.max(from + 1)));
    }

    /// A line from left to right.
    pub(super) fn horizontal(&mut self, left: f64, right: f64, y: f64) {
        let (from, to) = ((left * ALONG).floor() as i64, (right * ALONG).ceil() as i64);
        self.horizontal.entry((y * ACROSS).round() as i64).or_default().push((from, to.max(from + 1)));
    }

    /// All lines; those from left to right have bars at both ends where there is room.
    pub(super) fn path(&self, out: &mut String, looks: &str) {
        if self.vertical.is_empty() && self.horizontal.is_empty() {
            return;
        }
        let _ = write!(out, "<path fill=\"none\" {looks} d=\"");
        for (x, intervals) in &self.vertical {
            for (from, to) in joined(intervals) {
                let _ = write!(out, "M{} {}V{}", *x as f64 / ACROSS, from as f64 / ALONG, to as f64 / ALONG);
            }
        }
        for (y, intervals) in &self.horizontal {
            for (from, to) in joined(intervals) {
                let (x0, x1, y) = (from as f64 / ALONG, to as f64 / ALONG, *y as f64 / ACROSS);
                let _ = write!(out, "M{x0} {y}H{x1}");
                if x1 - x0 > 6.0 {
                    let _ = write!(out, "M{x0} {}v4M{x1} {}v4", y - 2.0, y - 2.0);
                }
            }
        }
        out.push_str("\"/>");
    }

    /// Middles of the joined lines.
    fn middles(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.vertical.iter().flat_map(|(x, intervals)| {
            let middle =
                |(from, to): (i64, i64)| (*x as f64 / ACROSS, f64::midpoint(from as f64, to as f64) / ALONG);
            joined(intervals).into_iter().map(middle)
        })
    }

    /// A small diamond at each.
    pub(super) fn diamonds(&self, out: &mut String) {
        out.push_str("<path fill=\"#000000\" d=\"");
        for (x, y) in self.middles() {
            let _ = write!(out, "M{} {y:.1}l1.4-1.4 1.4 1.4-1.4 1.4z", x - 1.4);
        }
        out.push_str("\"/>");
    }

    /// The bar that makes a cross of each line.
    pub(super) fn crosses(&self, out: &mut String) {
        out.push_str("<path fill=\"none\" stroke=\"#000000\" stroke-width=\"0.9\" d=\"");
        for (x, y) in self.middles() {
            let _ = write!(out, "M{} {y:.1}h3", x - 1.5);
        }
        out.push_str("\"/>");
    }
}
