//! The directory of a recording that is made.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cold_model::{FileId, Shown as _};
use rustix::fs::{AtFlags, Mode, OFlags};

use crate::exit::Failure;

/// Where a recording goes. A directory that was made for it goes with this value, unless the recording is kept.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// What was made, until it is kept; `None` for what was there before.
    made: Option<FileId>,
}

/// Names tried for a recording before the user has to clean up.
const NAMES: u32 = 1000;

impl Directory {
    /// As wished, or named after `stem` (a program's name, whatever is in it) where no file of that name is.
    pub(crate) fn chosen(wish: Option<&Path>, overwrite: bool, stem: &str) -> Result<Self, Failure> {
        if let Some(dir) = wish {
            return Ok(Self::at(wished(dir, overwrite)?)?);
        }
        let stem = stem.replace(|c: char| c == '/' || c.is_control(), "_");
        let name =
            |n| PathBuf::from(if n == 1 { format!("{stem}.cold") } else { format!("{stem}-{n}.cold") });
        Self::first_free((1..=NAMES).map(name))?.ok_or_else(|| {
            Failure::usage(format!("{stem}.cold to {stem}-{NAMES}.cold exist: name one with -o, or clean up"))
        })
    }

    /// Makes this one, or takes the one that is there.
    pub(crate) fn at(path: PathBuf) -> io::Result<Self> {
        match Self::make(path.clone()) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(Self { path, made: None }),
            other => other,
        }
    }

    /// Makes the first of these that is free. Of two that begin together each gets its own: making it decides.
    pub(crate) fn first_free(names: impl IntoIterator<Item = PathBuf>) -> io::Result<Option<Self>> {
        for path in names {
            match Self::make(path) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                other => return other.map(Some),
            }
        }
        Ok(None)
    }

    /// Makes this one, which must not be there.
    pub(crate) fn make(path: PathBuf) -> io::Result<Self> {
        let tell = |e: io::Error| io::Error::new(e.kind(), format!("cannot make {}: {e}", path.shown()));
        cold_recording::make(&path).map_err(tell)?;
        let made = FileId::of(&path.symlink_metadata().map_err(tell)?);
        Ok(Self { path, made: Some(made) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves it where it is.
    pub(crate) fn keep(&mut self) {
        self.made = None;
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if let Some(made) = self.made {
            // A start that could not be made leaves nothing that looks like a recording of it; what stays is of
            // others, or where nothing can be removed.
            let _ = discard(&self.path, made);
        }
    }
}

/// Removes the files of a recording from the directory that was made for it, and the directory when nothing else
/// is in it. Another one of that name is left alone.
fn discard(path: &Path, made: FileId) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if FileId::of(&directory.metadata()?) != made {
        return Ok(());
    }
    for entry in rustix::fs::Dir::read_from(&directory)? {
        let entry = entry?;
        let name = std::ffi::OsStr::from_bytes(entry.file_name().to_bytes());
        if name.to_str().is_some_and(cold_recording::is_part) {
            rustix::fs::unlinkat(&directory, name, AtFlags::empty())?;
        }
    }
    std::fs::remove_dir(path) // only an empty one
}

/// The directory that a user named, if a recording may go there.
fn wished(dir: &Path, overwrite: bool) -> Result<PathBuf, Failure> {
    let shown = dir.shown();
    let parent = dir.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match parent.metadata() {
        Ok(meta) if meta.is_dir() => {}
        // Whether it is there is then not known.
        Err(e) if !matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Err(anyhow::Error::new(e).context(format!("cannot look at {}", parent.shown())).into());
        }
        _ => {
            let why = format!("there is no directory {}", parent.shown());
            return Err(Failure::usage(format!("cannot write {shown}: {why}")));
        }
    }
    let Ok(meta) = dir.symlink_metadata() else { return Ok(dir.to_owned()) };
    if !meta.is_dir() {
        return Err(Failure::usage(format!("{shown} exists and is not a recording: choose another name")));
    }
    let names = || std::fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path());
    let known = |p: &Path| {
        let part = p.extension().and_then(|e| e.to_str());
        p.is_file() && part.is_some_and(|e| ["parquet", "json", "log", "partial"].contains(&e))
    };
    match overwrite {
        _ if names().next().is_none() => Ok(dir.to_owned()),
        true if names().all(|p| known(&p)) => Ok(dir.to_owned()),
        true => Err(Failure::usage(format!("{shown} holds more than a recording: it is left alone"))),
        false => Err(Failure::usage(format!("{shown} exists")).hint("another name, or --overwrite")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_made_goes_and_never_what_others_put_there() {
        let dir = tempfile::tempdir().expect("a directory");
        let names = || [1, 2, 3].map(|n| dir.path().join(format!("{n}.cold")));
        let fill = |d: &Directory, name: &str| std::fs::write(d.path().join(name), "x").expect("written");
        let [first, second] = [(), ()].map(|()| Directory::first_free(names()).expect("made").expect("free"));
        assert_eq!((first.path(), second.path()), (&*names()[0], &*names()[1]));
        for d in [&first, &second] {
            fill(d, "recording.json");
            fill(d, "events.log");
        }
        fill(&second, "thesis");
        drop(first);
        drop(second);
        assert!(!names()[0].exists());
        let left: Vec<_> = std::fs::read_dir(&names()[1]).expect("there").flatten().collect();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].file_name(), "thesis");
        // What was there before, what was kept, and another one of the same name.
        let there = Directory::at(names()[1].clone()).expect("taken");
        fill(&there, "recording.json");
        drop(there);
        assert!(names()[1].join("recording.json").exists());
        let mut kept = Directory::at(names()[0].clone()).expect("made");
        kept.keep();
        drop(kept);
        assert!(names()[0].exists());
        let moved = Directory::make(names()[2].clone()).expect("made");
        std::fs::rename(moved.path(), dir.path().join("moved")).expect("moved");
        std::fs::create_dir(&names()[2]).expect("another");
        std::fs::write(names()[2].join("recording.json"), "x").expect("written");
        drop(moved);
        assert!(names()[2].join("recording.json").exists());
        assert!(Directory::first_free(names()).expect("looked").is_none());
    }
}
