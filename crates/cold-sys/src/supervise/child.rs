//! Starting the command with `clone(CLONE_VM | CLONE_VFORK)`, as `posix_spawn` does, with the two things
//! that `posix_spawn` cannot do: the parent-death signal and the exact time of the clone.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use cold_model::Nanos;

use crate::time::monotonic;

/// Everything the child needs, made before the clone: between clone and exec nothing may allocate.
pub(super) struct Image {
    path: CString,
    _argv: Vec<CString>,
    argv: Vec<*const c_char>,
    _env: Vec<CString>,
    env: Vec<*const c_char>,
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
}

impl Image {
    /// `path` with the arguments `argv` (argv\[0\] first) and this process's environment.
    pub(super) fn new(path: &Path, argv: &[std::ffi::OsString]) -> io::Result<Self> {
        let c = |b: &[u8]| CString::new(b).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL));
        let args: Vec<CString> = argv.iter().map(|a| c(a.as_bytes())).collect::<io::Result<_>>()?;
        let vars: Vec<CString> = std::env::vars_os()
            .map(|(k, v)| c(&[k.as_bytes(), b"=", v.as_bytes()].concat()))
            .collect::<io::Result<_>>()?;
        Ok(Self {
            path: c(path.as_os_str().as_bytes())?,
            argv: pointers(&args),
            _argv: args,
            env: pointers(&vars),
            _env: vars,
        })
    }
}

struct Shared<'a> {
    image: &'a Image,
    mask: libc::sigset_t,
    parent: libc::pid_t,
    errno: c_int,
}

/// Runs in the child, in the parent's memory, while the parent is suspended.
extern "C" fn run(arg: *mut c_void) -> c_int {
    // SAFETY: `arg` is the `Shared` that `spawn` keeps alive while this runs; only
    // async-signal-safe calls follow, and nothing is allocated or unwound. The signal table is our own
    // copy (no CLONE_SIGHAND).
    unsafe {
        let shared = &mut *arg.cast::<Shared<'_>>();
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != shared.parent {
            libc::_exit(127); // the supervisor died between clone and prctl
        }
        // Rust ignores SIGPIPE; an ignored signal would stay ignored across exec.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const shared.mask, std::ptr::null_mut());
        libc::execve(shared.image.path.as_ptr(), shared.image.argv.as_ptr(), shared.image.env.as_ptr());
        shared.errno = *libc::__errno_location();
        libc::_exit(127)
    }
}

/// Starts the command; `mask` is the signal mask it gets. Returns its pid and the time of the clone.
/// A failed exec is reported as the error; the child is then already waited for.
pub(super) fn spawn(image: &Image, mask: libc::sigset_t) -> io::Result<(libc::pid_t, Nanos)> {
    const STACK: usize = 64 << 10;
    let mut stack = vec![0_u8; STACK];
    // SAFETY: getpid has no preconditions.
    let parent = unsafe { libc::getpid() };
    let mut shared = Shared { image, mask, parent, errno: 0 };
    let at = monotonic();
    // SAFETY: the stack outlives the child's use of it, because CLONE_VFORK suspends us until it has
    // exec'd or exited; the top is 16-byte aligned as the ABI wants.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(STACK - 16);
        let top = top.sub(top as usize % 16);
        libc::clone(
            run,
            top.cast(),
            libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
            (&raw mut shared).cast(),
        )
    };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: plain volatile read of a field the child may have written before it ended.
    let errno = unsafe { std::ptr::read_volatile(&raw const shared.errno) };
    if errno != 0 {
        // SAFETY: waits for the child just created.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
        return Err(io::Error::from_raw_os_error(errno));
    }
    Ok((pid, at))
}

/// Blocks every signal in this (single) thread and returns the mask there was before.
pub(super) fn block_all_signals() -> libc::sigset_t {
    // SAFETY: both sets are valid; sigfillset and sigprocmask only write to them.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut old: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, &raw mut old);
        old
    }
}

/// The path as the kernel's error text should name it.
pub(super) fn display(image: &Image) -> String {
    let path: &CStr = &image.path;
    path.to_string_lossy().into_owned()
}
