//! A process of one's own that is nobody's child: work that goes on after this process has become
//! another program, and leaves neither a zombie nor a child that the program does not know.

use std::ffi::{CStr, c_int, c_void};
use std::os::unix::fs::MetadataExt;
use std::ptr::null_mut;

use rustix::fs::{Mode, OFlags};

use crate::child::{self, Stack};
use crate::error::errno;
use crate::pidfd::PidFd;
use crate::{Error, Result};

/// Whether this process has one thread. A fork copies only the calling one; a lock that another one
/// holds would stay locked in the copy for ever.
pub fn single_threaded() -> bool {
    // Two links of the directory itself, one per thread.
    std::fs::metadata("/proc/self/task").is_ok_and(|m| m.nlink() == 3)
}

struct DetachedStart<'a> {
    job: Option<&'a mut dyn FnMut()>,
    /// The copy's process id, or the negative number of an error.
    made: c_int,
}

/// Runs in the parent's memory while the parent is suspended: makes the copy that stays, and ends.
extern "C" fn intermediate(arg: *mut c_void) -> c_int {
    // SAFETY: `arg` is the `Start` that `run` keeps alive while this process has not ended; the caller's
    // thread is suspended, so nobody else uses it.
    let start = unsafe { &mut *arg.cast::<DetachedStart<'_>>() };
    // SAFETY: the process is single-threaded (checked by `run`), so the copy may do anything.
    match unsafe { libc::fork() } {
        0 => {
            // A history that may not grow, or has become a pipe, must not end the copy half done.
            crate::stdio::without_signals();
            if let Some(job) = start.job.take() {
                // A panic must not unwind into the frames of the process this is a copy of.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
            }
            end()
        }
        -1 => start.made = -errno(),
        pid => start.made = pid,
    }
    // Only this process, which shares memory but no threads.
    end()
}

/// Runs `job` in a copy of this process whose parent is init (or the next subreaper), and returns when
/// the copy exists. The copy ends with `job`. It has this process's group, session, cgroup, limits and
/// descriptors; see [`drop_inherited`]. Where [`gets_orphans`], it becomes this process's own child.
///
/// The process between the two shares this one's memory (`CLONE_VM`), so page tables are copied once, and
/// sends no signal when it ends, so that no SIGCHLD stays pending for the program that comes next.
pub fn run(job: &mut dyn FnMut()) -> Result<()> {
    copy(job).map(|_| ())
}

/// Does what [`run`] says, and returns the copy's process id.
fn copy(job: &mut dyn FnMut()) -> Result<c_int> {
    // Also the stack of `job`; pages that are never touched cost nothing.
    const STACK: usize = 512 << 10;
    let refused = |e| Error::io("start", "a helper process", e);
    if !single_threaded() {
        return Err(refused(std::io::Error::other("this process has several threads")));
    }
    let stack = Stack::new(STACK).map_err(refused)?;
    // An error until the contrary is known: the process between may be killed.
    let mut start = DetachedStart { job: Some(job), made: -libc::EAGAIN };
    crate::emergency::set_elsewhere(true);
    // SAFETY: `between` gets the `Start` that it expects, and ends without a change to other memory; this process
    // has one thread (checked above). The copy has a copy of the stack.
    let pid = unsafe { stack.vfork(intermediate, (&raw mut start).cast(), 0) };
    crate::emergency::set_elsewhere(false);
    let pid = pid.map_err(refused)?;
    take_leave_of(pid);
    // SAFETY: a plain read of a field that the other process may have written before it ended.
    match unsafe { std::ptr::read_volatile(&raw const start.made) } {
        pid if pid > 0 => Ok(pid),
        error => Err(refused(std::io::Error::from_raw_os_error(-error))),
    }
}

/// Waits for the intermediate process, which has ended: otherwise the program that comes next would have a dead
/// child. It sends no signal when it ends, hence `__WCLONE`.
fn take_leave_of(pid: c_int) {
    /// A call that fails once is made again; one that is refused will not be allowed later.
    const TRIES: usize = 16;
    let _ = (0..TRIES).any(|_| has_ended(pid, libc::__WCLONE).unwrap_or(false));
}

/// Whether a child has ended; then it has been waited for. Where one call for that fails or is refused there is
/// another.
fn has_ended(pid: c_int, options: c_int) -> std::io::Result<bool> {
    // SAFETY: no memory is passed.
    let done = unsafe { libc::waitpid(pid, null_mut(), options) };
    if done >= 0 {
        return Ok(done == pid);
    }
    // SAFETY: all-zero bytes are a valid place to write to.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: `info` lives across the call.
    let done =
        unsafe { libc::waitid(libc::P_PID, pid.cast_unsigned(), &raw mut info, libc::WEXITED | options) };
    match errno() {
        // SAFETY: filled in by the kernel, or still zero: then it has not ended.
        _ if done == 0 => Ok(unsafe { info.si_pid() } == pid),
        // Nobody's child any more: where SIGCHLD is ignored nobody has to wait.
        libc::ECHILD => Ok(true),
        error => Err(std::io::Error::from_raw_os_error(error)),
    }
}

/// Whether processes that lose their parent become children of this one, also after it has become another
/// program: the first process of a container, and who has asked for it (`PR_SET_CHILD_SUBREAPER`).
pub fn gets_orphans() -> bool {
    let mut asked: c_int = 0;
    // SAFETY: a valid place to write to.
    let told = unsafe { libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut asked, 0, 0, 0) };
    std::process::id() == 1 || (told == 0 && asked != 0)
}

