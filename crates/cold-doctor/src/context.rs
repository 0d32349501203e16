//! What every check gets: roots, probes, configuration, and one shared look at the processes.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cold_sys::caps::{Capability, Credentials};
use cold_sys::clock::LocalTime;
use cold_sys::procfs::ProcFs;
use cold_sys::sysfs::SysFs;
use cold_trace::Survey;

use crate::Error;
use crate::observation::{Observation, Sample};
use crate::processes::{self, Process};
use crate::programs::{self, Program};

/// The directory under which `/proc`, `/sys`, `/etc`, `/run`, `/usr` and `/var` are read.
#[derive(Debug, Clone)]
pub struct Roots {
    root: PathBuf,
}

impl Roots {
    /// Reads below `root`: `/`, or a fake tree.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }
    /// Where the absolute path `path` lies below the root.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }
}

/// An answer of the kernel to a direct question: done, or refused with its error.
pub type Probe = fn() -> io::Result<()>;

/// Direct questions to the kernel, replaceable because a fake tree cannot answer them.
#[derive(Debug, Clone, Copy)]
pub struct Probes {
    /// May this process write the path?
    pub writable: fn(&Path) -> io::Result<bool>,
    /// Which tier `cold trace` would record with, and what stands against better ones.
    pub recording: fn() -> Survey,
    /// Opens a perf event of the own process's major faults.
    pub perf_own: Probe,
    /// Traces a child.
    pub ptrace: Probe,
    /// cachestat on a file.
    pub cachestat: fn(&Path) -> cold_sys::Result<io::Result<()>>,
    /// mincore on a file.
    pub mincore: fn(&Path) -> cold_sys::Result<cold_sys::probe::Mincore>,
    /// Local civil time of UNIX seconds.
    pub local_time: fn(i64) -> Option<LocalTime>,
}

impl Probes {
    /// The questions put to the running kernel.
    pub fn live() -> Self {
        use cold_sys::probe;
        Self {
            writable: probe::writable,
            recording: cold_trace::survey,
            perf_own: probe::perf_fault_event,
            ptrace: probe::ptrace_child,
            cachestat: probe::cachestat,
            mincore: probe::mincore,
            local_time: cold_sys::clock::local_time,
        }
    }
}

/// A change of the system that an interrupted run did not undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// What is still changed: "`read_ahead_kb` of vda is 0, was 128".
    pub description: String,
    /// How long ago it was made.
    pub age: Duration,
}

/// What to examine.
#[derive(Debug, Clone)]
pub struct Config {
    /// Paths whose file systems and devices matter; empty means `/`, the home and the command.
    pub paths: Vec<PathBuf>,
    /// The command and its arguments; may be empty.
    pub command: Vec<String>,
    /// Home directory of the user, where known.
    pub home: Option<PathBuf>,
    /// PATH for finding the command.
    pub search_path: String,
    /// How long to watch counters that only show a disturbance by moving.
    pub window: Duration,
    /// Now, as time since the UNIX epoch.
    pub now: Duration,
    /// Leftovers in the journal of system changes; `None` when no journal was looked at.
    pub leftovers: Option<Vec<Leftover>>,
}

impl Config {
    /// The default examination of this machine: window 1 s, no paths, no command.
    pub fn new() -> Self {
        Self {
            paths: Vec::new(),
            command: Vec::new(),
            home: None,
            search_path: String::new(),
            window: Duration::from_secs(1),
            now: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            leftovers: None,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

/// Everything the checks look at.
pub struct Context {
    pub(crate) roots: Roots,
    pub(crate) probes: Probes,
    pub(crate) config: Config,
    pub(crate) proc: ProcFs,
    pub(crate) sys: SysFs,
    /// This process's privileges.
    pub(crate) credentials: Credentials,
    /// All processes, as they were at the beginning.
    pub(crate) processes: Vec<Process>,
    /// The command, resolved; `None` without one.
    pub(crate) program: Option<Program>,
    /// Kernel release, as `uname -r` prints it.
    pub(crate) release: String,
    /// Answers that cost something and are needed twice.
    pub(crate) recording: OnceCell<Survey>,
    first: Sample,
    second: OnceCell<Sample>,
    began: Instant,
}

impl Context {
    /// Takes the first look: processes and counters. Fails on a command or path that does not exist,
    /// and without /proc.
    pub fn new(roots: Roots, probes: Probes, config: Config) -> Result<Self, Error> {
        let proc = ProcFs::new(roots.path("/proc"));
        let sys = SysFs::new(roots.path("/sys"));
        for path in &config.paths {
            std::fs::metadata(roots.path(path)).map_err(|cause| Error::Path { path: path.clone(), cause })?;
        }
        let program = programs::resolve(&roots, &config)?;
        let processes = processes::list(&proc)?;
        Ok(Self {
            credentials: proc.own_credentials()?,
            release: proc.sysctl("kernel.osrelease")?,
            began: Instant::now(),
            first: Sample::take(&proc, &sys),
            second: OnceCell::new(),
            recording: OnceCell::new(),
            processes,
            program,
            roots,
            probes,
            config,
            proc,
            sys,
        })
    }

    /// What moved during the window. The first caller waits for its end.
    pub(crate) fn observed(&self) -> Observation<'_> {
        let second = self.second.get_or_init(|| {
            std::thread::sleep(self.config.window.saturating_sub(self.began.elapsed()));
            Sample::take(&self.proc, &self.sys)
        });
        Observation::between(&self.first, second)
    }

    /// Whether the capability is effective.
    pub(crate) fn has(&self, capability: Capability) -> bool {
        self.credentials.has(capability)
    }

    /// Whether the process runs as root of its user namespace.
    pub(crate) fn is_root(&self) -> bool {
        self.credentials.euid == 0
    }

    /// Whether the kernel is of this version or later; `None`: its release tells no version.
    pub(crate) fn since(&self, version: (u32, u32)) -> Option<bool> {
        cold_model::kernel::since(&self.release, version)
    }

    /// Processes by the names that `wanted` lists, see [`Process::is_called`].
    pub(crate) fn called<'a>(&'a self, wanted: &'a [&'a str]) -> impl Iterator<Item = &'a Process> {
        self.processes.iter().filter(move |p| wanted.iter().any(|name| p.is_called(name)))
    }

    /// Names of the process with this id, for messages.
    pub(crate) fn name_of(&self, pid: i32) -> String {
        self.processes.iter().find(|p| p.pid == pid).map_or_else(|| "?".to_owned(), |p| p.name().to_owned())
    }

    /// Whether systemd runs this machine.
    pub(crate) fn systemd_runs(&self) -> bool {
        self.processes.iter().any(|p| p.pid == 1 && p.comm == "systemd")
            || self.roots.path("/run/systemd/system").is_dir()
    }
}

/// `firefox (pid 12 and 3 more), bash (pid 7)`: processes for a sentence, at most `most` names.
pub(crate) fn name_processes<'a>(processes: impl IntoIterator<Item = &'a Process>, most: usize) -> String {
    let mut by_name: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for p in processes {
        by_name.entry(p.name()).or_default().push(p.pid);
    }
    let total = by_name.len();
    let mut parts: Vec<String> = by_name
        .iter()
        .take(most)
        .map(|(name, pids)| match pids.as_slice() {
            [one] => format!("{name} (pid {one})"),
            [first, rest @ ..] => format!("{name} (pid {first} and {} more)", rest.len()),
            [] => (*name).to_owned(),
        })
        .collect();
    if total > most {
        parts.push(format!("{} others", total - most));
    }
    parts.join(", ")
}
