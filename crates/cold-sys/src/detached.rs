//! A process of one's own that is nobody's child: work that goes on after this process has become
//! another program, and leaves neither a zombie nor a child that the program does not know.

use std::ffi::{CStr, c_int, c_void};
use std::os::unix::fs::MetadataExt;

use crate::{Error, Result};

/// Whether this process has one thread. A fork copies only the calling one; a lock that another one
/// holds would stay locked in the copy for ever.
pub fn single_threaded() -> bool {
    // Two links of the directory itself, one per thread.
    std::fs::metadata("/proc/self/task").is_ok_and(|m| m.nlink() == 3)
}

struct Start<'a> {
    job: Option<&'a mut dyn FnMut()>,
    failed: c_int,
}

/// Runs in the parent's memory while the parent is suspended: makes the copy that stays, and ends.
extern "C" fn between(arg: *mut c_void) -> c_int {
    // SAFETY: `arg` is the `Start` that `run` keeps alive while this process has not ended; the caller's
    // thread is suspended, so nobody else uses it.
    let start = unsafe { &mut *arg.cast::<Start<'_>>() };
    // SAFETY: the process is single-threaded (checked by `run`), so the copy may do anything.
    match unsafe { libc::fork() } {
        0 => {
            if let Some(job) = start.job.take() {
                // A panic must not unwind into the frames of the process this is a copy of.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
            }
            // SAFETY: ends this process without running the exit handlers of the one it is a copy of.
            unsafe { libc::_exit(0) }
        }
        -1 => start.failed = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EAGAIN),
        _ => {}
    }
    // SAFETY: as above; `_exit` ends only this process, which shares memory but no threads.
    unsafe { libc::_exit(0) }
}

/// Runs `job` in a copy of this process whose parent is init (or the next subreaper), and returns when
/// the copy exists. The copy ends with `job`. It has this process's group, session, cgroup, limits and
/// descriptors; see [`leave`].
///
/// The process between the two shares this one's memory (`CLONE_VM`), so page tables are copied once, and
/// sends no signal when it ends, so that no SIGCHLD stays pending for the program that comes next.
pub fn run(job: &mut dyn FnMut()) -> Result<()> {
    // Also the stack of `job`; pages that are never touched cost nothing.
    const STACK: usize = 512 << 10;
    let refused = |e| Error::io("start", "a helper process", e);
    if !single_threaded() {
        return Err(refused(std::io::Error::other("this process has several threads")));
    }
    let mut stack = Vec::<u8>::with_capacity(STACK);
    let mut start = Start { job: Some(job), failed: 0 };
    // SAFETY: the stack outlives the process between, because CLONE_VFORK suspends us until it has ended;
    // the copy has a copy of it. The top is 16-byte aligned as the ABI wants. The memory is only used as
    // a stack, so that it is not initialised does not matter.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(STACK - 16);
        let top = top.sub(top as usize % 16);
        libc::clone(between, top.cast(), libc::CLONE_VM | libc::CLONE_VFORK, (&raw mut start).cast())
    };
    if pid < 0 {
        return Err(refused(std::io::Error::last_os_error()));
    }
    // SAFETY: waits for the process just made; it sends no signal when it ends, hence __WCLONE.
    while unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::__WCLONE) } < 0
        && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
    {}
    // SAFETY: a plain read of a field that the other process may have written before it ended.
    match unsafe { std::ptr::read_volatile(&raw const start.failed) } {
        0 => Ok(()),
        errno => Err(refused(std::io::Error::from_raw_os_error(errno))),
    }
}

/// Lets go of what a copy has inherited: every descriptor except `keep` (whoever reads a pipe would
/// otherwise wait for its end until the copy ends), the working directory (it would hold a mount), and
/// the name (`ps`, `/proc/PID/comm`).
pub fn leave(name: &CStr, keep: &[i32]) {
    let mut keep: Vec<u32> = keep.iter().filter_map(|fd| u32::try_from(*fd).ok()).collect();
    keep.sort_unstable();
    let mut first = 0;
    for fd in keep {
        close_range(first, fd);
        first = fd + 1;
    }
    close_range(first, u32::MAX);
    // SAFETY: C strings that live across the calls; prctl copies the name. A failure leaves a copy that
    // holds its old directory or name, which is no harm.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, name.as_ptr(), 0, 0, 0);
        let _ = libc::chdir(c"/".as_ptr());
    }
}

/// Closes the descriptors `first..end`.
fn close_range(first: u32, end: u32) {
    if first >= end {
        return;
    }
    // SAFETY: the copy's own descriptors; the owners in this copy's memory never use them again.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, end - 1, 0) };
    if done != 0 {
        // Before Linux 5.9.
        for fd in first..end.min(1 << 16) {
            // SAFETY: as above.
            unsafe { libc::close(fd.cast_signed()) };
        }
    }
}

/// Puts the calling thread's I/O at the lowest best-effort level, unless somebody has chosen another
/// class for it: requests that are waited for go first where the scheduler knows levels (bfq). Never the
/// idle class, in which a page that the program itself waits for would come last.
pub fn lower_io_priority() {
    const WHO_PROCESS: c_int = 1;
    const BEST_EFFORT: c_int = 2;
    const SHIFT: c_int = 13;
    // SAFETY: integers only; 0 is the calling thread.
    unsafe {
        let class = libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, 0) >> SHIFT;
        if class == 0 || class == libc::c_long::from(BEST_EFFORT) {
            libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, BEST_EFFORT << SHIFT | 7);
        }
    }
}
