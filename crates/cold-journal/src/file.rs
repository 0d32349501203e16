//! A journal on disk: appended to and synced line by line, read back with suspicion.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

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
    /// Creates, locks and syncs the journal of `owner` in `dir`.
    pub(crate) fn create(dir: &Path, owner: &Owner) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!("{}-{}-{n}.{SUFFIX}", owner.pid, owner.starttime));
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|e| Error::io("create", &path, e))?;
        // Free: the name is ours, and others leave the journal of a living process alone.
        file.lock().map_err(|e| Error::io("lock", &path, e))?;
        let mut this = Self { path, file, len: 0 };
        this.append(&Record::Header { format: FORMAT.to_owned(), owner: owner.clone() })?;
        place::sync(dir)?;
        Ok(this)
    }

    /// Opens a journal left by another process and reads it; `None` if another process holds it.
    pub(crate) fn open(path: &Path) -> Result<Option<(Self, Content)>> {
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            // NOFOLLOW and NONBLOCK: a link or FIFO put there must neither lead astray nor block.
            .custom_flags((rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits().cast_signed())
            .open(path)
            .map_err(|e| Error::io("open", path, e))?;
        let meta = file.metadata().map_err(|e| Error::io("stat", path, e))?;
        if !meta.is_file() {
            let why = "it is no regular file".to_owned();
            return Err(Error::Untrusted { path: path.to_owned(), why });
        }
        place::trusted(path, &meta)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(e)) => return Err(Error::io("lock", path, e)),
        }
        let mut bytes = Vec::new();
        let read = (&mut file).take(MAX_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|e| Error::io("read", path, e))?;
        let len = bytes.len() as u64;
        if len > MAX_BYTES {
            let why = format!("it is larger than {MAX_BYTES} bytes");
            return Err(Error::Untrusted { path: path.to_owned(), why });
        }
        let mut this = Self { path: path.to_owned(), file, len };
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

    /// Removes the journal: everything in it is done.
    pub(crate) fn remove(self) -> Result<()> {
        match std::fs::remove_file(&self.path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", &self.path, e)),
            _ => Ok(()),
        }
    }
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
