//! `cold cache who`.

use std::path::{Path, PathBuf};

use cold_cache::FileHolders;
use cold_model::FileId;
use cold_model::Shown as _;
use cold_model::path_text;
use cold_sys::procfs::ProcFs;
use serde_json::json;

use super::TreeArgs;
use super::format::{holders, holders_json};
use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::{Exit, Outcome};
use crate::ui::{STRONG, Ui, paint};
use crate::words::plural;

/// Flags of `cold cache who`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
#[command(before_help = "Examples:
  cold cache who /lib/x86_64-linux-gnu/libc.so.6    which processes map or open it
  cold cache who /usr/lib/firefox-esr               every mapped or open file below it
")]
pub(super) struct Args {
    /// Files and directories (with all below)
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    tree: TreeArgs,
    /// Print one JSON document (its fields are documented) instead of text
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args, ui: &Ui) -> Outcome {
    let scan = super::scan(&args.paths, args.tree, ui)?;
    let files: Vec<(PathBuf, FileId)> = scan.files().map(|(path, f)| (path, f.id)).collect();
    let pairs = files.iter().map(|(path, id)| (path.as_path(), *id));
    let found = cold_cache::holders(&ProcFs::default(), Path::new("/sys"), pairs)?;
    let mut held: Vec<(&PathBuf, &FileHolders)> =
        files.iter().filter_map(|(path, id)| Some((path, found.by_file.get(id)?))).collect();
    held.sort_by(|a, b| b.1.weight().cmp(&a.1.weight()).then_with(|| a.0.cmp(b.0)));
    if args.json {
        let one = |(path, h): &(&PathBuf, &FileHolders)| json!({"path": path_text::encode(path), "holders": holders_json(Some(h))});
        let document = json!({
            "schema": "cold-cache-who/1",
            "files": files.len(),
            "held": held.iter().map(one).collect::<Vec<_>>(),
            "skipped": super::skipped_json(&scan.skipped),
            "uninspected_processes": found.uninspected,
        });
        ui.json(&document);
        return Ok(Exit::Done);
    }
    super::warn_skipped(&scan.skipped, ui);
    for (path, h) in &held {
        ui.line(paint(STRONG, path.shown()));
        for line in holders(h) {
            ui.line(format!("  {line}"));
        }
    }
    let all = plural(files.len() as u64, "file");
    ui.line(format!("{} of {all} held by a process or device", held.len()));
    super::warn_uninspected(found.uninspected, ui);
    Ok(Exit::Done)
}
