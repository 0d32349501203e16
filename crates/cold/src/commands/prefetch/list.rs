//! `cold prefetch list`, `remove`, `prune`: the plans as a whole.

use std::time::{Duration, SystemTime};

use cold_model::Bytes;
use cold_model::Shown as _;
use cold_model::path_text;
use cold_plan::document::Document;
use cold_plan::plan::Standing;
use cold_plan::store::{Keep, Listed};
use serde_json::json;

use super::plans::{self, StorePlace, Which};
use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::{Exit, Failure, Outcome};
use crate::table::{Table, width};
use crate::ui::Ui;
use crate::values::{count, duration};
use crate::words::plural;

const EXAMPLES: &str = "Examples:
  cold prefetch list
  cold prefetch list --json | jq '.plans[].name'
";
const REMOVE_EXAMPLES: &str = "Examples:
  cold prefetch remove firefox-esr
  cold prefetch remove --scenario db -- postgres -D /srv/db
";
const PRUNE_EXAMPLES: &str = "Examples:
  cold prefetch prune --older-than 90d
  cold prefetch prune --max-size 50Mi
";

/// Flags of `cold prefetch list`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// Flags of `cold prefetch remove`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = REMOVE_EXAMPLES, after_help = EXIT_CODES)]
pub(crate) struct RemoveArgs {
    #[command(flatten)]
    which: Which,
}

/// Flags of `cold prefetch prune`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = PRUNE_EXAMPLES, after_help = EXIT_CODES)]
#[group(required = true, multiple = true)]
pub(crate) struct PruneArgs {
    /// Remove plans that were neither used nor learnt for this long: 90d, 12h
    #[arg(long, value_name = "AGE")]
    older_than: Option<String>,

    /// Remove plans, the longest unused first, until all together have at most this size: 50Mi
    #[arg(long, value_name = "SIZE")]
    max_size: Option<String>,
}

pub(crate) fn run(args: &Args, place: &StorePlace, ui: &Ui) -> Outcome {
    let store = place.store()?;
    let listing = store.list()?;
    for (path, error) in &listing.refused {
        ui.warn(format!("{}: {error}", plans::name(path)));
    }
    if args.json {
        let names: Vec<String> = listing.plans.iter().map(|l| plans::name(&l.path)).collect();
        let plans = listing.plans.iter().zip(&names);
        let document = json!({
            "schema": "coldstart.plans/1",
            "directory": path_text::encode(store.directory()),
            "plans": plans.map(|(l, name)| Document::brief(&l.plan, name, &l.path)).collect::<Vec<_>>(),
        });
        ui.json(&document);
        return Ok(Exit::Done);
    }
    if listing.plans.is_empty() {
        ui.line(format!("no plans in {}", store.directory().shown()));
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["READS", "STARTS", "LEARNT", "GAIN", "NAME", "FOR"]);
    for l in &listing.plans {
        table.row(row(l), Vec::new());
    }
    for line in table.lines(width()) {
        ui.line(line);
    }
    Ok(Exit::Done)
}

fn row(l: &Listed) -> Vec<String> {
    let gain = match (&l.plan.standing, &l.plan.trial) {
        (Standing::Off(_), _) => "off".to_owned(),
        (_, Some(t)) => format!("{:.2}×", t.ratio),
        (_, None) => "untried".to_owned(),
    };
    vec![
        Bytes(l.plan.read_bytes()).to_string(),
        l.plan.learnt.starts.to_string(),
        plans::ago(l.plan.learnt.last),
        gain,
        plans::name(&l.path),
        plans::what(&l.plan.key),
    ]
}

/// Removes one plan and its history.
pub(crate) fn remove(args: &RemoveArgs, place: &StorePlace, ui: &Ui) -> Outcome {
    let store = place.store()?;
    let listed = args.which.find(&store)?;
    store.remove(&listed.plan.key)?;
    ui.line(format!(
        "removed {} and its history ({})",
        plans::name(&listed.path),
        plans::what(&listed.plan.key)
    ));
    Ok(Exit::Done)
}

/// Removes those that nobody uses.
pub(crate) fn prune(args: &PruneArgs, place: &StorePlace, ui: &Ui) -> Outcome {
    let keep = Keep {
        max_age: args.older_than.as_deref().map(age).transpose()?,
        max_bytes: args.max_size.as_deref().map(size).transpose()?,
    };
    let removed = place.store()?.prune(keep, SystemTime::now())?;
    for path in &removed {
        ui.line(format!("removed {}", plans::name(path)));
    }
    ui.line(plural(removed.len() as u64, "plan") + " removed");
    Ok(Exit::Done)
}

fn size(text: &str) -> Result<u64, Failure> {
    count(text).ok_or_else(|| Failure::usage(format!("--max-size {text:?} is not a size like 50Mi")))
}

fn age(text: &str) -> Result<Duration, Failure> {
    duration(text)
        .ok_or_else(|| Failure::usage(format!("--older-than {text:?} is not an age like 90d or 12h")))
}
