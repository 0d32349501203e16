//! The document of `cold service status` (docs/formats/service-json.md).

use std::collections::BTreeMap;
use std::time::Instant;

use cold_launch::Helpers;
use cold_model::{Known, Nanos};
use cold_service::{Harm, Saved, Total};
use serde::{Deserialize, Serialize};

use super::history::{Check, Name, Row, Sums};
use super::keep::Kept;
use super::learn::Learning;
use super::reader::Cost;
use crate::words::plural;

pub(crate) const SCHEMA: &str = "coldstart.service-status/1";

/// All of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Status {
    pub(crate) schema: String,
    /// The running service; none where none runs.
    pub(crate) service: Option<Running>,
    pub(crate) history: HistoryState,
    /// Seconds saved by all programs together; none before there are control starts.
    pub(crate) saved: Option<Total>,
    /// Bytes asked for that starts did not need, at least, by one recorded start of each plan that was checked.
    pub(crate) bytes_in_vain: Known<u64>,
    /// Bytes asked for by these plans.
    pub(crate) bytes_checked: u64,
    /// Plans that had starts.
    pub(crate) programs: Vec<ProgramStatus>,
    /// Plans that are switched off.
    pub(crate) off: Vec<Off>,
}

/// Since the service began.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Running {
    pub(crate) pid: u32,
    /// For how many it has been running.
    pub(crate) seconds: u64,
    pub(crate) paused: bool,
    /// Why it follows no plan any more; none: it does.
    pub(crate) harm: Option<String>,
    pub(crate) watched: Vec<Watched>,
    #[serde(flatten)]
    pub(crate) tally: Tally,
    /// From hearing of a cold start to the first request for pages; none before the first.
    pub(crate) begins: Option<Begins>,
    pub(crate) plans: usize,
    pub(crate) plan_bytes: usize,
    /// Plans that cannot be followed, with the reason.
    pub(crate) refused: Vec<String>,
    /// What it learns by itself; none where it is not to.
    pub(crate) learning: Option<Learning>,
    pub(crate) own: Own,
}

/// What was heard and done since the service began.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Tally {
    /// Files that were executed, loaders included.
    pub(crate) heard: u64,
    /// Times that the kernel's queue was full, and starts were not told.
    pub(crate) overflows: u64,
    /// Starts of programs with plans.
    pub(crate) planned: u64,
    /// Of these, starts that were looked at; the others came within seconds of a warm one.
    pub(crate) looked: u64,
    /// Starts that were found warm.
    pub(crate) warm: u64,
    /// Cold starts that were followed by their plan.
    pub(crate) followed: u64,
    /// Cold starts that went without, to compare.
    pub(crate) controls: u64,
    /// Starts of which only what all scenarios share was read.
    pub(crate) common: u64,
    /// Starts that were not followed, by the reason.
    pub(crate) skipped: BTreeMap<String, u64>,
    /// Bytes asked for, for all of these starts.
    pub(crate) bytes: u64,
    /// To whose control groups the pages of followed starts were charged.
    pub(crate) charged: Charging,
    /// What was read before anybody wanted it.
    pub(crate) kept: Kept,
}

/// Whose control groups the pages of followed starts were charged to.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Charging {
    /// Starts of which pages were charged to the program's own.
    pub(crate) own_starts: u64,
    /// Bytes of these pages, of all that was asked for.
    pub(crate) own_bytes: u64,
    /// Starts of which all were charged to the service's, by the reason.
    pub(crate) service: BTreeMap<String, u64>,
}

/// Times to the first request, nanoseconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Begins {
    pub(crate) starts: u64,
    pub(crate) median_ns: f64,
    pub(crate) p95_ns: f64,
    pub(crate) max_ns: u64,
}

/// What the service itself costs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Own {
    /// CPU time of all its threads, nanoseconds, reading ahead included.
    pub(crate) cpu_ns: Known<u64>,
    /// The same per time of one CPU since it began.
    pub(crate) cpu_share: Known<f64>,
    /// What the service had disks read since it began, whatever for: less than it asked for where pages were there.
    pub(crate) read_bytes: Known<u64>,
    /// Resident memory of the service, bytes.
    pub(crate) memory_bytes: Known<u64>,
}

impl Own {
    /// Of a service that began then, and of the helpers that it makes itself.
    pub(crate) fn since(began: Instant, helpers: Option<&Helpers>) -> Self {
        let cost = Cost::of(std::process::id().cast_signed());
        let Cost { cpu, memory, read } = match helpers.and_then(Helpers::pid) {
            Some(pid) => cost.with_helpers(pid),
            None => cost,
        };
        let cpu =
            cpu.map_or_else(|| Known::unknown("the kernel does not tell"), |Nanos(ns)| Known::Value(ns));
        let elapsed = began.elapsed().as_nanos().max(1) as f64;
        Self {
            read_bytes: read.map_or_else(|| Known::unknown("/proc/PID/io does not tell"), Known::Value),
            cpu_share: cpu.clone().map(|ns| ns as f64 / elapsed),
            cpu_ns: cpu,
            memory_bytes: memory
                .map_or_else(|| Known::unknown("/proc/PID/smaps_rollup does not tell"), Known::Value),
        }
    }
}

/// A file system whose starts are heard of, or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Watched {
    pub(crate) mount_point: String,
    /// Why starts on it are not heard of; `None`: they are.
    pub(crate) problem: Option<String>,
}

