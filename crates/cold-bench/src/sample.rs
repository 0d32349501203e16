//! Made-up reports for tests: times are given, everything else is plausible and can be changed after.

use cold_model::bench::{Command, Ending, MeasuredMachine, Report, Residual, Run, SCHEMA, Series, State};
use cold_model::{Bytes, Known, Nanos};

use cold_stats::Pcg;

/// A run of a series in a round (from 0), with its time to ready in milliseconds.
pub fn run(series: usize, round: u32, sequence: u32, ms: f64, cold: bool) -> Run {
    Run {
        first_exit: Known::unknown("nobody looked"),
        series,
        round,
        sequence,
        ready: Nanos((ms * 1e6) as u64),
        serving: Known::unknown("no first request was made"),
        exit: Known::Value(Nanos((ms * 1e6) as u64 + 300_000)),
        user: Nanos(30_000_000),
        system: Nanos(8_000_000),
        major_faults: if cold { 89 } else { 0 },
        minor_faults: 1735,
        read_bytes: Known::Value(Bytes(if cold { 5_409_792 } else { 0 })),
        read_requests: Known::Value(if cold { 185 } else { 0 }),
        stall: Known::unknown("delay accounting is off"),
        peak_memory: Known::Value(Bytes(11 << 20)),
        code: Known::Value(Bytes(if cold { 1 << 20 } else { 2 << 20 })),
        residual: Known::Value(Residual::default()),
        processes: 1,
        killed_by_force: 0,
        ending: Ending::Code(0),
        taints: Vec::new(),
    }
}

/// A command by name.
pub fn command(name: &str) -> Command {
    Command {
        name: name.to_owned(),
        line: name.to_owned(),
        parameters: Vec::new(),
        files: Known::Value(212),
        file_bytes: Known::Value(Bytes(31 << 20)),
        misses: Known::Value(64),
        processes: Known::Value(1),
        file_names: None,
        missed_in: None,
        plan: None,
        notes: Vec::new(),
    }
}

/// A report of series given as (command's name, state, times in milliseconds), one run per round.
pub fn report(series: &[(&str, State, Vec<f64>)]) -> Report {
    let mut commands: Vec<Command> = Vec::new();
    let mut list = Vec::new();
    for (name, state, _) in series {
        let known = commands.iter().position(|c| c.name == *name);
        let index = known.unwrap_or_else(|| {
            commands.push(command(name));
            commands.len() - 1
        });
        list.push(Series { command: index, state: state.clone() });
    }
    let mut runs = Vec::new();
    for round in 0..series.iter().map(|s| s.2.len()).max().unwrap_or(0) {
        for (i, (_, state, times)) in series.iter().enumerate() {
            if let Some(ms) = times.get(round) {
                runs.push(run(i, round as u32, runs.len() as u32, *ms, state.begins_cold()));
            }
        }
    }
    Report {
        schema: SCHEMA.to_owned(),
        version: "0.1.0".to_owned(),
        started: "2026-11-20T12:00:00Z".to_owned(),
        seed: 42,
        machine: MeasuredMachine {
            kernel: "6.18.44".into(),
            cpu: "2 × Example CPU".into(),
            memory: Bytes(8 << 30),
            devices: vec!["vda: read_ahead_kb 128, scheduler none, not rotational, ext4".into()],
            eviction: "per file, then drop_caches".into(),
            notes: Vec::new(),
        },
        commands,
        series: list,
        stopped: None,
        runs,
    }
}

/// `n` lognormal times around `ms` with the given relative spread.
pub fn noise(ms: f64, spread: f64, n: usize, seed: u64) -> Vec<f64> {
    let mut rng = Pcg::new(seed, 99);
    (0..n).map(|_| ms * (spread * rng.normal()).exp()).collect()
}
