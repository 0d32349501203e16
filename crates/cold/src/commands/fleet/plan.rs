//! `cold fleet plan`.

use std::path::PathBuf;

use cold_fleet::consensus::{self, Differs, NoConsensus};
use cold_fleet::query::{CONSENSUS, NAMES, Query, SUBJECT, Settings};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Choice, Dataset, engine, located};
use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::{Exit, Failure, Outcome};
use crate::results;
use crate::ui::Ui;
use crate::words::plural;

/// Flags of `cold fleet plan`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
#[command(before_help = "Examples:
  cold fleet plan /srv/fleet --program app -o app.plan.json
  cold fleet plan /srv/fleet --program app --share 0.8 > app.plan.json
")]
pub(super) struct Args {
    #[command(flatten)]
    dataset: Dataset,

    #[command(flatten)]
    choice: Choice,

    #[command(flatten)]
    program: engine::Program,

    /// File to write [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &Args, ui: &Ui) -> Outcome {
    if let Some(path) = &args.output {
        results::check(path)?;
    }
    let settings = args.choice.settings(false);
    let place = located(&args.dataset.dataset)?;
    let subjects = rows(args, &SUBJECT, &place, &settings, ui)?;
    let pages = rows(args, &CONSENSUS, &place, &settings, ui)?;
    let names = rows(args, &NAMES, &place, &settings, ui)?;
    let made = consensus::plan(&subjects, &pages, &names).map_err(|e| {
        let hint = match &e {
            NoConsensus::Several { what: Differs::Program, .. } => Some("choose one: --program"),
            NoConsensus::Several { what: Differs::Version, .. } => Some("choose one: --program-version"),
            NoConsensus::Several { what: Differs::Scenario, .. } => Some("choose one: --scenario"),
            NoConsensus::Redacted => Some("add recordings of programs of packages, with --scenario NAME"),
            NoConsensus::Nothing => Some("a lower --share asks for less agreement"),
            _ => None,
        };
        let failure = Failure::from(e);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    let text = cold_plan::portable::export(&made.plan, &made.sections_of())? + "\n";
    match &args.output {
        Some(path) => results::save(path, text)?,
        None => ui.json_text(text.trim_end()),
    }
    if made.redacted > 0 {
        ui.note(format!("{} left out: their paths are redacted", plural(made.redacted, "name")));
    }
    if args.output.is_some() {
        let files = plural(made.plan.files.len() as u64, "file");
        let starts = plural(made.plan.learnt.starts.into(), "start");
        ui.line(format!("what {starts} agree upon: {files}; import it with `cold prefetch import`"));
    }
    Ok(Exit::Done)
}

fn rows<T: DeserializeOwned>(
    args: &Args,
    question: &Query,
    place: &str,
    settings: &Settings,
    ui: &Ui,
) -> Result<Vec<T>, Failure> {
    let rows = args.program.ask(place, question, settings, ui)?;
    let rows = rows.into_iter().map(|row| serde_json::from_value(Value::Object(row)));
    Ok(rows.collect::<Result<_, _>>().map_err(|e| anyhow::anyhow!("{}: {e}", question.name))?)
}
