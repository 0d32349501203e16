//! The files of overrides: written whole, recognised by their own head before they are replaced or removed.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cold_model::hash::fnv1a64;
use cold_model::{FileId, Shown as _};
use cold_sys::whole::{Ownership, WholeFile};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::Result;
use crate::exit::Failure;

/// Begins the second line at the latest of every file that this command wrote; files without it are not
/// touched.
const MARK: &str = "# Written by `cold prefetch install`";
/// Stands before the checksum of the file, which tells whether somebody has edited it.
const SEAL: &str = "# Left alone if edited; checksum ";
/// The checksum while it is being computed.
const BLANK: &[u8] = b"0000000000000000";
/// Longer files are not ours.
const MOST_BYTES: u64 = 1 << 20;

/// Mode of what is read: everybody's programs may need it.
pub(super) const TEXT: u32 = 0o644;
/// Mode of what is executed.
pub(super) const SCRIPT: u32 = 0o755;

/// A file to write.
pub(super) struct Piece {
    pub(super) path: PathBuf,
    pub(super) text: Vec<u8>,
    pub(super) mode: u32,
}

/// What has the name of one of our files.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(super) enum Found {
    /// Ours, as it was written.
    Ours,
    /// Ours, and somebody has edited it.
    Edited,
    /// A file that somebody else put there.
    Foreign,
}

/// A name that was looked at, and the very file that has it.
pub(super) struct Seen {
    pub(super) found: Found,
    pub(super) path: PathBuf,
    directory: OwnedFd,
    id: FileId,
}

/// The text of a file: `first` line, then who wrote it, how it is removed and its checksum, then `body`.
pub(super) fn sealed(first: &str, how_to_remove: &str, from: Option<&Path>, body: &[u8]) -> Vec<u8> {
    let from = from.map_or_else(String::new, |f| format!(" from {}", f.shown()));
    // Escaped: a line feed in a path would begin a line that is no comment.
    let how = how_to_remove.shown();
    let head = format!("{first}{MARK}{from}.\n# `cold prefetch uninstall {how}` removes it.\n{SEAL}");
    let mut text = [head.as_bytes(), BLANK, b".\n", body].concat();
    let sum = format!("{:016x}", fnv1a64(&[&text]));
    if let Some(place) = text.get_mut(head.len()..head.len() + BLANK.len()) {
        place.copy_from_slice(sum.as_bytes());
    }
    text
}

/// Whether its head says that this command wrote it.
pub(super) fn is_marked(text: &[u8]) -> bool {
    text.split(|b| *b == b'\n').take(2).any(|line| line.starts_with(MARK.as_bytes()))
}

fn judge(text: &[u8]) -> Found {
    if !is_marked(text) {
        return Found::Foreign;
    }
    let mut at = 0;
    for line in text.split_inclusive(|b| *b == b'\n').take(4) {
        if line.starts_with(SEAL.as_bytes()) {
            let sum = at + SEAL.len()..at + SEAL.len() + BLANK.len();
            let mut blank = text.to_vec();
            let Some(place) = blank.get_mut(sum.clone()) else { return Found::Edited };
            place.copy_from_slice(BLANK);
            let right = text.get(sum) == Some(format!("{:016x}", fnv1a64(&[&blank])).as_bytes());
            return if right { Found::Ours } else { Found::Edited };
        }
        at += line.len();
    }
    Found::Edited
}

/// Looks at what has this name, without following a link; `None` where nothing has.
pub(super) fn look(path: &Path) -> Result<Option<Seen>> {
    let fail = |e: io::Error| anyhow::anyhow!("cannot look at {}: {e}", path.shown());
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = match rustix::fs::open(parent(path), flags, Mode::empty()) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ok(None),
        Err(e) => return Err(fail(e.into()).into()),
    };
    let name = path.file_name().unwrap_or_default();
    let stat = match rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(None),
        Err(e) => return Err(fail(e.into()).into()),
    };
    let path = path.to_owned();
    let foreign = FileId { dev: stat.st_dev, ino: stat.st_ino };
    if !rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file() {
        return Ok(Some(Seen { found: Found::Foreign, path, directory, id: foreign }));
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(&directory, name, flags, Mode::empty()).map_err(io::Error::from);
    let mut text = Vec::new();
    let read = opened.and_then(|fd| {
        let file = File::from(fd);
        let meta = file.metadata()?;
        if meta.is_file() {
            file.take(MOST_BYTES).read_to_end(&mut text)?;
        }
        Ok(FileId::of(&meta))
    });
    let id = read.map_err(|e| anyhow::anyhow!("cannot read {}: {e}", path.shown()))?;
    Ok(Some(Seen { found: judge(&text), path, directory, id }))
}

