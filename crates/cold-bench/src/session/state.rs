//! Bringing the page cache into the wanted state before a run.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use cold_cache::snapshot::{Snapshot, restore};
use cold_cache::{EvictTarget, Method, evict};
use cold_journal::{Guard, Journal};
use cold_model::Shown as _;
use cold_model::bench::State;
use cold_sys::evict::{DropCaches, drop_caches};
use cold_sys::page::page_size;
use cold_sys::procfs::ProcFs;
use cold_sys::whole;

use super::Subject;
use crate::config::{Config, Eviction};
use crate::fileset::{Cached, FileSet};
use crate::{Error, Result};

/// Size of the decoy that is evicted before runs that are not cold, so that they see the same work
/// just before their start.
const DECOY_BYTES: usize = 8 << 20;

/// Evictions in a row after which reclaim is given up: who needs those pages all the time brings them
/// back at once, and is only slowed down.
const VAIN_RECLAIMS: u32 = 2;

/// Knows what has happened to the cache since the last eviction.
pub(super) struct Preparer {
    method: Method,
    words: String,
    /// Files beside the program stay as the last start left them.
    only_program: bool,
    /// `None` when every state is cold: then nobody needs one.
    decoy: Option<Decoy>,
    vain_reclaims: u32,
    /// Bytes of file sets that the evictions since the last start reclaimed. What one of them took comes back as
    /// refaults, though a later one took nothing.
    reclaimed: u64,
    /// The next eviction is for another start.
    started_since: bool,
    /// Pages of the last restored snapshot that are missing or too many, in bytes.
    not_restored: Option<NotRestored>,
    /// Per command: bytes that a start leaves in the cache, of files that are evicted.
    warm_bytes: Vec<u64>,
    /// Per command: starts since the last eviction.
    starts: Vec<u32>,
    /// Per command: what was cached after its last start, and was not evicted since.
    after: Vec<Option<Cached>>,
}

impl Preparer {
    /// Chooses the way to evict; fails when the wanted one is not allowed, or a snapshot is no good.
    pub(super) fn new(config: &Config, journal: &Journal) -> Result<Self> {
        let method = choose(config.eviction)?;
        for state in &config.states {
            if let State::Snapshot(file) = state {
                Snapshot::load(file)?; // it is read again for each run; now only to fail before any start
            }
        }
        let only_program = config.eviction == Eviction::Program;
        Ok(Self {
            method,
            only_program,
            words: words(method, config.eviction),
            decoy: config
                .states
                .iter()
                .any(|s| !s.begins_cold())
                .then(|| Decoy::create(journal))
                .transpose()?,
            vain_reclaims: 0,
            reclaimed: 0,
            started_since: false,
            not_restored: None,
            warm_bytes: vec![0; config.commands.len()],
            starts: vec![0; config.commands.len()],
            after: vec![None; config.commands.len()],
        })
    }

    /// How pages are evicted, in words.
    pub(super) fn method(&self) -> &str {
        &self.words
    }

