//! `cold prefetch install`, `uninstall`: small files by which a desktop, systemd or a shell starts a
//! program through the launcher. They can be read before and after, and are removed again as they came.

mod desktop;
mod systemd;
mod wrapper;

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::plans::Place;
use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::{Exit, Failure, Outcome};
use crate::ui::{STRONG, Ui, paint};

type Result<T> = std::result::Result<T, Failure>;

/// Begins the second line at the latest of every file that this command wrote; files without it are not
/// touched.
const MARK: &str = "# Written by `cold prefetch install`";

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
";

/// What is overridden.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Target {
    /// A desktop entry by name (`firefox-esr`): a copy of it in your own applications
    #[arg(long, value_name = "NAME")]
    desktop: Option<String>,

    /// A service by name: a drop-in (as root the system's services, else your own)
    #[arg(long, value_name = "UNIT")]
    systemd: Option<String>,

    /// A script at this place, to stand before the program in PATH
    #[arg(long, value_name = "PATH")]
    wrapper: Option<PathBuf>,
}

/// Flags of `cold prefetch install`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,

    /// The program a wrapper starts [default: the next one of its name in PATH]
    #[arg(long, value_name = "FILE", requires = "wrapper")]
    program: Option<PathBuf>,

    /// Which plan [default: by the arguments' shape]
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,

    /// Make every K-th cold start without the plan, so that daily use shows what it gains; 0 never
    #[arg(long, value_name = "K", default_value_t = 10)]
    control_every: u32,

    /// Print what would be written, and where; write nothing
    #[arg(long)]
    print: bool,
}

/// Flags of `cold prefetch uninstall`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = REMOVE_EXAMPLES, after_help = EXIT_CODES)]
pub(crate) struct RemoveArgs {
    #[command(flatten)]
    target: Target,
}

/// A file to write.
struct Override {
    path: PathBuf,
    text: String,
    executable: bool,
    /// What the user has to do before it works.
    next: Option<String>,
}

/// Writes the override.
pub(crate) fn run(args: &Args, place: &Place, ui: &Ui) -> Outcome {
    let mut launch = super::launcher::line(place)?;
    if let Some(scenario) = &args.scenario {
        launch.extend(["--scenario".to_owned(), scenario.clone()]);
    }
    if args.control_every > 0 {
        launch.extend(["--control-every".to_owned(), args.control_every.to_string()]);
    }
    launch.push("--".to_owned());
    let made = match &args.target {
        Target { desktop: Some(name), .. } => desktop::make(name, &launch)?,
        Target { systemd: Some(unit), .. } => systemd::make(unit, &launch)?,
        Target { wrapper: Some(path), .. } => wrapper::make(path, args.program.as_deref(), &launch)?,
        _ => return Err(Failure::usage("nothing is named to be overridden")),
    };
    ours_or_none(&made.path)?;
    if args.print {
        ui.note(format!("would write {}:", made.path.display()));
        ui.text(&made.text);
        return Ok(Exit::Done);
    }
    write(&made)?;
    ui.line(format!("{} {}", paint(STRONG, "wrote"), made.path.display()));
    if let Some(next) = &made.next {
        ui.line(format!("{} {next}", paint(STRONG, "next:")));
    }
    Ok(Exit::Done)
}

/// Removes it.
pub(crate) fn remove(args: &RemoveArgs, ui: &Ui) -> Outcome {
    let (path, next) = match &args.target {
        Target { desktop: Some(name), .. } => (desktop::place(name)?, None),
        Target { systemd: Some(unit), .. } => (systemd::place(unit)?, Some(systemd::RELOAD)),
        Target { wrapper: Some(path), .. } => (path.clone(), None),
        _ => return Err(Failure::usage("nothing is named to be removed")),
    };
    if !ours_or_none(&path)? {
        return Err(Failure::from(anyhow::anyhow!("{}: there is nothing to remove", path.display())));
    }
    std::fs::remove_file(&path).map_err(|e| anyhow::anyhow!("cannot remove {}: {e}", path.display()))?;
    if let Some(dir) = path.parent().filter(|_| next.is_some()) {
        let _ = std::fs::remove_dir(dir); // other drop-ins keep it
    }
    ui.line(format!("{} {}", paint(STRONG, "removed"), path.display()));
    if let Some(next) = next {
        ui.line(format!("{} {next}", paint(STRONG, "next:")));
    }
    Ok(Exit::Done)
}

/// Whether a file of ours is there; somebody else's is an error.
fn ours_or_none(path: &Path) -> Result<bool> {
    let Ok(meta) = path.symlink_metadata() else { return Ok(false) };
    let text = if meta.is_file() { std::fs::read(path).unwrap_or_default() } else { Vec::new() };
    let mut lines = text.split(|b| *b == b'\n').take(2);
    if lines.any(|l| l.starts_with(MARK.as_bytes())) {
        return Ok(true);
    }
    Err(Failure::usage(format!("{} exists and was not written by cold: it is left alone", path.display()))
        .hint("move it away, or name another place"))
}

/// Whole or not at all, and never through somebody's symbolic link.
fn write(made: &Override) -> Result<()> {
    let fail = |e: std::io::Error| anyhow::anyhow!("cannot write {}: {e}", made.path.display());
    let dir = made.path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir).map_err(fail)?;
    let name = made.path.file_name().unwrap_or_default().to_string_lossy();
    let partial = dir.join(format!(".{name}.{}", std::process::id()));
    let mode = if made.executable { 0o755 } else { 0o644 };
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&partial).map_err(fail)?;
    let written = file
        .write_all(made.text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&partial, &made.path));
    if written.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    Ok(written.map_err(fail)?)
}

/// The two lines at the head of every file.
fn head(how_to_remove: &str, from: Option<&Path>) -> String {
    let from = from.map_or_else(String::new, |f| format!(" from {}", f.display()));
    format!("{MARK}{from}.\n# `cold prefetch uninstall {how_to_remove}` removes it.\n")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_it_wrote_is_replaced() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("below/app");
        let made =
            |text: &str| Override { path: path.clone(), text: text.to_owned(), executable: true, next: None };
        assert!(!ours_or_none(&path).expect("nothing there"));
        write(&made(&format!("#!/bin/sh\n{}", head("--wrapper x", None)))).expect("written");
        assert!(ours_or_none(&path).expect("ours"));
        write(&made("#!/bin/sh\n# of somebody\n")).expect("written");
        assert!(ours_or_none(&path).is_err());
        std::fs::remove_file(&path).expect("removed");
        std::os::unix::fs::symlink("/etc/passwd", &path).expect("linked");
        assert!(ours_or_none(&path).is_err());
        assert_eq!(std::fs::read_dir(path.parent().expect("below")).expect("lists").count(), 1);
    }
}
