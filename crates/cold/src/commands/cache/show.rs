//! `cold cache show`.

use std::path::{Path, PathBuf};

use cold_cache::{FileOrder, Holders, Scan, ScannedDir, ScannedFile, Totals};
use cold_model::FileId;
use cold_model::Shown as _;
use cold_model::path_text;
use cold_model::{Bytes, Known};
use cold_sys::page::page_size;
use cold_sys::procfs::ProcFs;
use cold_sys::residency::PageMap;
use serde_json::json;

use super::TreeArgs;
use super::format::{holders, holders_json};
use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::{Exit, Outcome};
use crate::table::{Table, width};
use crate::ui::{STRONG, Ui, paint};
use crate::words::{count, percent, plural};

/// Flags of `cold cache show`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
#[command(before_help = "Examples:
  cold cache show /usr                              how much of it is cached, the largest files
  cold cache show --depth 2 -n 0 /usr/lib           per directory, two levels deep, without files
  cold cache show --map --holders libxul.so         which parts, and who holds them
")]
pub(super) struct Args {
    /// Files and directories (with all below)
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Name the processes that map or open each file shown
    #[arg(long)]
    holders: bool,
    /// Draw which parts of each file shown are cached
    #[arg(long)]
    map: bool,
    /// Sum up directories down to this many levels below the named ones
    #[arg(long, value_name = "N", default_value_t = 0)]
    depth: usize,
    /// What comes first
    #[arg(long, value_enum, default_value_t = Sort::Resident)]
    sort: Sort,
    /// Show at most this many files
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    top: usize,
    #[command(flatten)]
    tree: TreeArgs,
    /// Print one JSON document (its fields are documented) instead of text
    #[arg(long)]
    json: bool,
}

/// Holders named below each file.
const HOLDERS: usize = 5;

/// By what rows are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Sort {
    /// Most cached bytes first
    Resident,
    /// Largest first
    Size,
    /// Most dirty bytes first
    Dirty,
    /// By name
    Path,
}

impl Sort {
    fn order(self) -> FileOrder {
        match self {
            Self::Resident => FileOrder::Resident,
            Self::Size => FileOrder::Size,
            Self::Dirty => FileOrder::Dirty,
            Self::Path => FileOrder::Path,
        }
    }
}

/// A file to be shown.
struct Shown<'a> {
    path: PathBuf,
    file: &'a ScannedFile,
    map: Option<PageMap>,
}

/// Runs the command.
pub(super) fn run(args: &Args, ui: &Ui) -> Outcome {
    let scan = super::scan(&args.paths, args.tree, ui)?;
    let mut trees = scan.trees(&args.paths, args.depth);
    args.sort.order().sort_trees(&mut trees);
    let shown = choose(args, &scan);
    let held = if args.holders {
        let files: Vec<(&Path, FileId)> = shown.iter().map(|s| (s.path.as_path(), s.file.id)).collect();
        Some(cold_cache::holders(&ProcFs::default(), Path::new("/sys"), files)?)
    } else {
        None
    };
    let totals = scan.totals();
    if args.json {
        let document = json!({
            "schema": "cold-cache-show/1",
            "page_size": page_size(),
            "totals": totals_json(&totals),
            "trees": trees.iter().map(|(path, t)| tree_json(path, t)).collect::<Vec<_>>(),
            "files": shown.iter().map(|s| file_json(s, args, held.as_ref())).collect::<Vec<_>>(),
            "special_passed_by": scan.special,
            "further_links": scan.repeated,
            "skipped": super::skipped_json(&scan.skipped),
            "uninspected_processes": held.as_ref().map(|h| h.uninspected),
        });
        ui.json(&document);
        return Ok(Exit::Done);
    }
    super::warn_skipped(&scan.skipped, ui);
    print_trees(&trees, args, ui);
    print_files(&shown, args, held.as_ref(), ui);
    let hidden = (totals.files as usize).saturating_sub(shown.len());
    if hidden > 0 && !shown.is_empty() {
        ui.line(format!("… and {} (-n {} shows all)", plural(hidden as u64, "file"), totals.files));
    }
    ui.line("");
    ui.line(summary(&totals));
    if let Some(held) = held {
        super::warn_uninspected(held.uninspected, ui);
    }
    Ok(Exit::Done)
}

/// The files to show, in order, with maps where asked for. Paths are put together only for these: for all
/// files of /usr that took a third of the scan's time.
fn choose<'a>(args: &Args, scan: &'a Scan) -> Vec<Shown<'a>> {
    if args.top == 0 {
        return Vec::new();
    }
    let map = |path: &Path| {
        let (file, meta) = cold_sys::open::regular(path, true).ok()?;
        PageMap::of(&file, &meta).ok()?
    };
    let shown = |(dir, file): (&ScannedDir, &'a ScannedFile)| {
        let path = dir.path.join(&file.name);
        Shown { map: if args.map { map(&path) } else { None }, path, file }
    };
    scan.first(args.sort.order(), args.top).into_iter().map(shown).collect()
}

