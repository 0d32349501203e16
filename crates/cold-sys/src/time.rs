//! The one clock, and the CPU time of a process.

use cold_model::Nanos;

/// Now on `CLOCK_MONOTONIC`.
pub fn monotonic() -> Nanos {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is a valid place to write to; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut ts) };
    Nanos(ts.tv_sec.cast_unsigned() * 1_000_000_000 + ts.tv_nsec.cast_unsigned())
}

/// CPU time that the process `pid` has used, all its threads, user and system; `None` when there is no
/// such process. Nobody needs rights for it.
pub fn process_cpu(pid: i32) -> Option<Nanos> {
    let mut clock = 0;
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both are valid places to write to.
    let done = unsafe {
        libc::clock_getcpuclockid(pid, &raw mut clock) == 0 && libc::clock_gettime(clock, &raw mut ts) == 0
    };
    done.then(|| Nanos(ts.tv_sec.cast_unsigned() * 1_000_000_000 + ts.tv_nsec.cast_unsigned()))
}

/// CPU time that the calling thread has used, user and system.
pub fn thread_cpu() -> Nanos {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Nanos(t.tv_sec.cast_unsigned() * 1_000_000_000 + t.tv_nsec.cast_unsigned())
}

/// Time between two ticks of the kernel's timer (1/HZ): what the coarse clock advances by.
pub fn tick() -> Nanos {
    let t = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
    Nanos(t.tv_sec.cast_unsigned() * 1_000_000_000 + t.tv_nsec.cast_unsigned())
}
