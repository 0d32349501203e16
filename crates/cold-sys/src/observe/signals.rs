//! Signals of the helper process: a tick that interrupts `waitpid`, and Ctrl-C left to the command.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

static TICKED: AtomicBool = AtomicBool::new(false);

extern "C" fn tick(_: libc::c_int) {
    TICKED.store(true, Ordering::Relaxed);
}
extern "C" fn nothing(_: libc::c_int) {}

/// The signal mask the command is to inherit.
pub(super) struct SavedMask(libc::sigset_t);

impl SavedMask {
    /// Makes it the current one, with `SIGPIPE` at its default again (Rust's runtime ignores it).
    /// Async-signal-safe.
    pub(super) fn restore(&self) {
        // SAFETY: signal and sigprocmask with valid arguments; the set was filled by the kernel.
        unsafe {
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut());
        }
    }
}

/// Installs the handlers and returns the mask from before. Handlers, unlike ignored signals, are not
/// inherited over exec, so the command finds every signal as the caller left it.
pub(super) fn install() -> SavedMask {
    handle(libc::SIGALRM, tick);
    // A terminal sends these to the whole group: the command decides what they mean, its observer
    // stays to tell the result. SIGTERM ends the helper, and the tree with it.
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP] {
        if !is_ignored(signal) {
            handle(signal, nothing);
        }
    }
    let mut old = MaybeUninit::<libc::sigset_t>::zeroed();
    let mut alarm = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: both sets are live local variables, zero is a valid set, and `old` is filled by the call.
    unsafe {
        libc::sigemptyset(alarm.as_mut_ptr());
        libc::sigaddset(alarm.as_mut_ptr(), libc::SIGALRM);
        libc::sigprocmask(libc::SIG_UNBLOCK, alarm.as_ptr(), old.as_mut_ptr());
        SavedMask(old.assume_init())
    }
}

fn handle(signal: i32, handler: extern "C" fn(libc::c_int)) {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a zeroed sigaction is valid: no flags (above all no SA_RESTART: `waitpid` has to return)
    // and an empty mask; the handlers above only store an atomic.
    unsafe {
        (*action.as_mut_ptr()).sa_sigaction = handler as *const () as libc::sighandler_t;
        libc::sigaction(signal, action.as_ptr(), ptr::null_mut());
    }
}

fn is_ignored(signal: i32) -> bool {
    let mut old = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: only asks; `old` is a live local variable and valid when zeroed.
    unsafe {
        libc::sigaction(signal, ptr::null(), old.as_mut_ptr());
        old.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Ticks every `interval` from now on. Not inherited by children (setitimer(2)).
pub(super) fn start_ticking(interval: Duration) {
    let value = libc::timeval { tv_sec: 0, tv_usec: i64::from(interval.subsec_micros()) };
    let timer = libc::itimerval { it_interval: value, it_value: value };
    // SAFETY: `timer` is a live local variable; the old value is not asked for.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, ptr::null_mut()) };
}

/// Whether a tick has passed since the last question.
pub(super) fn ticked() -> bool {
    TICKED.load(Ordering::Relaxed) && TICKED.swap(false, Ordering::Relaxed)
}
