//! Becoming another program, so that it cannot tell.
//!
//! What is used here allocates nothing and takes no lock, because [`crate::emergency`] uses it in signal
//! handlers; [`become_program`] is for everybody else.

use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::search::DEFAULT_PATH;

/// By their numbers the signals that this process was started to ignore, of those that it has handled since, and of
/// SIGPIPE, which Rust's runtime ignores before `main`. An ignored signal stays ignored across exec, a handled one
/// is at its default again.
static IGNORED_AT_START: AtomicU64 = AtomicU64::new(0);
/// The signals that were blocked when this process began; [`UNKNOWN`] where the kernel did not say.
static MASK_AT_START: AtomicU64 = AtomicU64::new(UNKNOWN);
/// SIGKILL and SIGSTOP are never blocked, so no mask has all bits.
const UNKNOWN: u64 = u64::MAX;
/// Runs what the kernel does not know as a program, as `execvp` has it.
const SHELL: &CStr = c"/bin/sh";

unsafe extern "C" {
    /// The C library's; also `std::env` keeps the environment here.
    static environ: *const *const c_char;
}

extern "C" fn remember() {
    action(libc::SIGPIPE, None);
    let mut mask = 0_u64;
    if change_mask(std::ptr::null(), &raw mut mask) {
        MASK_AT_START.store(mask, Ordering::Relaxed);
    }
}

/// Has a signal handled if there is a handler, and notes whether it was ignored. A failure leaves it as it is.
fn action(signal: c_int, new: Option<&libc::sigaction>) -> bool {
    let new = new.map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: an all-zero sigaction is a valid place to write to; `new` is valid, or null, which changes nothing.
    let (done, old) = unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        (libc::sigaction(signal, new, &raw mut old) == 0, old.sa_sigaction)
    };
    // Of SIGPIPE only the first look counts.
    let counts = signal != libc::SIGPIPE || new.is_null();
    if done && counts && old == libc::SIG_IGN {
        IGNORED_AT_START.fetch_or(1 << signal, Ordering::Relaxed);
    }
    done
}

// SAFETY: the C library calls every entry of .init_array before `main`; the function above uses nothing
// that is not ready by then.
#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER: extern "C" fn() = remember;

/// `rt_sigprocmask` itself: the C libraries keep two signals of their own out of their masks.
fn change_mask(new: *const u64, old: *mut u64) -> bool {
    // SAFETY: null, or 8 bytes that live across the call: the kernel's mask.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, new, old, size_of::<u64>()) == 0 }
}

/// Has a signal handled until the next program begins. A failure leaves it as it is.
pub(crate) fn handle(signal: c_int, handler: extern "C" fn(c_int), flags: c_int) -> bool {
    // SAFETY: all-zero bytes are an action.
    let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
    new.sa_sigaction = handler as libc::sighandler_t;
    new.sa_flags = flags;
    action(signal, Some(&new))
}

/// Makes signals and descriptors what the next program would have found without this one.
fn as_at_start() {
    let ignored = IGNORED_AT_START.load(Ordering::Relaxed);
    for signal in (1..64).filter(|signal| ignored & 1 << signal != 0) {
        // SAFETY: the constant.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    if ignored & 1 << libc::SIGPIPE == 0 {
        // SAFETY: the constant; it may be Rust's runtime that ignores it.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    }
    let mask = MASK_AT_START.load(Ordering::Relaxed);
    if mask != UNKNOWN {
        change_mask(&raw const mask, std::ptr::null_mut());
    }
    crate::stdio::close_again();
}

/// The words that this process was started with, where the kernel put them.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    at: *mut *const c_char,
    count: usize,
}

impl Words {
    /// From the arguments of a `main` in C.
    ///
    /// # Safety
    /// They are these arguments, and nobody else writes to them.
    pub unsafe fn of_main(count: c_int, at: *mut *const c_char) -> Self {
        Self { at, count: usize::try_from(count).unwrap_or(0) }
    }

    /// Word number `index`; 0 is this program's name.
    pub fn get(self, index: usize) -> Option<&'static OsStr> {
        // SAFETY: `of_main` was promised as many C strings, which stay where they are while the process lives.
        (index < self.count)
            .then(|| unsafe { OsStr::from_bytes(CStr::from_ptr(*self.at.add(index)).to_bytes()) })
    }

    /// The words behind this program's name.
    pub fn arguments(self) -> impl Iterator<Item = &'static OsStr> {
        (1..self.count).map_while(move |index| self.get(index))
    }

    /// The command that begins with word number `index`, which is not the first.
    pub fn command(self, index: usize) -> Option<Command> {
        // SAFETY: inside the array, which ends with a null behind its `count` words.
        (index > 0 && index < self.count).then(|| Command { slots: unsafe { self.at.add(index - 1) } })
    }
}

/// A program and its arguments as the kernel takes them.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    /// A place that may be overwritten, the words, a null.
    pub(crate) slots: *mut *const c_char,
}

