//! Perf events that describe a start: page faults by address, and the side-band of mappings, names,
//! forks and exits. See `perf_event_open`(2).
//!
//! [`OpenPerfEvent::open`] makes one event on one CPU; [`Ring::map`] maps the kernel's buffer of one of them, and
//! the other events of that CPU write into the same buffer ([`OpenPerfEvent::write_into`]), so that one buffer
//! per CPU is enough. What comes out ([`Ring::drain`]) are the kernel's records as they are; nothing is
//! interpreted here.
//!
//! Own code instead of a crate: two system calls and one buffer are all that is needed, and the buffer's
//! protocol is the part that has to be read with care.

mod counter;
mod ring;

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

pub use counter::{Tlb, TlbCounter};
pub use ring::Ring;

/// `PERF_SAMPLE_*`: what a sample holds, in the order in which the kernel writes it.
pub mod sample {
    /// Instruction at which it happened: the program's, or the kernel's in kernel mode.
    pub const IP: u64 = 1;
    /// Process and thread.
    pub const TID: u64 = 1 << 1;
    /// Time by the chosen clock.
    pub const TIME: u64 = 1 << 2;
    /// Address: of a fault, the byte that was touched.
    pub const ADDR: u64 = 1 << 3;
    /// Call chain: how many addresses, then these, innermost first.
    pub const CALLCHAIN: u64 = 1 << 5;
    /// Number of the CPU, then 4 bytes reserved.
    pub const CPU: u64 = 1 << 7;
    /// User registers, those of [`UNWIND_REGISTERS`](super::UNWIND_REGISTERS), behind their ABI (0: there are none).
    pub const REGS_USER: u64 = 1 << 12;
    /// Copy of the user stack.
    pub const STACK_USER: u64 = 1 << 13;
    /// The event's id: first in samples, last in all other records.
    pub const IDENTIFIER: u64 = 1 << 16;
    /// Part of every event made here.
    pub const ALWAYS: u64 = IDENTIFIER | IP | TID | TIME | ADDR | CPU;
}

/// The user registers that unwinding begins with, as `sample_regs_user` numbers them; the kernel writes
/// them in this order. x86-64: bp, sp, ip. arm64: x29, lr, sp, pc.
#[cfg(target_arch = "x86_64")]
pub const UNWIND_REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
/// See the other definition.
#[cfg(target_arch = "aarch64")]
pub const UNWIND_REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Nothing: only the side-band records.
    SideBand,
    /// Page faults that the kernel booked as minor.
    MinorFaults,
    /// Page faults that the kernel booked as major.
    MajorFaults,
}

impl EventKind {
    /// `PERF_COUNT_SW_*`.
    fn config(self) -> u64 {
        match self {
            Self::SideBand => 9,
            Self::MinorFaults => 5,
            Self::MajorFaults => 6,
        }
    }
}

/// Whose activity an event follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whom {
    /// Everybody's on this CPU (`CAP_PERFMON`, or `kernel.perf_event_paranoid` at most 0).
    Machine,
    /// One thread's and those of the threads and processes that it creates from now on.
    Thread(i32),
}

/// How a fault's stack is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserStacks {
    /// No stack, only the instruction pointer.
    None,
    /// By the kernel, along frame pointers.
    FramePointers,
    /// Registers and that many bytes of the stack, to be unwound later. A multiple of 8, below 64 KiB.
    Copy(u32),
}

/// One event on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerfSpec {
    /// What is sampled, if anything.
    pub kind: EventKind,
    /// Whom it follows.
    pub whom: Whom,
    /// Leave out what happens in kernel mode; all that `perf_event_paranoid` 2 allows an ordinary user.
    pub user_only: bool,
    /// User stacks; not for the side-band.
    pub stack: UserStacks,
    /// A sleeping reader is woken when so many bytes are in the buffer.
    pub wake_at: u32,
}

impl PerfSpec {
    /// The `PERF_SAMPLE_*` bits of its records.
    pub fn sample_type(&self) -> u64 {
        sample::ALWAYS
            | match (self.kind, self.stack) {
                (EventKind::SideBand, _) | (_, UserStacks::None) => 0,
                (_, UserStacks::FramePointers) => sample::CALLCHAIN,
                (_, UserStacks::Copy(_)) => sample::REGS_USER | sample::STACK_USER,
            }
    }
}

/// `struct perf_event_attr` up to `PERF_ATTR_SIZE_VER5` (Linux 4.8); the kernel takes a shorter one.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_watermark: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

impl Attr {
    /// Opens the event, in no group, of process or thread `pid` (0: this thread, -1: all) on `cpu` (-1: any).
    ///
    /// # Errors
    /// The kernel's, as it is.
    pub(crate) fn open(&self, pid: libc::pid_t, cpu: libc::c_int) -> io::Result<OwnedFd> {
        let group: libc::c_int = -1;
        // SAFETY: self lives until the call returns and states its own size.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                std::ptr::from_ref(self),
                pid,
                cpu,
                group,
                PERF_FLAG_FD_CLOEXEC,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just handed out this descriptor and nobody else knows it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
    }

    /// A counter of the kernel's own events, without samples, of the first published size (`PERF_ATTR_SIZE_VER0`): every
    /// kernel takes it, and reads so many bytes of it.
    pub(crate) fn counter(config: u64, flags: u64) -> Self {
        Self { kind: PERF_TYPE_SOFTWARE, size: 64, config, flags, ..Self::default() }
    }

