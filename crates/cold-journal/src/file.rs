//! A journal on disk: appended to and synced line by line, read back with suspicion.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, OFlags};
use rustix::io::Errno;

use crate::change::{Change, Made};
use crate::record::{FORMAT, Owner, Record};
use crate::{Error, Result, place};

/// Larger journals are refused: 16 MiB hold some 50,000 changes, far more than any run makes.
const MAX_BYTES: u64 = 16 << 20;
/// The names of journals end so.
pub(crate) const SUFFIX: &str = "journal";

/// A change that is not known to be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) id: u64,
    pub(crate) change: Change,
    pub(crate) made: Option<Made>,
}

/// An open, locked journal.
#[derive(Debug)]
pub(crate) struct JournalFile {
    path: PathBuf,
    file: File,
    len: u64,
}

/// What a journal says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) owner: Option<Owner>,
    /// In the order they were made.
    pub(crate) pending: Vec<Pending>,
    /// Lines that could not be read; the last one of a killed process usually.
    pub(crate) damaged: usize,
}

impl JournalFile {
    /// Creates, locks and syncs the journal of `owner` in `dir`. It gets its name when it is locked: another
    /// process, which may know other pids than ours (a container), must never find it without its owner.
    #[allow(clippy::disallowed_methods, reason = "removes the hidden name that it has just made")]
    pub(crate) fn create(dir: &Path, owner: &Owner) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (file, hidden) = unnamed(dir)?;
        file.lock().map_err(|e| Error::io("lock a journal in", dir, e))?;
        let mut this = Self { path: dir.to_owned(), file, len: 0 };
        let header = Record::Header { format: FORMAT.to_owned(), owner: owner.clone() };
        let named = this.append(&header).and_then(|()| {
            let held = cold_sys::open::held(&this.file);
            let from = hidden.as_ref().unwrap_or(&held);
            loop {
                let n = NEXT.fetch_add(1, Ordering::Relaxed);
                let path = dir.join(format!("{}-{}-{n}.{SUFFIX}", owner.pid, owner.starttime));
                match rustix::fs::linkat(CWD, from, CWD, &path, AtFlags::SYMLINK_FOLLOW) {
                    Ok(()) => break Ok(path),
                    // Of another pid namespace, or of a process whose undoing failed.
                    Err(Errno::EXIST) => {}
                    Err(e) => break Err(Error::io("create", path, e.into())),
                }
            }
        });
        if let Some(hidden) = hidden {
            let _ = std::fs::remove_file(hidden);
        }
        this.path = named?;
        cold_sys::whole::sync_names(dir).map_err(|e| Error::io("sync", dir, e))?;
        Ok(this)
    }

    /// Reads the journal of another process, which may hold it; `None` when it is gone by now.
    pub(crate) fn peek(path: &Path) -> Result<Option<Content>> {
        match open(path, OpenOptions::new().read(true)) {
            Ok(file) => Ok(Some(Content::parse(&read(path, &file)?))),
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Opens a journal left by another process and reads it; `None` if another process holds it.
    pub(crate) fn open(path: &Path) -> Result<Option<(Self, Content)>> {
        let file = open(path, OpenOptions::new().read(true).append(true))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(e)) => return Err(Error::io("lock", path, e)),
        }
        let bytes = read(path, &file)?;
        let mut this = Self { path: path.to_owned(), file, len: bytes.len() as u64 };
        if !bytes.is_empty() && !bytes.ends_with(b"\n") {
            // A torn last line must not swallow the next record.
            this.append_bytes(b"\n")?;
        }
        Ok(Some((this, Content::parse(&bytes))))
    }

    /// Appends a record; when this returns, the record survives a crash and a power cut.
    pub(crate) fn append(&mut self, record: &Record) -> Result<()> {
        let line = record.line().map_err(|e| Error::io("write", &self.path, e.into()))?;
        self.append_bytes(line.as_bytes())
    }

    fn append_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        match self.file.write_all(bytes).and_then(|()| self.file.sync_data()) {
            Ok(()) => {
                self.len += bytes.len() as u64;
                Ok(())
            }
            Err(e) => {
                // Half a line must not spoil the following ones. If even this fails, its checksum
                // makes the reader skip it.
                let _ = self.file.set_len(self.len);
                Err(Error::io("write", &self.path, e))
            }
        }
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the journal: everything in it is done.
    #[allow(clippy::disallowed_methods, reason = "its own journal, which it holds")]
    pub(crate) fn remove(self) -> Result<()> {
        match std::fs::remove_file(&self.path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", &self.path, e)),
            _ => Ok(()),
        }
    }
}

/// A file that has no name yet; where the file system has none, with one that no journal has.
#[allow(clippy::disallowed_methods, reason = "a journal is appended to, line by line")]
fn unnamed(dir: &Path) -> Result<(File, Option<PathBuf>)> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).mode(0o600);
    match options.clone().custom_flags(OFlags::TMPFILE.bits().cast_signed()).open(dir) {
        Ok(file) => return Ok((file, None)),
        Err(e)
            if matches!(Errno::from_io_error(&e), Some(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL)) => {}
        Err(e) => return Err(Error::io("create a journal in", dir, e)),
    }
    let name = cold_sys::place::random_name().map_err(|e| Error::io("name a journal in", dir, e))?;
    let path = dir.join(format!(".{name}.new"));
    let file = options.create_new(true).open(&path).map_err(|e| Error::io("create", &path, e))?;
    Ok((file, Some(path)))
}

/// Opens what another process left, with suspicion.
fn open(path: &Path, options: &OpenOptions) -> Result<File> {
    let file = options
        .clone()
        // NOFOLLOW and NONBLOCK: a link or FIFO put there must neither lead astray nor block.
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
        .open(path)
        .map_err(|e| Error::io("open", path, e))?;
    let meta = file.metadata().map_err(|e| Error::io("stat", path, e))?;
    if !meta.is_file() {
        let why = "it is no regular file".to_owned();
        return Err(Error::Untrusted { path: path.to_owned(), why });
    }
    place::trusted(path, &meta)?;
    Ok(file)
}

fn read(path: &Path, file: &File) -> Result<Vec<u8>> {
    let bytes = cold_sys::open::content(file, MAX_BYTES).map_err(|e| Error::io("read", path, e))?;
    bytes.ok_or_else(|| Error::Untrusted {
        path: path.to_owned(),
        why: format!("it is larger than {MAX_BYTES} bytes"),
    })
}

impl Content {
    /// Reads all undamaged lines. A damaged line is skipped, not the end: at the end of the file it is
    /// a change that was never made, elsewhere the following changes still have to be undone.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let mut owner = None;
        let mut pending = BTreeMap::new();
        let mut damaged = 0;
        for line in bytes.split(|&b| b == b'\n').filter(|l| !l.is_empty()) {
            match Record::parse(line) {
                Some(Record::Header { format, owner: o }) if format == FORMAT && owner.is_none() => {
                    owner = Some(o);
                }
                Some(Record::Change { id, change }) => {
                    pending.insert(id, Pending { id, change, made: None });
                }
                Some(Record::Made { id, made }) => {
                    if let Some(p) = pending.get_mut(&id) {
                        p.made = Some(made);
                    }
                }
                Some(Record::Rebased { id, old }) => {
                    if let Some(Pending { change: Change::Setting { old: o, .. }, .. }) = pending.get_mut(&id)
                    {
                        *o = old;
                    }
                }
                Some(Record::Done { id, .. }) => {
                    pending.remove(&id);
                }
                Some(Record::Header { .. }) | None => damaged += 1,
            }
        }
        Self { owner, pending: pending.into_values().collect(), damaged }
    }
}
