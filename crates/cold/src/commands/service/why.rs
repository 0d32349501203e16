//! `cold service why PROGRAM`: its last starts, and its plans.

use cold_model::{Bytes, Nanos};
use cold_plan::Store;
use cold_plan::plan::Standing;
use cold_plan::store::{Listed, Private};
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
    /// What is read beside it, for starts of one user each, and not for everybody to know.
    private: Vec<PrivateSaid>,
    /// Why that is not known.
    private_problem: Option<String>,
}

#[derive(Serialize)]
struct PrivateSaid {
    user: u32,
    files: usize,
}

impl PlanSaid {
    fn of(store: &Store, listed: Listed) -> Self {
        let (private, private_problem) = match store.private(&listed.plan.key) {
            Ok(parts) => (parts, None),
            Err(e) => (Vec::new(), Some(e.to_string())),
        };
        let said = |part: &Private| PrivateSaid { user: part.user, files: part.plan.files.len() };
        Self {
            name: plans::name(&listed.path),
            scenario: listed.plan.key.scenario,
            standing: listed.plan.standing,
            private: private.iter().map(said).collect(),
            private_problem,
        }
    }

    fn print(&self, ui: &Ui) {
        let standing = match &self.standing {
            Standing::Untried => "followed, not yet proven".to_owned(),
            Standing::Proven => "followed, proven".to_owned(),
            Standing::Off(why) => format!("switched off: {why}"),
        };
        ui.line(format!("{}  {}: {standing}", paint(STRONG, &self.name), self.scenario));
        for PrivateSaid { user, files } in &self.private {
            let what = match files {
                0 => "nothing is read beside it".to_owned(),
                1 => "a file or name is read beside it".to_owned(),
                files => format!("{files} files and names are read beside it"),
            };
            ui.line(format!("  for starts of user {user}: {what}"));
        }
        if let Some(why) = &self.private_problem {
            ui.line(paint(WARN, format!("  what users need beside it: {why}")));
        }
    }
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
    let store = place.plans.store()?;
    let listed = store.list()?.plans.into_iter().filter(|l| plans::is_called(l, &args.program));
    let plans: Vec<PlanSaid> = listed.map(|listed| PlanSaid::of(&store, listed)).collect();
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
        plan.print(ui);
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
