//! The file that an experiment uses: its own, without a name, or one that the user gives up.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cold_journal::{Guard, Journal};
use cold_model::Bytes;
use cold_stats::Pcg;
use cold_sys::evict;
use cold_sys::mapped::RETURN;
use cold_sys::page::{page_size, pages_of};
use cold_sys::residency::{Backing, PageRun, backing, cached_pages, cachestat};

use crate::Error;

/// Pauses before each further attempt to evict: pages in another CPU's batch or under writeback go then.
const WAITS: [Duration; 4] = [
    Duration::from_millis(5),
    Duration::from_millis(20),
    Duration::from_millis(100),
    Duration::from_millis(400),
];
/// Room that must be left on the file system beside the file.
const SPARE: u64 = 64 << 20;

/// Where files are made.
#[derive(Debug, Clone)]
pub enum ProbeTarget {
    /// A directory: own files in it, removed also after SIGKILL.
    Directory(PathBuf),
    /// An existing file, whose content is destroyed.
    Destroy(PathBuf),
}

impl ProbeTarget {
    /// The path, for messages and for finding the device.
    pub fn path(&self) -> &Path {
        match self {
            Self::Directory(path) | Self::Destroy(path) => path,
        }
    }
}

/// A file full of bytes that neither repeat nor compress.
#[derive(Debug)]
pub struct Subject {
    file: File,
    path: PathBuf,
    bytes: u64,
    /// Made here, not given up by the user.
    own: bool,
    /// Removes a file that has a name.
    _guard: Option<Guard>,
}

impl Subject {
    /// Makes a file of `bytes` (or takes the given one) and writes it to the device.
    pub fn create(place: &ProbeTarget, bytes: u64, journal: &Journal) -> Result<Self, Error> {
        let (file, path, guard) = match place {
            ProbeTarget::Directory(dir) => {
                check_space(dir, bytes)?;
                own(dir, journal)?
            }
            ProbeTarget::Destroy(path) => {
                // What was looked at is what is written: never the path again, which may be another file by then.
                let (looked, meta) = cold_sys::open::regular(path, false)?;
                if meta.len() < bytes {
                    let why = format!("it has {}, {} are needed", Bytes(meta.len()), Bytes(bytes));
                    return Err(Error::Subject { path: path.clone(), why });
                }
                let open = File::options().read(true).write(true).open(held_path(&looked));
                let file = open.map_err(Error::io("open", path))?;
                let path = held_path(&file);
                (file, path, None)
            }
        };
        if backing(&file)? != Backing::PageCache {
            let why = "its pages are memory, not a cache of a disk: choose a directory on a disk with --dir";
            return Err(Error::Subject { path: place.path().to_owned(), why: why.to_owned() });
        }
        fill(&file, bytes).map_err(Error::io("write a file in", place.path()))?;
        let own = matches!(place, ProbeTarget::Directory(_));
        Ok(Self { file, path, bytes, own, _guard: guard })
    }

    /// Lays a function that only returns at the beginning of each of these pages (bytes of a page), where one is known
    /// for this processor; then holds the file for reading only: while a file is open for writing, the kernel gives
    /// no huge pages to its mappings (`READ_ONLY_THP_FOR_FS`).
    ///
    /// False for a file that the user gave up: others may write it, and it is never to be run.
    pub(crate) fn make_code(&mut self, page: u64) -> Result<bool, Error> {
        use std::os::unix::fs::FileExt;
        let code = RETURN.filter(|_| self.own);
        if let Some(code) = code {
            for at in (0..self.bytes.saturating_sub(page - 1)).step_by(page as usize) {
                self.file.write_all_at(&code, at).map_err(Error::io("write", &self.path))?;
            }
        }
        self.file.sync_all().map_err(Error::io("sync", &self.path))?;
        let read_only = File::open(held_path(&self.file)).map_err(Error::io("open again", &self.path))?;
        self.path = held_path(&read_only);
        self.file = read_only;
        Ok(code.is_some())
    }

