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

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    fn own() -> i32 {
        std::process::id().cast_signed()
    }

    fn from(dirfd: i32, path: &str) -> (PathBuf, PathBuf) {
        let place = resolve(own(), dirfd, Path::new(path));
        assert_eq!(place.named, !path.is_empty());
        (place.shown, place.reach)
    }

    #[test]
    fn a_path_begins_where_the_thread_says() {
        let dir = tempfile::tempdir().unwrap();
        let held = std::fs::File::open(dir.path()).unwrap();
        let (fd, of) = (held.as_raw_fd(), |rest: &str| PathBuf::from(format!("/proc/{}/{rest}", own())));
        let cwd = std::env::current_dir().unwrap();
        let canonical = dir.path().canonicalize().unwrap();
        for (dirfd, path, shown, reach) in [
            (libc::AT_FDCWD, "/usr//bin/./x", PathBuf::from("/usr/bin/x"), of("root/usr/bin/x")),
            (fd, "/usr/../x", PathBuf::from("/usr/../x"), of("root/usr/../x")),
            (libc::AT_FDCWD, "/", PathBuf::from("/"), of("root")),
            (libc::AT_FDCWD, "a/./b", cwd.join("a/b"), of("cwd/a/b")),
            (libc::AT_FDCWD, "./a", cwd.join("a"), of("cwd/a")),
            (fd, "a/b", canonical.join("a/b"), of(&format!("fd/{fd}/a/b"))),
            (fd, "", canonical, of(&format!("fd/{fd}"))),
            (i32::MAX, "a", of(&format!("fd/{}/a", i32::MAX)), of(&format!("fd/{}/a", i32::MAX))),
        ] {
            let found = from(dirfd, path);
            assert_eq!(found, (shown, reach), "{dirfd} {path:?}");
            // As text: with a slash behind it a file's descriptor leads nowhere.
            assert!(!found.1.as_os_str().as_encoded_bytes().ends_with(b"/"), "{path:?}");
        }
    }

    #[test]
    fn what_the_thread_calls_itself_is_not_this_process() {
        let other = std::os::unix::process::parent_id().cast_signed();
        let reach = |path: &str| resolve(other, libc::AT_FDCWD, Path::new(path)).reach;
        assert_eq!(reach("/proc/self/maps"), Path::new("/proc").join(other.to_string()).join("maps"));
        assert_eq!(reach("/proc/self"), Path::new("/proc").join(other.to_string()));
        let root = PathBuf::from(format!("/proc/{other}/root"));
        assert_eq!(reach("/proc/selfish/x"), root.join("proc/selfish/x"));
    }
}
