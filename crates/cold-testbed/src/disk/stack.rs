//! Building the disk layer by layer, each journalled, and taking it down in reverse.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cold_journal::{Journal, Undone};

use super::server::{FILE_NAME, MOUNT_SOURCE};
use super::{Error, FileSystem, Info, Options, Result, command, value_name};

/// The kernel's default; a loop device on FUSE would get 2560.
const READ_AHEAD_KB: &str = "128";
/// FUSE carries at most 256 pages per request. Half of it, so that the requests of the block layer and
/// those in the log are the same ones also where a buffer is not aligned.
const MAX_SECTORS_KB: &str = "512";
/// The name of every disk's own directory begins so.
const PREFIX: &str = "cold-testdisk";
/// Describes a running disk, in its directory.
const INFO: &str = "disk.json";

/// Where the test disks' journals lie: beside those of `cold`, so that a test never repairs a user's.
pub fn journal_directory() -> Result<PathBuf> {
    Ok(cold_journal::default_directory()?.with_file_name("testbed-journal"))
}

/// Undoes what killed supervisors left behind.
pub fn clean() -> Result<Vec<Undone>> {
    Ok(cold_journal::recover(&journal_directory()?)?)
}

/// The disks that run now.
pub fn running() -> Vec<Info> {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return Vec::new() };
    entries
        .filter_map(|e| {
            let path = e.ok()?.path();
            let ours = path.file_name()?.to_str()?.starts_with(PREFIX);
            let text = ours.then(|| fs::read_to_string(path.join(INFO)))?.ok()?;
            let info: Info = serde_json::from_str(&text).ok()?;
            // What a killed one left behind has nobody who answers.
            UnixStream::connect(&info.control).is_ok().then_some(info)
        })
        .collect()
}

/// A disk and all its layers, in the process that supervises it.
#[derive(Debug)]
pub struct Stack {
    journal: Journal,
    info: Info,
    server: Child,
    /// Holds the bytes of a disk in memory.
    _memory: Option<OwnedFd>,
}

impl Stack {
    /// Builds the disk. `server` is a command line that leads to [`super::Serve::run`]; the flags it needs
    /// are appended. On an error everything built so far is taken down.
    pub fn build(options: &Options, server: Command) -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Err(Error::part(
                "making a test disk",
                "mounts and loop devices need root; run it with sudo",
            ));
        }
        clean()?;
        let journal = Journal::open_in(journal_directory()?);
        let built = layers(&journal, options, server);
        if built.is_err() {
            journal.undo_all();
        }
        let Layers { info, server, memory } = built?;
        Ok(Self { journal, info, server, _memory: memory })
    }

    /// What was built.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Takes everything down, topmost layer first.
    pub fn take_down(self) -> Vec<Undone> {
        self.journal.undo_all()
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // What `take_down` has undone is not undone again.
        self.journal.undo_all();
        // Unmounted it has ended, or the journal has killed it.
        let _ = self.server.wait();
    }
}

struct Layers {
    info: Info,
    server: Child,
    /// Holds the memory behind the disk, where it is not a file.
    memory: Option<OwnedFd>,
}

