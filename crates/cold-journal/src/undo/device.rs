//! Unmounting, and detaching loop devices.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cold_model::FileId;
use cold_model::Shown as _;
use cold_model::path_text;
use cold_sys::loopdev::LoopDevice;
use cold_sys::mount;
use cold_sys::procfs::ProcFs;
use rustix::io::Errno;

use super::{Outcome, until};
use crate::error::is_gone;
use crate::{Error, Result};

/// A mount is busy for moments when an indexer or a shell looks at it; after this it is detached.
const BUSY: Duration = Duration::from_secs(3);

pub(super) fn unmount(proc: &ProcFs, target: &Path, fs_type: &str, source: &str) -> Result<Outcome> {
    let deadline = Instant::now() + BUSY;
    loop {
        // The last one covers the others.
        let top = proc.mounts()?.into_iter().rfind(|m| m.mount_point == target);
        let Some(top) = top else { return Ok(Outcome::Gone) };
        if top.fs_type != fs_type || top.source != source {
            let found = format!("{} ({}) is mounted there", top.source.shown(), top.fs_type.shown());
            return Ok(Outcome::ChangedByOthers { found });
        }
        let late = Instant::now() >= deadline;
        match mount::unmount(target, late) {
            Ok(()) if late => return Ok(Outcome::WhenUnused),
            Ok(()) => return Ok(Outcome::Restored),
            Err(e) if !late && e.errno() == Some(Errno::BUSY.raw_os_error()) => {
                std::thread::sleep(Duration::from_millis(50));
            }
            // Unmounted by somebody else since we looked.
            Err(e) if e.errno() == Some(Errno::INVAL.raw_os_error()) => return Ok(Outcome::Gone),
            Err(e) => return Err(e.into()),
        }
    }
}

pub(super) fn detach(number: u32, backing: &Path, id: FileId) -> Result<Outcome> {
    let Some(attached) = attached(number)? else { return Ok(Outcome::Gone) };
    let others = |found: &Path| Outcome::ChangedByOthers { found: format!("{} is attached", found.shown()) };
    if attached != backing {
        return Ok(others(&attached));
    }
    {
        let device = match LoopDevice::open(number) {
            Err(e) if e.errno().is_some_and(|n| is_gone(&std::io::Error::from_raw_os_error(n))) => {
                return Ok(Outcome::Gone);
            }
            other => other?,
        };
        match device.backing() {
            Ok(None) => return Ok(Outcome::Gone),
            Ok(Some(b)) if (FileId { dev: b.dev, ino: b.ino }) != id => return Ok(others(&attached)),
            // The backing file's server (FUSE) may be dead, then the kernel cannot ask it for the
            // inode; the path, which was unique to us, has been compared.
            Ok(Some(_)) | Err(_) => {}
        }
        device.detach()?;
    }
    let gone = until(|| Ok((self::attached(number)?.as_deref() != Some(backing)).then_some(())))?;
    Ok(if gone.is_some() { Outcome::Restored } else { Outcome::WhenUnused })
}

/// The path of the attached file, without the mark of a deleted one.
fn attached(number: u32) -> Result<Option<PathBuf>> {
    let path = PathBuf::from(format!("/sys/block/loop{number}/loop/backing_file"));
    match std::fs::read_to_string(&path) {
        Err(e) if is_gone(&e) => Ok(None),
        Err(e) => Err(Error::io("read", path, e)),
        Ok(text) => {
            let (text, _) = path_text::without_mark(text.trim_end_matches('\n'));
            // An empty name is a device that is being detached right now.
            Ok((!text.is_empty()).then(|| PathBuf::from(text)))
        }
    }
}
