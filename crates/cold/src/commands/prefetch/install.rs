//! `cold prefetch install`, `uninstall`: small files by which a desktop, systemd or a shell starts a
//! program through the launcher. They can be read before and after, and are removed again as they came.

mod dbus;
mod desktop;
mod files;
mod own;
mod record;
mod systemd;
mod trust;
mod wrapper;

use std::path::{Path, PathBuf};

use cold_model::Shown as _;

use super::launcher::Call;
use super::plans::StorePlace;
use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::{Exit, Failure, Outcome};
use crate::ui::{STRONG, Ui, paint};
use files::{Found, Piece, Seen};
pub(crate) use own::{ByName, by_name};
use record::List;

type Result<T> = std::result::Result<T, Failure>;

const EXAMPLES: &str = "Examples:
  cold prefetch install --desktop firefox-esr --print    what would be written
  cold prefetch install --desktop firefox-esr            ~/.local/share/applications/…
  cold prefetch install --systemd postgresql.service     a drop-in that resets ExecStart=
  cold prefetch install --wrapper ~/bin/node             a script before /usr/bin/node in PATH
";

const REMOVE_EXAMPLES: &str = "Examples:
  cold prefetch uninstall --desktop firefox-esr
  cold prefetch uninstall --systemd postgresql.service
  cold prefetch uninstall --wrapper ~/bin/node
  cold prefetch uninstall --all                          everything that you installed
";

/// Of so many cold starts one is made without the plan, where nothing else is asked for.
const CONTROL_EVERY: u32 = 10;

/// What is overridden.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Target {
    /// A desktop entry by name (`firefox-esr`): writes a changed copy of it, or of the D-Bus service that starts it,
    /// into your own directories
    #[arg(long, value_name = "NAME")]
    desktop: Option<String>,

    /// A service by name: writes a drop-in (as root for the system's services, else for your own)
    #[arg(long, value_name = "UNIT")]
    systemd: Option<String>,

    /// Writes a script to this path, whose directory comes before the program's in PATH
    #[arg(long, value_name = "PATH")]
    wrapper: Option<PathBuf>,
}

/// Flags of `cold prefetch install`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,

    /// The program that the wrapper starts [default: the next one of its name in PATH]
    #[arg(long, value_name = "FILE", requires = "wrapper")]
    program: Option<PathBuf>,

    /// Name under which the plan was learnt [default: derived from the arguments]
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,

    /// Make every K-th cold start without the plan, so that daily use shows what it gains; 0: never
    #[arg(long, value_name = "K", default_value_t = CONTROL_EVERY)]
    control_every: u32,

    /// Print what would be written, and where; write nothing
    #[arg(long)]
    print: bool,
}

/// Flags of `cold prefetch uninstall`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = REMOVE_EXAMPLES, after_help = EXIT_CODES)]
#[group(id = "removed", required = true, multiple = false)]
pub(crate) struct RemoveArgs {
    /// What was installed for this desktop entry
    #[arg(long, value_name = "NAME", group = "removed")]
    desktop: Option<String>,

    /// The drop-in of this service
    #[arg(long, value_name = "UNIT", group = "removed")]
    systemd: Option<String>,

    /// The script at this place
    #[arg(long, value_name = "PATH", group = "removed")]
    wrapper: Option<PathBuf>,

    /// Everything that you installed (as root: for the system); files that were edited since are left alone
    #[arg(long, group = "removed")]
    all: bool,
}

/// What is written for one target.
struct Override {
    /// Its files; each needs only those before it.
    pieces: Vec<Piece>,
    /// What the user has to do before it works.
    next: Option<String>,
}

/// An override that nothing speaks against.
pub(crate) struct Ready {
    pieces: Vec<Piece>,
    /// What of ours has the name of each piece.
    old: Vec<Option<Seen>>,
    next: Option<String>,
}

impl Ready {
    /// Looks for what speaks against it.
    fn of(made: Override, call: &Call) -> Result<Self> {
        trust::check(call, made.pieces.iter().map(|piece| piece.path.as_path()))?;
        let old = made.pieces.iter().map(|piece| files::ours_or_none(&piece.path)).collect::<Result<_>>()?;
        Ok(Self { pieces: made.pieces, old, next: made.next })
    }

    /// Writes it, and tells of each file when it is there.
    pub(crate) fn write(&self, mut written: impl FnMut(&Path)) -> Result<()> {
        let list = List::own()?;
        for (piece, old) in self.pieces.iter().zip(&self.old) {
            list.add(&piece.path)?;
            files::write(piece, old.as_ref())?;
            written(&piece.path);
        }
        Ok(())
    }
}

/// How an override calls the launcher; `control_every`: see [`Args`].
fn call(place: &StorePlace, control_every: u32) -> Result<Call> {
    let mut call = Call::new(place)?;
    if control_every > 0 {
        call.flag("--control-every", &control_every.to_string());
    }
    Ok(call)
}