    /// A counter of what a cache of the processor does, of the same size.
    fn cache_counter(config: u64, flags: u64) -> Self {
        Self { kind: PERF_TYPE_HW_CACHE, ..Self::counter(config, flags) }
    }
}

const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_TYPE_HW_CACHE: u32 = 3;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
/// `_IO('$', 5)` and `_IOR('$', 7, __u64 *)`.
const PERF_EVENT_IOC_SET_OUTPUT: libc::c_ulong = 0x2405;
const PERF_EVENT_IOC_ID: libc::c_ulong = 0x8008_2407;

mod flag {
    pub(super) const INHERIT: u64 = 1 << 1;
    pub(super) const EXCLUDE_KERNEL: u64 = 1 << 5;
    pub(super) const EXCLUDE_HV: u64 = 1 << 6;
    pub(super) const MMAP: u64 = 1 << 8;
    pub(super) const COMM: u64 = 1 << 9;
    pub(super) const TASK: u64 = 1 << 13;
    pub(super) const WATERMARK: u64 = 1 << 14;
    pub(super) const MMAP_DATA: u64 = 1 << 17;
    pub(super) const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub(super) const EXCLUDE_CALLCHAIN_KERNEL: u64 = 1 << 21;
    pub(super) const MMAP2: u64 = 1 << 23;
    pub(super) const COMM_EXEC: u64 = 1 << 24;
    pub(super) const USE_CLOCKID: u64 = 1 << 25;
}

/// An open event. It counts from its opening until it is dropped.
#[derive(Debug)]
pub struct OpenPerfEvent {
    fd: OwnedFd,
    id: u64,
    cpu: u32,
}

impl OpenPerfEvent {
    /// Opens the event on CPU `cpu`. The kernel's refusal comes back as it is: `EACCES` or `EPERM` by
    /// `kernel.perf_event_paranoid` or a seccomp filter, `ENOSYS` without perf events, `ENODEV` for an
    /// offline CPU, `ESRCH` for a thread that is gone.
    pub fn open(spec: &PerfSpec, cpu: u32) -> io::Result<Self> {
        let attr = attr(spec);
        let (Ok(number), pid) = (libc::c_int::try_from(cpu), spec.whom) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let pid = match pid {
            Whom::Machine => -1,
            Whom::Thread(tid) => tid,
        };
        let fd = attr.open(pid, number)?;
        let mut id = 0_u64;
        // SAFETY: the request writes one u64, which `id` is.
        if unsafe { libc::ioctl(fd.as_raw_fd(), PERF_EVENT_IOC_ID as _, &raw mut id) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { fd, id, cpu })
    }

    /// The number by which its records name it; that of inherited events is their parent's.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The CPU it was opened on: it sees nothing that happens on others.
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Writes its records into the buffer of another event of the same CPU.
    pub fn write_into(&self, ring: &Ring) -> io::Result<()> {
        // SAFETY: both descriptors are open; the request takes the other one's number by value.
        let rc = unsafe { libc::ioctl(self.fd.as_raw_fd(), PERF_EVENT_IOC_SET_OUTPUT as _, ring.raw_fd()) };
        if rc != 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

fn attr(spec: &PerfSpec) -> Attr {
    use flag::{
        COMM, COMM_EXEC, EXCLUDE_CALLCHAIN_KERNEL, EXCLUDE_HV, EXCLUDE_KERNEL, INHERIT, MMAP, MMAP_DATA,
        MMAP2, SAMPLE_ID_ALL, TASK, USE_CLOCKID, WATERMARK,
    };
    let side_band = spec.kind == EventKind::SideBand;
    let mut flags = WATERMARK | SAMPLE_ID_ALL | USE_CLOCKID | EXCLUDE_HV | EXCLUDE_CALLCHAIN_KERNEL;
    for (bits, wanted) in [
        (INHERIT, matches!(spec.whom, Whom::Thread(_))),
        (EXCLUDE_KERNEL, spec.user_only),
        (MMAP | MMAP_DATA | MMAP2 | COMM | COMM_EXEC | TASK, side_band),
    ] {
        if wanted {
            flags |= bits;
        }
    }
    let mut attr = Attr {
        kind: PERF_TYPE_SOFTWARE,
        size: std::mem::size_of::<Attr>() as u32,
        config: spec.kind.config(),
        sample_period: u64::from(!side_band),
        sample_type: spec.sample_type(),
        flags,
        wakeup_watermark: spec.wake_at,
        clockid: libc::CLOCK_MONOTONIC,
        ..Attr::default()
    };
    if let (UserStacks::Copy(bytes), false) = (spec.stack, side_band) {
        attr.sample_regs_user = UNWIND_REGISTERS;
        attr.sample_stack_user = bytes;
    }
    attr
}

/// Waits until one of the buffers has reached its wake-up mark, a thread that was followed has ended, or
/// `limit` has passed. A signal ends the wait early.
pub fn wait<'a>(rings: impl IntoIterator<Item = &'a Ring>, limit: Duration) {
    let mut fds: Vec<libc::pollfd> = rings
        .into_iter()
        .map(|r| libc::pollfd { fd: r.raw_fd(), events: libc::POLLIN, revents: 0 })
        .collect();
    let limit = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: the array is alive and its length is given. Nothing is read from it: the caller drains
    // every buffer anyway, and an error or a signal means no more than an early end.
    unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, limit) };
}

#[cfg(test)]
mod tests;
