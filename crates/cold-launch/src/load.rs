//! From a command to its plan's bytes.

use std::fs::File;
use std::path::{Path, PathBuf};

use cold_plan::format::{self, View};
use cold_plan::plan::Key;
use cold_plan::scenario;
use cold_plan::store::{self, Store, trusted};
use cold_sys::map::{self, Mmap};

use crate::options::{Options, Skip, Source};

/// A plan's bytes, from an owner who may be trusted.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) path: PathBuf,
    /// Where it was found; `None` for a plan outside a store.
    pub(crate) place: Option<PlanPlace>,
    bytes: Mmap,
}

/// A plan's place in a store.
#[derive(Debug, Clone)]
pub(crate) struct PlanPlace {
    pub(crate) store: Store,
    /// Which plan it has to be.
    pub(crate) key: Key,
    /// Where the history of its starts lies: in the user's own store, of the system's plans too.
    pub(crate) history: PathBuf,
}

/// The plan of the command; `early`, where that is the one.
pub(crate) fn find(options: &Options, mut early: Option<Loaded>) -> Result<Loaded, Skip> {
    if cold_sys::exec::has_raised_rights() {
        return Err(Skip::RaisedRights);
    }
    let (dir, name) = match &options.source {
        Source::File(path) => return Loaded::open(path),
        Source::Store { dir, scenario } => (dir, scenario),
    };
    let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let path = std::env::var_os("PATH");
    let command = scenario::Command { argv: &options.command, cwd: &cwd, path: path.as_deref() };
    let key = scenario::find(&command, name.as_deref())?;
    let stores = stores(dir.as_deref());
    let history = stores.first().map(|own| own.history_of(&key)).unwrap_or_default();
    let mut others = None;
    for store in stores {
        if let Some(loaded) = early.take_if(|early| early.path == store.path_of(&key)) {
            return Ok(Loaded { place: Some(PlanPlace { store, key, history }), ..loaded });
        }
        let opened = match store.open(&key) {
            // A HOME of somebody else's, as `su` leaves it. It is not this user's to mend.
            Err(e) if dir.is_none() && !store.is_system() && e.is_others() => {
                others = Some(e);
                continue;
            }
            other => other?,
        };
        if let Some(opened) = opened {
            let loaded = Loaded::map(&opened.file, opened.len, opened.path)?;
            return Ok(Loaded { place: Some(PlanPlace { store, key, history }), ..loaded });
        }
    }
    Err(others.map_or(Skip::NoPlan, Skip::NotOurs))
}

/// Where plans are looked for.
pub(crate) fn stores(dir: Option<&Path>) -> Vec<Store> {
    match dir {
        Some(dir) => vec![Store::at(dir)],
        None => Store::lookup(|name| std::env::var_os(name)),
    }
}

impl Loaded {
    /// Opens the file and checks whose it is.
    pub(crate) fn open(path: &Path) -> Result<Self, Skip> {
        let failed = |why: String| Skip::Unreadable { path: path.to_owned(), why };
        let (file, meta) = match cold_sys::open::regular(path, true) {
            Ok(opened) => opened,
            Err(e) if e.errno() == Some(rustix::io::Errno::NOENT.raw_os_error()) => {
                return Err(failed("no such file".to_owned()));
            }
            Err(e) => return Err(failed(e.to_string())),
        };
        // Root's are everybody's.
        let mut owners = vec![rustix::process::geteuid().as_raw(), 0];
        owners.dedup();
        trusted(path, &meta, &owners)?;
        if meta.len() > format::MAX_BYTES {
            return Err(failed(format!("it has {} bytes, which no plan has", meta.len())));
        }
        Self::map(&file, meta.len(), path.to_owned())
    }

    pub(crate) fn map(file: &File, len: u64, path: PathBuf) -> Result<Self, Skip> {
        match map::whole(file, len as usize) {
            Ok(bytes) => Ok(Self { path, place: None, bytes }),
            Err(e) => Err(Skip::Unreadable { path, why: e.to_string() }),
        }
    }

    /// The plan, checked: to be called once, because every step is looked at. One that lies under the name
    /// of another is not followed.
    pub(crate) fn view(&self) -> Result<View<'_>, Skip> {
        let view = View::parse(&self.bytes).map_err(|why| Skip::Format { path: self.path.clone(), why })?;
        if self.place.as_ref().is_some_and(|p| !view.is_for(&p.key)) {
            return Err(store::Error::OtherKey { path: self.path.clone() }.into());
        }
        Ok(view)
    }
}
