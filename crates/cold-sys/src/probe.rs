//! Asks the running kernel what it lets this process do, by doing it on a small scale and undoing it.
//!
//! "Try to create the thing" beats version numbers: host policy, seccomp and lockdown refuse what the
//! version promises.

mod bpf;
mod ptrace;
mod residency;

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub use bpf::{bpf_tracepoint_program, perf_fault_event};
pub use ptrace::ptrace_child;
pub use residency::{Mincore, cachestat, mincore};

/// Whether this process, with its effective ids, may write `path`; `Err` when even that is not told
/// (absent, or a directory on the way is closed).
pub fn writable(path: &Path) -> io::Result<bool> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)?;
    // SAFETY: name is a NUL-terminated string that outlives the call.
    let rc = unsafe { libc::faccessat(libc::AT_FDCWD, name.as_ptr(), libc::W_OK, libc::AT_EACCESS) };
    if rc == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM | libc::EROFS) => Ok(false),
        _ => Err(error),
    }
}

/// `Ok` for a descriptor, which is closed at once, else the kernel's refusal.
fn close_fd(fd: libc::c_long) -> io::Result<()> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just handed out this descriptor and nobody else knows it.
    unsafe { libc::close(fd as libc::c_int) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::page::pages_of;

    #[test]
    fn mincore_counts_the_pages_of_the_running_program() {
        let own = PathBuf::from("/proc/self/exe").canonicalize().expect("has an executable");
        let answer = mincore(&own).expect("is told");
        assert_eq!(answer.pages, pages_of(own.metadata().expect("exists").len()));
        // This code is mapped, so its page cannot be absent.
        assert!((1..=answer.pages).contains(&answer.resident), "{answer:?}");
    }

    #[test]
    fn what_is_no_regular_file_is_refused() {
        let is_refused = |e: crate::Error| matches!(e, crate::Error::NotRegular { .. });
        assert!(mincore(Path::new("/dev/zero")).is_err_and(is_refused));
        assert!(cachestat(Path::new("/")).is_err_and(is_refused));
    }

    #[test]
    fn a_path_that_does_not_exist_is_neither_writable_nor_not() {
        assert!(writable(Path::new("/no/such/path")).is_err());
        assert_eq!(writable(Path::new("/dev/null")).ok(), Some(true));
    }

    #[test]
    fn the_traced_child_is_gone_whatever_the_answer() {
        let _ = ptrace_child();
        // Children are listed by the thread that made them, so other tests do not matter. Without the list
        // (CONFIG_PROC_CHILDREN) the wait in `ptrace_child` is all the proof there is.
        let children = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
        assert_eq!(children.trim(), "", "a child is left");
    }
}
