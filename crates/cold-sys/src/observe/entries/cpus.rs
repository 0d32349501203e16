//! Tracer and program on one processor.
//!
//! Every breakpoint is two switches between the two. Across processors each wakes one that sleeps, which takes 20 to
//! 30 µs on a virtual machine; on one processor a stop takes 14 µs in all. So both are bound to one, and the program
//! is told otherwise: `sched_getaffinity` answers as if nobody had bound it, until it binds itself.

use std::io;

/// A set of processors as the kernel writes it.
pub(in super::super) type Set = [u8; std::mem::size_of::<libc::cpu_set_t>()];

/// Binds this process, and what it starts, to the processor that it runs on. Returns the set from before; `None`
/// where there is nothing to tell otherwise, because it had one only or cannot be bound.
pub(in super::super) fn bind() -> Option<Set> {
    let before = own().ok()?;
    // SAFETY: without arguments.
    let cpu = usize::try_from(unsafe { libc::sched_getcpu() }).ok()?;
    let mut one = [0; std::mem::size_of::<Set>()];
    *one.get_mut(cpu / 8)? |= 1 << (cpu % 8);
    // SAFETY: reads as many bytes as are said, from a live array.
    let bound = unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, one.len(), one.as_ptr()) };
    (bound == 0 && one != before).then_some(before)
}

fn own() -> io::Result<Set> {
    let mut set = [0; std::mem::size_of::<Set>()];
    // SAFETY: writes at most as many bytes as are said, to a live array.
    let n = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, set.len(), set.as_mut_ptr()) };
    if n < 0 { Err(io::Error::last_os_error()) } else { Ok(set) }
}
