//! The parallel walk: a stack of directories, taken by the threads.

use std::collections::HashSet;
use std::ffi::CStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use cold_model::FileId;
use cold_sys::dir::{Dir, EntryKind, FileStat, fstat, os_name};
use cold_sys::residency::{CacheStat, PageMap, cachestat, has_cachestat};

use super::{Residency, Scan, ScanOptions, ScannedDir, ScannedFile, Skipped};
use crate::{Error, Progress, Result};

/// tmpfs, ramfs (include/uapi/linux/magic.h).
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// Kernel interfaces dressed as file systems, whose files may act when opened (`trace_pipe`, kmsg), and
/// autofs, whose directories mount when entered (include/uapi/linux/magic.h).
const NO_PAGE_CACHE: [i64; 17] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x7363_6673, // securityfs
    0x6265_6570, // configfs
    0xcafe_4a11, // bpf
    0x6165_676c, // pstore
    0xde5e_81e4, // efivarfs
    0x1cd1,      // devpts
    0x0187,      // autofs
    0x6573_5543, // fusectl
    0x4249_4e4d, // binfmt_misc
    0x1980_0202, // mqueue
    0xf97c_ff8c, // selinuxfs
];

/// A directory to be scanned.
struct WalkTask {
    root: usize,
    path: PathBuf,
    /// Device of the directory it was found in; a change means another file system.
    dev: u64,
    in_memory: bool,
    follow_last: bool,
}

#[derive(Default)]
struct Queue {
    tasks: Vec<WalkTask>,
    /// Tasks taken and not finished; they may add more.
    busy: usize,
}

struct Shared<'a> {
    queue: Mutex<Queue>,
    wake: Condvar,
    /// Threads that wait for work.
    idle: AtomicUsize,
    /// Directories entered, and files that can be met twice.
    dirs: Mutex<HashSet<FileId>>,
    files: Mutex<HashSet<FileId>>,
    /// Every file can be met twice, not only those with several links.
    dedupe_all: AtomicBool,
    done: AtomicU64,
    options: ScanOptions,
    has_cachestat: bool,
    progress: &'a dyn Progress,
}

/// A lock whose holder cannot leave it half changed: a panicking thread poisons nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn run(roots: &[PathBuf], options: ScanOptions, progress: &dyn Progress) -> Result<Scan> {
    let shared = Shared {
        queue: Mutex::default(),
        wake: Condvar::new(),
        idle: AtomicUsize::new(0),
        dirs: Mutex::default(),
        files: Mutex::default(),
        dedupe_all: AtomicBool::new(options.follow),
        done: AtomicU64::new(0),
        options,
        has_cachestat: has_cachestat(),
        progress,
    };
    let mut scan = Scan::default();
    for (root, path) in roots.iter().enumerate() {
        shared.add_root(root, path, &mut scan)?;
    }
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let parts: Vec<Scan> = std::thread::scope(|scope| {
        // This thread works, too: where the kernel refuses others, alone.
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, || shared.work()).ok();
        let workers: Vec<_> = (1..threads).filter_map(start).collect();
        let own = shared.work();
        workers.into_iter().filter_map(|w| w.join().ok()).chain([own]).collect()
    });
    for part in parts {
        scan.dirs.extend(part.dirs);
        scan.skipped.extend(part.skipped);
        scan.special += part.special;
        scan.repeated += part.repeated;
    }
    // By bytes: comparing paths component by component took longer than a tenth of the walk.
    scan.dirs.sort_by(|a, b| (a.root, a.path.as_os_str()).cmp(&(b.root, b.path.as_os_str())));
    Ok(scan)
}

