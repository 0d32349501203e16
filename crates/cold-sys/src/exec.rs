//! Becoming another program, so that it cannot tell.

use std::ffi::{CString, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What SIGPIPE did when this process began. Rust's runtime ignores it before `main`, and an ignored
/// signal stays ignored across exec.
static SIGPIPE_AT_START: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);

extern "C" fn remember_sigpipe() {
    // SAFETY: an all-zero sigaction is a valid place to write to; a null new action changes nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGPIPE, std::ptr::null(), &raw mut action) == 0 {
            SIGPIPE_AT_START.store(action.sa_sigaction, Ordering::Relaxed);
        }
    }
}

// SAFETY: the C library calls every entry of .init_array before `main`; the function above uses nothing
// that is not ready by then.
#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER: extern "C" fn() = remember_sigpipe;

/// Replaces this process by `argv`, looked up in `PATH` as a shell does, with this process's environment,
/// descriptors, signal mask and the handling of signals it was started with. Returns only the reason why
/// that failed.
pub fn become_program(argv: &[OsString]) -> std::io::Error {
    let strings: Result<Vec<CString>, _> = argv.iter().map(|a| CString::new(a.as_bytes())).collect();
    let Ok(strings) = strings else { return std::io::Error::from_raw_os_error(libc::EINVAL) };
    let Some(program) = strings.first() else { return std::io::Error::from_raw_os_error(libc::EINVAL) };
    let pointers: Vec<*const c_char> = strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect();
    let at_start = SIGPIPE_AT_START.load(Ordering::Relaxed);
    // SAFETY: `pointers` is a null-terminated array of C strings that live across the call. Handlers of
    // the process that started us do not exist here, so only the two constants can have been inherited.
    unsafe {
        if at_start == libc::SIG_DFL || at_start == libc::SIG_IGN {
            libc::signal(libc::SIGPIPE, at_start);
        }
        libc::execvp(program.as_ptr(), pointers.as_ptr());
    }
    let error = std::io::Error::last_os_error();
    // SAFETY: the constant; what Rust's runtime had set.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    error
}

/// Whether the kernel started this process with more rights than its starter has (set-uid, set-gid, file
/// capabilities): then the environment is the starter's, and must not be followed.
pub fn has_raised_rights() -> bool {
    // SAFETY: reads the auxiliary vector.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// How many descriptors this process may have: the soft limit of open files.
pub fn open_files_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let resource = libc::RLIMIT_NOFILE;
    // SAFETY: `limit` is a valid place to write to.
    let done: c_int = unsafe { libc::getrlimit(resource, &raw mut limit) };
    if done == 0 { limit.rlim_cur } else { 256 }
}
