//! From flags to what is measured.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cold_bench::command::from_argv;
use cold_journal::{Guard, Journal};
use cold_spawn::session::Config;
use cold_sys::cgroup::Hierarchies;
use cold_sys::procfs::ProcFs;
use cold_sys::spawn::{Method, Program};

use super::Args;
use crate::exit::Failure;
use crate::ui::Ui;

/// Start of the name of our directory.
const PREFIX: &str = "cold-spawn";

/// The program that is started, in the present directory.
pub(super) fn program(args: &Args) -> Result<Program, Failure> {
    if args.starts == 0 || args.jobs == 0 {
        return Err(Failure::usage("-n and --jobs must be at least 1"));
    }
    let (path, argv) = from_argv(args.argv.clone()).map_err(|e| Failure::usage(e.to_string()))?;
    // Absolute: a start may happen in a directory that was covered meanwhile.
    let path = std::path::absolute(&path)?;
    let argv: Vec<Vec<u8>> = argv.iter().map(|a: &OsString| a.as_bytes().to_vec()).collect();
    Ok(Program { path, argv, env: Vec::new(), cwd: Some(std::env::current_dir()?) })
}

/// The series that are asked for: each method of `--method`, whose values clap has checked, with each size
/// of the parent.
pub(super) fn kinds(args: &Args) -> Vec<(Method, u32)> {
    let all = [Method::PosixSpawn, Method::Vfork, Method::Fork, Method::Clone3];
    let methods = all.into_iter().filter(|m| args.method == "all" || args.method == m.name());
    let mut sizes = args.parent_mb.clone();
    sizes.sort_unstable();
    sizes.dedup();
    methods.flat_map(|m| sizes.iter().map(move |mb| (m, *mb)).collect::<Vec<_>>()).collect()
}

/// Our directory for what a measurement needs; removed with its value, or by whoever finds the journal.
pub(super) struct Scratch {
    directory: PathBuf,
    recording: PathBuf,
    _cgroup: Option<Guard>,
    /// After the group: undone last.
    _guard: Guard,
    cgroup: Result<PathBuf, String>,
}

impl Scratch {
    pub(super) fn new(args: &Args, journal: &Journal) -> Result<Self, Failure> {
        let (directory, guard) = match &args.scratch {
            Some(parent) => journal.create_directory(parent, PREFIX)?,
            None => journal.create_private(PREFIX)?,
        };
        let wanted = matches!(args.method.as_str(), "clone3" | "all");
        let (cgroup, cgroup_guard) = match wanted.then(|| cgroup(journal)) {
            Some(Ok((dir, guard))) => (Ok(dir), Some(guard)),
            Some(Err(why)) => (Err(why), None),
            None => (Err(String::new()), None),
        };
        let recording = directory.join("observed.cold");
        Ok(Self { directory, recording, _cgroup: cgroup_guard, _guard: guard, cgroup })
    }
    /// A directory in ours, made now.
    pub(super) fn directory(&self, name: &str) -> std::io::Result<PathBuf> {
        let path = self.directory.join(name);
        std::fs::create_dir(&path)?;
        Ok(path)
    }
    /// Where starts are recorded.
    pub(super) fn recording(&self) -> &Path {
        &self.recording
    }
    pub(super) fn path(&self) -> &Path {
        &self.directory
    }
}

/// A cgroup of version 2 below our own.
fn cgroup(journal: &Journal) -> Result<(PathBuf, Guard), String> {
    let proc = ProcFs::default();
    let found = Hierarchies::find(&proc).map_err(|e| e.to_string())?;
    let own = found.own_v2(&proc).ok_or("no version 2 control group is mounted")?;
    journal.create_cgroup(&own, PREFIX).map_err(|e| e.to_string())
}

/// What to measure by one method.
pub(super) fn config(
    args: &Args,
    program: Program,
    (method, parent_mb): (Method, u32),
    place: &Scratch,
    ui: &Ui,
) -> Config {
    let cgroup = match (method, &place.cgroup) {
        (Method::Clone3, Ok(dir)) => Some(dir.clone()),
        (Method::Clone3, Err(why)) => {
            ui.warn(format!("clone3 starts in cold's own control group: {why}"));
            None
        }
        _ => None,
    };
    // Each series its own empty programs: a file that was just executed cannot be written again.
    let name = format!("{}-{parent_mb}", method.name());
    let scratch = place.directory(&name).unwrap_or_else(|_| place.path().to_owned());
    let ballast = u64::from(parent_mb) << 20;
    Config { program, cgroup, scratch, ballast, ..plain(args, method) }
}

/// What the flags say of the starts, without a program and a place.
pub(super) fn plain(args: &Args, method: Method) -> Config {
    Config {
        program: Program { path: PathBuf::new(), argv: Vec::new(), env: Vec::new(), cwd: None },
        method,
        starts: args.starts as usize,
        jobs: args.jobs as usize,
        ballast: 0,
        huge_pages: args.huge_pages,
        cgroup: None,
        scratch: PathBuf::new(),
        fresh: Vec::new(),
    }
}
