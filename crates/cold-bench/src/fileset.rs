//! The files a start uses: their identity, their residency, their devices.

mod devices;

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

use cold_cache::{EvictTarget, Reason, stayed};
use cold_model::FileId;
use cold_model::bench::{Held, Residual, ResidualFile};
use cold_model::file::Content;
use cold_model::observed::ObservedStart;
use cold_model::order::Text;
use cold_model::{Bytes, Known};
use cold_sys::open;
use cold_sys::page::page_size;
use cold_sys::residency::{PageMap, PageRun};

pub use devices::{BlockDevices, block_devices};

/// Files named in [`Residual::files`].
const NAMED: usize = 20;

/// One file of the set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetFile {
    /// Path in our mount namespace.
    pub path: PathBuf,
    /// Identity when it was observed.
    pub id: FileId,
    /// Size when it was observed, in bytes.
    pub size: u64,
    /// Modification time when it was observed, ns since 1970.
    pub mtime_ns: i64,
    /// A start itself writes, replaces or removes it, so it may be another file each time. Learned also
    /// from later starts (a file replaced by rename shows only afterwards), hence the cell.
    pub written: Cell<bool>,
    /// It is not evicted for a cold start, and need not be absent.
    pub stays: bool,
}

/// The regular files that a command executes, maps or opens during a start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileSet {
    /// Files that can be looked at.
    pub files: Vec<SetFile>,
    /// Bytes in files that lie in another mount namespace and cannot be looked at.
    pub out_of_reach: u64,
}

/// Which pages of a file set are cached at one moment.
#[derive(Debug, Clone, Default)]
pub struct Cached {
    maps: HashMap<FileId, Looked>,
    unknown_bytes: u64,
}

/// A file at that moment.
#[derive(Debug, Clone)]
struct Looked {
    path: PathBuf,
    map: PageMap,
    /// Who writes changes it.
    content: Content,
    /// As [`SetFile::stays`].
    stays: bool,
}

impl SetFile {
    /// It should be what was observed, and is not.
    fn differs(&self) -> bool {
        let observed = Content { size: self.size, mtime_ns: self.mtime_ns };
        let same = |m: Metadata| FileId::of(&m) == self.id && Content::of(&m) == observed;
        !self.written.get() && !self.path.metadata().is_ok_and(same)
    }
}

impl FileSet {
    /// From an observed start.
    pub fn of(observed: &ObservedStart) -> Self {
        let mut set = Self::default();
        for f in &observed.files {
            if f.elsewhere {
                set.out_of_reach += f.size.0;
                continue;
            }
            set.files.push(SetFile {
                path: f.path.clone(),
                id: FileId { dev: f.id.dev, ino: f.id.ino },
                size: f.size.0,
                mtime_ns: f.mtime_ns,
                written: Cell::new(f.how.written || f.gone),
                stays: false,
            });
        }
        set
    }

    /// Adds files of the launcher. They may be written anew between starts (a plan), so they are evicted
    /// and looked at, but not asked whether they changed.
    pub fn add(&mut self, paths: &[PathBuf]) {
        for path in paths {
            let Ok(meta) = path.metadata() else { continue };
            let id = FileId::of(&meta);
            if meta.is_file() && self.files.iter().all(|f| f.id != id) {
                let Content { size, mtime_ns } = Content::of(&meta);
                let written = Cell::new(true);
                self.files.push(SetFile { path: path.clone(), id, size, mtime_ns, written, stays: false });
            }
        }
    }

    /// From now on all files but this one stay as they are; false: it is none of them.
    pub fn evict_only(&mut self, program: &Path) -> bool {
        let id = |path: &Path| path.metadata().ok().map(|meta| FileId::of(&meta));
        let program = id(program);
        for f in &mut self.files {
            f.stays = program.is_none() || id(&f.path) != program;
        }
        self.files.iter().any(|f| !f.stays)
    }

    /// What to evict. A file that the start writes may have been replaced since: any file at its path
    /// will do.
    pub fn targets(&self) -> Vec<EvictTarget> {
        self.files
            .iter()
            .filter(|f| !f.stays && f.path.symlink_metadata().is_ok())
            .map(|f| EvictTarget { path: f.path.clone(), id: (!f.written.get()).then_some(f.id) })
            .collect()
    }

    /// The first file that is not what was observed. Files that the start itself writes are not asked.
    pub fn changed(&self) -> Option<PathBuf> {
        self.files.iter().find(|f| f.differs()).map(|f| f.path.clone())
    }

    /// Called right after a start of ours: what has changed by now, it has changed itself.
    pub fn note_own_changes(&self) {
        for f in self.files.iter().filter(|f| f.differs()) {
            f.written.set(true);
        }
    }

