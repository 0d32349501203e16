//! The experiment that tells a cause from a coincidence: the same starts, but what they leave behind is
//! dropped before each of them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use cold_model::Shown as _;
use cold_report::spawn::remaining_words;
use cold_spawn::confirm;
use cold_spawn::report::{self, Confirmation, Series};
use cold_spawn::session::Config;
use cold_sys::spawn::client::Spawner;
use cold_sys::spawn::{Fresh, Program, Setup};

use super::build::Scratch;
use super::observer::Recorder;
use crate::progress::Line;

/// Names hidden in one directory, and their bytes: they are sent to the spawner in one line.
const MOST_HIDDEN: usize = 100_000;
/// Places where programs keep what they leave behind.
const HOMES: [(&str, &str); 7] = [
    ("HOME", "home"),
    ("TMPDIR", "tmp"),
    ("XDG_CACHE_HOME", "cache"),
    ("XDG_CONFIG_HOME", "config"),
    ("XDG_DATA_HOME", "data"),
    ("XDG_STATE_HOME", "state"),
    ("XDG_RUNTIME_DIR", "run"),
];

/// Repeats the series. Never fails: what went wrong is part of the answer.
pub(super) fn confirm(
    config: &Config,
    series: &Series,
    place: &Scratch,
    began: SystemTime,
    line: &mut Line<'_>,
    interrupt: &AtomicBool,
) -> Confirmation {
    let mut config = config.clone();
    config.starts = confirm::starts(config.starts);
    let mut dropped = Vec::new();
    match prepare(&mut config, series, began, &mut dropped) {
        Ok(()) => repeat(&config, dropped, series, place, line, interrupt),
        Err(why) => failed(dropped, why),
    }
}

fn failed(dropped: Vec<String>, why: String) -> Confirmation {
    Confirmation {
        dropped,
        starts: 0,
        vanished: false,
        median_ns: None,
        remains: Vec::new(),
        failed: Some(why),
    }
}

fn repeat(
    config: &Config,
    dropped: Vec<String>,
    before: &Series,
    place: &Scratch,
    line: &mut Line<'_>,
    interrupt: &AtomicBool,
) -> Confirmation {
    let mut recorder = Recorder::new(place.recording(), false);
    let measured = match super::measure(config, &mut recorder, line, interrupt) {
        Ok(measured) => measured,
        Err(failure) => return failed(dropped, crate::ui::one_line(&failure.error)),
    };
    let again = report::series(config, &measured, None);
    if again.interrupted {
        return failed(dropped, "it was interrupted".into());
    }
    let remains: Vec<String> = confirm::remaining(&again, before).iter().map(remaining_words).collect();
    Confirmation {
        dropped,
        starts: again.starts.len(),
        vanished: remains.is_empty(),
        median_ns: again.times.map(|t| t.p50),
        remains,
        failed: None,
    }
}

/// Decides what is dropped: fresh directories of the user for all starts, and the suspected ones.
fn prepare(
    config: &mut Config,
    series: &Series,
    began: SystemTime,
    dropped: &mut Vec<String>,
) -> Result<(), String> {
    let io = |e: std::io::Error| e.to_string();
    config.scratch = config.scratch.join("confirm");
    std::fs::create_dir(&config.scratch).map_err(io)?;
    let mut suspects: Vec<PathBuf> = Vec::new();
    for cause in &series.judged.causes {
        let dir = std::fs::canonicalize(&cause.directory).map_err(|e| format!("{}: {e}", cause.directory))?;
        if !suspects.contains(&dir) {
            suspects.push(dir);
        }
    }
    // One below another is covered with it.
    let all = suspects.clone();
    suspects.retain(|d| !all.iter().any(|o| o != d && d.starts_with(o)));
    if suspects.is_empty() {
        fresh_homes(config, dropped)?;
        // Where nothing was recorded, nothing is suspected; what a start is given is where it may write.
        if series.observed.is_empty() {
            cover(config, given(config), began, dropped)?;
            if let Err(e) = try_out(config) {
                config.fresh.retain(|f| matches!(f, Fresh::Emptied(_)));
                dropped.truncate(1);
                dropped.push(format!(
                    "but not what was written to its working directory and the directories among its arguments ({e})"
                ));
            }
        }
        return Ok(());
    }
    cover(config, suspects, began, dropped)?;
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let names: Vec<String> = series.judged.causes.iter().map(|c| c.directory.clone()).collect();
    try_out(config).map_err(|e| format!("hiding what was written to {} needs root: {e}", names.join(", ")))
}

