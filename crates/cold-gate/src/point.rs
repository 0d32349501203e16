//! Figures of one command at one time, as histories keep them.

use crate::Unit;

/// Figures of one command at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// CPU and memory: only points of the same are compared.
    pub machine: String,
    /// Release of the kernel.
    pub kernel: String,
    /// The command, in the words of whoever measured it.
    pub command: String,
    /// Its figures, each name once.
    pub figures: Vec<Figure>,
}

/// A figure by its name in conditions.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Name on the left side of a condition, `cold.ready`.
    pub name: String,
    /// Unit of the value and the interval.
    pub unit: Unit,
    /// Nanoseconds, bytes or a count; of several runs the median.
    pub value: f64,
    /// Its 95% interval, where it has one.
    pub interval: Option<(f64, f64)>,
}
