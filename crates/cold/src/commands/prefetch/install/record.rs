//! The list of what is installed: one symbolic link per file, in the state directory, to the file.
//!
//! A link is made in one step, holds any path as it is, and two commands at once do not lose each other's. It is
//! made before its file and removed after it. It is never followed: the file it names is judged by itself.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cold_model::Shown as _;
use cold_model::hash::fnv1a64;
use cold_sys::place;

use super::Result;
use crate::exit::Failure;

/// Below the state directory.
const NAME: &str = "installed";

/// The list of this user.
pub(super) struct List {
    dir: PathBuf,
}

impl List {
    pub(super) fn own() -> Result<Self> {
        let state = place::state_directory(|name| std::env::var_os(name));
        let state = state.ok_or_else(|| {
            Failure::usage("neither XDG_STATE_HOME nor HOME says where to remember what is installed")
                .hint("set HOME")
        })?;
        Ok(Self { dir: state.join(NAME) })
    }

    /// Remembers it. Once is enough.
    pub(super) fn add(&self, path: &Path) -> Result<()> {
        let made = place::create_directory(&self.dir, 0o700)
            .and_then(|()| std::os::unix::fs::symlink(path, self.link(path)));
        match made {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            made => Ok(made
                .map_err(|e| anyhow::anyhow!("cannot remember the override in {}: {e}", self.dir.shown()))?),
        }
    }

    /// Forgets it. What stays is found to be gone the next time.
    pub(super) fn forget(&self, path: &Path) {
        let link = self.link(path);
        if link.read_link().is_ok_and(|to| to == path) {
            let _ = rustix::fs::unlink(link);
        }
    }

    /// Everything that was remembered.
    pub(super) fn all(&self) -> Result<Vec<PathBuf>> {
        let fail = |e: std::io::Error| anyhow::anyhow!("cannot read {}: {e}", self.dir.shown());
        let entries = match std::fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(fail(e).into()),
        };
        let meta = self.dir.metadata().map_err(fail)?;
        if let Some(why) = place::distrust(&meta, &[rustix::process::geteuid().as_raw()]) {
            return Err(anyhow::anyhow!("{} cannot be believed: {why}", self.dir.shown()).into());
        }
        let mut paths = Vec::new();
        for entry in entries {
            let link = entry.map_err(fail)?.path();
            // A link of another name is none that was made here.
            paths.extend(link.read_link().ok().filter(|to| to.is_absolute() && self.link(to) == link));
        }
        paths.sort();
        Ok(paths)
    }

    fn link(&self, path: &Path) -> PathBuf {
        self.dir.join(format!("{:016x}", fnv1a64(&[path.as_os_str().as_bytes()])))
    }
}