// The guards are forgotten, because the journal itself undoes all in reverse order, in `take_down` or
// after our death.
fn layers(journal: &Journal, options: &Options, mut server: Command) -> Result<Layers> {
    let keep = |guard: cold_journal::Guard| std::mem::forget(guard);
    let (directory, guard) = journal.create_directory(&std::env::temp_dir(), PREFIX)?;
    keep(guard);
    let (backing, memory) = backing(journal, options)?;
    make_file_system(options.file_system, &backing)?;
    let [fuse, own_mount, control] = ["fuse", "mnt", "control"].map(|n| directory.join(n));
    for dir in [&fuse, &own_mount] {
        fs::create_dir(dir).map_err(|e| Error::io("create", dir, e))?;
    }
    let model =
        serde_json::to_string(&options.preset.model()).map_err(|e| Error::part("model", e.to_string()))?;
    server
        .arg("--mount")
        .arg(&fuse)
        .arg("--backing")
        .arg(&backing)
        .arg("--control")
        .arg(&control)
        .args(["--size", &options.size.0.to_string(), "--model", &model])
        .args(["--parent", &std::process::id().to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Ctrl-C must not reach it before the file system is unmounted.
        .process_group(0);
    let (mut server, guard) = journal.spawn(&mut server)?;
    keep(guard);
    let ((), guard) = journal.mount_by(&fuse, "fuse", MOUNT_SOURCE, |_| {
        release(&mut server);
        Ok(())
    })?;
    keep(guard);
    if !fs::exists(fuse.join(FILE_NAME)).unwrap_or(false) {
        return Err(Error::part("the server of the test disk", "it did not mount; see its message above"));
    }
    let (number, guard) = journal.attach_loop(&fuse.join(FILE_NAME))?;
    keep(guard);
    configure(number, options)?;
    if options.punctual {
        command(&control, &format!("punctual {number}"))?;
    }
    let device = cold_sys::loopdev::path(number);
    let mount_point = options.mount.clone().unwrap_or(own_mount);
    keep(journal.mount(&device, &mount_point, &value_name(&options.file_system), "")?);
    let info = Info {
        directory: directory.clone(),
        mount_point,
        device,
        number,
        control,
        supervisor: std::process::id().cast_signed(),
        preset: options.preset,
        punctual: options.punctual,
        file_system: options.file_system,
        size: options.size,
    };
    let text = serde_json::to_string(&info).map_err(|e| Error::part("description", e.to_string()))?;
    let path = directory.join(INFO);
    fs::write(&path, text).map_err(|e| Error::io("write", path, e))?;
    Ok(Layers { info, server, memory })
}

/// Lets the server mount, and waits until it has or has failed.
fn release(server: &mut Child) {
    if let Some(mut input) = server.stdin.take() {
        // If it has died, its output ends, too.
        let _ = input.write_all(b"mount\n");
    }
    if let Some(output) = server.stdout.take() {
        let _ = BufReader::new(output).read_line(&mut String::new());
    }
}

/// The file that holds the bytes, sparse: in the given directory, or in memory.
fn backing(journal: &Journal, options: &Options) -> Result<(PathBuf, Option<OwnedFd>)> {
    let size = options.size.0;
    let Some(directory) = &options.backing else {
        let memory = rustix::fs::memfd_create("cold-testdisk", rustix::fs::MemfdFlags::CLOEXEC)
            .and_then(|fd| rustix::fs::ftruncate(&fd, size).map(|()| fd))
            .map_err(|e| Error::io("create", "a file in memory", e.into()))?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), memory.as_raw_fd());
        return Ok((PathBuf::from(path), Some(memory)));
    };
    let (path, file, guard) = journal.create_file(directory, PREFIX)?;
    std::mem::forget(guard);
    file.set_len(size).map_err(|e| Error::io("resize", &path, e))?;
    Ok((path, None))
}

/// Makes the file system on the backing file itself, where it is not slow. Nothing is left to be
/// initialised later: ext4 would write its inode tables during the tests.
fn make_file_system(kind: FileSystem, backing: &Path) -> Result<()> {
    let arguments: &[&str] = match kind {
        FileSystem::Ext4 => &["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
        FileSystem::Xfs | FileSystem::Btrfs => &["-q", "-f"],
    };
    let program = format!("mkfs.{}", value_name(&kind));
    let fail = |why: String| Error::part(program.clone(), why);
    // Not everybody's PATH has the directories of system programs.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let output = Command::new(&program)
        .args(arguments)
        .arg(backing)
        .env("PATH", path)
        .output()
        .map_err(|e| fail(format!("{e}; install it (Debian: e2fsprogs, xfsprogs, btrfs-progs)")))?;
    if output.status.success() {
        return Ok(());
    }
    // mkfs.xfs prints its whole usage after the first line.
    Err(fail(String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned()))
}

/// Settings of our own device, which end with it and so are in no journal.
fn configure(number: u32, options: &Options) -> Result<()> {
    let rotational = if options.preset.model().rotational { "1" } else { "0" };
    // read_ahead_kb comes last: Linux 6.18 computes it anew whenever another limit is written.
    let values =
        [("max_sectors_kb", MAX_SECTORS_KB), ("rotational", rotational), ("read_ahead_kb", READ_AHEAD_KB)];
    for (name, value) in values {
        let path = PathBuf::from(format!("/sys/block/loop{number}/queue/{name}"));
        fs::write(&path, value).map_err(|e| Error::io("write", path, e))?;
    }
    Ok(())
}
