//! Kinds and causes in words, the same in every report and export.

use std::borrow::Cow;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::file_system::Origin;
use crate::path_text;

use super::tables::{File, Lookup, LookupKind, StallCause};

impl File {
    /// The kernel makes up its contents: it is on no device, its size means nothing, and that it has lost its
    /// name (as those of a process that has ended) does not mean that anybody deleted it.
    pub fn is_pseudo(&self) -> bool {
        Origin::of(&self.file_system) == Origin::Kernel
    }

    /// Whether the file that `meta` describes is this one, by inode and size: device numbers of `stat` differ from
    /// those of the page cache on btrfs and overlayfs.
    pub fn is_still(&self, meta: &Metadata) -> bool {
        meta.ino() == self.inode && self.size.is_none_or(|size| size == meta.len())
    }

    /// What is shown where no path of it is known.
    pub fn without_path(&self) -> String {
        format!("unknown file {} inode {}", self.dev, self.inode)
    }

    /// Its path, as the file system has it.
    pub fn place(&self) -> Option<PathBuf> {
        self.path.as_deref().map(path_text::decode)
    }
}

/// Begins what lies below a root that the recorder does not see: a container's, whose files the machine does not show.
const UNKNOWN_ROOT: &str = "[unknown root]";

impl Lookup {
    /// Where it looked, as the recorder sees it. `None`: its path could not be read, or its process' root is seen by
    /// nobody else.
    pub fn place(&self) -> Option<Cow<'_, str>> {
        let path = self.path.as_deref()?;
        match self.root.as_deref() {
            None => Some(Cow::Borrowed(path)),
            Some("") => None,
            Some(root) => Some(Cow::Owned(format!("{root}{path}"))),
        }
    }

    /// Where it looked, to be shown; `None`: its path could not be read.
    pub fn shown_place(&self) -> Option<Cow<'_, str>> {
        let unknown = || Some(Cow::Owned(format!("{UNKNOWN_ROOT}{}", self.path.as_deref()?)));
        self.place().or_else(unknown)
    }
}

impl StallCause {
    /// What was waited for: `fault`, `other storage`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Fault => "fault",
            Self::Read => "read",
            Self::Lookup => "lookup",
            Self::Exec => "exec",
            Self::Write => "write",
            Self::OtherStorage => "other storage",
            Self::Journal => "journal",
            Self::Lock => "lock",
            Self::Other => "other",
        }
    }

    /// It waited for storage, as far as is known: not for a lock, nor for who knows what.
    pub const fn is_storage(self) -> bool {
        !matches!(self, Self::Lock | Self::Other)
    }

    /// It waited for something to be written, by itself or by the file system's journal. No page that is there sooner
    /// shortens that: of a warm Firefox on a cloud volume the journal takes 50 to 70 ms of 800, of its threads together.
    pub const fn is_writing(self) -> bool {
        matches!(self, Self::Write | Self::Journal)
    }

    /// It waited for storage to be read: for pages, blocks of directories and inodes, or who knows which.
    pub const fn is_reading(self) -> bool {
        self.is_storage() && !self.is_writing()
    }
}

impl LookupKind {
    /// The family of system calls: `open`, `stat`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Stat => "stat",
            Self::Access => "access",
            Self::Readlink => "readlink",
            Self::Exec => "exec",
            Self::List => "list",
            Self::Change => "change",
            Self::Other => "other",
        }
    }
}
