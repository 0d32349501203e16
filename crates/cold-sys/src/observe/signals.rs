//! Signals of the helper process: a tick that interrupts `waitpid`, and Ctrl-C left to the command.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::child::{self, Mask};
use crate::exec;

static TICKED: AtomicBool = AtomicBool::new(false);

extern "C" fn tick(_: libc::c_int) {
    TICKED.store(true, Ordering::Relaxed);
}
extern "C" fn nothing(_: libc::c_int) {}

/// Installs the handlers and returns the mask from before. Handlers, unlike ignored signals, are not
/// inherited over exec, so the command finds every signal as the caller left it.
pub(super) fn install() -> Mask {
    // Above all no SA_RESTART: `waitpid` has to return.
    exec::handle(libc::SIGALRM, tick, 0);
    // A terminal sends these to the whole group: the command decides what they mean, its observer
    // stays to tell the result. SIGTERM ends the helper, and the tree with it.
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP] {
        if !is_ignored(signal) {
            exec::handle(signal, nothing, 0);
        }
    }
    Mask::change(libc::SIG_UNBLOCK, &child::set_of(&[libc::SIGALRM]))
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
