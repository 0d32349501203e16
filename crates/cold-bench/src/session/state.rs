//! Bringing the page cache into the wanted state before a run.

use std::io::Write;
use std::path::{Path, PathBuf};

use cold_cache::{EvictTarget, Method, evict};
use cold_sys::procfs::ProcFs;

use super::Subject;
use crate::config::{Config, Eviction};
use crate::fileset::Cached;
use crate::{Error, Result};

/// Size of the decoy that is evicted before runs that are not cold, so that they see the same work
/// just before their start.
const DECOY_BYTES: usize = 8 << 20;

/// Knows what has happened to the cache since the last eviction.
pub(super) struct Preparer {
    method: Method,
    words: String,
    decoy: Decoy,
    /// Per command: starts since the last eviction.
    starts: Vec<u32>,
    /// Per command: what was cached after its last start.
    after: Vec<Option<Cached>>,
}

impl Preparer {
    /// Chooses the way to evict; fails when the wanted one is not allowed.
    pub(super) fn new(config: &Config) -> Result<Self> {
        let method = choose(config.eviction)?;
        Ok(Self {
            method,
            words: words(method),
            decoy: Decoy::create()?,
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
        self.after[index] = subject.set.as_ref().map(crate::fileset::FileSet::cached);
    }

    /// Starts of command `index` since the last eviction.
    pub(super) fn starts(&self, index: usize) -> u32 {
        self.starts[index]
    }

    /// Forgets that command `index` is warm.
    pub(super) fn not_warm(&mut self, index: usize) {
        self.starts[index] = 0;
    }

    /// What was cached after the last start of command `index`.
    pub(super) fn after(&self, index: usize) -> Option<&Cached> {
        self.after[index].as_ref()
    }

    /// Evicts the files of `subject` (and, by method, everything else). Every command counts as cold
    /// afterwards: they may share files.
    pub(super) fn evict(&mut self, subject: &Subject<'_>) -> Result<()> {
        let targets = subject.set.as_ref().map(crate::fileset::FileSet::targets).unwrap_or_default();
        if let Err(e) = evict(&targets, self.method) {
            if !self.method.reclaim_mapped {
                return Err(e.into());
            }
            // No memory cgroup, or swap is on: then mapped pages stay, and the proof will say so.
            self.method.reclaim_mapped = false;
            self.words = format!("{} (pages mapped by others stay: {e})", words(self.method));
            evict(&targets, self.method)?;
        }
        self.starts.fill(0);
        self.after.fill_with(|| None);
        Ok(())
    }

    /// The same work on a decoy.
    pub(super) fn sham(&self) -> Result<()> {
        self.decoy.evict()
    }
}

fn choose(wanted: Eviction) -> Result<Method> {
    let drop_caches = ProcFs::default().path("sys/vm/drop_caches");
    // Opening does nothing yet; only a write would.
    let allowed = std::fs::OpenOptions::new().write(true).open(&drop_caches);
    match (wanted, allowed) {
        (Eviction::Files, _) | (Eviction::Auto, Err(_)) => Ok(Method::FILES),
        (Eviction::All | Eviction::Auto, Ok(_)) => Ok(Method::ALL_AND_MAPPED),
        (Eviction::All, Err(e)) => Err(Error::State {
            state: "cold".into(),
            why: format!(
                "--evict all writes {}, which is refused ({e}); run as root or use --evict files",
                drop_caches.display()
            ),
        }),
    }
}

fn words(m: Method) -> String {
    match (m.drop_caches, m.reclaim_mapped) {
        (false, _) => "per file (fadvise); directories and inodes may stay cached".into(),
        (true, false) => "whole machine (sync, drop_caches=3)".into(),
        (true, true) => "whole machine (sync, drop_caches=3, reclaim of mapped pages)".into(),
    }
}

/// A file of our own, removed when dropped.
struct Decoy {
    path: PathBuf,
}

impl Decoy {
    fn create() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("cold-decoy-{}", std::process::id()));
        let fail = |source| Error::File { action: "write", path: path.clone(), source };
        // A name somebody could guess: never follow a link that is already there.
        let _ = std::fs::remove_file(&path);
        let mut file = std::fs::File::create_new(&path).map_err(fail)?;
        let me = Self { path: path.clone() };
        file.write_all(&vec![0x5a; DECOY_BYTES]).map_err(fail)?;
        file.sync_all().map_err(fail)?;
        Ok(me)
    }

    fn evict(&self) -> Result<()> {
        // Cached first, or the second sham eviction would have nothing to do.
        let fail = |source| Error::File { action: "read", path: self.path.clone(), source };
        std::fs::read(&self.path).map_err(fail)?;
        evict(&[EvictTarget { path: self.path.clone(), id: None }], Method::FILES)?;
        Ok(())
    }
}

impl Drop for Decoy {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(Path::new(&self.path));
    }
}
