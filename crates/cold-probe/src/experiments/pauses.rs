//! What a wait costs a program when it goes on: starts that are paused again and again, with pauses of several lengths.
//!
//! A processor that slept computes slower for a while, because its caches are cold. How much that is depends on the
//! machine and on the program, so the program itself is started, warm, and its whole process group stopped (SIGSTOP) after
//! each so much running, as a disk would have stopped it. Only CPU time counts: that of all its processes. Pauses of the
//! shortest length say what stopping itself costs.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use cold_model::{Cooling, Known, Nanos};
use cold_sim::paused::{Paused, fit};
use cold_stats::{Pcg, median};
use cold_sys::search;
use cold_sys::supervise::client::{StartSpec, Supervised};
use cold_sys::supervise::protocol::{Pauses, SupervisorEvent, Usage};
use rustix::io::Errno;
use serde::Serialize;

use super::Lab;
use crate::{Error, Result};

/// Starts before the first that counts: caches, and what the program keeps of its own.
const SETTLED: u64 = 2;

/// How often it is looked whether the user wants an end.
const LOOK: Duration = Duration::from_millis(100);
/// Starts without pauses in a round: all others are compared with them.
const UNPAUSED: usize = 3;

/// What is measured.
#[derive(Debug, Clone, Serialize)]
pub struct PausesOptions {
    /// The program and its arguments.
    #[serde(skip)]
    pub command: Vec<OsString>,
    /// How long pauses are.
    #[serde(rename = "pauses_ns")]
    pub pauses: Vec<Nanos>,
    /// After how much running they come.
    #[serde(rename = "every_ns")]
    pub every: Vec<Nanos>,
    /// Rounds; each makes one start of every way.
    pub repeats: u64,
}

impl PausesOptions {
    /// The command as text.
    pub fn words(&self) -> Vec<String> {
        self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }
}

/// Starts with one kind of pauses: medians of all rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PausesRow {
    /// How long a pause was meant to be; 0: none.
    #[serde(rename = "pause_ns")]
    pub pause: Nanos,
    /// After how much running it came.
    #[serde(rename = "every_ns")]
    pub every: Nanos,
    /// How long it was.
    pub paused_ns: f64,
    /// Pauses of a start.
    pub pauses: f64,
    /// CPU time of a start.
    pub cpu_ns: f64,
    /// What one pause cost more than none.
    pub each_ns: f64,
}

/// What paused starts say.
#[derive(Debug, Clone, Serialize)]
pub struct PausesFindings {
    /// CPU time of a start that nobody paused.
    pub cpu_ns: f64,
    /// That of the later rounds by that of the earlier ones: how far it moved.
    pub drift: f64,
    /// Starts with pauses.
    pub rows: Vec<PausesRow>,
    /// What that comes to.
    pub cooling: Known<Cooling>,
    /// Cost of a pause itself, where a law was found.
    pub stopping_ns: Option<f64>,
    /// Part of what differs that the law tells ([`cold_sim::paused::Fitted::explains`]).
    pub explains: Option<f64>,
}

/// One start.
#[derive(Debug, Clone, Copy, Default)]
struct Start {
    pauses: u64,
    paused: Nanos,
    cpu: Nanos,
}

/// Measures.
pub fn run(lab: &Lab<'_>, o: &PausesOptions) -> Result<PausesFindings> {
    let mut ways: Vec<(Nanos, Nanos)> = vec![(Nanos(0), Nanos(0))];
    for pause in &o.pauses {
        ways.extend(o.every.iter().map(|every| (*pause, *every)));
    }
    // Ctrl-C also ends a program that nobody pauses, and a supervisor that has just begun: that is no failure of theirs.
    let start = |way| one(lab, o, way).or_else(|e| lab.runner.check().and(Err(e)));
    for _ in 0..SETTLED {
        start((Nanos(0), Nanos(0)))?;
    }
    let mut starts: Vec<Vec<Start>> = vec![Vec::new(); ways.len()];
    let mut rng = Pcg::new(lab.seed, 0);
    for round in 1..=o.repeats.max(1) {
        let mut order: Vec<usize> = (0..ways.len()).chain([0; UNPAUSED - 1]).collect();
        rng.shuffle(&mut order);
        for way in order {
            lab.say(&format!("round {round} of {}", o.repeats));
            starts[way].push(start(ways[way])?);
        }
    }
    Ok(findings(&ways, &starts))
}

