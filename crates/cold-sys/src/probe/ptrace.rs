//! Whether a parent may trace its child.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Starts a child that asks to be traced. It stops at its exec, before its first instruction, and is
/// killed there; nothing of it ever runs. `Err` is the kernel's refusal (Yama, seccomp).
pub fn ptrace_child() -> io::Result<()> {
    let mut command = Command::new("/proc/self/exe");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: the closure only makes one system call, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            let none = std::ptr::null_mut::<libc::c_void>();
            if libc::ptrace(libc::PTRACE_TRACEME, 0, none, none) < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
    // Not waited for through `Child`: it would take the ptrace stop for the end.
    let child = command.spawn()?;
    let pid = child.id().cast_signed();
    // SAFETY: pid is our own child, not yet reaped, so the number cannot have been reused.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    loop {
        let mut status = 0;
        // SAFETY: status is valid for the call; pid is our own unreaped child.
        let rc = unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) };
        if rc < 0 {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return Err(error);
        }
        if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
            return Ok(());
        }
    }
}
