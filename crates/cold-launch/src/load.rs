//! From a command to its plan's bytes.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cold_plan::format::{self, View};
use cold_sys::map::Mapping;

use crate::options::Skip;

/// A plan's bytes, from an owner who may be trusted.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) path: PathBuf,
    bytes: Mapping,
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
        if let Some(why) = untrusted(meta.uid(), meta.mode(), rustix::process::geteuid().as_raw()) {
            return Err(Skip::Untrusted { path: path.to_owned(), why });
        }
        if meta.len() > format::MAX_BYTES {
            return Err(failed(format!("it has {} bytes, which no plan has", meta.len())));
        }
        let bytes = Mapping::of(&file, meta.len() as usize).map_err(|e| failed(e.to_string()))?;
        Ok(Self { path: path.to_owned(), bytes })
    }

    pub(crate) fn view(&self) -> Result<View<'_>, Skip> {
        View::parse(self.bytes.bytes()).map_err(|why| Skip::Format { path: self.path.clone(), why })
    }
}

/// A plan says which files this process opens, so whoever can write it must have the same rights or more.
fn untrusted(owner: u32, mode: u32, euid: u32) -> Option<&'static str> {
    if owner != euid && owner != 0 {
        Some("it belongs to another user")
    } else if mode & 0o022 != 0 {
        Some("others than its owner may write it")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::untrusted;

    #[test]
    fn only_ones_own_plans_and_roots_are_followed() {
        for (owner, mode, euid, trusted) in [
            (1000, 0o100_644, 1000, true),
            (0, 0o100_644, 1000, true),
            (1001, 0o100_644, 1000, false),
            (1000, 0o100_644, 0, false),
            (0, 0o100_600, 0, true),
            (1000, 0o100_664, 1000, false),
            (0, 0o100_646, 1000, false),
        ] {
            assert_eq!(untrusted(owner, mode, euid).is_none(), trusted, "{owner} {mode:o} {euid}");
        }
    }
}
