//! `cold diagnose`: how slow the first start of a command is, why, what would help, tried and proved.

mod apply;
mod live;
mod offers;
mod show;
mod stored;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use cold_report::diagnosis::{self, Diagnosis};

use crate::cli::TEMPLATE;
use crate::exit::{Exit, Failure, Outcome};
use crate::results;
use crate::start::Start;
use crate::ui::Ui;
use crate::values::duration;

const EXAMPLES: &str = "Examples:
  cold diagnose -- firefox-esr --headless -screenshot /tmp/p.png file:///tmp/p.html
  cold diagnose --for 3m --html why.html -- python3 app.py
  cold diagnose --ready port:8080 -- ./server     a server: it is ended when it listens
  cold diagnose --first-request http://localhost:8080/ -- ./server     and its first answer
  cold diagnose --apply -- libreoffice --convert-to pdf a.odt    and install what was proved
  cold diagnose python3.cold                      from a recording: nothing is tried
";

const AFTER: &str = "\
It looks for what disturbs; records a cold and a warm start; learns a plan from them, in a place of
its own; then starts the command cold, by the plan, and warm, in turn, until the time is over. Each
moment of the recorded start has one reason, and each remedy what it saves: predicted, and measured
where it could be tried. Nothing stays but what --apply installs.

Steps that cannot be made here are named with the reason, and the others are made all the same.

Exit codes: 0 diagnosed; 1 failed, or the command failed; 2 wrong usage; 5 the state could not be
            reached; 130 interrupted (what is known by then is shown).";

/// Flags of `cold diagnose`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = AFTER)]
pub(crate) struct Args {
    /// A recording to diagnose instead of a command
    #[arg(value_name = "NAME.cold", conflicts_with = "argv")]
    recording: Option<PathBuf>,

    /// The command with its arguments, exactly as they are
    // An argument: not below the heading of a flag.
    #[arg(last = true, value_name = "CMD ARG", required_unless_present = "recording", help_heading = None::<&str>)]
    argv: Vec<OsString>,

    /// Time that all of it may take: 90s, 3m. A start that has begun is ended in peace
    #[arg(long = "for", value_name = "TIME", default_value = "90s", value_parser = time)]
    time: Duration,

    /// Install the plan if it was proved, and a launcher that follows it, after asking for each
    #[arg(long, conflicts_with = "recording")]
    apply: bool,

    /// With --apply: do not ask, install both
    #[arg(long, requires = "apply")]
    yes: bool,

    #[command(flatten)]
    start: Start,

    /// Write the diagnosis as a page
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    html: Option<PathBuf>,

    /// Write it as Markdown, for a bug report
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    markdown: Option<PathBuf>,

    /// Print it as one JSON document instead of text
    #[arg(long, help_heading = "Results")]
    json: bool,
}

/// Seconds or minutes: 90, 90s, 1.5m.
fn time(text: &str) -> Result<Duration, String> {
    match duration(text).or_else(|| duration(&format!("{text}s"))) {
        Some(time) if !time.is_zero() => Ok(time),
        Some(_) => Err("it must be longer than 0 s".to_owned()),
        None => Err("a time is a number with s or m: 90s, 3m".to_owned()),
    }
}

/// What came of it.
struct Diagnosed {
    diagnosis: Diagnosis,
    /// The plan that was tried.
    plan: Option<cold_plan::Plan>,
    interrupted: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    for path in [&args.html, &args.markdown].into_iter().flatten() {
        results::check(path)?;
    }
    apply::check(args)?;
    let diagnosed = match &args.recording {
        Some(dir) => stored::diagnose(dir, ui)?,
        None => live::diagnose(args, ui)?,
    };
    let d = &diagnosed.diagnosis;
    write(args, d, ui)?;
    if args.json {
        ui.json(d);
    } else {
        show::text(ui, d);
    }
    if diagnosed.interrupted {
        return Ok(Exit::Interrupted);
    }
    if args.apply {
        apply::apply(args, &diagnosed, ui)?;
    } else if !args.json {
        show::next(ui, args, d);
    }
    Ok(Exit::Done)
}

fn write(args: &Args, d: &Diagnosis, ui: &Ui) -> Result<(), Failure> {
    let made = [
        (&args.html, diagnosis::html as fn(&Diagnosis) -> String),
        (&args.markdown, diagnosis::markdown as fn(&Diagnosis) -> String),
    ];
    for (path, make) in made {
        if let Some(path) = path {
            results::save(path, make(d))?;
            ui.note(format!("wrote {}", cold_model::Shown::shown(path)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_or_minutes() {
        assert_eq!(time("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("90"), Ok(Duration::from_secs(90)));
        assert_eq!(time("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(time("1h"), Ok(Duration::from_hours(1)));
        for wrong in ["", "s", "0s", "-1s", "1y", "nan", "1e400", "inf"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
