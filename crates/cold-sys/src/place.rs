//! Where `cold` keeps what outlives a run, and whether it may be believed.

use std::ffi::OsString;
use std::fs::{DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use cold_model::Shown as _;

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

/// Why nobody but root and this user decides what lies at `dir`, or `None` when that is so: of every directory on
/// the way, links resolved, no other user can replace the next one. A shared directory with the sticky bit (`/tmp`)
/// is fine: there only its owner can replace a name.
pub fn exposed(dir: &Path) -> Option<String> {
    let resolved = match dir.canonicalize() {
        Ok(resolved) => resolved,
        Err(e) => return Some(e.to_string()),
    };
    let me = rustix::process::geteuid().as_raw();
    // Inside a user namespace root of the machine has another number; who owns `/` can do anything anyway.
    let owner = Path::new("/").metadata().map_or(0, |root| root.uid());
    resolved.ancestors().find_map(|dir| match dir.metadata() {
        Err(e) => Some(format!("{}: {e}", dir.shown())),
        Ok(meta) if !meta.is_dir() => Some(format!("{} is no directory", dir.shown())),
        Ok(meta) => {
            let mode = if meta.mode() & 0o1000 == 0 { meta.mode() } else { meta.mode() & !0o022 };
            judge(meta.uid(), mode, &[me, 0, owner]).map(|why| format!("{}: {why}", dir.shown()))
        }
    })
}

/// Everybody on this machine may see this name and read what it leads to, a file or a directory: by the modes of that,
/// of the directory that lists the name, and of all directories above both. What cannot be looked at is not for
/// everybody. Access control lists that give more are not asked.
pub fn everybody_may_read(path: &Path) -> bool {
    let allows = |path: &Path, bits: u32| path.metadata().is_ok_and(|meta| meta.mode() & bits == bits);
    let open = |path: &Path| {
        let resolved = path.canonicalize();
        resolved.is_ok_and(|to| allows(&to, 0o004) && to.ancestors().skip(1).all(|dir| allows(dir, 0o001)))
    };
    open(path) && path.parent().is_none_or(|dir| open(dir) && allows(dir, 0o001))
}

/// The file system encrypts this file by itself (fscrypt), or would one of this name. Where nothing can be told, no.
pub fn is_encrypted(path: &Path) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
    // A missing file would be as its directory is.
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let nearest = path.ancestors().find_map(|at| statx(CWD, at, flags, StatxFlags::empty()).ok());
    nearest.is_some_and(|told| told.stx_attributes.contains(StatxAttributes::ENCRYPTED))
}

/// The directory for what is needed for a while: the first of `$TMPDIR`, `/tmp`,
/// `/var/tmp` and `fallback` that is a directory in which nobody else can replace our names (see
/// [`exposed`]): under `sudo` the user's own TMPDIR is none.
pub fn temporary_directory(
    variable: impl Fn(&str) -> Option<OsString>,
    fallback: Option<PathBuf>,
) -> Option<PathBuf> {
    let named = variable("TMPDIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let usual = ["/tmp", "/var/tmp"].map(PathBuf::from);
    let writable = |dir: &PathBuf| rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_ok();
    named.into_iter().chain(usual).chain(fallback).find(|dir| exposed(dir).is_none() && writable(dir))
}

/// 16 hexadecimal digits that nobody can guess, for names in shared directories.
pub fn random_name() -> io::Result<String> {
    let mut bytes = [0; 8];
    let mut have = 0;
    while have < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[have..], rustix::rand::GetRandomFlags::empty()) {
            Ok(got) => have += got,
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
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
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::{Path, PathBuf};

    use super::{exposed, judge, random_name, temporary_directory, user_state_directory};

    #[test]
    fn what_everybody_may_read_lies_where_everybody_may_go() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("file");
        std::fs::write(&file, "x").expect("written");
        let mode = |path: &Path, mode| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(path, mode).expect("set");
        };
        mode(dir.path(), 0o755);
        mode(&file, 0o644);
        assert!(super::everybody_may_read(&file) && super::everybody_may_read(Path::new("/")));
        mode(&file, 0o640);
        assert!(!super::everybody_may_read(&file));
        mode(&file, 0o644);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/", &link).expect("linked");
        assert!(super::everybody_may_read(&link));
        for closed in [0o700, 0o711] {
            mode(dir.path(), closed);
            assert!(!super::everybody_may_read(&file), "nobody else gets there, or sees the name");
            assert!(!super::everybody_may_read(&link), "nor this one, wherever it leads");
        }
        assert!(!super::everybody_may_read(&dir.path().join("none")));
    }

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

    #[test]
    fn names_are_replaced_by_nobody_else_where_things_lie_for_a_while() {
        let dir = tempfile::tempdir().expect("a directory");
        let inner = dir.path().join("inner");
        std::fs::create_dir(&inner).expect("made");
        assert_eq!((exposed(Path::new("/tmp")), exposed(&inner)), (None, None));
        let mode =
            |mode| std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).expect("set");
        mode(0o777);
        assert!(exposed(&inner).is_some_and(|why| why.contains("others may write it")));
        mode(0o1777);
        assert_eq!(exposed(&inner), None);
        let temporary = |named: &Path| temporary_directory(|_| Some(named.into()), None).expect("one");
        assert_eq!(temporary(&inner), inner);
        mode(0o777);
        assert_eq!(temporary(&inner), PathBuf::from("/tmp"));
        mode(0o700);
        if crate::caps::is_root() {
            std::os::unix::fs::chown(dir.path(), Some(65534), None).expect("given away");
            assert_eq!(temporary(&inner), PathBuf::from("/tmp"), "as with sudo and a user's TMPDIR");
        }
        assert_eq!(temporary(Path::new("relative")), PathBuf::from("/tmp"));
        assert_ne!(random_name().expect("random"), random_name().expect("random"));
    }
}
