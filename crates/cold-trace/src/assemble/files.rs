//! The table of files: who is who, and what they are called. Pure.

use std::collections::HashMap;

use cold_model::Dev;
use cold_model::file_system::Origin;
use cold_model::path_text;
use cold_model::recording::{File, FileIdx, FileKind, PathFrom};

use super::mounts::Mounts;
use crate::blocks::{FileFact, MapsLine};
use crate::perf::record::Map;
use crate::raw::{
    FILE_BDEV, FILE_CUT, FILE_DELETED, FILE_FS_ROOT, FILE_FULL, FILE_ROOT, FILE_SHMEM, FileEvent, Id,
};

/// `EXT4_BAD_INO`, the number that ext4's own inode in memory borrows.
const EXT4_BAD_INODE: u64 = 1;

/// All files seen so far.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) rows: Vec<File>,
    by_id: HashMap<Id, FileIdx>,
    /// The youngest generation of an inode, for sources that do not tell it.
    by_inode: HashMap<(Dev, u64), FileIdx>,
    /// From the inode that a stacked file system shows to the one whose pages are read.
    real: HashMap<Id, Id>,
    /// The same without the generation.
    real_by_inode: HashMap<(Dev, u64), Id>,
    /// Root directories of processes that have another one than the recorder, and where the recorder sees them.
    roots: HashMap<Id, Option<String>>,
}

impl Files {
    /// Remembers which inode stands behind a shown one; to be called for all events first.
    pub(super) fn alias(&mut self, event: &FileEvent<'_>) {
        if let (Some(shown), Some(file)) = (event.shown.known(), event.file.known())
            && shown != file
        {
            self.real.insert(shown, file);
            self.real_by_inode.insert((shown.dev, shown.inode), file);
        }
    }

    /// The file of this identity; `None` for "no file".
    pub(super) fn index(&mut self, id: Id) -> Option<FileIdx> {
        let id = id.known()?;
        let id = self.real.get(&id).copied().unwrap_or(id);
        if let Some(index) = self.by_id.get(&id) {
            return Some(*index);
        }
        let index = self.new_row(id)?;
        self.by_id.insert(id, index);
        Some(index)
    }

    fn new_row(&mut self, id: Id) -> Option<FileIdx> {
        let index = FileIdx::try_from(self.rows.len()).ok()?;
        self.rows.push(File {
            dev: id.dev,
            inode: id.inode,
            generation: id.generation,
            kind: FileKind::Other,
            path: None,
            path_from: PathFrom::Unknown,
            deleted: false,
            file_system: String::new(),
            size: None,
            mtime_ns: None,
            build_id: None,
        });
        self.by_inode.insert((id.dev, id.inode), index);
        Some(index)
    }

    /// The file of an identity without a generation.
    pub(super) fn by_inode(&mut self, dev: Dev, inode: u64) -> Option<FileIdx> {
        if let Some(real) = self.real_by_inode.get(&(dev, inode)) {
            return self.index(*real);
        }
        match self.by_inode.get(&(dev, inode)) {
            Some(index) => Some(*index),
            None => self.index(Id { dev, inode, generation: 0 }),
        }
    }

    pub(super) fn row(&self, index: FileIdx) -> Option<&File> {
        self.rows.get(index as usize)
    }

    /// The root directory of a process, as the recorder sees it; empty: it does not. `None`: the recorder's own.
    pub(super) fn root(&self, id: Id) -> Option<String> {
        let path = self.roots.get(&id.known()?).and_then(Option::as_deref).unwrap_or_default();
        (path != "/").then(|| path.to_owned())
    }

    fn root_seen(&mut self, event: &FileEvent<'_>, mounts: &Mounts) {
        let whole = event.state & FILE_FS_ROOT != 0;
        let path = event.path();
        let text = if path.is_empty() { "/".to_owned() } else { escape(&path) };
        let path = whole.then(|| mounts.absolute(event.file.dev, &text)).flatten();
        let path = path.map(|path| mounts.overlay(&path).unwrap_or(path));
        self.roots.insert(event.file, path);
    }

    /// A file as the BPF programs saw it.
    pub(super) fn seen(&mut self, event: &FileEvent<'_>, mounts: &Mounts) {
        if event.state & FILE_ROOT != 0 {
            return self.root_seen(event, mounts);
        }
        let is_shown = event.file.known().is_some_and(|id| self.real.contains_key(&id));
        let Some(index) = self.index(event.file) else { return };
        let path = event.path();
        let relative = event.state & FILE_FULL == 0;
        let memory = event.state & FILE_SHMEM != 0;
        // The root of a file system has no name, and is found all the same.
        let root = path.is_empty() && event.state & (FILE_FULL | FILE_FS_ROOT) != 0;
        let unplaced = event.state & FILE_CUT != 0 || path.is_empty() && !root;
        let text = if root { "/".to_owned() } else { escape(&path) };
        let kernel_name = match event.fs {
            b"pipefs" => Some("pipe"),
            b"sockfs" => Some("socket"),
            // Where it keeps its bitmaps of free blocks in memory.
            b"ext4" if event.file.inode == EXT4_BAD_INODE => Some("ext4 free blocks"),
            _ => None,
        };
        let (path, from) = match (unplaced, relative) {
            // As the kernel prints what has no name.
            (true, _) => match kernel_name {
                Some(kind) => (Some(format!("{kind}:[{}]", event.file.inode)), PathFrom::Dentry),
                None => (None, PathFrom::Unknown),
            },
            (_, false) => (Some(text), PathFrom::OpenFile),
            // Memory without a mount has the kernel's name, which is no path.
            _ if memory && mounts.absolute(event.file.dev, &text).is_none() => {
                (Some(text.trim_start_matches('/').to_owned()), PathFrom::Dentry)
            }
            _ => match mounts.absolute(event.file.dev, &text) {
                Some(path) => (Some(mounts.overlay(&path).unwrap_or(path)), PathFrom::Dentry),
                None => (None, PathFrom::Unknown),
            },
        };
        self.name(index, path, from);
        let Some(row) = self.rows.get_mut(index as usize) else { return };
        if is_shown {
            row.deleted |= event.state & FILE_DELETED != 0;
            return; // size and kind are those of the file below
        }
        row.kind = kind(event.mode, event.state);
        row.file_system = escape(event.fs);
        row.deleted |= event.state & FILE_DELETED != 0 && !row.is_pseudo();
        if event.state & FILE_BDEV != 0 {
            // Its superblock is the kernel's own; the device is what anybody wants to know.
            row.dev = event.bdev;
        } else {
            row.size = Some(event.size);
            let seconds = event.mtime_sec.saturating_mul(1_000_000_000);
            row.mtime_ns = Some(seconds.saturating_add(event.mtime_nsec.into()));
        }
    }

