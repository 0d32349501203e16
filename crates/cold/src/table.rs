//! Tables whose last column, a path, gives way to the terminal's width.

use std::io::IsTerminal;

use cold_model::Shown as _;

use crate::ui::{STRONG, paint};

/// Columns of a terminal; `None` when stdout is no terminal (then nothing is shortened).
pub(crate) fn width() -> Option<usize> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    // A terminal that does not tell its size (a serial line) has 80 columns.
    Some(terminal_size::terminal_size().map_or(80, |(w, _)| usize::from(w.0)))
}

/// Rows of right-aligned figures followed by one left-aligned text.
pub(crate) struct Table {
    head: Vec<String>,
    rows: Vec<(Vec<String>, Vec<String>)>,
}

impl Table {
    /// With these headings, the last one over the text.
    pub(crate) fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(|h| (*h).to_owned()).collect(), rows: Vec::new() }
    }
    /// Adds a row, with lines to stand below it. Cells may hold foreign text; none is styled.
    pub(crate) fn row(&mut self, cells: Vec<String>, below: Vec<String>) {
        let one_line = |text: String| text.shown().to_string();
        self.rows
            .push((cells.into_iter().map(one_line).collect(), below.into_iter().map(one_line).collect()));
    }
    /// The lines of the table; `width` limits them.
    pub(crate) fn lines(&self, width: Option<usize>) -> Vec<String> {
        let last = self.head.len().saturating_sub(1);
        let mut widths: Vec<usize> = self.head.iter().map(|h| h.chars().count()).collect();
        for (cells, _) in &self.rows {
            for (w, cell) in widths.iter_mut().zip(cells).take(last) {
                *w = (*w).max(cell.chars().count());
            }
        }
        let indent: usize = widths.iter().take(last).map(|w| w + 2).sum();
        let room = width.map(|w| w.saturating_sub(indent).max(10));
        let line = |cells: &[String]| -> String {
            let cell = |(i, (cell, w)): (usize, (&String, &usize))| {
                if i == last { shorten(cell, room) } else { format!("{cell:>w$}  ", w = *w) }
            };
            cells.iter().zip(&widths).enumerate().map(cell).collect()
        };
        let mut lines = vec![paint(STRONG, line(&self.head))];
        for (cells, below) in &self.rows {
            lines.push(line(cells));
            lines.extend(below.iter().map(|b| cut(format!("{:indent$}  {}", "", b), width)));
        }
        lines
    }
}

/// A sentence's start says more than its end.
pub(crate) fn cut(line: String, width: Option<usize>) -> String {
    match width {
        Some(width) if line.chars().count() > width => {
            line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
        }
        _ => line,
    }
}

/// A path's end says more than its start: cut in front.
fn shorten(text: &str, room: Option<usize>) -> String {
    let length = text.chars().count();
    match room {
        Some(room) if length > room => {
            let tail: String = text.chars().skip(length - room + 1).collect();
            format!("…{tail}")
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_aligned_and_a_long_path_is_cut_in_front() {
        let mut t = Table::new(&["SIZE", "PATH"]);
        t.row(vec!["1 KiB".into(), "/a/very/long/path".into()], vec!["held".into()]);
        t.row(vec!["12 KiB".into(), "/b".into()], vec![]);
        t.row(vec!["1 B".into(), "/c\n99 GiB  /forged".into()], vec!["x\ty".into()]);
        let lines = t.lines(Some(20));
        assert_eq!(lines[1], " 1 KiB  …y/long/path");
        assert_eq!(lines[2], format!("{:10}held", ""));
        assert_eq!(lines[3], "12 KiB  /b");
        assert_eq!(t.lines(None)[1], " 1 KiB  /a/very/long/path");
        assert_eq!(
            t.lines(None)[4..],
            ["   1 B  /c\\n99 GiB  /forged".to_owned(), format!("{:10}x\\ty", "")]
        );
    }
}