fn findings(ways: &[(Nanos, Nanos)], starts: &[Vec<Start>]) -> PausesFindings {
    let of = |all: &[Start], value: fn(&Start) -> f64| {
        let values: Vec<f64> = all.iter().map(value).collect();
        median(&values).unwrap_or(0.0)
    };
    let cpu = |all: &[Start]| of(all, |s| s.cpu.0 as f64);
    let unpaused = starts.first().map(Vec::as_slice).unwrap_or_default();
    let (early, late) = unpaused.split_at(unpaused.len() / 2);
    let cpu_ns = cpu(unpaused);
    let row = |((pause, every), all): (&(Nanos, Nanos), &Vec<Start>)| {
        let (pauses, own) = (of(all, |s| s.pauses as f64), cpu(all));
        PausesRow {
            pause: *pause,
            every: *every,
            paused_ns: of(all, |s| s.paused.0 as f64 / s.pauses.max(1) as f64),
            pauses,
            cpu_ns: own,
            each_ns: (own - cpu_ns) / pauses.max(1.0),
        }
    };
    let rows: Vec<PausesRow> = ways.iter().zip(starts).skip(1).map(row).collect();
    let paused = |r: &PausesRow| Paused { pause_ns: r.paused_ns, pauses: r.pauses, cpu_ns: r.cpu_ns };
    let fitted = fit(cpu_ns, &rows.iter().map(paused).collect::<Vec<_>>());
    let why = "long pauses cost no more than short ones, as far as these starts tell";
    PausesFindings {
        cpu_ns,
        drift: if early.is_empty() { 1.0 } else { cpu(late) / cpu(early).max(1.0) },
        rows,
        cooling: fitted.map_or_else(|| Known::unknown(why), |f| Known::Value(f.cooling)),
        stopping_ns: fitted.map(|f| f.each_ns),
        explains: fitted.map(|f| f.explains),
    }
}

/// Starts the program, and pauses it as said. Its supervisor ends it when this process does.
fn one(lab: &Lab<'_>, o: &PausesOptions, (pause, every): (Nanos, Nanos)) -> Result<Start> {
    let name = o.command.first().map_or(Path::new(""), Path::new);
    let failed = |why: String| Error::Subject { path: name.to_owned(), why };
    let path = std::env::var_os("PATH");
    let Some(program) = search::find(name.as_os_str(), path.as_deref(), Path::new("")) else {
        return Err(Error::io("start", name)(Errno::NOENT.into()));
    };
    let mut supervised = Supervised::prepare(StartSpec {
        program,
        argv: o.command.clone(),
        env: Vec::new(),
        cgroups: Vec::new(),
        helper: None,
        pauses: (every.0 > 0).then_some(Pauses { after: every, length: pause }),
        stdin: Stdio::null(),
        stdout: Stdio::null(),
        stderr: Stdio::null(),
    })?;
    supervised.go()?;
    loop {
        lab.runner.check()?;
        match supervised.event(Some(LOOK))? {
            // Those that outlive the first process may be stopped: nothing of a start stays.
            Some(SupervisorEvent::MainEnded { status: 0, .. }) => supervised.end(Duration::ZERO)?,
            Some(SupervisorEvent::MainEnded { .. }) => {
                return Err(failed("it did not end with success, so there is nothing to compare".to_owned()));
            }
            Some(SupervisorEvent::TreeGone { usage, .. }) => {
                let Usage { user, system, pauses, paused, .. } = usage;
                return Ok(Start { pauses, paused, cpu: user + system });
            }
            Some(other) => return Err(failed(format!("its supervisor said {other:?}"))),
            None => {}
        }
    }
}