/// Where the history is, and why it is not written.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HistoryState {
    pub(crate) path: String,
    pub(crate) problem: Option<String>,
}

/// A plan that is switched off.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Off {
    #[serde(flatten)]
    pub(crate) name: Name,
    pub(crate) why: String,
}

/// Why no plan should be followed at all: those that are followed have lost time together, by the whole of the interval.
/// A single one is judged by itself, by its own test.
pub(crate) fn harm(rows: &[Row], followed: &[Name]) -> Option<String> {
    let of_followed = rows.iter().filter(|row| followed.contains(&row.name));
    let each: Vec<Saved> = of_followed.filter_map(Row::saved).collect();
    let Harm { programs, least, most } = cold_service::harm(&each)?;
    let programs = plural(programs as u64, "program");
    Some(format!("the starts of {programs} lost {least} to {most} by their plans"))
}

/// The starts of a plan since the history begins.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ProgramStatus {
    #[serde(flatten)]
    pub(crate) name: Name,
    #[serde(flatten)]
    pub(crate) sums: Sums,
    pub(crate) saved: Option<Saved>,
    /// What a recorded start needed of its plan; none: none was recorded yet.
    pub(crate) check: Option<Check>,
}

impl Status {
    /// From what the history says, or why it says nothing.
    pub(crate) fn new(
        service: Option<Running>,
        path: String,
        rows: Result<Vec<Row>, String>,
        off: Vec<Off>,
    ) -> Self {
        let (rows, problem) = match rows {
            Ok(rows) => (rows, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        let programs: Vec<ProgramStatus> = rows.into_iter().map(ProgramStatus::of).collect();
        let each: Vec<Saved> = programs.iter().filter_map(|p| p.saved).collect();
        let (bytes_checked, in_vain) = in_vain(&programs);
        Self {
            schema: SCHEMA.to_owned(),
            service,
            history: HistoryState { path, problem },
            saved: cold_service::total(&each),
            bytes_in_vain: in_vain,
            bytes_checked,
            programs,
            off,
        }
    }
}

/// Bytes asked for by plans that were checked, and of these what was read in vain: the share that a recorded start did
/// not need, as if all starts were like it.
fn in_vain(programs: &[ProgramStatus]) -> (u64, Known<u64>) {
    let checked = || programs.iter().filter_map(|p| Some((p.sums.bytes, p.check.filter(|c| c.planned > 0)?)));
    let bytes = checked().map(|(bytes, _)| bytes).sum();
    if bytes == 0 {
        let why = "no start that followed its plan was recorded yet; `cold prefetch verify --replay` tells";
        return (0, Known::unknown(why));
    }
    let share = |check: Check| check.unneeded as f64 / check.planned as f64;
    let in_vain: f64 = checked().map(|(bytes, check)| bytes as f64 * share(check)).sum();
    (bytes, Known::Value(in_vain as u64))
}

impl ProgramStatus {
    fn of(row: Row) -> Self {
        Self { saved: row.saved(), check: row.check, name: row.name, sums: row.sums }
    }

    /// Starts that found pages absent.
    pub(crate) fn cold(&self) -> u64 {
        let Sums { followed, controls, common, skipped, .. } = self.sums;
        followed + controls + common + skipped
    }
}

#[cfg(test)]
mod tests {
    use cold_model::Nanos;
    use cold_service::{Served, Start};

    use super::*;

    fn row(name: &Name, served_ms: u64, control_ms: u64) -> Row {
        let start = |control, ms: u64, i: u64| Start { control, wall_ns: ms * 1_000_000 + i * 10_000 };
        let starts = (0..12).flat_map(|i| [start(false, served_ms, i), start(true, control_ms, i)]);
        let all = Served { starts: 12, took: Nanos(12 * served_ms * 1_000_000) };
        Row { name: name.clone(), sums: Sums::default(), latest: starts.collect(), all, check: None }
    }

    #[test]
    fn what_is_read_in_vain_goes_by_plans_that_were_checked() {
        let program = |bytes, check: Option<(u64, u64)>| ProgramStatus {
            name: Name { executable: "/a".to_owned(), script: None, scenario: "default".to_owned() },
            sums: Sums { bytes, ..Sums::default() },
            saved: None,
            check: check.map(|(planned, unneeded)| Check { at_ns: 1, plan: 2, planned, unneeded }),
        };
        let unknown = |of: &[ProgramStatus]| matches!(in_vain(of), (0, Known::Unknown { .. }));
        assert!(
            unknown(&[]) && unknown(&[program(9, None), program(0, Some((5, 1))), program(7, Some((0, 0)))])
        );
        let some = [program(1000, Some((200, 20))), program(500, None), program(3000, Some((400, 4)))];
        assert_eq!(in_vain(&some), (4000, Known::Value(130)));
    }

    #[test]
    fn what_is_followed_and_loses_time_altogether_is_told() {
        let name = |n: &str| Name { executable: n.to_owned(), script: None, scenario: "default".to_owned() };
        let (a, b, c) = (name("a"), name("b"), name("c"));
        let all = [a.clone(), b.clone(), c.clone()];
        let slower = [row(&a, 120, 100), row(&b, 130, 100)];
        let why = harm(&slower, &all).expect("harm");
        assert!(why.contains("2 programs lost"), "{why}");
        // What is followed no more does no harm any more.
        assert_eq!(harm(&slower, &[b, c]), None);
    }
}
