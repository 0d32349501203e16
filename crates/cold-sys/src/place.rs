//! Where `cold` keeps what outlives a run, and whether it may be believed.

use std::ffi::OsString;
use std::fs::{DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Root's directory, and that of plans for all users.
pub const SYSTEM_STATE: &str = "/var/lib/coldstart";

/// [`SYSTEM_STATE`] for root, else `$XDG_STATE_HOME/coldstart` (`~/.local/state/coldstart`); `None` for
/// a user of whom neither variable tells a directory. `variable` reads the environment.
///
/// Decided by the effective user: under `sudo` with the user's HOME, root's files must not lie where
/// the user can write.
pub fn state_directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if crate::caps::is_root() {
        return Some(PathBuf::from(SYSTEM_STATE));
    }
    user_state_directory(variable)
}

/// Creates a directory and the missing ones above it with `mode`. The error of one in the user's state
/// directory says what to do.
pub fn create_directory(dir: &Path, mode: u32) -> io::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(mode).create(dir);
    made.map_err(|e| match user_state_directory(|name| std::env::var_os(name)) {
        Some(state) if !crate::caps::is_root() && dir.starts_with(&state) => {
            io::Error::new(e.kind(), format!("{e}; set XDG_STATE_HOME to a directory that you may write"))
        }
        _ => e,
    })
}

/// Why what lies there cannot be believed, as a phrase: it belongs to none of `owners` (user ids), or others may
/// write it. `None` when it can.
pub fn distrust(meta: &Metadata, owners: &[u32]) -> Option<String> {
    judge(meta.uid(), meta.mode(), owners)
}

fn judge(owner: u32, mode: u32, owners: &[u32]) -> Option<String> {
    if !owners.contains(&owner) {
        let theirs: Vec<String> = owners.iter().map(u32::to_string).collect();
        Some(format!("it belongs to user {owner}, not to {}", theirs.join(" or ")))
    } else if mode & 0o022 != 0 {
        Some(format!("others may write it (mode {:03o})", mode & 0o777))
    } else {
        None
    }
}

fn user_state_directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // The XDG specification: a relative path is invalid and must be ignored.
    let absolute = |name| variable(name).map(PathBuf::from).filter(|p| p.is_absolute());
    absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .map(|state| state.join("coldstart"))
}

#[cfg(test)]
mod tests {
    use super::{judge, user_state_directory};

    #[test]
    fn a_users_state_lies_where_xdg_says() {
        let with = |state: &'static str, home: &'static str| {
            let variable = move |name: &str| match name {
                "XDG_STATE_HOME" => Some(state.into()),
                "HOME" => Some(home.into()),
                _ => None,
            };
            user_state_directory(variable).map(|p| p.display().to_string())
        };
        assert_eq!(with("/s", "/home/u").as_deref(), Some("/s/coldstart"));
        assert_eq!(with("relative", "/home/u").as_deref(), Some("/home/u/.local/state/coldstart"));
        assert_eq!(with("", ""), None);
        assert_eq!(user_state_directory(|_| None), None);
    }

    #[test]
    fn only_what_its_owners_alone_can_write_is_believed() {
        for (owner, mode, owners, why) in [
            (1000, 0o100_600, &[1000, 0][..], None),
            (0, 0o100_644, &[1000, 0], None),
            (1001, 0o100_600, &[1000, 0], Some("it belongs to user 1001, not to 1000 or 0")),
            (1000, 0o100_600, &[0], Some("it belongs to user 1000, not to 0")),
            (1000, 0o100_622, &[1000], Some("others may write it (mode 622)")),
            (0, 0o100_660, &[0], Some("others may write it (mode 660)")),
        ] {
            assert_eq!(judge(owner, mode, owners).as_deref(), why, "{owner} {mode:o} {owners:?}");
        }
    }
}
