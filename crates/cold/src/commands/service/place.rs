//! Where the service keeps what is its own, and that there is only one.

use std::fs::File;
use std::path::{Path, PathBuf};

use cold_model::Shown as _;

use crate::commands::prefetch::plans::StorePlace;
use crate::exit::Failure;

/// Gone after a reboot, as locks and sockets should be; there also where the root file system is read-only.
const RUNTIME: &str = "/run/coldstart";
/// Below [`cold_sys::place::SYSTEM_STATE`].
const STATE: &str = "service";

/// The flags that name other places.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Place {
    #[command(flatten)]
    pub(crate) plans: StorePlace,

    /// Directory of history, lock and socket [default: /var/lib/coldstart/service; /run/coldstart]
    #[arg(long, value_name = "DIR", global = true)]
    state: Option<PathBuf>,
}

impl Place {
    /// The database of the history.
    pub(crate) fn history(&self) -> PathBuf {
        let usual = || Path::new(cold_sys::place::SYSTEM_STATE).join(STATE);
        self.state.clone().unwrap_or_else(usual).join("history.db")
    }

    /// Lock and socket.
    fn runtime(&self) -> PathBuf {
        self.state.clone().unwrap_or_else(|| PathBuf::from(RUNTIME))
    }

    /// Where a running service answers.
    pub(crate) fn socket(&self) -> PathBuf {
        self.runtime().join("socket")
    }

    /// Makes this process the only service here; until the lock is dropped.
    pub(crate) fn lock(&self) -> Result<Lock, Failure> {
        private(&self.runtime())?;
        let path = self.runtime().join("lock");
        let failed = |what: &str, e: std::io::Error| anyhow::anyhow!("cannot {what} {}: {e}", path.shown());
        let file = cold_sys::open::for_lock(&path).map_err(|e| failed("open", e))?;
        match file.try_lock() {
            Ok(()) => Ok(Lock { _file: file }),
            Err(std::fs::TryLockError::WouldBlock) => Err(Failure::from(anyhow::anyhow!(
                "another service runs already (it holds {})",
                path.shown()
            ))
            .hint("`cold service status` asks it")),
            Err(std::fs::TryLockError::Error(e)) => Err(failed("lock", e).into()),
        }
    }
}

/// Held by the one service.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// Creates a directory that only its owner may enter, and refuses one in which others decide.
pub(crate) fn private(dir: &Path) -> Result<(), Failure> {
    let failed = |why: String| anyhow::anyhow!("cannot use the directory {}: {why}", dir.shown());
    cold_sys::place::create_directory(dir, 0o700).map_err(|e| failed(e.to_string()))?;
    let meta = dir.metadata().map_err(|e| failed(e.to_string()))?;
    let why = cold_sys::place::distrust(&meta, &[cold_sys::caps::effective_user()])
        .or_else(|| cold_sys::place::exposed(dir));
    why.map_or(Ok(()), |why| Err(failed(why).into()))
}
