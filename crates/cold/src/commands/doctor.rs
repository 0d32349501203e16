//! `cold doctor`.

mod text;

use std::path::PathBuf;

use cold_doctor::{Config, Probes, Report, Roots};

use crate::cli::TEMPLATE;
use crate::exit::{Exit, Failure, Outcome};
use crate::leftovers;
use crate::ui::Ui;

/// Flags of `cold doctor`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = AFTER)]
#[command(before_help = "Examples:
  cold doctor                                what can be measured here, what would disturb it
  cold doctor -- firefox-esr                 … and which processes keep its files cached
  cold doctor /srv/data ~/.cache             file systems and devices of these paths
  sudo cold doctor                           sees more: other users' processes, BPF, caches
  cold doctor --json | jq -r '.findings[] | select(.status == \"disturbs\") | .fact'
")]
pub(crate) struct Args {
    /// Print one JSON document (its fields are documented) instead of text
    #[arg(long)]
    json: bool,
    /// First undo what killed runs of cold left behind (settings, cgroups, mounts, files)
    #[arg(long)]
    repair: bool,
    /// Paths whose file systems and devices are examined [default: / and the home directory]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The command to be measured: also lists the processes that map or open its files
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// The statuses, then what the exit code says here.
const AFTER: &str = "\
Each finding is marked ok, note, unknown (could not be checked), missing (not available here) or
disturbs (would disturb a measurement now).

Exit codes: 0 examined, also when something disturbs (for gates use --json); 1 failed;
            2 wrong usage: no such command or path.";

/// Runs the command.
pub(crate) fn run(args: Args, ui: &Ui) -> Outcome {
    if args.repair {
        leftovers::repair(ui);
    }
    let report = examine(args.paths, args.command, ui)?;
    if args.json {
        ui.json(&report);
    } else {
        show(&report, ui);
    }
    Ok(Exit::Done)
}

/// What this machine allows, and what would disturb a measurement of this command.
pub(crate) fn examine(paths: Vec<PathBuf>, command: Vec<String>, ui: &Ui) -> Result<Report, Failure> {
    let config = Config {
        paths,
        command,
        home: std::env::var_os("HOME").map(PathBuf::from),
        search_path: std::env::var("PATH").unwrap_or_default(),
        leftovers: match leftovers::list() {
            Ok(list) => Some(list),
            Err(e) => {
                ui.warn(format!("the journal of system changes cannot be read: {e}"));
                None
            }
        },
        ..Config::new()
    };
    cold_doctor::examine(Roots::new("/"), Probes::live(), config).map_err(failure)
}

fn failure(error: cold_doctor::Error) -> Failure {
    use cold_doctor::Error;
    let hint = match &error {
        Error::NoSuchCommand { .. } => Some("give the program's path, or check its spelling"),
        Error::NotExecutable { .. } => Some("name a program, or its interpreter and then the script"),
        Error::Path { .. } => Some("name a file or directory that exists and that you may see"),
        Error::Proc(_) => None,
    };
    let mut failure = Failure::from(error);
    if let Some(hint) = hint {
        failure.exit = Exit::Usage;
        failure = failure.hint(hint);
    }
    failure
}

fn show(report: &Report, ui: &Ui) {
    for line in text::lines(report, ui.width().min(text::MOST_COLUMNS)) {
        ui.line(line);
    }
}