    /// The file of a mapping's record; `None` when it maps no file.
    pub(super) fn mapped(&mut self, map: &Map<'_>, mounts: &Mounts) -> Option<FileIdx> {
        if map.inode == 0 {
            return None;
        }
        let dev = map.dev;
        let exact = Id { dev, inode: map.inode, generation: map.generation };
        let index = if self.by_id.contains_key(&exact) || self.real.contains_key(&exact) {
            self.index(exact)
        } else if map.generation == 0 {
            self.by_inode(dev, map.inode)
        } else {
            self.index(exact)
        }?;
        let path = escape(map.path);
        let (path, deleted) = path_text::without_mark(&path);
        self.mapping_name(index, path, deleted, mounts);
        Some(index)
    }

    /// The file of a line of `/proc/PID/maps`.
    pub(super) fn area(&mut self, area: &MapsLine, mounts: &Mounts) -> Option<FileIdx> {
        if area.inode == 0 {
            return None;
        }
        let index = self.by_inode(area.dev, area.inode)?;
        self.mapping_name(index, &area.path, area.deleted, mounts);
        Some(index)
    }

    fn mapping_name(&mut self, index: FileIdx, path: &str, deleted: bool, mounts: &Mounts) {
        // memfd and shared memory: the kernel prints the name of an inode as if it were a path.
        let memory =
            deleted && (path.starts_with("/memfd:") || path.starts_with("/SYSV") || path == "/dev/zero");
        let anonymous = path.starts_with("anon_inode:") || path.starts_with('[') || path.starts_with("//");
        let path = if memory { path.trim_start_matches('/') } else { path };
        let known = memory || anonymous || path.starts_with('/');
        self.name(index, known.then(|| path.to_owned()), PathFrom::Mapping);
        let Some(row) = self.rows.get_mut(index as usize) else { return };
        row.deleted |= deleted;
        if row.kind == FileKind::Other {
            let fs = mounts.kind(row.dev);
            // A mapping is of a regular file, of memory, or of a character device.
            row.kind = match fs {
                _ if memory => FileKind::Memory,
                Some(fs) if Origin::of(fs) == Origin::Memory => FileKind::Memory,
                _ if anonymous || path.starts_with("/dev/") => FileKind::Other,
                _ => FileKind::Regular,
            };
            fs.unwrap_or_default().clone_into(&mut row.file_system);
        }
    }

    /// What `stat` said.
    pub(super) fn fact(&mut self, fact: &FileFact) -> Option<FileIdx> {
        let index = self.by_inode(fact.dev, fact.inode)?;
        self.name(index, Some(fact.path.clone()), PathFrom::OpenFile);
        let row = self.rows.get_mut(index as usize)?;
        if row.kind == FileKind::Other {
            row.kind = fact.kind;
        }
        row.size.get_or_insert(fact.size);
        row.mtime_ns.get_or_insert(fact.mtime_ns);
        Some(index)
    }

    /// Gives a file a name, unless it has one from a better source.
    fn name(&mut self, index: FileIdx, path: Option<String>, from: PathFrom) {
        let rank = |from| match from {
            PathFrom::OpenFile => 3,
            PathFrom::Mapping => 2,
            PathFrom::Dentry => 1,
            PathFrom::Unknown => 0,
        };
        if let (Some(path), Some(row)) = (path, self.rows.get_mut(index as usize))
            && rank(from) > rank(row.path_from)
        {
            row.path = Some(path);
            row.path_from = from;
        }
    }

    /// Completes what only all events together tell.
    pub(super) fn finish(&mut self, mounts: &Mounts, device_name: impl Fn(Dev) -> Option<String>) {
        for row in &mut self.rows {
            if row.kind == FileKind::BlockDevice && row.path.is_none() {
                row.path = device_name(row.dev).map(|name| format!("/dev/{name}"));
                if row.path.is_some() {
                    row.path_from = PathFrom::Dentry;
                }
            }
            if row.file_system.is_empty() {
                mounts.kind(row.dev).unwrap_or_default().clone_into(&mut row.file_system);
            }
        }
    }
}

fn kind(mode: u32, state: u32) -> FileKind {
    if state & FILE_BDEV != 0 {
        return FileKind::BlockDevice;
    }
    match mode & 0o170_000 {
        0o100_000 if state & FILE_SHMEM != 0 => FileKind::Memory,
        0o100_000 => FileKind::Regular,
        0o040_000 => FileKind::Directory,
        0o120_000 => FileKind::Symlink,
        _ => FileKind::Other,
    }
}

/// Text of a name, as the tables have it.
pub(super) fn escape(bytes: &[u8]) -> String {
    path_text::encode_bytes(bytes).into_owned()
}