impl Shared<'_> {
    /// Queues a named tree, or looks at a named file at once.
    fn add_root(&self, root: usize, path: &Path, scan: &mut Scan) -> Result<()> {
        let fail = |cause| Error::Path { path: path.to_owned(), cause };
        let meta = std::fs::metadata(path).map_err(fail)?;
        if meta.is_dir() {
            let (path, dev) = (path.to_owned(), FileId::of(&meta).dev);
            let dir = Dir::open(&path, true)?;
            let in_memory = IN_MEMORY.contains(&dir.file_system()?);
            lock(&self.queue).tasks.push(WalkTask { root, path, dev, in_memory, follow_last: true });
            return Ok(());
        }
        let (file, _) = cold_sys::open::regular(path, true)?;
        // The same file may be met again in a tree, so all files have to be remembered from now on.
        self.dedupe_all.store(true, Ordering::Relaxed);
        let stat = fstat(&file).map_err(fail)?;
        if !lock(&self.files).insert(FileId { dev: stat.dev, ino: stat.ino }) {
            scan.repeated += 1;
            return Ok(());
        }
        let in_memory = cold_sys::residency::backing(&file)? == cold_sys::residency::Backing::Memory;
        let name = path.file_name().unwrap_or_default().to_owned();
        let files = vec![self.look(name, &file, &stat)?];
        let path = path.parent().unwrap_or(Path::new("")).to_owned();
        scan.dirs.push(ScannedDir { root, path, in_memory, files });
        Ok(())
    }

    fn work(&self) -> Scan {
        let mut scan = Scan::default();
        let mut buffer = Vec::new();
        while let Some(task) = self.next() {
            // What is found is worked off here, unless another thread has nothing to do.
            let mut found = vec![task];
            while let Some(task) = found.pop() {
                self.directory(&task, &mut scan, &mut buffer, &mut found);
                if self.idle.load(Ordering::Relaxed) > 0 && found.len() > 1 {
                    // The oldest are nearest to the root: likely the largest trees.
                    let half = found.len() / 2;
                    lock(&self.queue).tasks.extend(found.drain(..half));
                    self.wake.notify_all();
                }
            }
            lock(&self.queue).busy -= 1;
            self.wake.notify_all();
        }
        scan
    }

    /// A directory to work on; `None` when no thread will find more.
    fn next(&self) -> Option<WalkTask> {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(task) = queue.tasks.pop() {
                queue.busy += 1;
                return Some(task);
            }
            if queue.busy == 0 {
                self.wake.notify_all();
                return None;
            }
            self.idle.fetch_add(1, Ordering::Relaxed);
            queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
            self.idle.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Looks at the files of one directory and queues those below it.
    fn directory(&self, task: &WalkTask, scan: &mut Scan, buffer: &mut Vec<u8>, found: &mut Vec<WalkTask>) {
        let unreadable = |path: PathBuf, reason: String| Skipped::Unreadable { path, reason };
        let dir = match Dir::open(&task.path, task.follow_last) {
            Ok(dir) => dir,
            Err(e) => return scan.skipped.push(unreadable(task.path.clone(), e.to_string())),
        };
        let stat = match dir.own_stat() {
            Ok(stat) => stat,
            Err(e) => return scan.skipped.push(unreadable(task.path.clone(), e.to_string())),
        };
        if !lock(&self.dirs).insert(FileId { dev: stat.dev, ino: stat.ino }) {
            return;
        }
        let mut in_memory = task.in_memory;
        if task.follow_last || stat.dev != task.dev {
            let magic = dir.file_system().unwrap_or(0);
            if NO_PAGE_CACHE.contains(&magic) {
                return scan.skipped.push(Skipped::NoPageCache { path: task.path.clone() });
            }
            in_memory = IN_MEMORY.contains(&magic);
        }
        let here =
            WalkTask { root: task.root, path: PathBuf::new(), dev: stat.dev, in_memory, follow_last: false };
        let mut files = Vec::new();
        let listed = dir.entries(buffer, |name, kind| {
            let entry = Entry { dir: &dir, task, here: &here, name };
            match self.entry(&entry, kind, scan, found) {
                Ok(file) => files.extend(file),
                Err(reason) => {
                    scan.skipped.push(unreadable(task.path.join(os_name(name)), reason.to_string()));
                }
            }
        });
        if let Err(e) = listed {
            scan.skipped.push(unreadable(task.path.clone(), e.to_string()));
        }
        let done = self.done.fetch_add(files.len() as u64, Ordering::Relaxed) + files.len() as u64;
        self.progress.files(done);
        if !files.is_empty() {
            scan.dirs.push(ScannedDir { root: task.root, path: task.path.clone(), in_memory, files });
        }
    }

    /// One entry: a directory is queued, a regular file is looked at, the rest is passed by.
    fn entry(
        &self,
        entry: &Entry<'_>,
        kind: EntryKind,
        scan: &mut Scan,
        found: &mut Vec<WalkTask>,
    ) -> Result<Option<ScannedFile>> {
        let Entry { dir, name, .. } = *entry;
        let fail = |cause| Error::Path { path: entry.task.path.join(os_name(name)), cause };
        let mut follow = false;
        let kind = match kind {
            EntryKind::Unknown => dir.stat(name, false).map_err(fail)?.kind,
            known => known,
        };
        let kind = if kind == EntryKind::Symlink && self.options.follow {
            follow = true;
            match dir.stat(name, true) {
                Ok(stat) => stat.kind,
                // A dangling link leads to no file.
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => EntryKind::Symlink,
                Err(e) => return Err(fail(e)),
            }
        } else {
            kind
        };
        match kind {
            EntryKind::Directory => {
                let stat = dir.stat(name, follow).map_err(fail)?;
                let path = entry.task.path.join(os_name(name));
                if stat.dev != entry.here.dev && !self.options.cross_device {
                    scan.skipped.push(Skipped::OtherDevice { path });
                } else {
                    found.push(WalkTask { path, follow_last: follow, ..*entry.here });
                }
                Ok(None)
            }
            EntryKind::Regular => {
                let file = dir.open_regular(name, follow).map_err(fail)?;
                let stat = fstat(&file).map_err(fail)?;
                if stat.kind != EntryKind::Regular {
                    scan.special += 1;
                    return Ok(None);
                }
                let twice = stat.links > 1 || self.dedupe_all.load(Ordering::Relaxed);
                if twice && !lock(&self.files).insert(FileId { dev: stat.dev, ino: stat.ino }) {
                    scan.repeated += 1;
                    return Ok(None);
                }
                self.look(os_name(name).to_owned(), &file, &stat).map(Some)
            }
            EntryKind::Symlink | EntryKind::Special | EntryKind::Unknown => {
                scan.special += 1;
                Ok(None)
            }
        }
    }

    /// What cachestat tells, where the kernel has it and it knows the file's pages.
    fn asked(&self, file: &File) -> Result<Option<CacheStat>> {
        if self.has_cachestat { Ok(cachestat(file, 0, 0)?) } else { Ok(None) }
    }

    /// The residency of one open file.
    fn look(&self, name: std::ffi::OsString, file: &File, stat: &FileStat) -> Result<ScannedFile> {
        let residency = if stat.size == 0 {
            Residency::Told(CacheStat::default())
        } else if let Some(told) = self.asked(file)? {
            Residency::Told(told)
        } else {
            let meta = file.metadata().map_err(|e| cold_sys::Error::io("stat", "an open file", e))?;
            PageMap::of(file, &meta)?.map_or(Residency::Unknown, |m| Residency::Resident(m.resident()))
        };
        let id = FileId { dev: stat.dev, ino: stat.ino };
        Ok(ScannedFile { name, id, size: stat.size, residency })
    }
}

/// An entry with its surroundings.
#[derive(Clone, Copy)]
struct Entry<'a> {
    dir: &'a Dir,
    task: &'a WalkTask,
    /// What directories found here inherit.
    here: &'a WalkTask,
    name: &'a CStr,
}
