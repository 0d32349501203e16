//! `cold cache evict`.

use std::path::PathBuf;

use cold_cache::overview::overview;
use cold_cache::{Error, EvictReport, EvictTarget, Method, evict};
use cold_model::Shown as _;
use cold_model::path_text;
use cold_model::{Bytes, Nanos};
use cold_sys::page::page_size;
use cold_sys::procfs::ProcFs;
use serde_json::json;

use super::TreeArgs;
use super::format::{reason_json, reasons};
use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::{Exit, Failure, Outcome};
use crate::table::{Table, width};
use crate::ui::{BAD, GOOD, Ui, WARN, paint};
use crate::words::plural;

/// Flags of `cold cache evict`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
#[command(before_help = "Examples:
  cold cache evict /usr/lib/firefox-esr             file by file; needs no root
  cold cache evict --all                            all clean caches of the machine (root)
  cold cache evict --all --reclaim libc.so.6        also pages that processes map (root, no swap)

Dirty data is written first. Every file is checked afterwards. Pages that stayed
are shown with the reason. Exit code 0: all named files are out of the cache;
5: pages stayed, or cannot be checked; 1: files could not be read.
")]
pub(super) struct Args {
    /// Files and directories (with all below)
    #[arg(required_unless_present = "all")]
    paths: Vec<PathBuf>,
    /// Drop all clean caches of the machine, metadata included (root); named paths are checked afterwards
    #[arg(long)]
    all: bool,
    /// Also evict pages that processes map, by memory reclaim of their cgroups (root; no active swap)
    #[arg(long)]
    reclaim: bool,
    /// Show at most this many files that stayed
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    top: usize,
    #[command(flatten)]
    tree: TreeArgs,
    /// Print one JSON document (its fields are documented) instead of text
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args, ui: &Ui) -> Outcome {
    let scan = super::scan(&args.paths, args.tree, ui)?;
    let before = file_cache();
    // Files that the scan saw absent are proved; asking them to leave would only take time.
    let targets: Vec<EvictTarget> = scan
        .files()
        .filter(|(_, f)| f.cached() != Some(0))
        .map(|(path, f)| EvictTarget { path, id: Some(f.id) })
        .collect();
    let method = Method { drop_caches: args.all, reclaim_mapped: args.reclaim, ..Method::FILES };
    let report = super::progress::during(ui, "evicting", |_| {
        // Named paths without a cached page are done, unless the whole machine was meant.
        if targets.is_empty() && !args.all { Ok(EvictReport::default()) } else { evict(&targets, method) }
    })
    .map_err(explain_failure)?;
    let unreadable = super::warn_skipped(&scan.skipped, ui);
    let exit = if unreadable > 0 || !report.failed.is_empty() {
        Exit::Failed
    } else if report.is_clean() {
        Exit::Done
    } else {
        Exit::StateNotReached
    };
    warn_failed(&report, ui);
    let files = scan.totals().files;
    if args.json {
        let document = to_json(&report, files, before, &super::skipped_json(&scan.skipped));
        ui.json(&document);
        return Ok(exit);
    }
    print(&report, files, before, args, ui);
    Ok(exit)
}

