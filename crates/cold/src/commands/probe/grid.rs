//! A table of words and figures that fits the terminal: columns give way in the order of their weight.

use cold_model::Shown as _;

use crate::ui::{STRONG, paint};

pub(super) struct Grid {
    head: Vec<(&'static str, Weight)>,
    rows: Vec<Vec<String>>,
}

/// How a column is set, and when it gives way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// Left out first where the terminal is narrow.
    Low,
    /// Goes when that is not enough.
    Middle,
    /// Never left out; figures at the right.
    High,
    /// Stays; words at the left.
    Word,
}

impl Grid {
    pub(super) fn new(head: &[(&'static str, Weight)]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        // A cell may be foreign text.
        self.rows.push(cells.into_iter().map(|cell| cell.shown().to_string()).collect());
    }

    /// The lines, and how many columns are not in them.
    pub(super) fn lines(&self, width: usize) -> (Vec<String>, usize) {
        let widths: Vec<usize> = (0..self.head.len())
            .map(|i| {
                let cells = self.rows.iter().filter_map(|r| r.get(i)).map(|c| c.chars().count());
                cells.chain([self.head.get(i).map_or(0, |h| h.0.chars().count())]).max().unwrap_or(0)
            })
            .collect();
        let mut shown: Vec<usize> = (0..self.head.len()).collect();
        let total = |shown: &[usize]| shown.iter().map(|i| widths.get(*i).unwrap_or(&0) + 2).sum::<usize>();
        for weight in [Weight::Low, Weight::Middle] {
            while total(&shown) > width + 2 {
                let last = shown.iter().rposition(|i| self.head.get(*i).is_some_and(|h| h.1 == weight));
                let Some(last) = last else { break };
                shown.remove(last);
            }
        }
        let line = |cells: &[String]| -> String {
            let cell = |i: &usize| {
                let (text, w) =
                    (cells.get(*i).map_or("", String::as_str), widths.get(*i).copied().unwrap_or(0));
                match self.head.get(*i) {
                    Some((_, Weight::Word)) => format!("{text:<w$}"),
                    _ => format!("{text:>w$}"),
                }
            };
            shown.iter().map(cell).collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let head: Vec<String> = self.head.iter().map(|h| h.0.to_owned()).collect();
        let mut lines = vec![paint(STRONG, line(&head))];
        lines.extend(self.rows.iter().map(|r| line(r)));
        (lines, self.head.len() - shown.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_give_way_until_it_fits() {
        let mut g = Grid::new(&[
            ("NAME", Weight::Word),
            ("MS", Weight::High),
            ("SD", Weight::Low),
            ("MAX", Weight::Middle),
        ]);
        g.row(["a", "1.000", "0.1", "9"].map(str::to_owned).to_vec());
        assert_eq!(g.lines(80).0[1], "a     1.000  0.1    9");
        let (lines, left) = g.lines(18);
        assert_eq!((lines[1].as_str(), left), ("a     1.000    9", 1));
        let (lines, left) = g.lines(5);
        assert_eq!((lines[1].as_str(), left), ("a     1.000", 2));
    }
}
