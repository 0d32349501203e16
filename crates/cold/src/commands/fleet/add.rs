//! `cold fleet add`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use cold_fleet::redact::Paths;
use cold_fleet::start::{self, Scenario, Words};
use cold_model::Shown as _;
use cold_model::layout::Layouts;
use cold_model::recording::Recording;
use cold_plan::identity::build_id_of;
use cold_plan::plan::Key;
use cold_plan::portable::Parts;
use cold_plan::scenario;
use cold_recording::fleet::Added;

use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::commands::prefetch::plans;
use crate::commands::report::load;
use crate::exit::{Exit, Failure, Outcome};
use crate::progress::Line;
use crate::ui::Ui;
use crate::words::plural;

/// Longest salt: it is a secret, not a file of anybody's.
const MOST_SALT: u64 = 64 << 10;

/// Flags of `cold fleet add`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
#[command(before_help = "Examples:
  cold fleet add /srv/fleet python3.cold
  cold fleet add /srv/fleet --program-version 3.11.2-6 --machine ci-small runs/*.cold
  cold fleet add /srv/fleet --redact --salt /etc/coldstart/salt app.cold
")]
pub(super) struct Args {
    /// Directory of the dataset; it is made where it is not there
    #[arg(value_name = "DATASET")]
    dataset: PathBuf,

    /// Recordings that `cold trace` made
    #[arg(value_name = "NAME.cold", required = true)]
    recordings: Vec<PathBuf>,

    /// Name of the program [default: that of its script or executable]
    #[arg(long, value_name = "NAME")]
    program: Option<String>,

    /// Its version, as the package has it [default: the beginning of its build-id]
    #[arg(long, value_name = "VERSION")]
    program_version: Option<String>,

    /// Name of the way in which it was started [default: derived from its arguments]
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,

    /// Class of the machine [default: its CPUs, memory and architecture]
    #[arg(long, value_name = "CLASS")]
    machine: Option<String>,

    /// Write digests for paths outside of system directories, and for scenarios that are not named
    #[arg(long)]
    redact: bool,

    /// File with a secret for these digests, the same on all machines: without it they can be guessed
    #[arg(long, value_name = "FILE", requires = "redact")]
    salt: Option<PathBuf>,

    /// What was added as one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(serde::Serialize)]
struct Told {
    recording: String,
    start: Option<String>,
    added: bool,
    why_not: Option<String>,
}

pub(super) fn run(args: &Args, ui: &Ui) -> Outcome {
    if let Some(name) = &args.scenario {
        scenario::check_name(name).map_err(|e| Failure::usage(e.to_string()))?;
    }
    let paths = paths(args)?;
    let mut told = Vec::new();
    let mut line = Line::new(ui);
    for (n, dir) in (1..).zip(&args.recordings) {
        line.step(&format!("recording {n} of {}", args.recordings.len()));
        let (start, added, why_not) = match add(args, dir, &paths, &mut line) {
            Ok((start, added)) => (Some(start), added == Added::New, None),
            Err(Refused::Start(why)) => (None, false, Some(why)),
            Err(Refused::Dataset(failure)) => return Err(failure),
        };
        told.push(Told { recording: dir.shown().to_string(), start, added, why_not });
    }
    line.clear();
    for t in &told {
        if let Some(why) = &t.why_not {
            ui.warn(format!("{} adds nothing: {why}", t.recording));
        }
    }
    let refused = told.iter().filter(|t| t.why_not.is_some()).count();
    let added = told.iter().filter(|t| t.added).count();
    if args.json {
        ui.json(&told);
    } else {
        let before = plural((told.len() - refused - added) as u64, "start");
        ui.line(format!("added {}; {before} were there before", plural(added as u64, "start")));
    }
    Ok(if refused == 0 { Exit::Done } else { Exit::Failed })
}

/// Why a recording was not added.
enum Refused {
    /// It tells nothing that belongs there.
    Start(String),
    /// The dataset takes nothing more.
    Dataset(Failure),
}

fn add(args: &Args, dir: &Path, paths: &Paths, line: &mut Line<'_>) -> Result<(String, Added), Refused> {
    let raw = load::raw(dir, line).map_err(|f| Refused::Start(format!("{:#}", f.error)))?;
    let recording = raw.recording;
    let analysis = cold_analyze::analyze(&recording, &Layouts::default());
    let key = key(&recording, args.scenario.as_deref());
    let words = Words {
        program: args.program.clone(),
        version: args.program_version.clone(),
        machine: args.machine.clone(),
        scenario: match (&args.scenario, &key) {
            (Some(name), _) => Scenario::Named(name.clone()),
            (None, Some(key)) => Scenario::Derived(key.scenario.clone()),
            // The program is not here, so its arguments cannot be read.
            (None, None) => Scenario::default(),
        },
        executable: key.as_ref().map(|k| k.executable.clone()),
        script: key.and_then(|k| k.script),
        paths: paths.clone(),
        sections: sections(&recording),
    };
    let rows = start::rows(&recording, &analysis, &words).map_err(|e| Refused::Start(e.to_string()))?;
    let added = cold_recording::fleet::add(&args.dataset, &rows)
        .map_err(|e| Refused::Dataset(Failure::from(anyhow::Error::new(e))))?;
    Ok((rows.start.start, added))
}

/// Of the files that are here in the build that was recorded.
fn sections(recording: &Recording) -> HashMap<PathBuf, Parts> {
    let built = recording.files.iter().filter_map(|row| Some((row.place()?, row.build_id.as_deref()?)));
    let here = built.filter(|(path, build_id)| build_id_of(build_id) == Some(plans::build_id(path)));
    here.map(|(path, _)| (path.clone(), plans::sections(&path))).filter(|(_, s)| !s.is_empty()).collect()
}

/// As a plan of it would have; `None` where the program is not here.
fn key(recording: &Recording, name: Option<&str>) -> Option<Key> {
    let m = &recording.manifest;
    let path = m.search_paths.get("PATH").map(std::ffi::OsStr::new);
    scenario::find(&scenario::Command { argv: &m.command, cwd: &m.directory, path }, name).ok()
}

fn paths(args: &Args) -> Result<Paths, Failure> {
    if !args.redact {
        return Ok(Paths::Plain);
    }
    let Some(file) = &args.salt else { return Ok(Paths::Redacted { salt: Vec::new() }) };
    let (opened, _) = cold_sys::open::regular(file, true)?;
    let bytes = cold_sys::open::content(&opened, MOST_SALT)
        .map_err(|e| anyhow::anyhow!("cannot read {}: {e}", file.shown()))?;
    let salt = bytes.filter(|b| !b.is_empty());
    let salt =
        salt.ok_or_else(|| Failure::usage(format!("{}: a salt has 1 byte to 64 KiB", file.shown())))?;
    Ok(Paths::Redacted { salt })
}
