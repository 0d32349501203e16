//! The changes a caller can make. Each is journalled, made, and comes back with its guard.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use cold_model::FileId;
use cold_model::Shown as _;
use cold_sys::kernelfs::KernelFs;
use cold_sys::loopdev::{self, LoopDevice};
use cold_sys::procfs::ProcFs;

use crate::change::{Change, Made, TOKEN_VARIABLE};
use crate::journal::{Failed, Guard, Journal};
use crate::kernel::{KernelFile, locate};
use crate::recover::Leftover;
use crate::turn::{self, Turn};
use crate::{Error, Result, setting};

impl Journal {
    /// Writes `value` to a file below /sys or /proc. Undoing writes the value of before, but only if
    /// the file still holds what was set here. Refused ([`Error::Held`]) while another process has changed it and
    /// not yet put it back: it would take that value for the one of before.
    pub fn set(&self, path: &Path, value: &str) -> Result<Guard> {
        let path = resolve(path)?;
        let kernel = KernelFile::of(self.proc(), &path)?;
        self.set_file(&path, kernel.as_ref(), value)
    }

    /// As [`Journal::set`] for the file `within` of one of the kernel's own file systems, wherever that is mounted;
    /// where it is not, root reaches it through a mount that nobody else sees.
    pub fn set_kernel(&self, fs: &KernelFs, within: &Path, value: &str) -> Result<Guard> {
        let (kernel, path) = KernelFile::named(fs, within);
        self.set_file(&path, Some(&kernel), value)
    }

    fn set_file(&self, path: &Path, kernel: Option<&KernelFile>, value: &str) -> Result<Guard> {
        let gone = || Error::io("open", path, rustix::io::Errno::NOENT.into());
        let place = locate(self.proc(), kernel, path)?.ok_or_else(gone)?;
        let wanted = |old| Change::Setting {
            path: path.to_owned(),
            old,
            new: setting::canonical(value),
            kernel: kernel.cloned(),
        };
        let _turn = self.turn_for(path, &wanted(String::new()))?;
        let change = wanted(setting::read(&place.path).map_err(|e| e.of(path))?);
        let ((), guard) = self.change(change, || {
            setting::write(&place.path, value).map_err(|e| Failed::at_once(e.of(path)))?;
            // The kernel may round it (fault_around_bytes) or print it in another form.
            Ok(((), Made::Value(setting::read(&place.path)?)))
        })?;
        Ok(guard)
    }

    /// Waits until no other process looks at or records what belongs to the machine, and makes sure that none of
    /// them holds what `change` is going to change. What a killed one left is undone first.
    fn turn_for(&self, path: &Path, change: &Change) -> Result<Turn> {
        let dir = self.directory();
        loop {
            let turn = turn::take(dir)?;
            let Some(holder) = turn::holder(dir, self.own_file().as_deref(), change)? else {
                return Ok(turn);
            };
            drop(turn); // undoing may need it
            let Some(left) = Leftover::find(&holder.journal, self.proc())? else {
                // Alive, or gone since: then the next look does not find it any more.
                if !holder.journal.exists() {
                    continue;
                }
                let name = holder.owner.map(|o| format!("{}[{}]", o.comm.shown(), o.pid));
                let holder_name = name.unwrap_or_else(|| "another process".to_owned());
                let (path, journal) = (path.to_owned(), holder.journal);
                return Err(Error::Held { path, holder: holder_name, journal });
            };
            for undone in left.repair()? {
                undone.outcome?;
            }
        }
    }

    /// Enables the controller `name` for the children of the version 2 cgroup `dir`; `None` when it is
    /// on already and nobody is going to turn it off: another process that enabled it leaves that to us, if we
    /// end later. (Not a [`Journal::set`]: the file takes `+name` and `-name`, and shows all that are on.)
    pub fn enable_controller(&self, dir: &Path, name: &str) -> Result<Option<Guard>> {
        let path = resolve(&dir.join("cgroup.subtree_control"))?;
        let kernel = KernelFile::of(self.proc(), &path)?;
        let change = Change::Controller { path: path.clone(), name: name.to_owned(), kernel };
        let _turn = turn::take(self.directory())?;
        let on = setting::read(&path)?.split_whitespace().any(|c| c == name);
        let own = self.own_file();
        if on && turn::holder(self.directory(), own.as_deref(), &change)?.is_none() {
            return Ok(None);
        }
        let ((), guard) = self.change(change, || {
            if !on {
                setting::write(&path, &format!("+{name}")).map_err(Failed::at_once)?;
            }
            Ok(((), Made::Plain))
        })?;
        Ok(Some(guard))
    }

    /// Creates the cgroup `PREFIX-PID-RANDOM` in the directory `parent`. Undoing kills all its processes,
    /// waits for their end, and removes it with the cgroups inside it.
    pub fn create_cgroup(&self, parent: &Path, prefix: &str) -> Result<(PathBuf, Guard)> {
        let path = unguessed(parent, prefix)?;
        let kernel = KernelFile::of(self.proc(), path.parent().unwrap_or(Path::new("/")))?;
        self.change(Change::Cgroup { path: path.clone(), kernel }, || {
            let made = fs::create_dir(&path).map_err(|e| Error::io("create cgroup", &path, e));
            made.map_err(Failed::at_once)?;
            let id = identity(&path)?;
            Ok((path, Made::File(id)))
        })
    }

