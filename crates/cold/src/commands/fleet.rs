//! `cold fleet`: what the recordings of many machines tell together.

mod add;
mod answer;
mod engine;
mod plan;

use std::path::PathBuf;

use cold_fleet::query::{self, Engine, QUERIES, Query, Settings};

use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::{Exit, Failure, Outcome};
use crate::ui::Ui;

const EXAMPLES: &str = "Examples:
  cold fleet add /srv/fleet *.cold                         what recordings tell, as Parquet
  cold fleet add /srv/fleet --redact --salt key app.cold   without names of anybody's files
  cold fleet query /srv/fleet                              what is there
  cold fleet query /srv/fleet regressions --program app    which version made starts slower
  cold fleet query /srv/fleet coverage --share 0.8         what a plan of all is worth to one
  cold fleet plan /srv/fleet --program app -o app.json     then, anywhere: cold prefetch import
  cold fleet sql /srv/fleet outliers --engine spark        the SQL, to run elsewhere
";

/// Flags of `cold fleet`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Add what recordings tell to a dataset
    Add(add::Args),
    /// Ask a dataset, by DuckDB
    Query(QueryArgs),
    /// Print the SQL of a question, for DuckDB or Spark
    Sql(SqlArgs),
    /// Make a plan of what most starts needed, for any machine
    Plan(plan::Args),
}

/// Which starts a question is about.
#[derive(Debug, clap::Args)]
struct Choice {
    /// Only starts of this program
    #[arg(long, value_name = "NAME", value_parser = partition)]
    program: Option<String>,

    /// Only starts of this version of it
    #[arg(long, value_name = "VERSION", value_parser = partition)]
    program_version: Option<String>,

    /// Only starts in this way
    #[arg(long, value_name = "NAME", value_parser = plain)]
    scenario: Option<String>,

    /// Only starts on machines of this class
    #[arg(long, value_name = "CLASS", value_parser = partition)]
    machine: Option<String>,

    /// Starts agree on a page that at least this share of them needed
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = share)]
    share: f64,

    /// Learn without this tenth of the starts, 0 to 9, and judge by it [default: 0 for coverage, else none]
    #[arg(long, value_name = "TENTH", value_parser = clap::value_parser!(u32).range(0..10))]
    hold_out: Option<u32>,
}

impl Choice {
    fn settings(&self, holds_out: bool) -> Settings {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        Settings {
            program: text(&self.program),
            version: text(&self.program_version),
            scenario: text(&self.scenario),
            machine: text(&self.machine),
            share: self.share,
            hold_out: self.hold_out.or(holds_out.then_some(0)),
        }
    }
}

/// A dataset: a directory, or what the engine takes for one.
#[derive(Debug, clap::Args)]
struct Dataset {
    /// The dataset: a directory, or what the engine reads as one (s3://…)
    #[arg(value_name = "DATASET", value_parser = plain)]
    dataset: String,
}

/// Flags of `cold fleet query`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = EXIT_CODES)]
struct QueryArgs {
    #[command(flatten)]
    dataset: Dataset,

    /// The question: overview, consensus, stability, coverage, regressions, outliers, remedies
    #[arg(value_name = "QUESTION", default_value = "overview", value_parser = question, hide_possible_values = true)]
    question: &'static Query,

    #[command(flatten)]
    choice: Choice,

    #[command(flatten)]
    program: engine::Program,

    /// The rows as one JSON document
    #[arg(long)]
    json: bool,
}

/// Flags of `cold fleet sql`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = EXIT_CODES)]
struct SqlArgs {
    #[command(flatten)]
    dataset: Dataset,

    /// The question, as of `cold fleet query`
    #[arg(value_name = "QUESTION", default_value = "overview", value_parser = question)]
    question: &'static Query,

    #[command(flatten)]
    choice: Choice,

    /// Who will run it
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t = EngineName::Duckdb)]
    engine: EngineName,
}

/// Engines by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum EngineName {
    /// DuckDB 1.0 and later
    Duckdb,
    /// Spark 3.4 and later
    Spark,
}

impl From<EngineName> for Engine {
    fn from(name: EngineName) -> Self {
        match name {
            EngineName::Duckdb => Self::DuckDb,
            EngineName::Spark => Self::Spark,
        }
    }
}

fn question(name: &str) -> Result<&'static Query, String> {
    let names = || QUERIES.iter().map(|q| format!("{}: {}", q.name, q.about)).collect::<Vec<_>>().join("; ");
    Query::named(name).ok_or_else(|| format!("the questions are {}", names()))
}

fn plain(text: &str) -> Result<String, String> {
    let fits = query::is_plain(text) && !text.is_empty();
    if fits {
        Ok(text.to_owned())
    } else {
        Err("quotes and backslashes mean different things to engines".into())
    }
}

/// A value of a partition, as it stands in the dataset.
fn partition(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("it is empty: leave the flag out to choose all".to_owned());
    }
    Ok(cold_recording::fleet::Partition::value(text))
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "a share is a number above 0, at most 1".to_owned())?;
    if share > 0.0 && share <= 1.0 { Ok(share) } else { Err("a share is above 0, at most 1".to_owned()) }
}

/// What an engine takes as the place: of a directory here the whole path, whatever directory the engine works in.
fn located(dataset: &str) -> Result<String, Failure> {
    if dataset.contains("://") {
        return Ok(dataset.to_owned());
    }
    let path = PathBuf::from(dataset);
    let found = path.canonicalize().map_err(|e| Failure::usage(format!("{dataset}: {e}")))?;
    if !found.join("starts").is_dir() {
        return Err(Failure::usage(format!("{dataset} is no dataset: there is no directory `starts` in it"))
            .hint("add recordings first: cold fleet add DATASET NAME.cold"));
    }
    let text = found.to_str().filter(|t| query::is_plain(t));
    Ok(text
        .ok_or_else(|| Failure::usage("engines cannot name that path: it holds quotes or no text"))?
        .to_owned())
}

/// Runs the command.
pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    match &args.action {
        Action::Add(args) => add::run(args, ui),
        Action::Query(args) => ask(args, ui),
        Action::Sql(args) => Ok(sql(args, ui)),
        Action::Plan(args) => plan::run(args, ui),
    }
}

fn ask(args: &QueryArgs, ui: &Ui) -> Outcome {
    let settings = args.choice.settings(args.question.holds_out);
    let place = located(&args.dataset.dataset)?;
    let rows = args.program.ask(&place, args.question, &settings, ui)?;
    if args.json {
        ui.json(&rows);
    } else {
        answer::show(args.question, &rows, ui);
    }
    Ok(Exit::Done)
}

fn sql(args: &SqlArgs, ui: &Ui) -> Exit {
    let settings = args.choice.settings(args.question.holds_out);
    // Nothing is read: the dataset need not be here.
    ui.text(&query::views(&args.dataset.dataset, &settings, args.engine.into()));
    ui.text(&format!("{};\n", args.question.sql()));
    Exit::Done
}
