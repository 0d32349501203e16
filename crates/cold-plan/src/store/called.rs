//! Links by which a launcher finds a plan before it knows which one a start has: by the word that the program was called
//! by. A hint and no more: the program's newest plan shows which blocks a look at the program itself will read, and what
//! the look finds then decides.
//!
//! Only that word, and only its hash: arguments may hold what nobody else is to guess.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cold_model::hash::fnv1a64;

use super::own::{Part, is_hexadecimal};
use super::{Error, Locked, Opened, Result, Store};
use crate::plan::Key;

/// How such a link's name begins; the word's hash follows.
const BEGINNING: &str = "called-";

/// Whether a store may have given a link this name.
pub(super) fn is_name(name: &OsStr) -> bool {
    name.to_str().and_then(|name| name.strip_prefix(BEGINNING)).is_some_and(is_hexadecimal)
}

/// The file name of the plan that this link of a store leads to; `None` for anything else.
fn plan_of(link: &Path) -> Option<PathBuf> {
    let target = link.read_link().ok().filter(|_| link.file_name().is_some_and(is_name))?;
    (Part::of(target.as_os_str()) == Some(Part::Plan)).then_some(target)
}

impl Store {
    fn link_of(&self, word: &OsStr) -> PathBuf {
        self.directory().join(format!("{BEGINNING}{:016x}", fnv1a64(&[word.as_bytes()])))
    }

    /// Opens the plan that was learnt last of a program called by this word; `None` where there is none, or where it
    /// cannot be believed.
    pub fn called(&self, word: &OsStr) -> Option<Opened> {
        let plan = plan_of(&self.link_of(word))?;
        self.open_path(&self.directory().join(plan)).ok()
    }
}

impl Locked<'_> {
    /// Lets the plan of this key be found by this word.
    pub fn call(&self, key: &Key, word: &OsStr) -> Result<()> {
        let (link, plan) = (self.store.link_of(word), self.store.path_of(key));
        let Some(name) = plan.file_name() else { return Ok(()) };
        cold_sys::whole::link(&link, Path::new(name)).map_err(|e| Error::io("make the link", &link, e))
    }

    /// Removes links of the store whose plan is gone.
    pub(super) fn forget_calls(&self) -> Result<()> {
        let dir = self.store.directory();
        for entry in std::fs::read_dir(dir).map_err(|e| Error::io("list", dir, e))? {
            let link = entry.map_err(|e| Error::io("list", dir, e))?.path();
            let gone = |plan: PathBuf| {
                dir.join(plan).symlink_metadata().is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound)
            };
            if plan_of(&link).is_some_and(gone) {
                super::write::discard(&link)?;
            }
        }
        Ok(())
    }
}