    /// Looks at every page now. Does not touch any.
    pub fn cached(&self) -> Cached {
        let mut cached = Cached { unknown_bytes: self.out_of_reach, ..Cached::default() };
        for f in &self.files {
            let Ok((file, meta)) = open::regular(&f.path, true) else {
                // A file that is gone has nothing cached; one we may not open is unknown.
                if !f.stays && f.path.symlink_metadata().is_ok() {
                    cached.unknown_bytes += f.size;
                }
                continue;
            };
            match PageMap::of(&file, &meta) {
                Ok(Some(map)) => {
                    let (path, content) = (f.path.clone(), Content::of(&meta));
                    let looked = Looked { path, map, content, stays: f.stays };
                    cached.maps.insert(FileId::of(&meta), looked);
                }
                Ok(None) | Err(_) if f.stays => {}
                Ok(None) | Err(_) => cached.unknown_bytes += meta.len(),
            }
        }
        cached
    }
}

/// The process that keeps pages mapped, and how much of the file.
fn held(reason: &Reason) -> Option<Held> {
    let Reason::Mapped { pid, name, pages, .. } = reason else { return None };
    let bytes = pages.map_or_else(
        || Known::unknown("its page tables may not be read"),
        |pages| Known::Value(Bytes(pages * page_size())),
    );
    Some(Held { holder: format!("{name}[{pid}]"), bytes })
}

impl Cached {
    /// Cached bytes that are known.
    pub fn bytes(&self) -> u64 {
        self.maps.values().map(|l| l.map.resident()).sum::<u64>() * page_size()
    }

    /// Cached bytes of files that a cold start must not find.
    pub fn evicted_bytes(&self) -> u64 {
        self.maps.values().filter(|l| !l.stays).map(|l| l.map.resident()).sum::<u64>() * page_size()
    }

    /// What is cached of the files that stay as they are for a cold start.
    #[must_use]
    pub fn staying(mut self) -> Self {
        self.maps.retain(|_, l| l.stays);
        self
    }

    /// Bytes of these parts of one file that are cached, in whole pages; `None` where it was not looked at.
    pub fn within(&self, file: FileId, parts: &[Text]) -> Option<u64> {
        let map = &self.maps.get(&file)?.map;
        let page = page_size();
        let pages = |part: &Text| {
            let (first, end) = (part.offset / page, part.offset.saturating_add(part.bytes).div_ceil(page));
            PageRun { first, pages: end.saturating_sub(first) }
        };
        Some(map.and(&PageMap::from_runs(map.pages(), parts.iter().map(pages))).resident() * page)
    }

    /// Bytes whose residency is known, page by page.
    pub fn checked_bytes(&self) -> u64 {
        self.maps.values().map(|l| l.map.pages()).sum::<u64>() * page_size()
    }

    /// Bytes of files whose residency is unknown.
    pub fn unknown_bytes(&self) -> u64 {
        self.unknown_bytes
    }

    /// Bytes that are cached here and not in `later`. A file that `later` does not know counts as gone
    /// only if it was there to be looked at.
    pub fn not_in(&self, later: &Self) -> u64 {
        self.gone_in(later, |_, _| true)
    }

    /// As [`Cached::not_in`], for the time of a start: pages of a file that it wrote, cut short or made anew went
    /// with their content. Nobody took them.
    pub fn taken_until(&self, later: &Self) -> u64 {
        self.gone_in(later, |then, now| then.content == now.content)
    }

    fn gone_in(&self, later: &Self, counts: impl Fn(&Looked, &Looked) -> bool) -> u64 {
        let pairs = self.maps.iter().filter_map(|(id, then)| Some((then, later.maps.get(id)?)));
        let pages = pairs.filter(|(then, now)| counts(then, now)).map(|(then, now)| then.map.minus(&now.map));
        pages.map(|gone| gone.resident()).sum::<u64>() * page_size()
    }

    /// The report's form, with the processes that hold what is cached when `name_holders`.
    pub fn residual(&self, name_holders: bool) -> Residual {
        let mut files: Vec<(&FileId, &Path, u64)> = self
            .maps
            .iter()
            .filter(|(_, l)| !l.stays && l.map.resident() > 0)
            .map(|(id, l)| (id, l.path.as_path(), l.map.resident() * page_size()))
            .collect();
        files.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.1.cmp(b.1)));
        let mut holders = HashMap::new();
        if name_holders && !files.is_empty() {
            // Names help; without them the bytes still count.
            for s in stayed(files.iter().map(|f| f.1.to_owned())).unwrap_or_default() {
                holders.insert(s.id, s.reasons.iter().filter_map(held).collect::<Vec<_>>());
            }
        }
        Residual {
            bytes: Bytes(self.evicted_bytes()),
            left: self.maps.values().any(|l| l.stays).then(|| Bytes(self.bytes() - self.evicted_bytes())),
            unknown_bytes: Bytes(self.unknown_bytes),
            files: files
                .iter()
                .take(NAMED)
                .map(|(id, path, bytes)| {
                    let held = holders.remove(*id).unwrap_or_default();
                    ResidualFile {
                        path: path.to_path_buf(),
                        bytes: Bytes(*bytes),
                        holders: held.iter().map(|h| h.holder.clone()).collect(),
                        held,
                    }
                })
                .collect(),
        }
    }

    /// The residual as far as it is known; `None` maps say why they are missing.
    pub fn known_residual(set: Option<&Self>, name_holders: bool, why_not: &str) -> Known<Residual> {
        set.map_or_else(|| Known::unknown(why_not), |c| Known::Value(c.residual(name_holders)))
    }
}

#[cfg(test)]
mod tests;
