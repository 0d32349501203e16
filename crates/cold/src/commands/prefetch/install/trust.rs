//! What root's overrides may run: nothing that another user can change.

use std::path::{Path, PathBuf};

use cold_model::Shown as _;
use cold_sys::{caps, place};

use super::Result;
use crate::commands::prefetch::launcher::Call;
use crate::exit::Failure;

/// Refuses, as root, a launcher, a directory of plans or places of the override's own files that another user
/// decides over: what root and everybody else start afterwards would be that user's choice. An ordinary user's
/// overrides concern that user alone, who runs this very program.
pub(super) fn check<'a>(call: &Call, places: impl Iterator<Item = &'a Path>) -> Result<()> {
    if !caps::is_root() {
        return Ok(());
    }
    if let Some(why) = file(&call.program) {
        let what = format!("root's override would run {}, but {why}", call.program.shown());
        return Err(Failure::usage(what).hint("make install, then use the installed cold"));
    }
    if let Some((dir, why)) = call.store.as_deref().and_then(|dir| Some((dir, directory(dir)?))) {
        let what = format!("root's override would follow plans of {}, but {why}", dir.shown());
        return Err(
            Failure::usage(what).hint("leave out --store: root's plans lie in /var/lib/coldstart/plans")
        );
    }
    for path in places {
        if let Some(why) = directory(path.parent().unwrap_or(path)) {
            let what = format!("root's override would lie at {}, but {why}", path.shown());
            return Err(
                Failure::usage(what).hint("install it as that user, without sudo, or name another place")
            );
        }
    }
    Ok(())
}

/// A program that nobody named, found in PATH.
pub(super) fn chosen(program: PathBuf) -> Result<PathBuf> {
    match Some(()).filter(|()| caps::is_root()).and_then(|()| file(&program)) {
        Some(why) => {
            let what =
                format!("root's override would start {}, the first in PATH, but {why}", program.shown());
            Err(Failure::usage(what).hint("name the program that is meant with --program"))
        }
        None => Ok(program),
    }
}

/// Why not only root and this user decide what this file holds.
fn file(path: &Path) -> Option<String> {
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(e) => return Some(e.to_string()),
    };
    let own = real.metadata().map_or_else(|e| Some(e.to_string()), |meta| place::distrust(&meta, &owners()));
    own.map(|why| format!("{}: {why}", real.shown()))
        .or_else(|| directory(real.parent()?))
        .or_else(|| directory(path.parent()?))
}

/// Why not only root and this user decide what lies in this directory; for one that does not exist yet, who
/// decides over the nearest one that does.
fn directory(dir: &Path) -> Option<String> {
    let there = dir.ancestors().find(|d| d.exists()).unwrap_or(dir);
    place::exposed(there).or_else(|| {
        // In a shared directory with the sticky bit nobody replaces a name, but everybody makes a new one.
        let meta = there.metadata().ok().filter(|_| there != dir)?;
        place::distrust(&meta, &owners()).map(|why| format!("{}: {why}", there.shown()))
    })
}

/// Who may own what root's overrides use.
fn owners() -> [u32; 2] {
    use std::os::unix::fs::MetadataExt as _;
    // Inside a user namespace root of the machine has another number.
    [rustix::process::geteuid().as_raw(), Path::new("/").metadata().map_or(0, |root| root.uid())]
}
