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

pub use bpf::{bpf_tracepoint_program, perf_fault_event, perf_machine_event};
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