fn print_trees(trees: &[(PathBuf, Totals)], args: &Args, ui: &Ui) {
    // A named file is among the files already.
    let trees: Vec<_> = trees.iter().filter(|(path, _)| path.is_dir()).collect();
    if trees.is_empty() {
        return;
    }
    let mut table = Table::new(&["RESIDENT", "SIZE", "SHARE", "DIRTY", "UNKNOWN", "FILES", "TREE"]);
    for (path, t) in trees {
        let told = t.told();
        let or_unknown = |b: Bytes| if t.nothing_is_told() { "unknown".to_owned() } else { b.to_string() };
        let cells = vec![
            or_unknown(t.resident),
            t.size.to_string(),
            percent(t.resident.0.min(told.0), told.0),
            or_unknown(t.dirty),
            t.unknown.to_string(),
            count(t.files),
            path.shown().to_string(),
        ];
        table.row(cells, Vec::new());
    }
    table.lines(width()).iter().for_each(|l| ui.line(l));
    if args.top > 0 {
        ui.line("");
    }
}

fn print_files(shown: &[Shown<'_>], args: &Args, held: Option<&Holders>, ui: &Ui) {
    if shown.is_empty() {
        return;
    }
    let mut table = Table::new(&["RESIDENT", "SIZE", "SHARE", "DIRTY", "FILE"]);
    let width = width();
    for s in shown {
        let resident = s.file.cached().map(|n| n * page_size());
        let dirty = s.file.dirty().map(|n| Bytes(n * page_size()).to_string());
        let cells = vec![
            resident.map_or_else(|| "unknown".to_owned(), |r| Bytes(r).to_string()),
            Bytes(s.file.size).to_string(),
            resident.map_or_else(|| "?".to_owned(), |r| percent(r.min(s.file.size), s.file.size)),
            dirty.unwrap_or_else(|| "unknown".to_owned()),
            s.path.shown().to_string(),
        ];
        let mut below = Vec::new();
        if args.map && s.file.size > 0 {
            // 46 columns lie before the last one; a map narrower than 16 cells says nothing.
            let cells = width.map_or(64, |w| w.saturating_sub(52).clamp(16, 128)) as u64;
            below.push(s.map.as_ref().map_or_else(|| "[residency unknown]".to_owned(), |m| bar(m, cells)));
        }
        if let Some(held) = held {
            let mut lines = held.by_file.get(&s.file.id).map(holders).unwrap_or_default();
            let more = lines.len().saturating_sub(HOLDERS);
            lines.truncate(HOLDERS);
            below.append(&mut lines);
            if more > 0 {
                below.push(format!("and {more} more (cold cache who names all)"));
            }
        }
        table.row(cells, below);
    }
    table.lines(width).iter().for_each(|l| ui.line(l));
}

/// The map of a file: each character stands for an equal part, `·` nothing, `░▒▓` some, `█` all cached.
fn bar(map: &PageMap, cells: u64) -> String {
    let glyph = |share: f64| match share {
        0.0 => '·',
        s if s >= 1.0 => '█',
        s if s > 0.66 => '▓',
        s if s > 0.33 => '▒',
        _ => '░',
    };
    format!("[{}]", map.shares(cells).into_iter().map(glyph).collect::<String>())
}

fn summary(t: &Totals) -> String {
    let files = plural(t.files, "file");
    let mut parts = vec![files];
    if !t.nothing_is_told() {
        parts.push(format!("{} of {} cached", paint(STRONG, t.resident), t.told()));
    }
    if t.dirty.0 > 0 {
        parts.push(format!("{} dirty", t.dirty));
    }
    if t.unknown_files > 0 {
        let (files, why) =
            (plural(t.unknown_files, "file"), "you neither own nor may write them: the kernel does not tell");
        parts.push(format!("unknown for {files} of {} ({why})", t.unknown));
    }
    parts.join("; ")
}

fn totals_json(t: &Totals) -> serde_json::Value {
    json!({
        "files": t.files, "size_bytes": t.size, "resident_bytes": t.resident, "dirty_bytes": t.dirty,
        "unknown_files": t.unknown_files, "unknown_bytes": t.unknown,
    })
}

fn tree_json(path: &Path, t: &Totals) -> serde_json::Value {
    let mut value = totals_json(t);
    if let Some(object) = value.as_object_mut() {
        object.shift_insert(0, "path".to_owned(), json!(path_text::encode(path)));
    }
    value
}

fn file_json(s: &Shown<'_>, args: &Args, held: Option<&Holders>) -> serde_json::Value {
    let known = |pages: Option<u64>| match pages {
        Some(n) => Known::Value(Bytes(n * page_size())),
        None => Known::unknown("the kernel does not tell this user"),
    };
    let mut value = json!({
        "path": path_text::encode(&s.path), "dev": s.file.id.dev, "ino": s.file.id.ino,
        "size_bytes": s.file.size, "resident_bytes": known(s.file.cached()),
        "dirty_bytes": known(s.file.dirty()),
    });
    if let Some(object) = value.as_object_mut() {
        if args.map {
            let runs = s.map.as_ref().map(|m| m.runs().map(|r| [r.first, r.pages]).collect::<Vec<_>>());
            object.insert("runs".to_owned(), json!(runs));
        }
        if let Some(held) = held {
            object.insert("holders".to_owned(), holders_json(held.by_file.get(&s.file.id)));
        }
    }
    value
}
