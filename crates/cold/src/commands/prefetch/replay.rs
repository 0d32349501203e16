//! One prefetched start under the recorder: what it got out of its plan.

use std::path::PathBuf;

use cold_bench::session::starts::Starts;
use cold_journal::Journal;
use cold_model::Shown as _;
use cold_model::bench::State;
use cold_model::path_text;
use cold_model::recording::manifest::{StackMethod, Subject};
use cold_model::{Bytes, Nanos};
use cold_plan::store::Replay;
use cold_plan::{Plan, Store};
use cold_prefetch::Waste;
use cold_trace::record::Options;
use serde_json::{Value, json};

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
    let (private, _guard) = Journal::open()?.create_private("cold-replay")?;
    let directory = Directory::make(private.join("start.cold"))?;
    let options = Options { stacks: Some(StackMethod::None), ..Options::default() };
    let mut watch = Watch::new(directory, options, manifest::before(Subject::Command, &[], ready));
    let made = starts
        .one(Some(&State::Prefetched), false, &mut watch, line)
        .map_err(crate::commands::bench::failure)?;
    let Some(single) = made.filter(|s| !s.start.interrupted) else { return Ok(None) };
    let recording = watch.assemble(Some(single))?;
    // A recording has paths without links.
    let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let own: Vec<PathBuf> = trial.own_files(plan)?.into_iter().map(real).collect();
    Ok(cold_prefetch::waste(plan, &recording, &own))
}

/// Tells it: sums, then the files with the longest waits and the most unused bytes.
pub(super) fn tell(ui: &Ui, waste: &Waste, top: usize) {
    let t = &waste.total;
    ui.line(format!(
        "  of {} planned {} came by the plan: {} used, {} unused ({}); {} late (waited {}); {} not planned (waited {})",
        t.planned,
        t.prefetched,
        t.used,
        t.unused,
        percent(t.unused.0, t.prefetched.0),
        t.late,
        t.late_wait,
        t.missing,
        t.missing_wait,
    ));
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

/// The same for programs.
pub(super) fn document(waste: &Waste) -> Value {
    let amounts = |a: &cold_prefetch::waste::Amounts| {
        json!({
            "planned": a.planned, "prefetched": a.prefetched, "used": a.used, "unused": a.unused,
            "late": a.late, "in_flight": a.in_flight, "late_wait_ns": a.late_wait,
            "missing": a.missing, "missing_wait_ns": a.missing_wait,
        })
    };
    let files: Vec<Value> = waste
        .files
        .iter()
        .map(|w| {
            json!({
                "path": path_text::encode(&w.path), "in_plan": w.planned, "metadata": w.metadata,
                "amounts": amounts(&w.amounts),
            })
        })
        .collect();
    json!({
        "total": amounts(&waste.total), "steps": waste.steps, "step_bytes": waste.step_bytes,
        "requests": waste.requests, "request_bytes": waste.request_bytes, "files": files,
    })
}

/// Keeps it beside the plan, for `show`.
pub(super) fn keep(store: &Store, plan: &Plan, waste: &Waste) -> Result<(), Failure> {
    let document = document(waste).to_string();
    let kept = Replay { at: plans::now(), steps: fingerprint(plan), document: &document };
    store.save_replay(&plan.key, &kept)?;
    Ok(())
}

/// The last recorded start by exactly these steps: seconds since 1970 and [`document`]. `None` when there was none,
/// or the plan has changed since.
pub(super) fn kept(store: &Store, plan: &Plan) -> Option<(u64, Value)> {
    let mut kept: Value = serde_json::from_slice(&store.replay(&plan.key).ok()??).ok()?;
    if kept["steps"].as_str()? != format!("{:016x}", fingerprint(plan)) {
        return None;
    }
    Some((kept["at"].as_u64()?, kept["replay"].take()))
}

/// The same for the same steps only.
fn fingerprint(plan: &Plan) -> u64 {
    let mut bytes = Vec::with_capacity(plan.steps.len() * 16);
    for s in &plan.steps {
        bytes.extend(s.file.to_le_bytes());
        bytes.extend(s.offset.to_le_bytes());
        bytes.extend(s.bytes.to_le_bytes());
    }
    cold_model::hash::fnv1a64(&[&bytes[..]])
}
