//! The changes a caller can make. Each is journalled, made, and comes back with its guard.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use cold_model::FileId;
use cold_sys::loopdev::{self, LoopDevice};
use cold_sys::procfs::ProcFs;

use crate::change::{Change, Made};
use crate::journal::{Guard, Journal};
use crate::undo::is_gone;
use crate::{Error, Result};

/// Marks a process started by [`Journal::spawn`] and everything that inherits its environment.
pub(crate) const TOKEN_VARIABLE: &str = "COLD_JOURNAL_TOKEN";
/// No setting is longer than a page.
const MAX_SETTING: u64 = 4096;

impl Journal {
    /// Writes `value` to a file below /sys or /proc. Undoing writes the value of before, but only if
    /// the file still holds what was set here.
    pub fn set(&self, path: &Path, value: &str) -> Result<Guard> {
        let path = resolve(path)?;
        let old = read_setting(&path)?;
        let change = Change::Setting { path: path.clone(), old, new: canonical(value) };
        let ((), guard) = self.change(change, || {
            write_setting(&path, value)?;
            // The kernel may round it (fault_around_bytes) or print it in another form.
            Ok(((), Made::Value(read_setting(&path)?)))
        })?;
        Ok(guard)
    }

    /// Enables the controller `name` for the children of the version 2 cgroup `dir`; `None` when it is
    /// on already. (Not a [`Journal::set`]: the file takes `+name` and `-name`, and shows all that are on.)
    pub fn enable_controller(&self, dir: &Path, name: &str) -> Result<Option<Guard>> {
        let path = resolve(&dir.join("cgroup.subtree_control"))?;
        if read_setting(&path)?.split_whitespace().any(|c| c == name) {
            return Ok(None);
        }
        let change = Change::Controller { path: path.clone(), name: name.to_owned() };
        let ((), guard) = self.change(change, || {
            write_setting(&path, &format!("+{name}"))?;
            Ok(((), Made::Plain))
        })?;
        Ok(Some(guard))
    }

    /// Creates the cgroup directory `path`, which must not exist. Undoing kills all its processes,
    /// waits for their end, and removes it with the cgroups inside it.
    pub fn create_cgroup(&self, path: &Path) -> Result<Guard> {
        let path = resolve_new("create cgroup", path)?;
        let ((), guard) = self.change(Change::Cgroup { path: path.clone() }, || {
            fs::create_dir(&path).map_err(|e| Error::io("create cgroup", &path, e))?;
            Ok(((), Made::File(identity(&path)?)))
        })?;
        Ok(guard)
    }

    /// Mounts a file system; see [`cold_sys::mount::mount`]. Refused where something is mounted.
    pub fn mount(&self, source: &Path, target: &Path, fs_type: &str, options: &str) -> Result<Guard> {
        let name = source.display().to_string();
        let ((), guard) = self.mount_by(target, fs_type, &name, |target| {
            Ok(cold_sys::mount::mount(source, target, fs_type, false, options)?)
        })?;
        Ok(guard)
    }

    /// Journals a mount that `make` brings about (a FUSE server, another process). `fs_type` and
    /// `source` are what `mountinfo` will say; by them it is recognised. `make` gets the resolved
    /// target and must not use the journal.
    pub fn mount_by<T>(
        &self,
        target: &Path,
        fs_type: &str,
        source: &str,
        make: impl FnOnce(&Path) -> Result<T>,
    ) -> Result<(T, Guard)> {
        let target = resolve(target)?;
        if ProcFs::default().mounts()?.iter().any(|m| m.mount_point == target) {
            return Err(Error::refused("mount on", target, "something is mounted there; unmount it first"));
        }
        let change =
            Change::Mount { target: target.clone(), fs_type: fs_type.to_owned(), source: source.to_owned() };
        self.change(change, || Ok((make(&target)?, Made::Plain)))
    }