/// As [`run`], where [`gets_orphans`]: returns when the copy has ended. As soon as `patience` says no, it is
/// killed. One that even then waits in the kernel for a dead disk is left: it cannot be helped.
pub fn run_to_end(job: &mut dyn FnMut(), patience: &mut dyn FnMut() -> bool) -> Result<()> {
    /// For so many pauses a killed process is waited for: a fifth of a second.
    const DYING: u32 = 400;
    let before = child_signal_is_pending();
    let pid = copy(job)?;
    // By number it could be somebody else's where SIGCHLD is ignored: then nobody has to wait for it.
    let held = PidFd::open(pid).ok().flatten();
    let mut left = DYING;
    loop {
        let ended = has_ended(pid, libc::WNOHANG);
        if matches!(ended, Ok(true)) {
            break;
        }
        if left < DYING || ended.is_err() || !patience() {
            // One that has ended meanwhile is found so in the next round.
            let _ = held.as_ref().map(PidFd::kill);
            left -= 1;
            if left == 0 {
                break;
            }
        }
        pause();
    }
    // Where SIGCHLD is blocked, the one of the copy would wait for the program that comes next.
    if !before && child_signal_is_pending() {
        take_child_signal();
    }
    Ok(())
}

/// Half a millisecond. By the system call: `std` panics where it is refused.
fn pause() {
    let time = libc::timespec { tv_sec: 0, tv_nsec: 500_000 };
    // SAFETY: `time` lives across the call.
    unsafe { libc::nanosleep(&raw const time, null_mut()) };
}

fn child_signal_is_pending() -> bool {
    let mut set = child::set_of(&[libc::SIGCHLD]);
    // SAFETY: a set that lives across the calls.
    unsafe { libc::sigpending(&raw mut set) == 0 && libc::sigismember(&raw const set, libc::SIGCHLD) == 1 }
}

fn take_child_signal() {
    let (set, at_once) = (child::set_of(&[libc::SIGCHLD]), libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: both live across the call, which does not wait.
    unsafe { libc::sigtimedwait(&raw const set, null_mut(), &raw const at_once) };
}

/// Lets go of what a copy has inherited: every descriptor except `keep` (whoever reads a pipe would
/// otherwise wait for its end until the copy ends), the working directory (it would hold a mount), and
/// the name (`ps`, `/proc/PID/comm`).
pub fn drop_inherited(name: &CStr, keep: &[i32]) {
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

/// Makes this process' table of descriptors large enough for so many, by one with a high number that is closed again; no
/// larger than its limit. To be called while there is one thread: once there are several, each time that the table
/// grows (it has 64 places at first, and doubles) the kernel waits until no processor can be looking at the old one, 12 ms
/// on a machine of 2 CPUs, in which nobody of the process can open a file (`expand_fdtable` in fs/file.c).
pub fn make_room_for_files(files: usize) {
    let last = crate::exec::open_files_limit().saturating_sub(1).min(files as u64);
    let last = i32::try_from(last).unwrap_or(i32::MAX);
    // Where it is refused the table grows when it has to.
    let root = rustix::fs::open(c"/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let _ = root.and_then(|root| rustix::io::fcntl_dupfd_cloexec(root, last));
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

const WHO_PROCESS: c_int = 1;
const BEST_EFFORT: c_int = 2;
const IDLE: c_int = 3;
const CLASS_SHIFT: c_int = 13;

/// Class and level of a thread's I/O, as `ioprio_get(2)` gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoPriority(c_int);

impl IoPriority {
    /// Whatever nobody else wants: for work that nobody waits for.
    pub const NOBODY_WAITS: Self = Self(IDLE << CLASS_SHIFT);
}

/// That of the calling thread; that of nobody's choice where the kernel does not tell.
pub fn io_priority() -> IoPriority {
    // SAFETY: integers only; 0 is the calling thread.
    let told = unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, 0) };
    IoPriority(c_int::try_from(told).unwrap_or(0).max(0))
}

/// Gives the calling thread this one. Where that is refused it keeps its own, which is no harm.
pub fn set_io_priority(IoPriority(priority): IoPriority) {
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, priority) };
}

/// Puts the calling thread's I/O at the lowest best-effort level, unless somebody has chosen another
/// class for it: requests that are waited for go first where the scheduler knows levels (bfq). Never the
/// idle class, in which a page that the program itself waits for would come last.
pub fn lower_io_priority() {
    let IoPriority(now) = io_priority();
    if matches!(now >> CLASS_SHIFT, 0 | BEST_EFFORT) {
        set_io_priority(IoPriority(BEST_EFFORT << CLASS_SHIFT | 7));
    }
}

/// Ends a copy at once, also while threads of it wait in the kernel, without exit handlers.
pub fn end() -> ! {
    // SAFETY: integers only; these end this process. Where a filter refuses the first, the C library's own would end
    // this thread alone, and the others would stay for ever.
    unsafe {
        libc::syscall(libc::SYS_exit_group, 0);
        libc::kill(libc::getpid(), libc::SIGKILL);
        libc::_exit(0)
    }
}

#[cfg(test)]
mod tests;
