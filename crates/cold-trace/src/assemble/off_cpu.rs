//! When tasks were off the CPU, and who woke them.

use cold_model::Nanos;
use cold_model::recording::{OffCpu, OffCpuReason, StallCause};

use crate::raw::{self, Header, Off, Stall};

/// A wait that is no stall, or no CPU.
pub(super) fn off(head: &Header, off: &Off) -> OffCpu {
    let reason = if off.state & raw::OFF_RUNNABLE != 0 {
        OffCpuReason::Runnable
    } else {
        match libc::c_long::from(off.syscall) {
            libc::SYS_nanosleep | libc::SYS_clock_nanosleep => OffCpuReason::Sleep,
            0.. => OffCpuReason::Event,
            _ => OffCpuReason::Other,
        }
    };
    row(head, off.began, (off.state, off.woken), reason, off.syscall, off.waker)
}

/// The interval of a stall; `cause` as it was found, `None`: a parent in vfork.
pub(super) fn stall(head: &Header, stall: &Stall, cause: Option<StallCause>) -> OffCpu {
    let reason = match cause {
        None => OffCpuReason::Event,
        Some(StallCause::Lock) => OffCpuReason::Lock,
        Some(StallCause::Other) => OffCpuReason::Other,
        Some(_) => OffCpuReason::Storage,
    };
    row(head, stall.began, (stall.state, stall.woken), reason, stall.context.syscall, stall.waker)
}

fn row(
    head: &Header,
    began: u64,
    (state, woken): (u32, u64),
    reason: OffCpuReason,
    syscall: i32,
    waker: u32,
) -> OffCpu {
    let began = began.min(head.at);
    OffCpu {
        began: Nanos(began),
        // The two CPUs' clocks may differ by some nanoseconds.
        woken: (state & raw::STALL_WOKEN != 0).then_some(Nanos(woken.clamp(began, head.at))),
        ended: Nanos(head.at),
        pid: head.pid,
        tid: head.tid,
        reason,
        system_call: u32::try_from(syscall).ok(),
        waker: Some(waker).filter(|tid| *tid != 0),
    }
}