    /// Attaches a file to a free loop device with direct I/O and gives the device's number. The file's
    /// path must be its only use as a loop device: by it the device is recognised.
    pub fn attach_loop(&self, backing: &Path) -> Result<(u32, Guard)> {
        let backing = resolve(backing)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&backing)
            .map_err(|e| Error::io("open", &backing, e))?;
        let id = FileId::of(&file.metadata().map_err(|e| Error::io("stat", &backing, e))?);
        let mut tries = 0;
        loop {
            let number = loopdev::free_number()?;
            let change = Change::Loop { number, backing: backing.clone(), id };
            let attached = self.change(change, || {
                LoopDevice::open(number)?.attach(&file)?;
                Ok((number, Made::Plain))
            });
            match attached {
                // Another process was faster.
                Err(Error::Sys(e)) if is_busy(&e) && tries < 64 => tries += 1,
                other => return other,
            }
        }
    }

    /// Stops a running systemd service; `None` if it does not run. Undoing starts it again.
    pub fn stop_service(&self, unit: &str) -> Result<Option<Guard>> {
        if systemctl(&["is-active", "--quiet", unit]).is_err() {
            return Ok(None);
        }
        let ((), guard) = self.change(Change::Service { unit: unit.to_owned() }, || {
            systemctl(&["stop", unit])?;
            Ok(((), Made::Plain))
        })?;
        Ok(Some(guard))
    }

    /// Creates a regular file (mode 0600) that must not exist. Undoing removes it, whatever was
    /// written to it, unless another file has taken its name.
    pub fn create_file(&self, path: &Path) -> Result<(File, Guard)> {
        let path = resolve_new("create", path)?;
        let parent = identity(path.parent().unwrap_or(Path::new("/")))?;
        self.change(Change::File { path: path.clone(), parent }, || {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)
                .map_err(|e| Error::io("create", &path, e))?;
            let id = FileId::of(&file.metadata().map_err(|e| Error::io("stat", &path, e))?);
            Ok((file, Made::File(id)))
        })
    }

    /// Creates a directory `PREFIX-PID-RANDOM` (mode 0700) in `parent`. Undoing removes it with all
    /// that is in it, but refuses while something is mounted below it.
    pub fn create_directory(&self, parent: &Path, prefix: &str) -> Result<(PathBuf, Guard)> {
        let name = format!("{prefix}-{}-{}", std::process::id(), random()?);
        let path = resolve_new("create", &parent.join(name))?;
        let parent = identity(path.parent().unwrap_or(Path::new("/")))?;
        self.change(Change::Directory { path: path.clone(), parent }, || {
            DirBuilder::new().mode(0o700).create(&path).map_err(|e| Error::io("create", &path, e))?;
            let id = identity(&path)?;
            Ok((path, Made::File(id)))
        })
    }

    /// Starts a process that must not outlive the journal. It gets a token in its environment, by
    /// which it (and what it started) is found if we die before its pid is journalled.
    pub fn spawn(&self, command: &mut Command) -> Result<(Child, Guard)> {
        let token = random()?;
        command.env(TOKEN_VARIABLE, &token);
        let program = PathBuf::from(command.get_program());
        self.change(Change::Process { program: program.clone(), token }, || {
            let child = command.spawn().map_err(|e| Error::io("start", &program, e))?;
            let pid = child.id().cast_signed();
            let starttime = ProcFs::default().stat(pid)?.starttime;
            Ok((child, Made::Process { pid, starttime }))
        })
    }
}

/// The value of a setting in the form in which it can be written back: blanks are single, and of a
/// choice (`always [madvise] never`) only the chosen one is kept.
pub(crate) fn canonical(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let chosen = words.iter().find_map(|w| w.strip_prefix('[')?.strip_suffix(']'));
    chosen.map_or_else(|| words.join(" "), str::to_owned)
}

/// Reads a setting in its [`canonical`] form.
pub(crate) fn read_setting(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|f| f.take(MAX_SETTING + 1).read_to_end(&mut bytes));
    read.map_err(|e| Error::io("read", path, e))?;
    if bytes.len() as u64 > MAX_SETTING {
        return Err(Error::refused("read", path, "it is longer than 4096 bytes, which no setting is"));
    }
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(canonical(text)),
        Err(_) => Err(Error::refused("read", path, "it is not text")),
    }
}

/// Writes a setting in one piece; never creates a file.
pub(crate) fn write_setting(path: &Path, value: &str) -> Result<()> {
    let file = OpenOptions::new().write(true).truncate(true).open(path);
    file.and_then(|mut f| f.write_all(format!("{value}\n").as_bytes()))
        .map_err(|e| Error::io("write", path, e))
}

/// Runs `systemctl`.
pub(crate) fn systemctl(arguments: &[&str]) -> Result<()> {
    let command = format!("systemctl {}", arguments.join(" "));
    let fail = |why: String| Error::Command { command: command.clone(), why };
    let output = Command::new("systemctl").args(arguments).output().map_err(|e| fail(e.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(fail(format!("{}{}{}", output.status, if text.is_empty() { "" } else { ": " }, text.trim())))
}

fn is_busy(e: &cold_sys::Error) -> bool {
    e.errno() == Some(rustix::io::Errno::BUSY.raw_os_error())
}

fn resolve(path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(|e| Error::io("resolve", path, e))
}

/// Resolves the directory part of a name that must not exist yet.
fn resolve_new(action: &'static str, path: &Path) -> Result<PathBuf> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Error::refused(action, path, "it names no entry of a directory"));
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let path = resolve(parent)?.join(name);
    match path.symlink_metadata() {
        Err(e) if is_gone(&e) => Ok(path),
        Err(e) => Err(Error::io("stat", path, e)),
        Ok(_) => Err(Error::refused(action, path, "it exists already; remove it or choose another name")),
    }
}

fn identity(path: &Path) -> Result<FileId> {
    let meta = path.symlink_metadata().map_err(|e| Error::io("stat", path, e))?;
    Ok(FileId { dev: meta.dev(), ino: meta.ino() })
}

/// 64 random bits in hexadecimal.
fn random() -> Result<String> {
    let path = "/dev/urandom";
    let mut bytes = [0; 8];
    let read = File::open(path).and_then(|mut f| f.read_exact(&mut bytes));
    read.map_err(|e| Error::io("read", path, e))?;
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
}
