//! Turns "thread T opened descriptor N" into the file set.
//!
//! A file is identified through the kernel's own handle (`/proc/T/fd/N`, `/proc/T/exe`,
//! `/proc/T/map_files`), never by looking its path up again: that stays right under chroot, in other
//! mount namespaces, for relative paths and for deleted files.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use cold_model::bench::Ending;
use cold_model::file::mtime_ns;
use cold_model::observed::{How, Misses, ObservedFile, ObservedStart};
use cold_model::{Bytes, Nanos};
use cold_model::{Dev, FileId};

use crate::procfs::{MapEntry, ProcFs};

/// Directories named in [`ObservedStart::misses_by_dir`]: a terminal page and some more.
const NAMED_MISS_DIRS: usize = 64;
/// More notes than this say nothing more.
const MAX_NOTES: usize = 100;

/// What a look at a file found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// A regular file; now in the set.
    File(FileId),
    /// Something that has no place in the set.
    Other,
    /// The process would not show it, or is gone.
    Unidentified,
}

/// What has been seen so far.
#[derive(Debug)]
pub(super) struct Collector {
    started: Instant,
    files: Vec<ObservedFile>,
    index: HashMap<Identity, usize>,
    /// Device to: is it a kernel file system?
    kernel_devices: HashMap<u64, bool>,
    /// Mapped files by the device and inode that `maps` prints, which need not be those of `stat`.
    mapped: HashSet<(Dev, u64)>,
    directories: HashMap<FileId, PathBuf>,
    misses_by_dir: HashMap<PathBuf, u64>,
    notes: BTreeSet<String>,
    kernel_file_opens: u64,
    unidentified: u64,
    lookups: u64,
    misses: u64,
    root_device: u64,
}

/// Inode numbers are used again: a start that writes and deletes temporary files meets the same number
/// for different files. The time of birth tells them apart on file systems that keep it (ext4, XFS,
/// btrfs, tmpfs since Linux 6.6).
type Identity = (FileId, Option<SystemTime>);

impl Collector {
    pub(super) fn new(started: Instant) -> Self {
        Self {
            started,
            files: Vec::new(),
            index: HashMap::new(),
            kernel_devices: HashMap::new(),
            mapped: HashSet::new(),
            directories: HashMap::new(),
            misses_by_dir: HashMap::new(),
            notes: BTreeSet::new(),
            kernel_file_opens: 0,
            unidentified: 0,
            lookups: 0,
            misses: 0,
            root_device: std::fs::metadata("/").map_or(0, |m| m.dev()),
        }
    }

    /// Keeps a remark for the reader.
    pub(super) fn note(&mut self, text: String) {
        if self.notes.len() < MAX_NOTES {
            self.notes.insert(text);
        }
    }

    /// Counts a path resolution.
    pub(super) fn lookup(&mut self) {
        self.lookups += 1;
    }

    /// Counts a failed one below `dir` (unknown if the process would not show its memory).
    pub(super) fn miss(&mut self, dir: Option<PathBuf>) {
        self.misses += 1;
        if let Some(dir) = dir {
            *self.misses_by_dir.entry(dir).or_default() += 1;
        }
    }

    /// Adds what the magic link `link` below `/proc/PID` leads to.
    pub(super) fn file_at_link(&mut self, link: &Path, how: How) -> Seen {
        let Ok(meta) = std::fs::metadata(link) else {
            self.unidentified += 1;
            return Seen::Unidentified;
        };
        if meta.is_dir() {
            if let (Some(place), true) = (self.new_directory(&meta), how.opened) {
                let path = std::fs::read_link(link).unwrap_or_default();
                self.directories.insert(place, path);
            }
            return Seen::Other;
        }
        self.file(&meta, how, || std::fs::read_link(link).ok(), link)
    }

    fn new_directory(&self, meta: &Metadata) -> Option<FileId> {
        Some(FileId::of(meta)).filter(|id| !self.directories.contains_key(id))
    }

    /// Adds the file that `meta` describes; `name` is asked for the kernel's name of it (with its
    /// ` (deleted)` mark) only when it is new, `reach` leads to it from here.
    pub(super) fn file(
        &mut self,
        meta: &Metadata,
        how: How,
        name: impl FnOnce() -> Option<PathBuf>,
        reach: &Path,
    ) -> Seen {
        if !meta.is_file() {
            return Seen::Other;
        }
        let id = FileId::of(meta);
        let identity = (id, meta.created().ok());
        if let Some(file) = self.index.get(&identity).and_then(|i| self.files.get_mut(*i)) {
            file.how = file.how.and(how);
            return Seen::File(id);
        }
        if self.is_on_kernel_fs(meta.dev(), reach) {
            self.kernel_file_opens += 1;
            return Seen::Other;
        }
        let Some(name) = name() else {
            self.unidentified += 1;
            return Seen::Unidentified;
        };
        let (path, elsewhere, deleted) = locate(name, id);
        if deleted && self.never_had_a_name(&path, meta) {
            return Seen::Other;
        }
        self.index.insert(identity, self.files.len());
        self.files.push(ObservedFile {
            path,
            id,
            size: Bytes(meta.size()),
            mtime_ns: mtime_ns(meta),
            how,
            first: Nanos::from(self.started.elapsed()),
            elsewhere,
            gone: deleted,
        });
        Seen::File(id)
    }

    /// memfd, System V segments and drivers' buffers are nameless files on a kernel-internal tmpfs,
    /// which prints them as deleted children of its own root (`/memfd:x (deleted)`).
    fn never_had_a_name(&self, path: &Path, meta: &Metadata) -> bool {
        meta.nlink() == 0 && path.parent() == Some(Path::new("/")) && meta.dev() != self.root_device
    }

