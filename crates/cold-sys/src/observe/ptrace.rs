//! The requests of ptrace(2) that the observer uses, as safe functions on a thread id.
//!
//! Every one of them fails with `ESRCH` when the thread was killed meanwhile, which may happen at any
//! moment; its end is then reported by [`wait`].

use std::io;

/// Result of a request.
type Result<T> = io::Result<T>;

/// `PTRACE_EVENT_STOP` of linux/ptrace.h; libc exports it for musl only.
pub(super) const EVENT_STOP: i32 = 128;

/// Follow everything the tree creates, stop at exec, exit and our filter, and kill the whole tree if
/// the observer dies: a program with our filter but without a tracer gets `ENOSYS` from every open.
const OPTIONS: libc::c_int = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT
    | libc::PTRACE_O_TRACESECCOMP
    | libc::PTRACE_O_EXITKILL;

pub(crate) fn request(request: libc::c_uint, tid: i32, addr: usize, data: usize) -> Result<i64> {
    // SAFETY: all requests made below take integers, or (GETEVENTMSG, GET_SYSCALL_INFO) the address of
    // a live local variable of the type that ptrace(2) documents.
    let r = unsafe { libc::ptrace(request, tid, addr, data) };
    if r == -1 { Err(io::Error::last_os_error()) } else { Ok(r) }
}

/// Attaches without stopping.
pub(super) fn seize(tid: i32) -> Result<()> {
    request(libc::PTRACE_SEIZE, tid, 0, OPTIONS as usize).map(drop)
}
/// Lets a stopped thread run on, delivering `signal` unless it is 0.
pub(super) fn resume(tid: i32, signal: i32) -> Result<()> {
    request(libc::PTRACE_CONT, tid, 0, signal as usize).map(drop)
}
/// Lets a thread that stopped at the entry of a system call run to that call's exit.
pub(super) fn run_to_exit(tid: i32) -> Result<()> {
    request(libc::PTRACE_SYSCALL, tid, 0, 0).map(drop)
}
/// Leaves a thread in its job-control stop, so that `SIGCONT` wakes it as without a tracer.
pub(super) fn listen(tid: i32) -> Result<()> {
    request(libc::PTRACE_LISTEN, tid, 0, 0).map(drop)
}
/// The message of the last event: new thread id after a fork, former id after an exec.
pub(super) fn event_message(tid: i32) -> Result<u64> {
    let mut message: libc::c_ulong = 0;
    request(libc::PTRACE_GETEVENTMSG, tid, 0, std::ptr::from_mut(&mut message) as usize)?;
    #[allow(clippy::useless_conversion)] // c_ulong has 32 bits on other targets
    Ok(message.into())
}

/// Where in a system call a thread stands.
#[derive(Debug, Clone, Copy)]
pub(super) enum SyscallInfo {
    /// Stopped by a seccomp filter before the call is made.
    Seccomp {
        /// `AUDIT_ARCH_*`.
        arch: u32,
        nr: u64,
        args: [u64; 6],
        /// `SECCOMP_RET_DATA` of the filter.
        data: u32,
    },
    /// The call returned this (a negative error number on failure).
    Exit(i64),
    /// At the entry of a call, or in none.
    Other,
}

/// The system call a stopped thread is in. Needs Linux 5.3; older kernels answer `EIO`.
pub(super) fn syscall_info(tid: i32) -> Result<SyscallInfo> {
    // SAFETY: the structure holds plain integers, for which zero is valid.
    let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    let size = std::mem::size_of::<libc::ptrace_syscall_info>();
    request(libc::PTRACE_GET_SYSCALL_INFO, tid, size, std::ptr::from_mut(&mut info) as usize)?;
    Ok(match info.op {
        libc::PTRACE_SYSCALL_INFO_SECCOMP => {
            // SAFETY: `op` says that this is the member the kernel filled; it holds only integers.
            let seccomp = unsafe { info.u.seccomp };
            SyscallInfo::Seccomp {
                arch: info.arch,
                nr: seccomp.nr,
                args: seccomp.args,
                data: seccomp.ret_data,
            }
        }
        libc::PTRACE_SYSCALL_INFO_EXIT => {
            // SAFETY: as above.
            SyscallInfo::Exit(unsafe { info.u.exit }.sval)
        }
        _ => SyscallInfo::Other,
    })
}

/// What [`wait`] saw.
#[derive(Debug, Clone, Copy)]
pub(super) enum Waited {
    /// A thread stopped.
    Stopped {
        tid: i32,
        /// The stop signal; `SIGTRAP | 0x80` at a system call.
        signal: i32,
        /// `PTRACE_EVENT_*`, 0 for none.
        event: i32,
    },
    /// A thread ended with this code.
    Exited(i32, i32),
    /// A thread was killed by this signal.
    Killed(i32, i32),
    /// A signal handler of ours ran.
    Interrupted,
    /// Nothing is left to wait for.
    Nothing,
}

/// Waits for the next report of any tracee. Only for a process that has no other children: it would
/// take their statuses away.
pub(super) fn wait() -> Result<Waited> {
    let mut status = 0;
    // SAFETY: `status` is a live local variable.
    let tid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
    if tid < 0 {
        let e = io::Error::last_os_error();
        return match e.raw_os_error() {
            Some(libc::EINTR) => Ok(Waited::Interrupted),
            Some(libc::ECHILD) => Ok(Waited::Nothing),
            _ => Err(e),
        };
    }
    Ok(if libc::WIFEXITED(status) {
        Waited::Exited(tid, libc::WEXITSTATUS(status))
    } else if libc::WIFSIGNALED(status) {
        Waited::Killed(tid, libc::WTERMSIG(status))
    } else {
        Waited::Stopped { tid, signal: libc::WSTOPSIG(status), event: status >> 16 }
    })
}

/// Reads the memory of a stopped thread. Fails with `EPERM` for a process that made itself undumpable,
/// unless the observer has `CAP_SYS_PTRACE`.
pub(super) fn read_memory(tid: i32, addr: u64, buf: &mut [u8]) -> Result<usize> {
    let local = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
    let remote = libc::iovec { iov_base: addr as *mut libc::c_void, iov_len: buf.len() };
    // SAFETY: `local` describes `buf`, which is borrowed mutably; `remote` is only an address in the
    // other process, which the kernel checks.
    let n = unsafe { libc::process_vm_readv(tid, &raw const local, 1, &raw const remote, 1, 0) };
    if n < 0 { Err(io::Error::last_os_error()) } else { Ok(n as usize) }
}

/// Reads a string that ends with a NUL, at most `PATH_MAX` bytes.
pub(super) fn read_string(tid: i32, addr: u64) -> Result<Vec<u8>> {
    const PAGE: u64 = 4096; // the smallest page there is: a transfer must not reach into an unmapped one
    let mut text = Vec::with_capacity(128);
    let mut at = addr;
    while text.len() < libc::PATH_MAX as usize {
        let mut chunk = [0u8; 256];
        let room = (PAGE - at % PAGE).min(chunk.len() as u64) as usize;
        let n = read_memory(tid, at, &mut chunk[..room])?;
        let got = &chunk[..n];
        if got.is_empty() {
            break;
        }
        if let Some(end) = got.iter().position(|b| *b == 0) {
            text.extend_from_slice(&got[..end]);
            return Ok(text);
        }
        text.extend_from_slice(got);
        at = at.wrapping_add(n as u64);
    }
    Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG))
}
