//! The way out when everything else has failed: a command that is executed from a signal handler, from a
//! panic, and where there is no memory.
//!
//! A launcher whose plan is cut short while it is mapped, which may take no more memory, or which has a bug,
//! must not be the reason that a program does not start. So [`arm`] is told beforehand what to become, and
//! nothing on the way there allocates, takes a lock or unwinds. Copies of the process
//! ([`crate::detached`]) have nobody to become: they end.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::exec::{Command, handle};

/// Where the command lies ([`Command::slots`]); null while nothing is armed.
static COMMAND: AtomicPtr<*const c_char> = AtomicPtr::new(null_mut());
/// This is a copy, or the process between it and the one it is a copy of. Those share their memory, but only
/// one of them runs at a time.
static ELSEWHERE: AtomicBool = AtomicBool::new(false);
/// An emergency has been told of.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Signals by which a process dies of itself. SIGABRT is what Rust and the C library end with, SIGILL and
/// SIGTRAP what the compiler puts where nobody comes, SIGSYS a filter's.
const FATAL: [c_int; 7] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGABRT, libc::SIGILL, libc::SIGFPE, libc::SIGSYS, libc::SIGTRAP];

/// A handler must not need the stack that has overflowed. The kernel's frame alone may have 11 KiB (AMX).
const STACK: usize = 64 << 10;

#[repr(C, align(64))]
struct EmergencyStack(UnsafeCell<[u8; STACK]>);

// SAFETY: only the kernel writes to it, for the one thread that it was given to.
unsafe impl Sync for EmergencyStack {}

static HANDLERS: EmergencyStack = EmergencyStack(UnsafeCell::new([0; STACK]));

/// What went wrong.
#[derive(Clone, Copy)]
enum Why {
    Signal(c_int),
    Memory,
    Panic,
}

/// From now on whatever ends this process by itself makes it become the command instead.
///
/// For a process with one thread that is going to become the command anyway. What is refused here (a filter, a
/// limit) leaves that way out closed, and is no reason to say anything.
pub fn arm(command: Command) {
    COMMAND.store(command.slots, Ordering::Release);
    // Before its message, which would go to whatever lies in the place of standard error.
    std::panic::set_hook(Box::new(|_| exec_command(Why::Panic)));
    let stack = libc::stack_t { ss_sp: HANDLERS.0.get().cast::<c_void>(), ss_flags: 0, ss_size: STACK };
    // SAFETY: memory of this size that stays where it is and that nobody else uses.
    unsafe { libc::sigaltstack(&raw const stack, null_mut()) };
    for signal in FATAL {
        handle(signal, on_signal, libc::SA_ONSTACK);
    }
}

/// Says whether this is, or shares its memory with, a process for which the command is none of its business.
pub(crate) fn set_elsewhere(yes: bool) {
    ELSEWHERE.store(yes, Ordering::Release);
}

extern "C" fn on_signal(signal: c_int) {
    exec_command(Why::Signal(signal));
}

/// Becomes the command. Async-signal-safe.
fn exec_command(why: Why) -> ! {
    let slots = COMMAND.load(Ordering::Acquire);
    if ELSEWHERE.load(Ordering::Acquire) || slots.is_null() {
        crate::detached::end();
    }
    if !TOLD.swap(true, Ordering::AcqRel) {
        let mut line = Line::new();
        line.put(b"cold-launch: no plan followed: ");
        match why {
            Why::Signal(libc::SIGBUS) => {
                line.put(b"a file that was being read was cut short, or its disk fails");
            }
            Why::Signal(number) => {
                line.put(b"the launcher itself failed with signal ");
                line.number(number);
            }
            Why::Memory => line.put(b"no memory is left"),
            Why::Panic => line.put(b"the launcher itself failed"),
        }
        line.say();
    }
    let reason = Command { slots }.replace();
    let mut line = Line::new();
    line.put(b"cold-launch: cannot execute the program: error ");
    line.number(reason);
    line.say();
    // As shells, env and nohup have it.
    // SAFETY: ends this process.
    unsafe { libc::_exit(if reason == libc::ENOENT { 127 } else { 126 }) }
}

/// A line of text in place.
struct Line {
    bytes: [u8; 128],
    len: usize,
}

impl Line {
    const fn new() -> Self {
        Self { bytes: [0; 128], len: 0 }
    }

    fn put(&mut self, text: &[u8]) {
        for byte in text {
            if let Some(place) = self.bytes.get_mut(self.len) {
                *place = *byte;
                self.len += 1;
            }
        }
    }

    /// A number below 1000, as those of signals and errors are.
    fn number(&mut self, number: c_int) {
        let digits = [number / 100 % 10, number / 10 % 10, number % 10].map(|d| b'0' + d as u8);
        let zeros = digits.iter().take(2).take_while(|d| **d == b'0').count();
        self.put(digits.get(zeros..).unwrap_or_default());
    }

    fn say(mut self) {
        self.put(b"\n");
        crate::stdio::say(self.bytes.get(..self.len).unwrap_or_default());
    }
}

/// The system's allocator; where it has nothing left, the emergency. For a program's `#[global_allocator]`:
/// otherwise Rust writes a message first, to whatever lies in the place of standard error, even if that waits.
#[derive(Debug)]
pub struct Allocator;

impl Allocator {
    fn checked(at: *mut u8) -> *mut u8 {
        if at.is_null() && !COMMAND.load(Ordering::Acquire).is_null() {
            exec_command(Why::Memory);
        }
        at
    }
}

// SAFETY: passes everything on to the system's allocator, and its answers back.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises.
        Self::checked(unsafe { System.alloc(layout) })
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises.
        Self::checked(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promises.
        Self::checked(unsafe { System.realloc(at, layout, size) })
    }
}

#[cfg(test)]
mod tests {
    use super::Line;

    fn text(line: &Line) -> &[u8] {
        &line.bytes[..line.len]
    }

    #[test]
    fn numbers_have_no_zeros_in_front() {
        for (number, shown) in
            [(0, "0"), (7, "7"), (10, "10"), (100, "100"), (105, "105"), (133, "133"), (999, "999")]
        {
            let mut line = Line::new();
            line.number(number);
            assert_eq!(text(&line), shown.as_bytes());
        }
    }

    #[test]
    fn what_does_not_fit_is_cut_off() {
        let mut line = Line::new();
        line.put(&[b'a'; 100]);
        line.put(&[b'b'; 100]);
        line.number(123);
        assert_eq!(text(&line), [[b'a'; 100].as_slice(), &[b'b'; 28]].concat());
    }
}
