//! The slow test disk: a file served by FUSE → a loop device with direct I/O → a file system.
//!
//! Three processes take part: the caller, the supervisor `cold-testdisk create`, which makes and
//! unmakes everything through the journal and ends when its caller does, and the server, which answers
//! block requests as late as the [`Model`] says and logs them. Start reading at [`SlowDisk`].

mod answers;
mod log;
mod model;
mod punctual;
mod server;
mod stack;
mod times;
mod writes;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cold_model::Bytes;
use serde::{Deserialize, Serialize};

pub use log::{Op, Request, Totals};
pub use model::{Model, Preset, Scheduler, Service};
pub use server::Serve;
pub use stack::{Stack, clean, journal_directory, running};
pub use writes::Writes;

/// File systems the disk can carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum FileSystem {
    /// ext4.
    #[default]
    Ext4,
    /// XFS; at least 300 MiB.
    Xfs,
    /// Btrfs; at least 110 MiB.
    Btrfs,
}

/// What disk is wanted.
#[derive(Debug, Clone)]
pub struct Options {
    /// How late it answers.
    pub preset: Preset,
    /// Whether the kernel has its answers when they are due: needs BPF. Else they are sent then, and delays are lower
    /// bounds.
    pub punctual: bool,
    /// Bytes of the block device, file system included.
    pub size: Bytes,
    /// Its file system.
    pub file_system: FileSystem,
    /// Where to mount it; `None` for a directory of its own.
    pub mount: Option<PathBuf>,
    /// Directory for the file that holds its bytes; `None` to keep them in memory, where no other
    /// disk's speed comes in.
    pub backing: Option<PathBuf>,
}

impl Options {
    /// In a directory of its own, its bytes in memory, not punctual.
    pub fn new(preset: Preset, size: Bytes, file_system: FileSystem) -> Self {
        Self { preset, punctual: false, size, file_system, mount: None, backing: None }
    }
}

/// What a running disk says about itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Info {
    /// Its own directory.
    pub directory: PathBuf,
    /// Where its file system is mounted.
    pub mount_point: PathBuf,
    /// Its block device, `/dev/loopN`.
    pub device: PathBuf,
    /// Number of the loop device: N of `/dev/loopN`.
    pub number: u32,
    /// The server's control socket.
    pub control: PathBuf,
    /// Process id of `cold-testdisk create`, which made the disk and takes it down at its end.
    pub supervisor: i32,
    /// How late it answers.
    pub preset: Preset,
    /// Whether the kernel has its answers when they are due.
    pub punctual: bool,
    /// Its file system.
    pub file_system: FileSystem,
    /// Bytes of the block device, file system included.
    pub size: Bytes,
}

/// What went wrong with a test disk.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or socket operation failed.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The attempted action.
        action: &'static str,
        /// What it was attempted on.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// A change could not be journalled, made or undone.
    #[error(transparent)]
    Journal(#[from] cold_journal::Error),
    /// A part of the disk failed.
    #[error("{part} failed: {why}")]
    Part {
        /// The part: `mkfs.ext4`, the server, the supervisor.
        part: String,
        /// What it said.
        why: String,
    },
}

/// Result with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io { action, path: path.into(), source }
    }
    pub(crate) fn part(part: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Part { part: part.into(), why: why.into() }
    }
}

/// A mounted test disk. It goes away when this is dropped, when the test panics, and when the process
/// is killed; what even that leaves behind (the supervisor killed as well) is removed by the next one.
#[derive(Debug)]
pub struct SlowDisk {
    info: Info,
    supervisor: Child,
}

impl SlowDisk {
    /// A disk with ext4, its bytes in memory. Needs root, `/dev/fuse`, loop devices, `mkfs.ext4`.
    pub fn create(preset: Preset, size: Bytes) -> Result<Self> {
        Self::with(&Options::new(preset, size, FileSystem::Ext4))
    }