    /// A path by which another process of the same user can open it.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Bytes that are used, all written when this was made; a file that was given up may be longer.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    fn meta(&self) -> Result<Metadata, Error> {
        self.file.metadata().map_err(Error::io("stat", &self.path))
    }

    /// Takes its pages, and nobody else's, out of the cache. Proved: an error when pages stay.
    pub fn make_cold(&self) -> Result<(), Error> {
        self.file.sync_data().map_err(Error::io("sync", &self.path))?;
        let eviction = evict::evict_file(&self.file, &self.meta()?, &WAITS)?;
        match eviction.after {
            Some(0) => Ok(()),
            Some(n) => {
                let why = format!("{n} of its pages stayed in the cache");
                Err(Error::NotCold { path: self.path.clone(), why })
            }
            None => {
                let why = "the kernel does not tell which of its pages are cached".to_owned();
                Err(Error::NotCold { path: self.path.clone(), why })
            }
        }
    }

    /// Brings all of it into the cache. Proved.
    pub fn make_warm(&self) -> Result<(), Error> {
        let all = PageRun { first: 0, pages: pages_of(self.bytes) };
        evict::read_run(&self.file, all, &mut vec![0; 1 << 20])?;
        match cachestat(&self.file, 0, self.bytes)? {
            Some(stat) if stat.cached < all.pages => {
                let why = format!("{} of {} pages went again", all.pages - stat.cached, all.pages);
                Err(Error::NotWarm { path: self.path.clone(), why })
            }
            _ => Ok(()),
        }
    }

    /// Its pages in the cache; `None` where the kernel does not tell.
    pub fn cached(&self) -> Result<Option<Bytes>, Error> {
        Ok(cached_pages(&self.file, &self.meta()?)?.map(|n| Bytes(n * page_size())))
    }
}

/// By this path another process of the same user opens the very file that we hold.
pub(crate) fn held_path(file: &File) -> PathBuf {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into()
}

fn check_space(dir: &Path, bytes: u64) -> Result<(), Error> {
    let space =
        rustix::fs::statvfs(dir).map_err(|e| Error::io("ask for the free space of", dir)(e.into()))?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    if free < bytes.saturating_add(SPARE) {
        let why =
            format!("{} are free, {} and {} to spare are needed", Bytes(free), Bytes(bytes), Bytes(SPARE));
        return Err(Error::Subject { path: dir.to_owned(), why });
    }
    Ok(())
}

/// A file without a name; where the file system has none, one whose name is journalled first.
fn own(dir: &Path, journal: &Journal) -> Result<(File, PathBuf, Option<Guard>), Error> {
    let flags = rustix::fs::OFlags::TMPFILE.bits().cast_signed();
    let unnamed = File::options().read(true).write(true).mode(0o600).custom_flags(flags).open(dir);
    match unnamed {
        Ok(file) => {
            let path = held_path(&file);
            Ok((file, path, None))
        }
        // The kernel answers ENOTSUP, or, where O_TMPFILE is not known, that a directory was opened.
        Err(e) if matches!(e.raw_os_error(), Some(95 | 21)) => {
            let (path, file, guard) = journal.create_file(dir, ".cold-probe")?;
            Ok((file, path, Some(guard)))
        }
        Err(e) => Err(Error::io("create a file in", dir)(e)),
    }
}

fn fill(file: &File, bytes: u64) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let mut rng = Pcg::new(bytes, 1993);
    let mut block = vec![0_u8; 1 << 20];
    for word in block.chunks_exact_mut(4) {
        word.copy_from_slice(&rng.next_u32().to_le_bytes());
    }
    let mut at = 0;
    while at < bytes {
        for page in block.chunks_exact_mut(4096) {
            page[..4].copy_from_slice(&rng.next_u32().to_le_bytes());
        }
        let n = (block.len() as u64).min(bytes - at) as usize;
        file.write_all_at(&block[..n], at)?;
        at += n as u64;
        // No more dirty pages than one step's, so that nobody's memory is needed for a large file.
        if at.is_multiple_of(64 << 20) {
            file.sync_data()?;
        }
    }
    file.sync_all()
}

#[cfg(test)]
mod tests;
