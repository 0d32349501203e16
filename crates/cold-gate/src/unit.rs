//! What a figure is measured in.

use cold_model::{Bytes, Nanos};
use serde::Serialize;

/// What a figure is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds: varies from run to run, is judged by intervals.
    Time,
    /// An amount of bytes, shown in binary units.
    Bytes,
    /// A number of things.
    Count,
}

impl Unit {
    /// The value in words (`12.3 ms`, `1.46 MiB`, `300`).
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Time => Nanos(value.max(0.0).round() as u64).to_string(),
            Self::Bytes => Bytes(value.max(0.0).round() as u64).to_string(),
            Self::Count if value.fract() == 0.0 => format!("{value:.0}"),
            Self::Count => format!("{value:.1}"),
        }
    }
}
