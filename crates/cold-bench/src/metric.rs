//! The figures a run has, by name: one list for gates, summaries, exports and reports.

pub use cold_gate::Unit;
use cold_model::bench::Run;
use cold_model::{Bytes, Known, Nanos};
use serde::Serialize;

/// A figure of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// From just before the clone to ready; with a first request to the whole answer.
    Ready,
    /// With a first request: from just before the clone to the moment when it could be made.
    Serving,
    /// With a first request: from that moment to the whole answer.
    Answer,
    /// From just before the clone to the end of the tree.
    Exit,
    /// User CPU time.
    User,
    /// System CPU time.
    System,
    /// Time waited for storage.
    Stall,
    /// Faults that needed a page not in the cache: [`Run::major_faults`].
    MajorFaults,
    /// All other faults, those that waited for a page in flight included: [`Run::minor_faults`].
    MinorFaults,
    /// Bytes read from storage.
    ReadBytes,
    /// Read requests to the devices.
    Requests,
    /// Peak resident memory of the largest process.
    PeakMemory,
    /// Bytes of the program's code cached after the start.
    Code,
    /// Bytes of the file set cached before the start.
    Residual,
    /// Processes of the tree.
    Processes,
}

impl Metric {
    /// Every figure, in the order reports list them.
    pub const ALL: [Self; 15] = [
        Self::Ready,
        Self::Serving,
        Self::Answer,
        Self::Exit,
        Self::User,
        Self::System,
        Self::Stall,
        Self::MajorFaults,
        Self::MinorFaults,
        Self::ReadBytes,
        Self::Requests,
        Self::PeakMemory,
        Self::Code,
        Self::Residual,
        Self::Processes,
    ];

    /// Its name in gates and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Serving => "serving",
            Self::Answer => "answer",
            Self::Exit => "exit",
            Self::User => "user",
            Self::System => "system",
            Self::Stall => "stall",
            Self::MajorFaults => "major_faults",
            Self::MinorFaults => "minor_faults",
            Self::ReadBytes => "read_bytes",
            Self::Requests => "requests",
            Self::PeakMemory => "peak_memory",
            Self::Code => "code",
            Self::Residual => "residual",
            Self::Processes => "processes",
        }
    }

    /// What the numbers of [`Metric::of`] count.
    pub fn unit(self) -> Unit {
        match self {
            Self::Ready
            | Self::Serving
            | Self::Answer
            | Self::Exit
            | Self::User
            | Self::System
            | Self::Stall => Unit::Time,
            Self::ReadBytes | Self::PeakMemory | Self::Code | Self::Residual => Unit::Bytes,
            Self::MajorFaults | Self::MinorFaults | Self::Requests | Self::Processes => Unit::Count,
        }
    }

    /// Its value in a run: nanoseconds, bytes or a count.
    pub fn of(self, run: &Run) -> Known<f64> {
        let time = |n: Nanos| n.0 as f64;
        let bytes = |b: Bytes| b.0 as f64;
        match self {
            Self::Ready => Known::Value(time(run.ready)),
            Self::Serving => run.serving.clone().map(time),
            Self::Answer => run.answer().map(time),
            Self::Exit => run.exit.clone().map(time),
            Self::User => Known::Value(time(run.user)),
            Self::System => Known::Value(time(run.system)),
            Self::Stall => run.stall.clone().map(time),
            Self::MajorFaults => Known::Value(run.major_faults as f64),
            Self::MinorFaults => Known::Value(run.minor_faults as f64),
            Self::ReadBytes => run.read_bytes.clone().map(bytes),
            Self::Requests => run.read_requests.clone().map(|n| n as f64),
            Self::PeakMemory => run.peak_memory.clone().map(bytes),
            Self::Code => run.code.clone().map(bytes),
            Self::Residual => run.residual.clone().map(|r| bytes(r.bytes)),
            Self::Processes => Known::Value(run.processes as f64),
        }
    }

    /// Its values in many runs, or the first reason why one of them is unknown.
    pub fn of_all<'a>(self, runs: impl IntoIterator<Item = &'a Run>) -> Known<Vec<f64>> {
        let mut values = Vec::new();
        for run in runs {
            match self.of(run) {
                Known::Value(v) => values.push(v),
                Known::Unknown { unknown } => return Known::Unknown { unknown },
            }
        }
        Known::Value(values)
    }
}
