//! `cold service why PROGRAM`: its last starts, and its plans.

use cold_model::{Bytes, Nanos};
use cold_plan::plan::Standing;
use serde::Serialize;

use super::history::{History, Seen};
use super::learn::Waiting;
use super::place::Place;
use super::socket::{Question, ask};
use super::status::Status;
use crate::cli::TEMPLATE;
use crate::commands::prefetch::plans;
use crate::exit::{Exit, Failure, Outcome};
use crate::table::{Table, width};
use crate::ui::{FAINT, STRONG, Ui, WARN, paint};

const EXAMPLES: &str = "Examples:
  cold service why firefox-esr
  cold service why /usr/bin/git --json
";

const AFTER: &str = "Exit codes: 0 done; 1 failed, or nothing is known of the program; 2 wrong usage.";

/// Flags of `cold service why`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = AFTER)]
pub(crate) struct Args {
    /// The program or script: its path, or its last name
    #[arg(value_name = "PROGRAM")]
    program: String,

    /// How many starts to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    last: u32,

    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct WhyDocument<'a> {
    schema: &'static str,
    program: &'a str,
    plans: Vec<PlanSaid>,
    /// Scenarios that the service will learn, or has given up.
    to_be_learnt: Vec<Waiting>,
    /// The latest first.
    starts: Vec<StartSaid>,
}

#[derive(Serialize)]
struct PlanSaid {
    name: String,
    scenario: String,
    standing: Standing,
}

#[derive(Serialize)]
struct StartSaid {
    at_ns: u64,
    scenario: String,
    what: String,
    why: Option<String>,
    wall_ns: Option<u64>,
    first_read_ns: Option<u64>,
    bytes: u64,
}

pub(crate) fn run(args: &Args, place: &Place, ui: &Ui) -> Outcome {
    // A running service writes down what it has before it answers.
    let said = ask(&place.socket(), &Question::Status)?;
    let status = said.and_then(|said| serde_json::from_value::<Status>(said).ok());
    let learning = status.and_then(|status| status.service?.learning);
    let waiting = learning.into_iter().flat_map(|l| l.waiting).filter(|w| w.is_called(&args.program));
    let waiting: Vec<Waiting> = waiting.collect();
    let starts = match History::read(&place.history())? {
        Some(history) => history.last(&args.program, args.last)?,
        None => Vec::new(),
    };
    let listed = place.plans.store()?.list()?.plans.into_iter();
    let plans: Vec<PlanSaid> = listed
        .filter(|l| plans::is_called(l, &args.program))
        .map(|l| PlanSaid {
            name: plans::name(&l.path),
            scenario: l.plan.key.scenario.clone(),
            standing: l.plan.standing,
        })
        .collect();
    if plans.is_empty() && starts.is_empty() && waiting.is_empty() {
        let why = format!(
            "nothing is known of {}: it has no plan, is not to be learnt, and no start of it was followed",
            args.program
        );
        return Err(Failure::from(anyhow::Error::msg(why)).hint("learn one: cold prefetch learn -- COMMAND"));
    }
    let starts = starts.into_iter().map(|s: Seen| StartSaid {
        at_ns: s.at_ns,
        scenario: s.name.scenario,
        what: s.what,
        why: s.why,
        wall_ns: s.wall_ns,
        first_read_ns: s.first_read_ns,
        bytes: s.bytes,
    });
    let document = WhyDocument {
        schema: "coldstart.service-why/1",
        program: &args.program,
        plans,
        to_be_learnt: waiting,
        starts: starts.collect(),
    };
    if args.json {
        ui.json(&document);
    } else {
        print(ui, &document);
    }
    Ok(Exit::Done)
}

fn print(ui: &Ui, document: &WhyDocument<'_>) {
    if document.plans.is_empty() {
        ui.line(paint(WARN, "it has no plan now"));
    }
    for waiting in &document.to_be_learnt {
        ui.line(format!("to be learnt: {}", waiting.words()));
    }
    for plan in &document.plans {
        let standing = match &plan.standing {
            Standing::Untried => "followed, not yet proven".to_owned(),
            Standing::Proven => "followed, proven".to_owned(),
            Standing::Off(why) => format!("switched off: {why}"),
        };
        ui.line(format!("{}  {}: {standing}", paint(STRONG, &plan.name), plan.scenario));
    }
    if document.starts.is_empty() {
        ui.line(paint(FAINT, "no cold start of it was heard of"));
        return;
    }
    let mut table = Table::new(&["WHEN (UTC)", "TO THE MARK", "READING AFTER", "READ", "WHAT"]);
    for start in &document.starts {
        let time = |ns: Option<u64>| ns.map_or("unknown".to_owned(), |ns| Nanos(ns).to_string());
        let first = if start.bytes == 0 { "–".to_owned() } else { time(start.first_read_ns) };
        let why = start.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let cells = vec![
            when(start.at_ns),
            time(start.wall_ns),
            first,
            Bytes(start.bytes).to_string(),
            format!("{}{why} ({})", start.what, start.scenario),
        ];
        table.row(cells, Vec::new());
    }
    table.lines(width()).iter().for_each(|line| ui.line(line));
}

fn when(at_ns: u64) -> String {
    let at = jiff::Timestamp::from_second((at_ns / 1_000_000_000).cast_signed()).unwrap_or_default();
    at.to_string()
}
