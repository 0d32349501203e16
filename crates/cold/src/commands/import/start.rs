//! From evidence to the recording of one start: which, where to, and what was found.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use cold_model::{Nanos, Shown as _};
use cold_windows::evidence::{Activity, Evidence, Tree, Wanted};
use serde::Serialize;

use super::save::{Saved, save};
use crate::exit::{Exit, Failure, Outcome};
use crate::table::{self, Table};
use crate::ui::Ui;
use crate::words::{count, plural};

/// Rows of the list of processes.
const ROWS: usize = 20;

/// Which start, and where its recording goes.
#[derive(Debug, clap::Args)]
pub(super) struct Choice {
    /// Process that was started, by its program's name or its id [default: the one with most hard faults]
    #[arg(short, long, value_name = "NAME|PID")]
    process: Option<String>,

    /// Directory to write [default: from the program's name: app.exe.cold, app.exe-2.cold, …]
    #[arg(short, long, value_name = "NAME.cold")]
    output_directory: Option<PathBuf>,

    /// Replace a recording of that name
    #[arg(long, requires = "output_directory")]
    overwrite: bool,

    /// List the processes of the trace; write nothing
    #[arg(long, conflicts_with_all = ["process", "output_directory"])]
    list: bool,

    /// What was found as one JSON document on stdout instead of text
    #[arg(long)]
    json: bool,
}

/// What the command found and wrote.
#[derive(Debug, Serialize)]
struct FoundStarts {
    windows_build: Option<u32>,
    processors: Option<u32>,
    /// Length of the trace, ns.
    length: Nanos,
    lost: std::collections::BTreeMap<String, u64>,
    hard_faults: u64,
    /// Whose file has a name.
    hard_faults_named: u64,
    disk_reads: u64,
    disk_reads_named: u64,
    /// Most hard faults first.
    processes: Vec<Activity>,
    /// What was written, and of which process.
    recording: Option<Written>,
}

#[derive(Debug, Serialize)]
struct Written {
    #[serde(skip)]
    process: usize,
    directory: String,
    pid: u32,
    image: String,
}

/// Writes the recording of the chosen start, or lists what could be chosen.
pub(super) fn import(evidence: &Evidence, choice: &Choice, from: &Path, ui: &Ui) -> Outcome {
    let mut found = found(evidence);
    let mut exit = Exit::Done;
    if !choice.list {
        let (written, saved) = write(evidence, choice, from)?;
        exit = saved.exit();
        found.recording = Some(written);
    }
    if choice.json {
        ui.json(&found);
        return Ok(exit);
    }
    for line in summary(&found, choice.list) {
        ui.line(line);
    }
    Ok(exit)
}

fn wanted(text: &str) -> Wanted {
    text.parse().map_or_else(|_| Wanted::Name(text.to_owned()), Wanted::Pid)
}

fn write(evidence: &Evidence, choice: &Choice, from: &Path) -> Result<(Written, Saved), Failure> {
    let wanted = choice.process.as_deref().map(wanted);
    let tree = Tree::choose(evidence, wanted.as_ref())
        .map_err(|e| Failure::usage(e.to_string()).hint("see --list"))?;
    let root = evidence.processes.get(tree.root);
    let (pid, image) = root.map_or((0, "start".to_owned()), |p| (p.pid, p.image.clone()));
    let name =
        from.file_name().map_or_else(|| from.shown().to_string(), |n| n.to_string_lossy().into_owned());
    let recording = cold_windows::recording(evidence, &tree, env!("CARGO_PKG_VERSION"), &name);
    let saved = save(&recording, choice.output_directory.as_deref(), choice.overwrite, &image)?;
    let directory = saved.directory.shown().to_string();
    Ok((Written { process: tree.root, directory, pid, image }, saved))
}

fn found(evidence: &Evidence) -> FoundStarts {
    let (hard_faults_named, disk_reads_named) = evidence.named();
    FoundStarts {
        windows_build: evidence.system.build,
        processors: evidence.system.processors,
        length: Nanos(evidence.ended.max(0).cast_unsigned()),
        lost: evidence.lost.clone(),
        hard_faults: evidence.faults.len() as u64,
        hard_faults_named,
        disk_reads: evidence.reads.len() as u64,
        disk_reads_named,
        processes: evidence.activities(),
        recording: None,
    }
}

fn summary(found: &FoundStarts, list: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let build = found.windows_build.map_or_else(String::new, |b| format!(", build {b}"));
    let cpus = found.processors.map_or_else(String::new, |n| format!(", {n} processors"));
    lines.push(format!("trace        Windows{build}{cpus}, {}", found.length));
    let named = |n: u64, named: u64| match n - named {
        0 => String::new(),
        left => format!(" ({} without a file's name)", count(left)),
    };
    lines.push(format!(
        "found        {}{}, {}{}",
        plural(found.hard_faults, "hard fault"),
        named(found.hard_faults, found.hard_faults_named),
        plural(found.disk_reads, "disk read"),
        named(found.disk_reads, found.disk_reads_named),
    ));
    let lost: Vec<String> = found.lost.iter().map(|(what, n)| format!("{} {what}", count(*n))).collect();
    lines.push(format!(
        "lost         {}",
        if lost.is_empty() { "nothing".to_owned() } else { lost.join(", ") }
    ));
    if let Some(written) = &found.recording {
        let row = found.processes.iter().find(|r| r.process == written.process);
        let did = row.map_or_else(String::new, |r| {
            format!(": {}, {} waited, {} read", plural(r.hard_faults, "hard fault"), r.waited, r.read)
        });
        lines.push(format!("start        {} (process {}){did}", written.image, written.pid));
        lines.push(format!("recording    {}", written.directory));
        lines.push(format!("next: cold report {}", written.directory));
    }
    if list {
        lines.push(String::new());
        lines.extend(processes(found));
    }
    lines
}

fn processes(found: &FoundStarts) -> Vec<String> {
    let names: HashMap<u32, &str> = found.processes.iter().map(|r| (r.pid, r.image.as_str())).collect();
    let mut out = Table::new(&["pid", "hard faults", "waited", "reads", "read", "began", "process"]);
    let active: Vec<&Activity> = found.processes.iter().filter(|r| r.is_of_interest()).collect();
    for row in active.iter().take(ROWS) {
        let by = row.parent.and_then(|p| names.get(&p)).map_or_else(String::new, |p| format!("  (by {p})"));
        out.row(
            vec![
                row.pid.to_string(),
                count(row.hard_faults),
                row.waited.to_string(),
                count(row.reads),
                row.read.to_string(),
                if row.began_in_trace { "in it" } else { "before" }.to_owned(),
                format!("{}{by}", row.image),
            ],
            Vec::new(),
        );
    }
    let mut lines = out.lines(table::width());
    if active.len() > ROWS {
        lines.push(format!("… and {} more (--json has all)", active.len() - ROWS));
    }
    lines
}
