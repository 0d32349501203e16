//! Whether the cold starts of a series were cold.

use cold_model::bench::{Report, Run, Taint};
use cold_model::{Bytes, Known};

/// What the proofs of a series' starts come to. Runs are all that were made, those that do not count included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColdProof {
    /// Every page was absent before each run.
    Proved {
        /// How many runs.
        runs: usize,
        /// Bytes of its other files that stayed cached, where only the program had to be absent; the least of any run.
        left: Option<Bytes>,
    },
    /// No page was seen cached, and some files could not be looked at.
    Probable {
        /// How many runs.
        runs: usize,
        /// Bytes of the files that the kernel does not tell of; the most of any run.
        unknown: Bytes,
    },
    /// Something stayed cached.
    Not {
        /// How many runs.
        runs: usize,
        /// Before how many of them something did.
        partly_cached: usize,
        /// What stayed before the worst of them.
        most: Bytes,
        /// Runs that do not count for it.
        tainted: usize,
    },
    /// Nobody could look, for this reason.
    Unknown {
        /// Why.
        why: String,
    },
}

impl ColdProof {
    /// Of the series with this index; `None` where its starts are not to be cold, or none was made.
    pub fn of(report: &Report, series: usize) -> Option<Self> {
        if !report.series.get(series)?.state.begins_cold() {
            return None;
        }
        let own: Vec<&Run> = report.runs.iter().filter(|r| r.series == series).collect();
        let mut known = Vec::new();
        for run in &own {
            match &run.residual {
                Known::Value(residual) => known.push(residual),
                Known::Unknown { unknown } => return Some(Self::Unknown { why: unknown.clone() }),
            }
        }
        let most = known.iter().map(|r| r.bytes).max()?;
        let unknown = known.iter().map(|r| r.unknown_bytes).max()?;
        let runs = own.len();
        Some(match (most, unknown) {
            (Bytes(0), Bytes(0)) => Self::Proved { runs, left: known.iter().filter_map(|r| r.left).min() },
            (Bytes(0), unknown) => Self::Probable { runs, unknown },
            (most, _) => Self::Not {
                runs,
                partly_cached: known.iter().filter(|r| r.bytes.0 > 0).count(),
                most,
                tainted: own.iter().filter(|r| is_tainted(r)).count(),
            },
        })
    }
}

fn is_tainted(run: &Run) -> bool {
    run.taints.iter().any(|t| matches!(t, Taint::NotCold { .. }))
}

#[cfg(test)]
mod tests {
    use cold_model::bench::{Residual, State};

    use super::*;
    use crate::sample;

    #[test]
    fn one_run_that_was_not_cold_is_enough_and_one_that_nobody_looked_at_too() {
        let times = vec![100.0, 101.0, 102.0];
        let series = [("a", State::Cold, times.clone()), ("a", State::Warm, times)];
        let mut report = sample::report(&series);
        let residual = |bytes: u64, unknown: u64| {
            let (bytes, unknown_bytes) = (Bytes(bytes), Bytes(unknown));
            Known::Value(Residual { bytes, unknown_bytes, ..Residual::default() })
        };
        for run in &mut report.runs {
            run.residual = residual(0, 0);
        }
        assert_eq!(ColdProof::of(&report, 0), Some(ColdProof::Proved { runs: 3, left: None }));
        assert_eq!(ColdProof::of(&report, 1), None, "it is to be warm");
        let mut own: Vec<usize> = (0..report.runs.len()).filter(|i| report.runs[*i].series == 0).collect();
        let last = own.pop().expect("runs");
        report.runs[last].residual = residual(0, 7);
        assert_eq!(ColdProof::of(&report, 0), Some(ColdProof::Probable { runs: 3, unknown: Bytes(7) }));
        report.runs[own[0]].residual = residual(9, 0);
        let not = ColdProof::Not { runs: 3, partly_cached: 1, most: Bytes(9), tainted: 0 };
        assert_eq!(ColdProof::of(&report, 0), Some(not));
        report.runs[own[1]].residual = Known::unknown("no right");
        assert_eq!(ColdProof::of(&report, 0), Some(ColdProof::Unknown { why: "no right".to_owned() }));
    }
}