/// Looks at the name of a file that is to be written or removed: whether one of ours is there. Anything else
/// there is an error.
pub(super) fn ours_or_none(path: &Path) -> Result<Option<Seen>> {
    let Some(seen) = look(path)? else { return Ok(None) };
    let said = match seen.found {
        Found::Ours => return Ok(Some(seen)),
        Found::Edited => "was changed since cold wrote it",
        Found::Foreign => "exists and was not written by cold",
    };
    Err(Failure::usage(format!("{} {said}: it is left alone", path.shown()))
        .hint("move it away, or name another place"))
}

/// Writes it whole, in the place of nothing or of `old`.
pub(super) fn write(piece: &Piece, old: Option<&Seen>) -> Result<()> {
    let made = || {
        make_directories(parent(&piece.path))?;
        let kind = Ownership::Own(piece.mode);
        let mut file = match old {
            Some(_) => WholeFile::create(&piece.path, kind)?,
            None => WholeFile::create_new(&piece.path, kind)?,
        };
        io::Write::write_all(&mut file, &piece.text)?;
        file.commit()
    };
    Ok(made().map_err(|e: io::Error| anyhow::anyhow!("cannot write {}: {e}", piece.path.shown()))?)
}

/// Removes the file that was looked at, not another one that has its name by now.
pub(super) fn remove(seen: &Seen) -> Result<()> {
    let name = seen.path.file_name().unwrap_or_default();
    let removed = || {
        let now = rustix::fs::statat(&seen.directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if (FileId { dev: now.st_dev, ino: now.st_ino }) != seen.id {
            return Err(io::Error::other("it was replaced just now, and is left alone"));
        }
        Ok(rustix::fs::unlinkat(&seen.directory, name, AtFlags::empty())?)
    };
    Ok(removed().map_err(|e| anyhow::anyhow!("cannot remove {}: {e}", seen.path.shown()))?)
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the missing directories. Root's are for everybody, whatever the umask; a user's obey it.
fn make_directories(dir: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = dir.ancestors().take_while(|d| d.symlink_metadata().is_err()).collect();
    for dir in missing.into_iter().rev().filter(|d| !d.as_os_str().is_empty()) {
        match rustix::fs::mkdir(dir, Mode::from_raw_mode(0o755)) {
            Ok(()) if cold_sys::caps::is_root() => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let own = File::from(rustix::fs::open(dir, flags, Mode::empty())?);
                if own.metadata()?.uid() == 0 {
                    rustix::fs::fchmod(&own, Mode::from_raw_mode(0o755))?;
                }
            }
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(path: &Path, body: &str) -> Piece {
        let text = sealed("#!/bin/sh\n", "--wrapper x", Some(Path::new("/a\nrm b")), body.as_bytes());
        Piece { path: path.to_owned(), text, mode: SCRIPT }
    }

    #[test]
    fn only_what_it_wrote_and_nobody_edited_is_replaced_or_removed() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("below/app");
        assert!(ours_or_none(&path).expect("nothing there").is_none());
        write(&piece(&path, "one\n"), None).expect("written");
        assert!(write(&piece(&path, "two\n"), None).is_err(), "it is there by now");
        let seen = ours_or_none(&path).expect("ours");
        write(&piece(&path, "two\n"), seen.as_ref()).expect("replaced");
        assert!(remove(&seen.expect("seen")).is_err(), "another file has its name by now");
        let text = std::fs::read_to_string(&path).expect("there");
        assert!(text.ends_with("\ntwo\n") && text.contains("from /a\\nrm b.\n"), "{text}");
        for (edited, found) in [
            (text.clone() + "three\n", Found::Edited),
            (text.replace("two", "2"), Found::Edited),
            (text.replace("removes it", "does"), Found::Edited),
            (text.replace(SEAL, ""), Found::Edited),
            (text.replace("cold prefetch", "somebody"), Found::Foreign),
            (text.clone(), Found::Ours),
        ] {
            std::fs::write(&path, &edited).expect("written");
            assert_eq!(look(&path).expect("read").expect("there").found, found, "{edited}");
        }
        let seen = ours_or_none(&path).expect("ours").expect("there");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("linked");
        assert_eq!(look(&link).expect("looked at").expect("there").found, Found::Foreign);
        remove(&seen).expect("removed");
        assert_eq!(std::fs::read_dir(path.parent().expect("below")).expect("lists").count(), 0);
    }
}
