//! `cold history`: figures from commit to commit, and where their level changed.

pub(crate) mod store;

use std::path::PathBuf;

use cold_model::Shown as _;
use cold_stats::changepoint::{Change, LEAST, changes};

use crate::cli::TEMPLATE;
use crate::exit::{Exit, Failure, Outcome};
use crate::results;
use crate::table::Table;
use crate::ui::{FAINT, STRONG, Ui, paint};
use crate::words::{count, wrap};
use store::{Series, Store};

/// The seed of the permutation test, so that the same history gives the same changes.
const SEED: u64 = 1;
/// Letters of a commit that are shown.
const SHORT: usize = 12;

const EXAMPLES: &str = "Examples:
  cold bench --record starts.db --states cold -- ./app      adds a point for the commit checked out
  cold report app.cold --record starts.db --fail-if 'files > 120'
  cold history starts.db                                    how each figure went, where it changed
  cold history starts.db --html starts.html                 drawn, commit by commit
  cold history starts.db --figure cold.ready --json
";

const AFTER: &str = "\
Points of the same command on the same kind of machine (CPU and memory) are compared, in the order
in which they were added. A change of level is found by ranks and a permutation test at 1%, from 8
points on.

Exit codes: 0 shown; 1 failed; 2 wrong usage.";

/// Flags of `cold history`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = AFTER)]
pub(crate) struct Args {
    /// The history that --record made
    #[arg(value_name = "HISTORY.db")]
    file: PathBuf,

    /// Only figures with this text in their name
    #[arg(long, value_name = "TEXT")]
    figure: Option<String>,

    /// Only commands with this text in them
    #[arg(long, value_name = "TEXT")]
    command: Option<String>,

    /// Write plots of all figures and a table of their changes as a page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write the plots as a picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Every point and change as one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    for path in [&args.html, &args.svg].into_iter().flatten() {
        results::check(path)?;
    }
    let mut series = Store::open(&args.file, false)?.series()?;
    let wanted = |text: &str, part: Option<&String>| part.is_none_or(|p| text.contains(p.as_str()));
    series.retain(|s| wanted(&s.figure, args.figure.as_ref()) && wanted(&s.command, args.command.as_ref()));
    let judged: Vec<(Series, Vec<Change>)> = series
        .into_iter()
        .map(|s| {
            let values: Vec<f64> = s.values.iter().map(|v| v.median).collect();
            let found = changes(&values, SEED);
            (s, found)
        })
        .collect();
    draw(args, &judged, ui)?;
    if args.json {
        ui.json(&document(&judged));
    } else {
        show(&judged, ui);
    }
    Ok(Exit::Done)
}

/// Writes the pictures that were asked for.
fn draw(args: &Args, judged: &[(Series, Vec<Change>)], ui: &Ui) -> Result<(), Failure> {
    let all: Vec<cold_report::history::Series> = judged.iter().map(|(s, found)| drawn(s, found)).collect();
    let title = format!("History {}", args.file.shown());
    let made = [
        (&args.html, cold_report::history::html as fn(&str, &[cold_report::history::Series]) -> String),
        (&args.svg, cold_report::history::svg),
    ];
    for (path, make) in made {
        if let Some(path) = path {
            results::save(path, make(&title, &all))?;
            ui.note(format!("wrote {}", path.shown()));
        }
    }
    Ok(())
}

fn drawn(s: &Series, found: &[Change]) -> cold_report::history::Series {
    let point = |v: &store::Value| cold_report::history::CommitPoint {
        at: v.at.clone(),
        commit: v.commit.clone(),
        value: v.median,
        interval: v.interval,
    };
    cold_report::history::Series {
        command: s.command.clone(),
        machine: s.machine.clone(),
        figure: s.figure.clone(),
        unit: s.unit,
        points: s.values.iter().map(point).collect(),
        changes: found.to_vec(),
    }
}

fn show(judged: &[(Series, Vec<Change>)], ui: &Ui) {
    let mut about = None;
    let mut table = Table::new(&["POINTS", "FIRST", "LATEST", "FIGURE"]);
    let flush = |table: &mut Table| {
        let full = std::mem::replace(table, Table::new(&["POINTS", "FIRST", "LATEST", "FIGURE"]));
        for l in full.lines(crate::table::width()) {
            ui.line(l);
        }
    };
    for (s, found) in judged {
        if about != Some((&s.command, &s.machine)) {
            if about.is_some() {
                flush(&mut table);
            }
            about = Some((&s.command, &s.machine));
            for l in wrap(&s.command, ui.width()) {
                ui.line(paint(STRONG, l));
            }
            ui.line(paint(FAINT, format!("  {}", s.machine)));
        }
        let shown = |v: Option<&store::Value>| v.map_or_else(String::new, |v| s.unit.show(v.median));
        let row = vec![
            count(s.values.len() as u64),
            shown(s.values.first()),
            shown(s.values.last()),
            s.figure.clone(),
        ];
        table.row(row, found.iter().map(|c| change(s, c)).collect());
    }
    if about.is_some() {
        flush(&mut table);
    } else {
        ui.line("The history has no such points.".to_owned());
    }
    if judged.iter().all(|(s, _)| s.values.len() < LEAST) {
        ui.line(format!("Changes are looked for from {LEAST} points on."));
    }
}

/// A change in words: where it came, and between which levels.
fn change(s: &Series, c: &Change) -> String {
    let at = s.values.get(c.at);
    let commit =
        at.and_then(|v| v.commit.as_deref()).map_or("an unknown commit", |id| id.get(..SHORT).unwrap_or(id));
    let (day, p) = (at.map_or("", |v| v.at.get(..10).unwrap_or(&v.at)), c.p);
    format!(
        "  from {commit} ({day}): {} instead of {} (p {p:.4})",
        s.unit.show(c.after),
        s.unit.show(c.before)
    )
}

fn document(judged: &[(Series, Vec<Change>)]) -> serde_json::Value {
    let series = judged.iter().map(|(s, found)| {
        let points = s.values.iter().map(|v| {
            let (low, high) = (v.interval.map(|i| i.0), v.interval.map(|i| i.1));
            serde_json::json!({"at": v.at, "commit": v.commit, "value": v.median, "low": low, "high": high})
        });
        serde_json::json!({
            "command": s.command,
            "machine": s.machine,
            "figure": s.figure,
            "unit": s.unit,
            "points": points.collect::<Vec<_>>(),
            "changes": found,
        })
    });
    serde_json::json!({"schema": "coldstart.history/1", "series": series.collect::<Vec<_>>()})
}