    /// A disk as described.
    pub fn with(options: &Options) -> Result<Self> {
        let program = crate::programs::program("cold-testdisk")
            .map_err(|e| Error::part("finding cold-testdisk", e.to_string()))?;
        let mut command = Command::new(&program);
        command.args(["create", "--json", "--until-eof", "--size", &options.size.0.to_string()]);
        command.args(["--preset", &value_name(&options.preset), "--fs", &value_name(&options.file_system)]);
        if options.punctual {
            command.arg("--punctual");
        }
        for (flag, path) in [("--mount", &options.mount), ("--backing", &options.backing)] {
            if let Some(path) = path {
                command.arg(flag).arg(path);
            }
        }
        let mut supervisor = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| Error::io("start", program, e))?;
        let mut line = String::new();
        if let Some(out) = supervisor.stdout.take() {
            BufReader::new(out)
                .read_line(&mut line)
                .map_err(|e| Error::io("read from", "cold-testdisk", e))?;
        }
        if let Ok(info) = serde_json::from_str(&line) {
            return Ok(Self { info, supervisor });
        }
        let mut why = String::new();
        if let Some(mut err) = supervisor.stderr.take() {
            let _ = err.read_to_string(&mut why);
        }
        let _ = supervisor.wait();
        Err(Error::part("cold-testdisk create", why.trim()))
    }

    /// The directory at which its file system is mounted.
    pub fn mount_point(&self) -> &Path {
        &self.info.mount_point
    }

    /// The kernel's name of the block device (`loop3`).
    pub fn device_name(&self) -> String {
        format!("loop{}", self.info.number)
    }

    /// Everything about it.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Every request since it was created or [`SlowDisk::reset_log`], in order of completion.
    pub fn log(&self) -> Result<Vec<Request>> {
        self.info.log()
    }

    /// The sums of [`SlowDisk::log`].
    pub fn totals(&self) -> Result<Totals> {
        Ok(Totals::of(&self.log()?))
    }

    /// Forgets the requests so far.
    pub fn reset_log(&self) -> Result<()> {
        command(&self.info.control, "reset")
    }

    /// From now on keeps every write in the new directory `dir`, beside a copy of what the disk holds: [`Writes`] makes
    /// of them the disk as it was after each. `dir` lies on another disk: this one's writes wait for it.
    pub fn keep_writes(&self, dir: &Path) -> Result<()> {
        std::fs::create_dir(dir).map_err(|e| Error::io("create", dir, e))?;
        command(&self.info.control, &format!("keep {}", dir.display()))
    }

    /// Keeps them no longer.
    pub fn stop_keeping_writes(&self) -> Result<()> {
        command(&self.info.control, "keep nothing")
    }

    /// Unmounts it before its end, as [`unmount`] does.
    pub fn unmount(&self) -> Result<()> {
        unmount(&self.info.mount_point)
    }

    /// Writes the log as CSV (`op,offset,bytes,issued_ns,arrival_ns,due_ns,done_ns,model_ns`).
    pub fn write_csv(&self, path: &Path) -> Result<()> {
        std::fs::write(path, self.info.csv()?).map_err(|e| Error::io("write", path, e))
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        drop(self.supervisor.stdin.take()); // end of file: take everything down
        let deadline = Instant::now() + Duration::from_mins(1);
        while Instant::now() < deadline {
            match self.supervisor.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                Ok(Some(_)) | Err(_) => return,
            }
        }
        // It hangs. Killed, it leaves the rest to the journal, and to `cold-testdisk clean`.
        let _ = self.supervisor.kill();
        let _ = self.supervisor.wait();
        let _ = clean();
    }
}

impl Info {
    /// The disk's log.
    pub fn log(&self) -> Result<Vec<Request>> {
        let text = self.csv()?;
        log::from_csv(&text).ok_or_else(|| Error::part("the disk's log", "it is not in the expected form"))
    }

    /// The disk's log as CSV.
    pub fn csv(&self) -> Result<String> {
        ask(&self.control, "log")
    }
}

/// What the server behind this control socket answers.
fn ask(control: &Path, question: &str) -> Result<String> {
    let fail = |e| Error::io("ask the disk at", control, e);
    let mut stream = UnixStream::connect(control).map_err(fail)?;
    stream.write_all(format!("{question}\n").as_bytes()).map_err(fail)?;
    let mut text = String::new();
    stream.read_to_string(&mut text).map_err(fail)?;
    Ok(text)
}

/// Has the server do this.
fn command(control: &Path, command: &str) -> Result<()> {
    match ask(control, command)?.trim() {
        "ok" => Ok(()),
        why => Err(Error::part("the disk's server", why)),
    }
}

/// Unmounts what is mounted there. Whoever looks at all disks of the machine (the service of another test, somebody who
/// asks for holders) may have a file of it open for a moment: that is waited for, [`crate::PATIENCE`] at most.
pub fn unmount(mount_point: &Path) -> Result<()> {
    let end = Instant::now() + crate::PATIENCE;
    loop {
        match cold_sys::mount::unmount(mount_point, false) {
            Ok(()) => return Ok(()),
            Err(e) if e.errno() == Some(libc::EBUSY) && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(e) => return Err(Error::part("unmounting", e.to_string())),
        }
    }
}

/// The name of a value on the command line.
pub(crate) fn value_name(value: &impl clap::ValueEnum) -> String {
    value.to_possible_value().map(|v| v.get_name().to_owned()).unwrap_or_default()
}