/// Writes the override.
pub(crate) fn run(args: &Args, place: &StorePlace, ui: &Ui) -> Outcome {
    let mut call = call(place, args.control_every)?;
    if let Some(scenario) = &args.scenario {
        cold_plan::scenario::check_name(scenario).map_err(|e| Failure::usage(e.to_string()))?;
        call.flag("--scenario", scenario);
    }
    let made = match &args.target {
        Target { desktop: Some(name), .. } => desktop::make(name, &call)?,
        Target { systemd: Some(unit), .. } => systemd::make(unit, &call)?,
        Target { wrapper: Some(path), .. } => wrapper::make(path, args.program.as_deref(), &call)?,
        _ => return Err(Failure::usage("nothing is named to be overridden")),
    };
    let ready = Ready::of(made, &call)?;
    if args.print {
        for piece in &ready.pieces {
            ui.note(format!("would write {}:", piece.path.shown()));
            ui.bytes(&piece.text);
        }
        return Ok(Exit::Done);
    }
    ready.write(|path| ui.line(format!("{} {}", paint(STRONG, "wrote"), path.shown())))?;
    if let Some(next) = &ready.next {
        ui.line(format!("{} {next}", paint(STRONG, "next:")));
    }
    Ok(Exit::Done)
}

/// Removes what was written for the one thing that is named, or else everything on the list.
pub(crate) fn remove(args: &RemoveArgs, ui: &Ui) -> Outcome {
    let paths = match args {
        RemoveArgs { desktop: Some(name), .. } => desktop::places(name)?,
        RemoveArgs { systemd: Some(unit), .. } => vec![systemd::place(unit)?],
        RemoveArgs { wrapper: Some(path), .. } => vec![std::path::absolute(path)?],
        _ => return remove_all(ui),
    };
    let mut found = Vec::new();
    for path in &paths {
        found.extend(files::ours_or_none(path)?);
    }
    if found.is_empty() {
        let names: Vec<String> = paths.iter().map(|path| path.shown().to_string()).collect();
        return Err(Failure::from(anyhow::anyhow!("{}: there is nothing to remove", names.join(", "))));
    }
    // A list that cannot be found is none to tidy.
    let list = List::own().ok();
    for seen in &found {
        take_away(seen, list.as_ref(), ui)?;
    }
    say_what_is_next(&found, ui);
    Ok(Exit::Done)
}

/// Removes everything on the list that still is as it was written.
fn remove_all(ui: &Ui) -> Outcome {
    let list = List::own()?;
    let mut removed = Vec::new();
    let mut exit = Exit::Done;
    // Scripts last: what starts them goes first, or stays because somebody has edited it.
    let (scripts, others): (Vec<_>, Vec<_>) =
        list.all()?.into_iter().partition(|path| desktop::made_for(path).is_some());
    for path in others.into_iter().chain(scripts).filter(|path| !desktop::is_needed(path)) {
        match take_listed(&path, &list, ui) {
            Ok(seen) => removed.extend(seen),
            Err(failure) => {
                ui.warn(format!("{:#}: it is left alone", failure.error));
                exit = Exit::Failed;
            }
        }
    }
    if removed.is_empty() && exit == Exit::Done {
        ui.line("nothing is installed");
    }
    say_what_is_next(&removed, ui);
    Ok(exit)
}

/// Removes one of the list if it still is what was written.
fn take_listed(path: &Path, list: &List, ui: &Ui) -> Result<Option<Seen>> {
    match files::look(path)? {
        Some(seen) if seen.found == Found::Ours => {
            take_away(&seen, Some(list), ui)?;
            Ok(Some(seen))
        }
        Some(seen) if seen.found == Found::Edited => {
            Err(anyhow::anyhow!("{} was changed since cold wrote it", path.shown()).into())
        }
        // Gone, or somebody has put something of their own there: it is no override any more.
        None | Some(_) => {
            list.forget(path);
            Ok(None)
        }
    }
}

fn take_away(seen: &Seen, list: Option<&List>, ui: &Ui) -> Result<()> {
    files::remove(seen)?;
    let of_dropin = seen.path.parent().filter(|_| systemd::is_dropin(&seen.path));
    for dir in of_dropin.into_iter().chain(desktop::made_for(&seen.path).into_iter().flatten()) {
        let _ = std::fs::remove_dir(dir); // what else lies there keeps it
    }
    if let Some(list) = list {
        list.forget(&seen.path);
    }
    ui.line(format!("{} {}", paint(STRONG, "removed"), seen.path.shown()));
    Ok(())
}

fn say_what_is_next(removed: &[Seen], ui: &Ui) {
    if removed.iter().any(|seen| systemd::is_dropin(&seen.path)) {
        ui.line(format!("{} {}", paint(STRONG, "next:"), systemd::RELOAD));
    }
}

/// A directory of the user by the XDG rules: `variable`, else `fallback` below the home directory.
fn user_directory(variable: &str, fallback: &str) -> Result<PathBuf> {
    let absolute = |v: std::ffi::OsString| Some(PathBuf::from(v)).filter(|p| p.is_absolute());
    if let Some(dir) = std::env::var_os(variable).and_then(absolute) {
        return Ok(dir);
    }
    let home = std::env::var_os("HOME").and_then(absolute);
    home.map(|h| h.join(fallback))
        .ok_or_else(|| Failure::usage(format!("neither {variable} nor HOME names a directory")))
}

/// A name that is one part of a path, nothing more.
fn plain_name<'a>(what: &str, name: &'a str) -> Result<&'a str> {
    if name.is_empty() || name.contains('/') || name.starts_with('.') || name.chars().any(char::is_control) {
        return Err(Failure::usage(format!("{name:?} is no name of a {what}")));
    }
    Ok(name)
}
