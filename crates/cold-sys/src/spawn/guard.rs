//! The spawner's end: nothing that it started survives it, and it survives `cold` by no more than that takes.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

use crate::child::{self, Mask};
use crate::tree;

/// Ends the spawner: sent by the kernel when `cold` dies, by `cold` when a start must not be waited for.
pub(super) const END: libc::c_int = libc::SIGUSR1;
/// Time for killed processes to go away.
const PATIENCE: Duration = Duration::from_secs(5);

/// The process that is being waited for; 0: none.
static CURRENT: AtomicI32 = AtomicI32::new(0);
static ENDING: AtomicBool = AtomicBool::new(false);

extern "C" fn end(_: libc::c_int) {
    ENDING.store(true, Ordering::SeqCst);
    kill(CURRENT.load(Ordering::SeqCst));
}

fn kill(pid: i32) {
    if pid > 0 {
        // SAFETY: kill(2) is async-signal-safe; the pid is a child of ours that was not waited for.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
}

/// Prepares this process: requests to end that a terminal sends to everybody are for `cold` to answer,
/// orphans come here, and the death of `cold` ends a start that hangs.
pub(super) fn prepare() {
    // Without SA_RESTART: wait4 returns.
    crate::exec::handle(END, end, 0);
    let not_ours = child::set_of(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT]);
    Mask::change(libc::SIG_SETMASK, &not_ours);
    // SAFETY: integers only.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_PDEATHSIG, END);
    }
}

/// From here on an end kills this process first.
pub(super) fn waits_for(pid: i32) {
    CURRENT.store(pid, Ordering::SeqCst);
    if pid > 0 && is_ending() {
        kill(pid); // the signal came between its creation and the line above
    }
}

/// Nothing more is to be started.
pub(super) fn is_ending() -> bool {
    ENDING.load(Ordering::SeqCst)
}

/// Kills whatever descends from this process, and waits until it is gone.
pub(super) fn end_tree() {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        tree::signal(libc::SIGKILL, |_| false);
        // SAFETY: waits for children of ours, without blocking; no status is wanted.
        while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
        if std::io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD) {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
