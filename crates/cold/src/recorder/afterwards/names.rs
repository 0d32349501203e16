//! What the files of a start are called when it is over. The recorder sees a file when it is used, under the
//! name it has then; programs save by writing beside the old file and renaming over it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};

use cold_model::Dev;
use cold_model::path_text;
use cold_model::recording::{File, FileKind};

/// Entries of a directory that are looked at for a lost file: reading the names of 100,000 takes 0.1 s.
const MOST_ENTRIES: usize = 100_000;

/// File systems take the time of the last tick, at most 10 ms ago.
const TICK_NS: i64 = 10_000_000;

/// What a recorded name leads to.
enum Now {
    /// To the file, or it cannot be told: numbers of `stat` and of the superblock differ (btrfs, overlayfs).
    Itself,
    /// To another file of the same file system: it was replaced.
    Another,
    /// To nothing, in a directory that is there.
    Nothing,
}

/// Gives the files the names that they have now; what has none any more is marked as deleted.
/// `began`: when the recording began, nanoseconds since 1970, where known.
pub(super) fn look_up(files: &mut [File], began: Option<i64>) {
    let mut directories = Directories::default();
    // A file that was moved is most often at the name of one that it replaced.
    let at: HashMap<(u64, u64), PathBuf> = files
        .iter()
        .filter_map(|f| f.place().filter(|_| is_candidate(f)))
        .filter_map(|path| Some((identity(&regular(&path)?), path)))
        .collect();
    for file in files.iter_mut().filter(|f| is_candidate(f)) {
        let Some(path) = file.place() else { continue };
        if matches!(now(file, &path, began), Now::Itself) {
            continue;
        }
        let moved = path.parent().and_then(|parent| {
            // No rename leaves the file system.
            let id = (std::fs::metadata(parent).ok()?.dev(), file.inode);
            let found = at.get(&id).cloned().or_else(|| directories.find(parent, id))?;
            is_same(file, &regular(&found)?).then_some(found)
        });
        match moved {
            Some(path) => file.path = Some(path_text::encode(&path)),
            None => file.deleted = true,
        }
    }
}

fn is_candidate(file: &File) -> bool {
    file.kind == FileKind::Regular && !file.is_pseudo() && !file.deleted
}

fn regular(path: &Path) -> Option<Metadata> {
    std::fs::symlink_metadata(path).ok().filter(Metadata::is_file)
}

fn identity(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

/// The name may be one of another root directory: a program in a chroot names files as it sees them. So nothing
/// is said where the directory is not there either, and a file that was there all the time replaced nothing:
/// a rename changes its `ctime`.
fn now(file: &File, path: &Path, began: Option<i64>) -> Now {
    match std::fs::symlink_metadata(path) {
        Ok(meta) => {
            let comparable = Dev::of_number(meta.dev()) == file.dev;
            let changed = meta.ctime().saturating_mul(1_000_000_000).saturating_add(meta.ctime_nsec());
            let new = began.is_some_and(|began| changed >= began.saturating_sub(TICK_NS));
            if comparable && new && meta.ino() != file.inode { Now::Another } else { Now::Itself }
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && path.parent().is_some_and(Path::is_dir) => {
            Now::Nothing
        }
        Err(_) => Now::Itself,
    }
}

/// Inode numbers are used again, so a file under one that was never seen has to look like the recorded one:
/// of its size where that is known, which only the program's own writing changes.
fn is_same(file: &File, meta: &Metadata) -> bool {
    file.size.is_none_or(|size| size <= meta.len())
}

/// Names by inode, of the directories that were asked so far.
#[derive(Default)]
struct Directories(HashMap<PathBuf, HashMap<u64, OsString>>);

impl Directories {
    fn find(&mut self, directory: &Path, (dev, inode): (u64, u64)) -> Option<PathBuf> {
        let names = self.0.entry(directory.to_owned()).or_insert_with(|| {
            let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
            entries.take(MOST_ENTRIES).map(|e| (e.ino(), e.file_name())).collect()
        });
        let path = directory.join(names.get(&inode)?);
        (identity(&regular(&path)?) == (dev, inode)).then_some(path)
    }
}
