//! `cold cache`: show, overview, evict, save, restore, who.

mod evict;
mod format;
mod overview;
mod progress;
mod show;
mod snapshot;
mod who;

use std::path::PathBuf;

use cold_cache::{Scan, ScanOptions, Skipped};
use cold_model::Shown as _;

use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::Outcome;
use crate::ui::Ui;

/// Flags of `cold cache`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
#[command(before_help = "Examples:
  cold cache show --holders /usr/lib/firefox-esr    what is cached of it, and by which processes
  cold cache overview                               the machine's memory by use
  cold cache evict /usr/lib/firefox-esr             evict it, and prove it
  cold cache save warm.snap /usr/lib /home/me       remember which pages are cached …
  cold cache restore warm.snap                      … and bring back exactly these
  cold cache who /lib/x86_64-linux-gnu/libc.so.6    which processes map or open it
")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show how much of files and directories is cached
    Show(show::Args),
    /// Show the machine's memory by use
    Overview(overview::Args),
    /// Evict files from the cache, prove it, and say what stayed and why
    Evict(evict::Args),
    /// Write down which pages of files are cached
    Save(snapshot::SaveArgs),
    /// Bring the cache back to exactly the saved pages
    Restore(snapshot::RestoreArgs),
    /// Show which processes map or open files
    Who(who::Args),
}

/// Which files a path stands for.
#[derive(Debug, Clone, Copy, clap::Args)]
struct TreeArgs {
    /// Follow symbolic links inside directories (named paths are always followed)
    #[arg(long)]
    follow: bool,
    /// Enter other file systems that are mounted inside directories
    #[arg(long)]
    cross_device: bool,
}

impl TreeArgs {
    fn options(self) -> ScanOptions {
        ScanOptions { follow: self.follow, cross_device: self.cross_device }
    }
}

/// Runs the command.
pub(crate) fn run(args: Args, ui: &Ui) -> Outcome {
    match args.action {
        Action::Show(args) => show::run(&args, ui),
        Action::Overview(args) => overview::run(&args, ui),
        Action::Evict(args) => evict::run(&args, ui),
        Action::Save(args) => snapshot::save(&args, ui),
        Action::Restore(args) => snapshot::restore(&args, ui),
        Action::Who(args) => who::run(&args, ui),
    }
}

/// Scans with progress on stderr.
fn scan(paths: &[PathBuf], tree: TreeArgs, ui: &Ui) -> cold_cache::Result<Scan> {
    progress::during(ui, "looking at files", |p| cold_cache::scan(paths, tree.options(), p))
}

/// Says that the list of holders may be incomplete.
fn warn_uninspected(processes: u64, ui: &Ui) {
    if processes > 0 {
        let (what, they) = if processes == 1 { ("process", "it") } else { ("processes", "they") };
        ui.warn(format!(
            "{processes} {what} could not be inspected for lack of permission; {they} may hold files too"
        ));
    }
}

/// Warns about what was not looked at; a few by name, the rest as a number. Returns how many could not
/// be read.
fn warn_skipped(skipped: &[Skipped], ui: &Ui) -> usize {
    const NAMED: usize = 3;
    let unreadable: Vec<String> = skipped
        .iter()
        .filter_map(|s| match s {
            Skipped::Unreadable { reason, .. } => Some(reason.clone()),
            Skipped::OtherDevice { .. } | Skipped::NoPageCache { .. } => None,
        })
        .collect();
    for reason in unreadable.iter().take(NAMED) {
        ui.warn(reason);
    }
    if unreadable.len() > NAMED {
        ui.warn(format!("{} further paths could not be read", unreadable.len() - NAMED));
    }
    for s in skipped {
        match s {
            Skipped::Unreadable { .. } => {}
            Skipped::OtherDevice { path } => ui.note(format!(
                "not entered: {} is another file system (--cross-device enters it)",
                path.shown()
            )),
            Skipped::NoPageCache { path } => {
                ui.note(format!("not entered: the file system at {} has no page cache", path.shown()));
            }
        }
    }
    unreadable.len()
}

/// [`warn_skipped`]'s facts for JSON.
fn skipped_json(skipped: &[Skipped]) -> Vec<serde_json::Value> {
    let one = |s: &Skipped| match s {
        Skipped::Unreadable { path, reason } => {
            serde_json::json!({"path": cold_model::path_text::encode(path), "why": "unreadable", "reason": reason})
        }
        Skipped::OtherDevice { path } => {
            serde_json::json!({"path": cold_model::path_text::encode(path), "why": "other_device"})
        }
        Skipped::NoPageCache { path } => {
            serde_json::json!({"path": cold_model::path_text::encode(path), "why": "no_page_cache"})
        }
    };
    skipped.iter().map(one).collect()
}