impl Command {
    /// In memory that is never given back; `None` for no words at all, and for words that have a zero byte.
    pub fn of(argv: &[OsString]) -> Option<Self> {
        let words: Result<Vec<CString>, _> = argv.iter().map(|a| CString::new(a.as_bytes())).collect();
        let words = words.ok().filter(|w| !w.is_empty())?;
        let ends = || std::iter::once(std::ptr::null());
        let words = words.into_iter().map(|word| word.into_raw().cast_const());
        let slots: Vec<*const c_char> = ends().chain(words).chain(ends()).collect();
        Some(Self { slots: slots.leak().as_mut_ptr() })
    }

    /// Becomes the command, looked up in PATH as `execvp` does, with all that this process was started with.
    /// Returns only the kernel's reason why it cannot.
    pub(crate) fn replace(self) -> c_int {
        as_at_start();
        // SAFETY: the first word is a C string that stays where it is.
        let file = unsafe { *self.slots.add(1) };
        // SAFETY: as above.
        let name = unsafe { CStr::from_ptr(file) }.to_bytes();
        if name.is_empty() {
            return libc::ENOENT;
        }
        if name.contains(&b'/') {
            return self.execute(file);
        }
        let mut buffer = [0_u8; libc::PATH_MAX as usize];
        let (mut reason, mut denied) = (libc::ENOENT, false);
        for dir in variable(b"PATH=").unwrap_or(DEFAULT_PATH.as_bytes()).split(|b| *b == b':') {
            // An empty entry is the working directory.
            let parts = [dir, if dir.is_empty() { b"" } else { b"/" }, name, b"\0"];
            let Some(file) = join(&mut buffer, &parts) else { continue };
            match self.execute(file) {
                libc::EACCES => denied = true,
                e @ (libc::ENOENT | libc::ESTALE | libc::ENOTDIR | libc::ENODEV | libc::ETIMEDOUT) => {
                    reason = e;
                }
                e => return e,
            }
        }
        if denied { libc::EACCES } else { reason }
    }

    fn execute(self, file: *const c_char) -> c_int {
        // SAFETY: `file` and all words are C strings that live across the call; both arrays end with a null.
        unsafe { libc::execve(file, self.slots.add(1), environ) };
        let reason = crate::error::errno();
        if reason != libc::ENOEXEC {
            return reason;
        }
        // SAFETY: as above; the place in front of the words may be overwritten, and the first is put back.
        unsafe {
            let first = *self.slots.add(1);
            *self.slots = SHELL.as_ptr();
            *self.slots.add(1) = file;
            libc::execve(SHELL.as_ptr(), self.slots, environ);
            *self.slots.add(1) = first;
        }
        crate::error::errno()
    }
}

/// The parts one after the other; `None` where they do not fit.
fn join(buffer: &mut [u8], parts: &[&[u8]]) -> Option<*const c_char> {
    let mut at = 0;
    for part in parts {
        buffer.get_mut(at..at + part.len())?.copy_from_slice(part);
        at += part.len();
    }
    Some(buffer.as_ptr().cast())
}

/// What stands behind `name` (with its `=`) in the environment.
fn variable(name: &[u8]) -> Option<&'static [u8]> {
    // SAFETY: null, or an array of C strings that ends with a null; nobody changes it meanwhile, because who
    // becomes another program has one thread.
    unsafe {
        let mut at = environ;
        while !at.is_null() && !(*at).is_null() {
            if let Some(value) = CStr::from_ptr(*at).to_bytes().strip_prefix(name) {
                return Some(value);
            }
            at = at.add(1);
        }
    }
    None
}

/// Replaces this process by `argv`, looked up in `PATH` as `execvp` does, with this process's environment,
/// and the descriptors, signal mask and handling of signals that it was started with. Returns only the reason
/// why that failed.
pub fn become_program(argv: &[OsString]) -> std::io::Error {
    let reason = Command::of(argv).map_or(libc::EINVAL, Command::replace);
    std::io::Error::from_raw_os_error(reason)
}

/// Sets a variable of this process's environment, or with `None` removes it; false where that is not possible:
/// the process has several threads.
pub fn set_variable(name: &str, value: Option<&str>) -> bool {
    if !crate::detached::single_threaded() {
        return false;
    }
    // SAFETY: nobody else exists who could read the environment meanwhile.
    unsafe {
        match value {
            Some(value) => std::env::set_var(name, value),
            None => std::env::remove_var(name),
        }
    }
    true
}

/// Whether the kernel started this process with more rights than its starter has (set-uid, set-gid, file
/// capabilities): then the environment is the starter's, and must not be followed.
pub fn has_raised_rights() -> bool {
    // SAFETY: reads the auxiliary vector.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// A soft limit of this process, which `get` asks for; `None` where the kernel does not say.
fn soft_limit(get: impl FnOnce(*mut libc::rlimit) -> c_int) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    (get(&raw mut limit) == 0).then_some(limit.rlim_cur)
}

/// How many descriptors this process may have.
pub fn open_files_limit() -> u64 {
    // SAFETY: a valid place to write to.
    soft_limit(|limit| unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, limit) }).unwrap_or(256)
}

/// How long a file may become that this process writes to.
pub fn file_size_limit() -> u64 {
    // SAFETY: a valid place to write to.
    soft_limit(|limit| unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, limit) }).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
