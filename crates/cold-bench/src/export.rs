//! Files for other programs: our own document, and hyperfine's formats so that its users' scripts work.
//!
//! Nothing here opens a file; every writer takes an `impl io::Write`. hyperfine's formats know neither
//! states nor taints: every series becomes a command named `NAME (STATE)`, only counted runs are in it,
//! and a series without any is left out (hyperfine has no way to say "no result").

mod hyperfine;
mod native;
mod tables;

pub use hyperfine::{json_v1, json_v2};
pub use native::json;
pub use tables::{csv, markdown};

use cold_model::bench::{Command, Ending, Report, Run};

use cold_stats::Described;

/// Why an export failed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The output cannot be written.
    #[error("cannot write the export: {0}")]
    Write(#[from] std::io::Error),
    /// The document cannot be made or written.
    #[error("cannot write the export: {0}")]
    Json(#[from] serde_json::Error),
}

/// A series as hyperfine would show it; times in seconds.
struct ExportRow<'a> {
    name: String,
    command: &'a Command,
    runs: Vec<&'a Run>,
    time: Described,
    /// Means over the runs.
    user: f64,
    system: f64,
}

fn rows(report: &Report) -> Vec<ExportRow<'_>> {
    let row = |(i, s): (usize, &cold_model::bench::Series)| {
        let command = report.commands.get(s.command)?;
        let runs: Vec<&Run> = report.counted(i).collect();
        let seconds = |f: fn(&Run) -> f64| -> Vec<f64> { runs.iter().map(|r| f(r)).collect() };
        Some(ExportRow {
            name: format!("{} ({})", command.name, s.state),
            command,
            time: cold_stats::describe(&seconds(|r| r.ready.as_secs()), report.seed)?,
            user: cold_stats::mean(&seconds(|r| r.user.as_secs()))?,
            system: cold_stats::mean(&seconds(|r| r.system.as_secs()))?,
            runs,
        })
    };
    report.series.iter().enumerate().filter_map(row).collect()
}

/// hyperfine's exit code: none when the command did not exit by itself.
fn exit_code(run: &Run) -> Option<i32> {
    match run.ending {
        Ending::Code(code) => Some(code),
        Ending::Signal(_) | Ending::Ended | Ending::TimedOut => None,
    }
}

/// Peak memory of every run in bytes; none when it is unknown for one of them.
fn memory(runs: &[&Run]) -> Option<Vec<u64>> {
    runs.iter().map(|r| r.peak_memory.value().map(|b| b.0)).collect()
}

#[cfg(test)]
mod tests;