    /// Mounts a file system; see [`cold_sys::mount::mount`]. Refused where something is mounted.
    pub fn mount(&self, source: &Path, target: &Path, fs_type: &str, options: &str) -> Result<Guard> {
        let name = source.to_string_lossy().into_owned();
        let ((), guard) = self.mount_with(target, fs_type, &name, |target| {
            cold_sys::mount::mount(source, target, fs_type, false, options).map_err(Failed::at_once)
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
        self.mount_with(target, fs_type, source, |target| make(target).map_err(Failed::from))
    }

    fn mount_with<T>(
        &self,
        target: &Path,
        fs_type: &str,
        source: &str,
        make: impl FnOnce(&Path) -> std::result::Result<T, Failed>,
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

    /// Creates a regular file `PREFIX-PID-RANDOM` (mode 0600) in the directory `parent`. Undoing removes it,
    /// whatever was written to it, unless another file has taken its name.
    #[allow(clippy::disallowed_methods, reason = "journalled")]
    pub fn create_file(&self, parent: &Path, prefix: &str) -> Result<(PathBuf, File, Guard)> {
        let path = unguessed(parent, prefix)?;
        let parent = identity(path.parent().unwrap_or(Path::new("/")))?;
        let ((path, file), guard) = self.change(Change::File { path: path.clone(), parent }, || {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)
                .map_err(|e| Failed::at_once(Error::io("create", &path, e)))?;
            let id = FileId::of(&file.metadata().map_err(|e| Error::io("stat", &path, e))?);
            Ok(((path, file), Made::File(id)))
        })?;
        Ok((path, file, guard))
    }

    /// Creates a directory `PREFIX-PID-RANDOM` (mode 0700) in `parent`. Undoing removes it with all
    /// that is in it, but refuses while something is mounted below it.
    pub fn create_directory(&self, parent: &Path, prefix: &str) -> Result<(PathBuf, Guard)> {
        let path = unguessed(parent, prefix)?;
        let parent = identity(path.parent().unwrap_or(Path::new("/")))?;
        self.change(Change::Directory { path: path.clone(), parent }, || {
            let made = DirBuilder::new().mode(0o700).create(&path);
            made.map_err(|e| Failed::at_once(Error::io("create", &path, e)))?;
            let id = identity(&path)?;
            Ok((path, Made::File(id)))
        })
    }

    /// Creates a private directory for a while (see [`Journal::create_directory`]), on a path that no other user
    /// can bend: in [`cold_sys::place::temporary_directory`], else beside the journal.
    pub fn create_private(&self, prefix: &str) -> Result<(PathBuf, Guard)> {
        let beside = self.directory().parent().map(Path::to_owned);
        let parent = cold_sys::place::temporary_directory(|name| std::env::var_os(name), beside);
        let parent = parent.ok_or_else(|| {
            let why = "neither TMPDIR nor /tmp, /var/tmp or the state directory is one in which only this user can \
                       replace what it makes; set TMPDIR to such a directory";
            Error::refused("make a private directory in", "/tmp", why)
        })?;
        self.create_directory(&parent, prefix)
    }

    /// Starts a process that must not outlive the journal. It gets a token in its environment, by
    /// which it (and what it started) is found if we die before its pid is journalled.
    pub fn spawn(&self, command: &mut Command) -> Result<(Child, Guard)> {
        let token = random()?;
        command.env(TOKEN_VARIABLE, &token);
        let program = PathBuf::from(command.get_program());
        self.change(Change::Process { program: program.clone(), token }, || {
            let child = command.spawn().map_err(|e| Failed::at_once(Error::io("start", &program, e)))?;
            let pid = child.id().cast_signed();
            let starttime = ProcFs::default().stat(pid)?.starttime;
            Ok((child, Made::Process { pid, starttime }))
        })
    }
}

fn is_busy(e: &cold_sys::Error) -> bool {
    e.errno() == Some(rustix::io::Errno::BUSY.raw_os_error())
}

fn resolve(path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(|e| Error::io("resolve", path, e))
}

/// `PREFIX-PID-RANDOM` in a directory, that resolved. Nobody else can have chosen this name: what has it is ours,
/// also when we were killed before we could write down which inode that is.
fn unguessed(parent: &Path, prefix: &str) -> Result<PathBuf> {
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    Ok(resolve(parent)?.join(format!("{prefix}-{}-{}", std::process::id(), random()?)))
}

fn identity(path: &Path) -> Result<FileId> {
    let meta = path.symlink_metadata().map_err(|e| Error::io("stat", path, e))?;
    Ok(FileId { dev: meta.dev(), ino: meta.ino() })
}

fn random() -> Result<String> {
    cold_sys::place::random_name().map_err(|e| Error::io("get random bytes for a name in", "/dev/urandom", e))
}