    fn is_on_kernel_fs(&mut self, dev: u64, reach: &Path) -> bool {
        *self
            .kernel_devices
            .entry(dev)
            .or_insert_with(|| file_system_magic(reach).is_some_and(|magic| KERNEL_FS.contains(&magic)))
    }

    /// Adds every file that process `pid` maps.
    pub(super) fn maps(&mut self, pid: i32) {
        let Ok(maps) = ProcFs::default().maps(pid) else {
            return; // it was killed meanwhile, or hides itself: its opens are counted one by one
        };
        for entry in maps {
            let key = (entry.dev, entry.inode);
            if entry.inode != 0 && !self.mapped.contains(&key) {
                if self.mapped_file(pid, &entry) == Seen::Unidentified {
                    self.unidentified += 1;
                }
                self.mapped.insert(key);
            }
        }
    }

    fn mapped_file(&mut self, pid: i32, entry: &MapEntry) -> Seen {
        let how = How { mapped: true, ..How::default() };
        let Some(path) = entry.path.as_deref().filter(|p| p.is_absolute()) else { return Seen::Other };
        // Exact, but only with CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE.
        let link = PathBuf::from(format!("/proc/{pid}/map_files/{:x}-{:x}", entry.start, entry.end));
        if let Ok(meta) = std::fs::metadata(&link) {
            return self.file(&meta, how, || std::fs::read_link(&link).ok(), &link);
        }
        // Without: the path as that process' root sees it, if its inode is still the mapped one.
        let below_root = |path: &Path| {
            let rel = path.strip_prefix("/").unwrap_or(path);
            PathBuf::from(format!("/proc/{pid}/root")).join(rel)
        };
        for reach in [path.to_owned(), below_root(path)] {
            if let Ok(meta) = std::fs::metadata(&reach)
                && meta.ino() == entry.inode
            {
                return self.file(&meta, how, || Some(path.to_owned()), &reach);
            }
        }
        // Deleted since: known if it was opened under our eyes.
        let same = |f: &&mut ObservedFile| f.id.ino == entry.inode && f.path == path;
        if let Some(file) = self.files.iter_mut().find(same) {
            file.how.mapped = true;
            return Seen::File(file.id);
        }
        let nameless = entry.deleted && path.parent() == Some(Path::new("/"));
        if nameless { Seen::Other } else { Seen::Unidentified }
    }

    /// Adds the open descriptors of process `pid`.
    pub(super) fn descriptors(&mut self, pid: i32, how: How) {
        for fd in ProcFs::default().fds(pid).unwrap_or_default() {
            if fd.target.is_absolute() {
                self.file_at_link(Path::new(&format!("/proc/{pid}/fd/{}", fd.fd)), how);
            }
        }
    }

    pub(super) fn finish(mut self, ending: Ending, killed_by_force: u64) -> ObservedStart {
        for file in self.files.iter_mut().filter(|f| !f.elsewhere) {
            file.gone |= !leads_to(&file.path, file.id);
        }
        let mut by_dir: Vec<Misses> =
            self.misses_by_dir.into_iter().map(|(dir, count)| Misses { dir, count }).collect();
        by_dir.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.dir.cmp(&b.dir)));
        by_dir.truncate(NAMED_MISS_DIRS);
        let named: u64 = by_dir.iter().map(|m| m.count).sum();
        let mut directories: Vec<PathBuf> = self.directories.into_values().collect();
        directories.sort();
        directories.dedup();
        ObservedStart {
            files: self.files,
            directories,
            kernel_file_opens: self.kernel_file_opens,
            unidentified: self.unidentified,
            lookups: self.lookups,
            misses: self.misses,
            misses_by_dir: by_dir,
            misses_elsewhere: self.misses - named,
            processes: 0,
            threads: 0,
            duration: Nanos::from(self.started.elapsed()),
            ending,
            killed_by_force,
            notes: self.notes.into_iter().collect(),
        }
    }
}

fn leads_to(path: &Path, id: FileId) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| FileId::of(&meta) == id)
}

/// Path, elsewhere, deleted: does the kernel's name for the file lead to it from here?
fn locate(name: PathBuf, id: FileId) -> (PathBuf, bool, bool) {
    if leads_to(&name, id) {
        return (name, false, false);
    }
    match name.as_os_str().as_bytes().strip_suffix(b" (deleted)") {
        Some(bare) => (PathBuf::from(std::ffi::OsStr::from_bytes(bare)), false, true),
        None => (name, true, false),
    }
}

fn file_system_magic(path: &Path) -> Option<i64> {
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: statfs holds plain integers, for which zero is valid.
    let mut buf: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: `path` is a NUL-terminated string and `buf` a live local variable.
    let r = unsafe { libc::statfs(path.as_ptr(), &raw mut buf) };
    #[allow(clippy::unnecessary_cast)] // the type differs between architectures
    (r == 0).then_some(buf.f_type as i64)
}

/// File systems whose files are made up by the kernel on reading (linux/magic.h).
const KERNEL_FS: &[i64] = &[
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0xf97c_ff8c, // selinuxfs
    0xcafe_4a11, // bpf
    0x6165_676c, // pstore
    0xde5e_81e4, // efivarfs
    0x6265_6570, // configfs
    0x1980_0202, // mqueue
    0x4249_4e4d, // binfmt_misc
    0x6e73_6673, // nsfs
    0x6573_5543, // fusectl
];

#[cfg(test)]
mod tests;