/// Whether the kernel lets us: without root it takes a user namespace.
fn try_out(config: &Config) -> Result<(), String> {
    let nothing = Program { path: PathBuf::new(), ..config.program.clone() };
    let setup = Setup {
        method: config.method,
        programs: vec![nothing],
        ballast: 0,
        huge_pages: false,
        cgroup: None,
        fresh: config.fresh.clone(),
    };
    let mut spawner = Spawner::start(setup).map_err(|e| e.to_string())?;
    spawner.begin(vec![0]).map_err(|e| e.to_string())?;
    spawner.finish(&AtomicBool::new(false)).map(drop).map_err(|e| e.to_string())
}

/// The directory in which it starts and those among its arguments that are the user's,
/// unless ours lies in them.
fn given(config: &Config) -> Vec<PathBuf> {
    let cwd = config.program.cwd.clone().unwrap_or_default();
    let arguments = config.program.argv.iter().skip(1).map(|a| cwd.join(std::ffi::OsStr::from_bytes(a)));
    let all = std::iter::once(cwd.clone()).chain(arguments).filter(|d| d.is_dir());
    let mut found: Vec<PathBuf> = all.filter_map(|d| std::fs::canonicalize(d).ok()).collect();
    // In a user namespace a directory that lies in another's cannot be copied up to be written to.
    let user = rustix::process::geteuid();
    let own = |d: &Path| std::fs::metadata(d).is_ok_and(|m| user.is_root() || m.uid() == user.as_raw());
    found.retain(|d| !config.scratch.starts_with(d) && own(d));
    found.sort_unstable();
    // One below another is covered with it.
    found.dedup_by(|later, earlier| later.starts_with(earlier));
    found
}

/// Has these directories covered.
fn cover(
    config: &mut Config,
    directories: Vec<PathBuf>,
    began: SystemTime,
    dropped: &mut Vec<String>,
) -> Result<(), String> {
    let io = |e: std::io::Error| e.to_string();
    for (i, directory) in directories.into_iter().enumerate() {
        let keep = [config.program.path.as_path(), &config.scratch];
        let hidden = newer(&directory, began, &keep).map_err(|e| format!("{}: {e}", directory.shown()))?;
        let layers = config.scratch.join(format!("layers-{i}"));
        std::fs::create_dir(&layers).map_err(io)?;
        dropped.push(format!(
            "what was written to {} ({} names of the series hidden)",
            directory.shown(),
            hidden.len()
        ));
        config.fresh.push(Fresh::Covered { directory, hidden, layers });
    }
    Ok(())
}

/// Empty ones for every start.
fn fresh_homes(config: &mut Config, dropped: &mut Vec<String>) -> Result<(), String> {
    use std::os::unix::fs::DirBuilderExt;
    for (variable, name) in HOMES {
        let dir = config.scratch.join(name);
        std::fs::DirBuilder::new().mode(0o700).create(&dir).map_err(|e| e.to_string())?;
        config.program.env.push((variable.into(), dir.as_os_str().as_bytes().to_vec()));
        config.fresh.push(Fresh::Emptied(dir));
    }
    dropped.push(format!("what was left in {}", HOMES.map(|(variable, _)| variable).join(", ")));
    Ok(())
}

/// Names in a directory that came since then, but those that lead to what is to be kept: the program itself, and
/// what of ours the repetition needs.
fn newer(dir: &Path, began: SystemTime, keep: &[&Path]) -> std::io::Result<Vec<Vec<u8>>> {
    let keep = keep.iter().filter_map(|path| std::fs::canonicalize(path).ok());
    let kept: Vec<OsString> =
        keep.filter_map(|path| Some(path.strip_prefix(dir).ok()?.iter().next()?.to_owned())).collect();
    let nanos = |t: Duration| i128::try_from(t.as_nanos()).unwrap_or(i128::MAX);
    let began = nanos(began.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir)?.take(MOST_HIDDEN) {
        let entry = entry?;
        let Ok(meta) = entry.metadata() else { continue };
        let born = meta.created().ok().and_then(|t| t.duration_since(SystemTime::UNIX_EPOCH).ok());
        // Where a file system keeps no birth time, a file that was not changed since is older for sure.
        let changed = i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec());
        if born.map_or(changed, nanos) >= began && !kept.contains(&entry.file_name()) {
            names.push(entry.file_name().as_bytes().to_vec());
        }
    }
    Ok(names)
}
