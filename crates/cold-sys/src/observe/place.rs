//! Where a path argument of a stopped thread leads.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use super::calls::{self, Call};
use super::ptrace;

/// A path argument, seen from here.
#[derive(Debug, Clone)]
pub(super) struct PathArgument {
    /// For people: absolute, as text; symbolic links are not resolved.
    pub(super) shown: PathBuf,
    /// For opening it: starts at the thread's own root, working directory or descriptor.
    pub(super) reach: PathBuf,
    /// The path was not empty: an empty one leads nowhere, and lies in no directory.
    pub(super) named: bool,
}

/// The path of a system call; `None` if the thread's memory cannot be read.
pub(super) fn of_call(tid: i32, call: &Call, args: &[u64; 6]) -> Option<PathArgument> {
    let (dirfd, addr) = match call.path {
        calls::Path::Cwd => (libc::AT_FDCWD, args[0]),
        calls::Path::At => (args[0] as i32, args[1]),
        calls::Path::None => return None,
    };
    let text = OsString::from_vec(ptrace::read_string(tid, addr).ok()?);
    Some(resolve(tid, dirfd, Path::new(&text)))
}

/// `path` as thread `tid` understands it.
pub(super) fn resolve(tid: i32, dirfd: i32, path: &Path) -> PathArgument {
    let (base, rel) = if let Ok(rel) = path.strip_prefix("/") {
        (PathBuf::from(format!("/proc/{tid}/root")), rel)
    } else if dirfd == libc::AT_FDCWD {
        (PathBuf::from(format!("/proc/{tid}/cwd")), path)
    } else {
        (PathBuf::from(format!("/proc/{tid}/fd/{dirfd}")), path)
    };
    let shown_base = std::fs::read_link(&base).unwrap_or_else(|_| base.clone());
    // `/proc/self` would mean us.
    let reach = match path.strip_prefix("/proc/self") {
        Ok(rest) => Path::new("/proc").join(tid.to_string()).join(rest),
        Err(_) if rel.as_os_str().is_empty() => base,
        Err(_) => base.join(rel),
    };
    let named = rel.components().filter(|c| *c != Component::CurDir);
    PathArgument {
        shown: shown_base.components().chain(named).collect(),
        reach,
        named: !path.as_os_str().is_empty(),
    }
}
