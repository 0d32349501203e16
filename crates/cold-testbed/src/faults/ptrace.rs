//! The requests of ptrace(2) that the injector makes, as safe functions on a thread id.
//!
//! Each fails with `ESRCH` when the thread was killed meanwhile; its end is then reported by [`wait`].
#![allow(unsafe_code)] // rustix has no ptrace, and cold-sys has it for the observer only: no product writes registers

use std::io;
use std::path::Path;

use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};

const OPTIONS: libc::c_int = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_EXITKILL;

pub(super) fn request(request: libc::c_uint, tid: i32, addr: usize, data: usize) -> io::Result<()> {
    // SAFETY: the requests made here and in `registers` take integers, or the address of a live local variable of
    // the type that ptrace(2) documents.
    let r = unsafe { libc::ptrace(request, tid, addr, data) };
    if r == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub(super) fn seize(tid: i32) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, tid, 0, OPTIONS as usize)
}
/// Lets it run to its next event.
pub(super) fn resume(tid: i32, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_CONT, tid, 0, signal as usize)
}
/// Lets it run to its next event, or the next entry or exit of a system call.
pub(super) fn resume_to_call(tid: i32, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_SYSCALL, tid, 0, signal as usize)
}
/// Leaves it in its stop of job control.
pub(super) fn listen(tid: i32) -> io::Result<()> {
    request(libc::PTRACE_LISTEN, tid, 0, 0)
}
pub(super) fn detach(tid: i32) -> io::Result<()> {
    request(libc::PTRACE_DETACH, tid, 0, 0)
}
pub(super) fn event_message(tid: i32) -> io::Result<i32> {
    let mut message: libc::c_ulong = 0;
    request(libc::PTRACE_GETEVENTMSG, tid, 0, std::ptr::from_mut(&mut message) as usize)?;
    Ok(message as i32)
}

/// Where in a system call a thread stands.
pub(super) enum Call {
    Entry { nr: i64, args: [u64; 6] },
    Exit,
    Other,
}

/// The system call a stopped thread is in (Linux 5.3).
pub(super) fn call(tid: i32) -> io::Result<Call> {
    // SAFETY: the structure holds plain integers, for which zero is valid.
    let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    let size = std::mem::size_of::<libc::ptrace_syscall_info>();
    request(libc::PTRACE_GET_SYSCALL_INFO, tid, size, std::ptr::from_mut(&mut info) as usize)?;
    Ok(match info.op {
        libc::PTRACE_SYSCALL_INFO_ENTRY => {
            // SAFETY: `op` says that this is the member the kernel filled; it holds only integers.
            let entry = unsafe { info.u.entry };
            Call::Entry { nr: entry.nr.cast_signed(), args: entry.args }
        }
        libc::PTRACE_SYSCALL_INFO_EXIT => Call::Exit,
        _ => Call::Other,
    })
}

/// A thread and its wait status.
pub(super) type Waited = (i32, i32);

/// The next report of a child or tracee of this thread, or of `pid` alone; `None` when there is none left.
pub(super) fn wait(pid: i32) -> io::Result<Option<Waited>> {
    loop {
        let mut status = 0;
        // SAFETY: `status` is a live local variable. Other threads' children are left to them.
        let tid = unsafe {
            libc::waitpid(pid, &raw mut status, libc::__WALL | libc::__WNOTHREAD | libc::WUNTRACED)
        };
        if tid >= 0 {
            return Ok(Some((tid, status)));
        }
        let e = io::Error::last_os_error();
        match e.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::ECHILD) => return Ok(None),
            _ => return Err(e),
        }
    }
}

pub(super) fn kill(pid: i32, signal: i32) {
    // SAFETY: kill takes integers. The pid is that of a tracee that was not waited for.
    unsafe { libc::kill(pid, signal) };
}

/// Gives the calling thread, and what it starts from now on, mounts of their own, in which `instead` stands at
/// `place`. Needs root.
pub fn own_mounts(instead: &Path, place: &Path) -> io::Result<()> {
    // SAFETY: a thread with mounts of its own shares no less memory and no fewer descriptors than before.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // Else our mount would show on the machine.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    mount_bind(instead, place)?;
    Ok(())
}