    /// The observed start of each command was a start, too.
    pub(super) fn observed(&mut self, subjects: &[Subject<'_>]) {
        for (i, s) in subjects.iter().enumerate() {
            self.started(i, s);
        }
    }

    /// Notes that a start of command `index` has just ended.
    pub(super) fn started(&mut self, index: usize, subject: &Subject<'_>) {
        self.starts[index] += 1;
        self.started_since = true;
        if let Some(set) = &subject.set {
            set.note_own_changes();
        }
        self.after[index] = subject.set.as_ref().map(FileSet::cached);
        let bytes = self.after[index].as_ref().map_or(0, Cached::evicted_bytes);
        self.warm_bytes[index] = self.warm_bytes[index].max(bytes);
    }

    /// Bytes of its file set that a start of command `index` leaves in the cache, and that are evicted.
    pub(super) fn warm_bytes(&self, index: usize) -> u64 {
        self.warm_bytes[index]
    }

    /// How the last restored snapshot differs from what was saved.
    pub(super) fn not_restored(&self) -> Option<&NotRestored> {
        self.not_restored.as_ref()
    }

    /// Starts of command `index` since the last eviction.
    pub(super) fn starts(&self, index: usize) -> u32 {
        self.starts[index]
    }

    /// Forgets that command `index` is warm.
    pub(super) fn not_warm(&mut self, index: usize) {
        self.starts[index] = 0;
    }

    /// Bytes of the file set that were reclaimed for the last start: others map them.
    pub(super) fn reclaimed(&self) -> u64 {
        self.reclaimed
    }

    /// What was cached after the last start of command `index`, and was not evicted since.
    pub(super) fn after(&self, index: usize) -> Option<&Cached> {
        self.after[index].as_ref()
    }

    /// Evicts the files of `subject` (and, by method, everything else). Every command counts as cold
    /// afterwards: they may share files.
    pub(super) fn evict(&mut self, subject: &Subject<'_>) -> Result<()> {
        let targets = subject.set.as_ref().map(FileSet::targets).unwrap_or_default();
        let report = match evict(&targets, self.method) {
            Err(e) if self.method.reclaim_mapped => {
                // No memory cgroup, or swap is on: then mapped pages stay, and the proof will say so.
                self.without_reclaim(&format!("pages mapped by others stay: {e}"));
                evict(&targets, self.method)
            }
            other => other,
        }?;
        if std::mem::take(&mut self.started_since) {
            self.reclaimed = 0;
        }
        self.reclaimed = self.reclaimed.saturating_add(report.reclaimed.0);
        if self.method.reclaim_mapped && report.reclaim.is_some() {
            self.vain_reclaims = if report.stayed.is_empty() { 0 } else { self.vain_reclaims + 1 };
            if self.vain_reclaims == VAIN_RECLAIMS {
                self.without_reclaim("reclaim of mapped pages was given up: others need them all the time");
            }
        }
        self.starts.fill(0);
        for after in &mut self.after {
            *after = after.take().map(Cached::staying).filter(|_| self.only_program);
        }
        self.not_restored = None;
        Ok(())
    }

    /// After the proof of a cold state: looking at the files has brought their names, inodes and the file
    /// systems' blocks back, which a cold start has to read too (84 blocks and a tenth of the time for a
    /// `python3` with imports). Pages can only become fewer by this, so the proof holds. False when the method
    /// leaves the machine's caches alone: then these stay.
    pub(super) fn drop_looked_up(&self) -> Result<bool> {
        if self.method.drop_caches {
            drop_caches(&ProcFs::default(), DropCaches::All)?;
        }
        Ok(self.method.drop_caches)
    }

    fn without_reclaim(&mut self, why: &str) {
        self.method.reclaim_mapped = false;
        self.words = format!("{}; {why}", words(self.method, Eviction::All));
    }

    /// Evicts as for a cold start, then brings back exactly the pages of the snapshot.
    pub(super) fn restore(&mut self, index: usize, file: &Path, subject: &Subject<'_>) -> Result<()> {
        let snapshot = Snapshot::load(file)?;
        self.evict(subject)?;
        let report = restore(&snapshot, &())?;
        if !report.is_exact() {
            let sum = |f: fn(&cold_cache::snapshot::Difference) -> u64| {
                report.different.iter().map(f).sum::<u64>() * page_size()
            };
            self.not_restored = Some(NotRestored {
                missing: sum(|d| d.missing),
                extra: sum(|d| d.extra),
                files: (report.changed.len() + report.unknown.len()) as u64,
            });
        }
        self.after[index] = subject.set.as_ref().map(FileSet::cached);
        Ok(())
    }

    /// The same work on a decoy.
    pub(super) fn sham(&self) -> Result<()> {
        self.decoy.as_ref().map_or(Ok(()), Decoy::evict)
    }
}

fn choose(wanted: Eviction) -> Result<Method> {
    let drop_caches = ProcFs::default().path("sys/vm/drop_caches");
    // Opening does nothing yet; only a write would.
    let allowed = OpenOptions::new().write(true).open(&drop_caches);
    match (wanted, allowed) {
        (Eviction::Files | Eviction::Program, _) | (Eviction::Auto, Err(_)) => Ok(Method::FILES),
        (Eviction::All | Eviction::Auto, Ok(_)) => Ok(Method::ALL_AND_MAPPED),
        (Eviction::All, Err(e)) => Err(Error::State {
            state: "cold".into(),
            why: format!(
                "--evict all writes {}, which is refused ({e}); run as root or use --evict files",
                drop_caches.shown()
            ),
        }),
    }
}

fn words(m: Method, wanted: Eviction) -> String {
    match (m.drop_caches, m.reclaim_mapped) {
        _ if wanted == Eviction::Program => {
            "the program's own file (fadvise); its libraries and all else stay as they are".into()
        }
        (false, _) => "per file (fadvise); directories and inodes may stay cached".into(),
        (true, false) => "whole machine (sync, drop_caches=3)".into(),
        (true, true) => "whole machine (sync, drop_caches=3, reclaim of mapped pages)".into(),
    }
}

/// What a restored snapshot lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotRestored {
    /// Bytes that should be cached and are not.
    pub(super) missing: u64,
    /// Bytes that are cached and should not be.
    pub(super) extra: u64,
    /// Files that changed since, or whose residency is unknown.
    pub(super) files: u64,
}

/// A file of our own that is evicted in place of the command's; removed with its journal entry.
struct Decoy {
    path: PathBuf,
    _guard: Guard,
}

impl Decoy {
    fn create(journal: &Journal) -> Result<Self> {
        let (dir, guard) = journal.create_private("cold-decoy")?;
        let path = dir.join("decoy");
        let fail = |source| Error::File { action: "write", path: path.clone(), source };
        whole::write(&path, whole::Ownership::Own(0o600), &vec![0x5a; DECOY_BYTES]).map_err(fail)?;
        Ok(Self { path, _guard: guard })
    }

    fn evict(&self) -> Result<()> {
        // Cached first, or the second sham eviction would have nothing to do.
        let fail = |source| Error::File { action: "read", path: self.path.clone(), source };
        std::fs::read(&self.path).map_err(fail)?;
        evict(&[EvictTarget { path: self.path.clone(), id: None }], Method::FILES)?;
        Ok(())
    }
}
