//! Marker shapes and colours of series.

use std::fmt::Write;

use super::{BLUE, GREEN, GREY, PURPLE, VERMILION};
use crate::escape::markup;

/// How the points of one series look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marker {
    shape: usize,
    /// Colour as `#rrggbb`.
    pub(crate) color: &'static str,
}

/// Those of Okabe & Ito without black and yellow, then darker ones.
const COLORS: [&str; 8] = [BLUE, VERMILION, GREEN, PURPLE, "#b07d00", "#2f8fc4", "#7a4fa3", GREY];

impl Marker {
    /// The marker of a series by its index.
    pub(crate) fn of(series: usize) -> Self {
        Self { shape: series % 8, color: COLORS[series % COLORS.len()] }
    }

    /// The outline around (0, 0) with radius 1, as corners; a circle has none.
    fn corners(self) -> &'static [(f64, f64)] {
        match self.shape {
            1 => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            2 => &[(0.0, -1.1), (1.1, 0.85), (-1.1, 0.85)],
            3 => &[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)],
            4 => &[(0.0, 1.1), (1.1, -0.85), (-1.1, -0.85)],
            5 => &[
                (-0.4, -1.15),
                (0.4, -1.15),
                (0.4, -0.4),
                (1.15, -0.4),
                (1.15, 0.4),
                (0.4, 0.4),
                (0.4, 1.15),
                (-0.4, 1.15),
                (-0.4, 0.4),
                (-1.15, 0.4),
                (-1.15, -0.4),
                (-0.4, -0.4),
            ],
            6 => &[(-1.2, -0.5), (1.2, -0.5), (1.2, 0.5), (-1.2, 0.5)],
            7 => &[(-0.5, -1.1), (0.5, -1.1), (1.1, 0.0), (0.5, 1.1), (-0.5, 1.1), (-1.1, 0.0)],
            _ => &[],
        }
    }

    /// Draws it filled, or hollow for tainted runs, with a hover title unless that is empty.
    pub(crate) fn draw(self, out: &mut String, (x, y): (f64, f64), size: f64, filled: bool, title: &str) {
        let color = self.color;
        let looks = if filled {
            format!("fill=\"{color}\" fill-opacity=\"0.85\"")
        } else {
            format!("class=\"hollow\" fill=\"#ffffff\" stroke=\"{color}\" stroke-width=\"1.6\"")
        };
        let title =
            if title.is_empty() { String::new() } else { format!("<title>{}</title>", markup(title)) };
        let corners = self.corners();
        // Writing to a String cannot fail.
        let _ = if corners.is_empty() {
            write!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{size:.1}\" {looks}>{title}</circle>")
        } else {
            let points: Vec<String> =
                corners.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + size * dx, y + size * dy)).collect();
            write!(out, "<polygon points=\"{}\" {looks}>{title}</polygon>", points.join(" "))
        };
    }
}
