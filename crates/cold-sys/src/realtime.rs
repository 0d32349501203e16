//! Threads that do not wait for a processor.

use std::io;

/// Gives the calling thread, and those that it starts from now on, the lowest real-time priority (`SCHED_FIFO`, 1): whenever
/// it has something to do it runs before all usual threads, until it waits. Not for long work.
///
/// # Errors
/// Where the process has not the right (`CAP_SYS_NICE`, `RLIMIT_RTPRIO`), or its control group no share of that time.
pub fn goes_first() -> io::Result<()> {
    // The kernel's `struct sched_param` has this one field; musl's own has more, and its function refuses.
    let priority: libc::c_int = 1;
    // SAFETY: `priority` lives until the call returns; 0 is the calling thread.
    match unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const priority) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_thread_of_root_goes_first_or_is_refused() {
        // A thread of its own, which takes the priority with it.
        std::thread::spawn(|| {
            let went = super::goes_first();
            // SAFETY: an integer; 0 is the calling thread.
            let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
            let wanted = if went.is_ok() { libc::SCHED_FIFO } else { libc::SCHED_OTHER };
            assert_eq!(policy, libc::c_long::from(wanted), "{went:?}");
        })
        .join()
        .expect("it ended");
    }
}
