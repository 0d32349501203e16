//! Sets of pages as sorted runs: [`Runs`] for set algebra at the end, [`LiveRuns`] for a replay in time.

use std::collections::BTreeMap;

/// A half-open range of pages.
pub type Range = std::ops::Range<u64>;

/// A set of pages: runs sorted, disjoint and not adjacent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Runs(Vec<Range>);

impl Runs {
    /// The union of any ranges, in any order; empty ones are dropped.
    pub fn of(mut ranges: Vec<Range>) -> Self {
        ranges.retain(|r| r.start < r.end);
        ranges.sort_unstable_by_key(|r| r.start);
        let mut out: Vec<Range> = Vec::new();
        for r in ranges {
            match out.last_mut() {
                Some(last) if r.start <= last.end => last.end = last.end.max(r.end),
                _ => out.push(r),
            }
        }
        Self(out)
    }
    /// The set of one range; empty where the range is.
    pub fn one(range: Range) -> Self {
        Self(if range.start < range.end { vec![range] } else { Vec::new() })
    }
    /// The runs, ascending, with a gap between any two.
    pub fn runs(&self) -> &[Range] {
        &self.0
    }
    /// Number of pages.
    pub fn pages(&self) -> u64 {
        self.0.iter().map(|r| r.end - r.start).sum()
    }
    /// Nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// The page is in it.
    pub fn contains(&self, page: u64) -> bool {
        let i = self.0.partition_point(|r| r.end <= page);
        self.0.get(i).is_some_and(|r| r.start <= page)
    }
    /// The parts of the range that are in it, ascending.
    pub fn within(&self, r: &Range) -> impl Iterator<Item = Range> {
        let first = self.0.partition_point(|x| x.end <= r.start);
        let r = r.clone();
        let end = r.end;
        self.0[first..]
            .iter()
            .take_while(move |x| x.start < end)
            .map(move |x| x.start.max(r.start)..x.end.min(r.end))
            .filter(|x| x.start < x.end)
    }
    /// Puts a range in.
    pub fn insert(&mut self, r: &Range) {
        if r.start >= r.end {
            return;
        }
        // Those that it overlaps or touches become one with it.
        let from = self.0.partition_point(|x| x.end < r.start);
        let to = from + self.0[from..].partition_point(|x| x.start <= r.end);
        let (mut start, mut end) = (r.start, r.end);
        for met in self.0.drain(from..to) {
            (start, end) = (start.min(met.start), end.max(met.end));
        }
        self.0.insert(from, start..end);
    }
    /// Pages in both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let (mut i, mut j, mut out) = (0, 0, Vec::new());
        while let (Some(a), Some(b)) = (self.0.get(i), other.0.get(j)) {
            let both = a.start.max(b.start)..a.end.min(b.end);
            if both.start < both.end {
                out.push(both);
            }
            if a.end <= b.end {
                i += 1;
            } else {
                j += 1;
            }
        }
        Self(out)
    }
    /// Pages in either.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self::of(self.0.iter().chain(&other.0).cloned().collect())
    }
    /// Pages in this one only.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let (mut out, mut j) = (Vec::new(), 0);
        for r in &self.0 {
            let mut from = r.start;
            while other.0.get(j).is_some_and(|o| o.end <= r.start) {
                j += 1;
            }
            for o in other.0[j..].iter().take_while(|o| o.start < r.end) {
                if from < o.start {
                    out.push(from..o.start);
                }
                from = from.max(o.end);
            }
            if from < r.end {
                out.push(from..r.end);
            }
        }
        Self(out)
    }
}

/// A set of pages that changes: insertion and removal of ranges in logarithmic time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LiveRuns(BTreeMap<u64, u64>);

impl LiveRuns {
    /// Puts the range in.
    pub fn insert(&mut self, r: &Range) {
        if r.start >= r.end {
            return;
        }
        let (mut start, mut end) = (r.start, r.end);
        // Runs that overlap or touch it, from the last one backwards.
        while let Some((&s, &e)) = self.0.range(..=end).next_back() {
            if e < start {
                break;
            }
            if s <= start && e >= end {
                return;
            }
            self.0.remove(&s);
            start = start.min(s);
            end = end.max(e);
        }
        self.0.insert(start, end);
    }
    /// Takes the range out.
    pub fn remove(&mut self, r: &Range) {
        if r.start >= r.end {
            return;
        }
        while let Some((&s, &e)) = self.0.range(..r.end).next_back() {
            if e <= r.start {
                break;
            }
            self.0.remove(&s);
            if e > r.end {
                self.0.insert(r.end, e);
            }
            if s < r.start {
                self.0.insert(s, r.start);
                break;
            }
        }
    }
    /// The page is in it.
    pub fn contains(&self, page: u64) -> bool {
        self.0.range(..=page).next_back().is_some_and(|(_, &e)| e > page)
    }
    /// The parts of the range that are in it, ascending.
    pub fn within(&self, r: &Range) -> Vec<Range> {
        if r.start >= r.end {
            return Vec::new();
        }
        let first = self.0.range(..=r.start).next_back().map_or(r.start, |(&s, _)| s);
        self.0
            .range(first..r.end)
            .map(|(&s, &e)| s.max(r.start)..e.min(r.end))
            .filter(|x| x.start < x.end)
            .collect()
    }
    /// The parts of the range that are not in it, ascending.
    pub fn holes(&self, r: &Range) -> Vec<Range> {
        let (mut from, mut out) = (r.start, Vec::new());
        for x in self.within(r) {
            if from < x.start {
                out.push(from..x.start);
            }
            from = x.end;
        }
        if from < r.end {
            out.push(from..r.end);
        }
        out
    }
}

#[cfg(test)]
mod tests;