fn explain_failure(error: Error) -> Failure {
    let hint = match &error {
        Error::NeedsRoot { .. } => Some("run it as root, or name files: those need no root"),
        _ => None,
    };
    let failure = Failure::from(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Bytes of the machine's file cache (without shared memory).
fn file_cache() -> Option<Bytes> {
    let proc = ProcFs::default();
    let found = overview(&proc.meminfo().ok()?, &proc.vmstat().ok()?, page_size())?;
    found.file_cache().map(Bytes)
}

/// Why the command fails, also where the rest is JSON.
fn warn_failed(report: &EvictReport, ui: &Ui) {
    for (_, reason) in report.failed.iter().take(3) {
        ui.warn(reason);
    }
    if report.failed.len() > 3 {
        ui.warn(format!("{} further files could not be evicted", report.failed.len() - 3));
    }
}

fn print(report: &EvictReport, files: u64, before: Option<Bytes>, args: &Args, ui: &Ui) {
    if !report.stayed.is_empty() {
        let mut table = Table::new(&["STAYED", "FILE"]);
        for s in report.stayed.iter().take(args.top) {
            table.row(vec![s.bytes().to_string(), s.path.shown().to_string()], reasons(&s.reasons, 4));
        }
        table.lines(width()).iter().for_each(|l| ui.line(l));
        if report.stayed.len() > args.top {
            ui.line(format!(
                "… and {} (-n shows more)",
                plural((report.stayed.len() - args.top) as u64, "file")
            ));
        }
        ui.line("");
    }
    if let (true, Some(before), Some(after)) = (args.all, before, file_cache()) {
        ui.line(format!("file cache of the machine: {before} before, {after} after"));
    }
    if let Some(reclaim) = &report.reclaim {
        ui.line(format!(
            "mapped pages reclaimed through {}, {} refused",
            plural(reclaim.done.len() as u64, "memory cgroup"),
            reclaim.refused.len()
        ));
    }
    if !args.paths.is_empty() {
        ui.line(verdict(report, files));
    }
}

fn verdict(report: &EvictReport, files: u64) -> String {
    let gone = report.before.saturating_sub(report.stayed_bytes());
    // Nothing to do takes no time worth a figure.
    let took = if report.files > 0 { format!(", {}", Nanos::from(report.took)) } else { String::new() };
    let mut text = format!("{gone} evicted, {} looked at{took}: ", plural(files, "file"));
    let mut open = Vec::new();
    if !report.stayed.is_empty() {
        let stayed = plural(report.stayed.len() as u64, "file");
        open.push(paint(BAD, format!("{} stayed in {stayed}", report.stayed_bytes())));
    }
    if !report.unknown.is_empty() {
        let unknown = plural(report.unknown.len() as u64, "file");
        let why = "you neither own nor may write them: eviction was asked for, but the kernel does not tell the result";
        open.push(paint(WARN, format!("unknown for {unknown} of {} ({why})", report.unknown_bytes())));
    }
    if open.is_empty() && report.failed.is_empty() {
        open.push(paint(GOOD, "no page of them is left"));
    }
    text += &open.join("; ");
    text
}

fn to_json(
    report: &EvictReport,
    files: u64,
    before: Option<Bytes>,
    skipped: &[serde_json::Value],
) -> serde_json::Value {
    let stayed = report.stayed.iter().map(|s| {
        json!({
            "path": path_text::encode(&s.path), "dev": s.id.dev, "ino": s.id.ino, "bytes": s.bytes(),
            "reasons": s.reasons.iter().map(reason_json).collect::<Vec<_>>(),
        })
    });
    let unknown = report.unknown.iter().map(|(p, b)| json!({"path": path_text::encode(p), "size_bytes": b}));
    let failed = report.failed.iter().map(|(p, r)| json!({"path": path_text::encode(p), "reason": r}));
    let reclaim = report.reclaim.as_ref().map(|r| {
        let refused = r.refused.iter().map(|(p, why)| json!({"cgroup": path_text::encode(p), "reason": why}));
        json!({"cgroups": r.done.len(), "refused": refused.collect::<Vec<_>>()})
    });
    json!({
        "schema": "cold-cache-evict/1",
        "proved": report.is_clean() && skipped.is_empty(),
        "files": files,
        "before_bytes": report.before,
        "stayed_bytes": report.stayed_bytes(),
        "unknown_bytes": report.unknown_bytes(),
        "stayed": stayed.collect::<Vec<_>>(),
        "unknown": unknown.collect::<Vec<_>>(),
        "failed": failed.collect::<Vec<_>>(),
        "skipped": skipped,
        "reclaim": reclaim,
        "machine_file_cache_bytes": {"before": before, "after": file_cache()},
        "took_ns": Nanos::from(report.took),
    })
}
