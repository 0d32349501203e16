//! One prefetched start under the recorder: what it got out of its plan.

use std::path::PathBuf;

use cold_bench::session::starts::Starts;
use cold_journal::Journal;
use cold_model::Shown as _;
use cold_model::bench::State;
use cold_model::recording::Recording;
use cold_model::recording::manifest::{StackMethod, Subject};
use cold_model::{Bytes, Nanos};
use cold_plan::store::Replay;
use cold_plan::{Plan, Store};
use cold_prefetch::Waste;
use cold_prefetch::waste::Amounts;
use cold_trace::record::RecordOptions;
use serde::{Deserialize, Serialize};

use super::plans;
use super::trial::Trial;
use crate::exit::Failure;
use crate::progress::Line;
use crate::recorder::{Directory, Watch, manifest};
use crate::table::{Table, width};
use crate::ui::{FAINT, Ui, paint};
use crate::words::{percent, plural};

/// Makes the start from the state `prefetched`; `None` when interrupted, or when nothing here shows it.
pub(super) fn start(
    starts: &mut Starts<'_>,
    plan: &Plan,
    trial: &Trial,
    ready: &str,
    line: &mut Line<'_>,
) -> Result<Option<Waste>, Failure> {
    let Some(recording) = record(starts, &State::Prefetched, ready, line)? else { return Ok(None) };
    // A recording has paths without links.
    let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let own: Vec<PathBuf> = trial.own_files(plan)?.into_iter().map(real).collect();
    Ok(cold_prefetch::waste(plan, &recording, &own))
}

/// Makes and records a start; `None` when interrupted.
pub(super) fn record(
    starts: &mut Starts<'_>,
    state: &State,
    ready: &str,
    line: &mut Line<'_>,
) -> Result<Option<Recording>, Failure> {
    let (private, _guard) = Journal::open()?.create_private("cold-replay")?;
    let directory = Directory::make(private.join("start.cold"))?;
    let options = RecordOptions { stacks: Some(StackMethod::None), ..RecordOptions::default() };
    let mut watch = Watch::new(directory, options, manifest::before(Subject::Command, &[], ready));
    let made = starts.one(Some(state), false, &mut watch, line).map_err(crate::commands::bench::failure)?;
    let Some(single) = made.filter(|s| !s.start.interrupted) else { return Ok(None) };
    Ok(Some(watch.assemble(Some(single))?))
}

/// How much of a plan came by it, was used, late or missing, in one line.
pub(super) fn amounts(t: &Amounts) -> String {
    format!(
        "of {} planned {} came by the plan: {} used, {} unused ({}); {} late (waited {}); {} not planned (waited {})",
        t.planned,
        t.prefetched,
        t.used,
        t.unused,
        percent(t.unused.0, t.prefetched.0),
        t.late,
        t.late_wait,
        t.missing,
        t.missing_wait,
    )
}

/// Prints sums, then the files with the longest waits and the most unused bytes.
pub(super) fn print_waste(ui: &Ui, waste: &Waste, top: usize) {
    ui.line(format!("  {}", amounts(&waste.total)));
    if let (Some(requests), Some(bytes)) = (waste.requests, waste.request_bytes) {
        let planned = plural(u64::from(waste.steps), "read");
        let text = format!("  {bytes} in {requests} requests, planned {} in {planned}", waste.step_bytes);
        ui.line(paint(FAINT, text));
    }
    let worth = |w: &&cold_prefetch::waste::FileWaste| {
        let a = &w.amounts;
        a.unused != Bytes(0) || a.late != Bytes(0) || a.missing != Bytes(0) || a.late_wait != Nanos(0)
    };
    let mut table = Table::new(&["PLANNED", "UNUSED", "LATE", "WAITED", "MISSING", "WAITED", "FILE"]);
    let mut any = false;
    for w in waste.files.iter().filter(worth).take(top) {
        let a = &w.amounts;
        let figures = [a.planned, a.unused, a.late].map(|b| b.to_string());
        let [planned, unused, late] = figures;
        let cells = vec![
            planned,
            unused,
            late,
            a.late_wait.to_string(),
            a.missing.to_string(),
            a.missing_wait.to_string(),
            w.path.shown().to_string(),
        ];
        table.row(cells, Vec::new());
        any = true;
    }
    for line in table.lines(width()).into_iter().filter(|_| any) {
        ui.line(line);
    }
}

/// The last recorded start by a plan, as it is kept beside it.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept {
    /// Seconds since 1970.
    pub(super) at: u64,
    /// Which steps it followed, [`Plan::steps_hash`] in hexadecimal.
    #[serde(skip_serializing)]
    steps: String,
    #[serde(rename(deserialize = "replay"))]
    pub(super) waste: Waste,
}

/// Keeps it beside the plan, for `show`.
pub(super) fn keep(store: &Store, plan: &Plan, waste: &Waste) -> Result<(), Failure> {
    let document = serde_json::to_string(waste)?;
    store.save_replay(
        &plan.key,
        &Replay { at: plans::now(), steps: plan.steps_hash(), document: &document },
    )?;
    Ok(())
}

/// The last recorded start by exactly these steps. `None` when there was none, or the plan has changed since.
pub(super) fn kept(store: &Store, plan: &Plan) -> Option<Kept> {
    let kept: Kept = serde_json::from_slice(&store.replay(&plan.key).ok()??).ok()?;
    (kept.steps == format!("{:016x}", plan.steps_hash())).then_some(kept)
}
