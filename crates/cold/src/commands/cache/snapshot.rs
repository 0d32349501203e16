//! `cold cache save` and `cold cache restore`.

use std::path::PathBuf;

use cold_cache::snapshot::{CaptureGaps, LeftAlone, RestoreReport, Snapshot, capture};
use cold_model::Shown as _;
use cold_model::path_text;
use serde_json::json;

use super::TreeArgs;
use super::format::{reason_json, reasons};
use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::{Exit, Outcome};
use crate::ui::{BAD, GOOD, Ui, paint};
use crate::words::plural;

/// At most this many files of a kind are named in text; JSON has all.
const NAMED: usize = 10;

/// Flags of `cold cache save`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
#[command(before_help = "Examples:
  cold cache save warm.snap /usr/lib /usr/share     which pages of these are cached now
  cold bench --states cold,snapshot=warm.snap -- …  a start from this state

Exit code 5: the snapshot lacks files, because they could not be read or because
the kernel does not tell this user what is cached of them.
")]
pub(super) struct SaveArgs {
    /// The snapshot to write (replaced when it exists)
    file: PathBuf,
    /// Files and directories (with all below). Files without a cached page are saved too: a restore evicts them
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    tree: TreeArgs,
    /// Print one JSON document (its fields are documented) instead of text
    #[arg(long)]
    json: bool,
}

/// Flags of `cold cache restore`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
#[command(before_help = "Examples:
  cold cache restore warm.snap         evicts what was not cached then, reads what is missing

Files that changed since are left alone and named. Exit code 0: every page of
every file is as saved; 5: not.
")]
pub(super) struct RestoreArgs {
    /// A snapshot made by `cold cache save`
    file: PathBuf,
    /// Print one JSON document (its fields are documented) instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn save(args: &SaveArgs, ui: &Ui) -> Outcome {
    let (snapshot, gaps) =
        super::progress::during(ui, "looking at files", |p| capture(&args.paths, args.tree.options(), p))?;
    snapshot.save(&args.file)?;
    let unreadable = super::warn_skipped(&gaps.skipped, ui);
    for (_, reason) in gaps.failed.iter().take(NAMED) {
        ui.warn(reason);
    }
    let complete = gaps.unknown.is_empty() && gaps.failed.is_empty() && unreadable == 0;
    if args.json {
        let document = json!({
            "schema": "cold-cache-save/1",
            "file": path_text::encode(&args.file),
            "complete": complete,
            "files": snapshot.files.len(),
            "resident_bytes": snapshot.resident(),
            "unknown": gaps.unknown.iter().map(|(p, b)| json!({"path": path_text::encode(p), "size_bytes": b})).collect::<Vec<_>>(),
            "failed": gaps.failed.iter().map(|(p, r)| json!({"path": path_text::encode(p), "reason": r})).collect::<Vec<_>>(),
            "skipped": super::skipped_json(&gaps.skipped),
        });
        ui.json(&document);
    } else {
        print_saved(&snapshot, &gaps, args, ui);
    }
    Ok(if complete { Exit::Done } else { Exit::StateNotReached })
}

fn print_saved(snapshot: &Snapshot, gaps: &CaptureGaps, args: &SaveArgs, ui: &Ui) {
    let files = plural(snapshot.files.len() as u64, "file");
    ui.line(format!("{} cached pages of {files} saved in {}", snapshot.resident(), args.file.shown()));
    if !gaps.unknown.is_empty() {
        let n = plural(gaps.unknown.len() as u64, "file");
        ui.warn(format!(
            "left out: {n}, as the kernel does not tell this user what is cached of them (root may ask)"
        ));
    }
}

pub(super) fn restore(args: &RestoreArgs, ui: &Ui) -> Outcome {
    let snapshot = Snapshot::load(&args.file)?;
    let report = super::progress::during(ui, "restoring", |p| cold_cache::snapshot::restore(&snapshot, p))?;
    if args.json {
        ui.json(&to_json(&report));
    } else {
        print_restored(&report, ui);
    }
    Ok(if report.is_exact() { Exit::Done } else { Exit::StateNotReached })
}

fn print_restored(report: &RestoreReport, ui: &Ui) {
    for d in report.different.iter().take(NAMED) {
        let (missing, extra) = (plural(d.missing, "page"), plural(d.extra, "page"));
        ui.line(format!("different: {}: {missing} missing, {extra} too many", d.path.shown()));
        for line in d.error.iter().cloned().chain(reasons(&d.reasons, 4)) {
            ui.line(format!("  {line}"));
        }
    }
    for (path, why) in report.changed.iter().take(NAMED) {
        ui.line(match why {
            LeftAlone::Refused(error) => format!("left alone: {error}"),
            LeftAlone::Changed(why) => format!("left alone: {}: {why}", path.shown()),
        });
    }
    for path in report.unknown.iter().take(NAMED) {
        ui.line(format!("left alone: {}: the kernel does not tell this user what is cached", path.shown()));
    }
    let parts = [report.different.len(), report.changed.len(), report.unknown.len()];
    let unnamed: usize = parts.iter().map(|n| n.saturating_sub(NAMED)).sum();
    if unnamed > 0 {
        ui.line(format!("… and {} (--json names all)", plural(unnamed as u64, "file")));
    }
    let verdict = if report.is_exact() {
        paint(GOOD, "every page as saved")
    } else {
        let others = parts.iter().sum::<usize>() as u64;
        paint(BAD, format!("{} not as saved", plural(others, "file")))
    };
    let identical = plural(report.identical, "file");
    ui.line(format!("{} read, {} evicted, {identical} identical: {verdict}", report.read, report.evicted));
}

fn to_json(report: &RestoreReport) -> serde_json::Value {
    let different = report.different.iter().map(|d| {
        json!({
            "path": path_text::encode(&d.path), "missing_pages": d.missing, "extra_pages": d.extra,
            "reasons": d.reasons.iter().map(reason_json).collect::<Vec<_>>(), "error": d.error,
        })
    });
    let changed =
        report.changed.iter().map(|(p, r)| json!({"path": path_text::encode(p), "reason": r.to_string()}));
    json!({
        "schema": "cold-cache-restore/1",
        "exact": report.is_exact(),
        "identical_files": report.identical,
        "wanted_bytes": report.wanted,
        "read_bytes": report.read,
        "evicted_bytes": report.evicted,
        "different": different.collect::<Vec<_>>(),
        "changed": changed.collect::<Vec<_>>(),
        "unknown": report.unknown.iter().map(path_text::encode).collect::<Vec<_>>(),
    })
}
