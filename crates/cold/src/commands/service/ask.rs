//! `cold service pause`, `resume`, `forget`: short questions to a running service.

use cold_model::Shown as _;
use serde_json::Value;

use super::history::History;
use super::place::Place;
use super::socket::{Question, ask};
use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::{Exit, Failure, Outcome};
use crate::ui::Ui;
use crate::words::plural;

const PAUSE: &str = "Examples:
  cold service pause        starts go without their plans, as long as this service runs
";
const RESUME: &str = "Examples:
  cold service resume
";
const FORGET: &str = "Examples:
  cold service forget firefox-esr
  cold service forget       everything; plans stay: `cold prefetch remove` removes those
";

/// Flags of `cold service pause`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = PAUSE, after_help = EXIT_CODES)]
pub(crate) struct PauseArgs {}

/// Flags of `cold service resume`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = RESUME, after_help = EXIT_CODES)]
pub(crate) struct ResumeArgs {}

/// Flags of `cold service forget`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = FORGET, after_help = EXIT_CODES)]
pub(crate) struct ForgetArgs {
    /// The program: its path, or its last name; all without
    #[arg(value_name = "PROGRAM")]
    program: Option<String>,
}

pub(crate) fn pause(place: &Place, ui: &Ui) -> Outcome {
    let was = running(place, &Question::Pause)?;
    let already = was["was_paused"] == Value::Bool(true);
    ui.line(if already { "it was paused already" } else { "paused: starts go without their plans" });
    Ok(Exit::Done)
}

pub(crate) fn resume(place: &Place, ui: &Ui) -> Outcome {
    let was = running(place, &Question::Resume)?;
    let paused = was["was_paused"] == Value::Bool(true);
    ui.line(if paused { "plans are followed again" } else { "it was not paused" });
    Ok(Exit::Done)
}

fn running(place: &Place, question: &Question) -> Result<Value, Failure> {
    ask(&place.socket(), question)?.ok_or_else(|| {
        let why = format!("no service runs (nobody listens at {})", place.socket().shown());
        Failure::from(anyhow::Error::msg(why))
            .hint("start one: cold service run, or systemctl start coldstart")
    })
}

pub(crate) fn forget(args: &ForgetArgs, place: &Place, ui: &Ui) -> Outcome {
    let question = Question::Forget { program: args.program.clone() };
    let starts = match ask(&place.socket(), &question)? {
        Some(said) => said["starts"].as_u64().unwrap_or_default(),
        None => match History::read(&place.history())? {
            Some(mut history) => history.forget(args.program.as_deref())?,
            None => 0,
        },
    };
    match &args.program {
        Some(program) if starts == 0 => {
            let why = format!("the history has no start of {program}");
            return Err(
                Failure::from(anyhow::Error::msg(why)).hint("`cold service status` lists the programs")
            );
        }
        _ => ui.line(format!("{} forgotten; plans stay", plural(starts, "start"))),
    }
    Ok(Exit::Done)
}
