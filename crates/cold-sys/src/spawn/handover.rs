//! A start under ptrace that tells when the dynamic loader hands over to the program: the kernel names the
//! program's entry (`AT_ENTRY`), a breakpoint there stops it once.
//!
//! The process stops three times: after the exec, at the entry, before it exits. Time runs only between
//! stops; each span holds one switch to us and back, which a program without a loader tells (its first
//! instruction is its entry).

use std::io;

use cold_model::Nanos;
use serde::{Deserialize, Serialize};

use crate::observe::ptrace::request;
use crate::time::monotonic;

/// What one traced start told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handover {
    /// Index of the program.
    pub program: usize,
    /// The kernel started a loader for it.
    pub has_loader: bool,
    /// From the end of the exec to the program's entry.
    pub loading: Nanos,
    /// From there until its first thread exits.
    pub running: Nanos,
}

const AT_BASE: u64 = 7;
const AT_ENTRY: u64 = 9;

/// Follows a child that has asked to be traced, from its creation to its end. None: it ended before its
/// entry was reached. A child that cannot be followed is ended: stopped, it would stay for as long as we do.
pub(super) fn follow(pid: libc::pid_t, program: usize) -> io::Result<Option<Handover>> {
    follow_to_end(pid, program).inspect_err(|_| end(pid))
}

fn follow_to_end(pid: libc::pid_t, program: usize) -> io::Result<Option<Handover>> {
    let Stop::Signal(_) = wait(pid)? else { return Ok(None) };
    let (entry, has_loader, text) = prepare(pid)?;
    let mut from = monotonic();
    let (mut loading, mut running) = (None, None);
    let mut deliver = 0;
    loop {
        request(libc::PTRACE_CONT, pid, 0, deliver)?;
        let stop = wait(pid)?;
        let span = monotonic().saturating_sub(from);
        deliver = 0;
        match stop {
            Stop::Ended => break,
            Stop::Exit => {
                running.get_or_insert(span);
            }
            Stop::Signal(libc::SIGTRAP) if loading.is_none() && arch::is_at(pid, entry)? => {
                request(libc::PTRACE_POKETEXT, pid, entry, text)?;
                loading = Some(span);
                from = monotonic();
            }
            // Another exec is the program's own work. Stops of job control would hold up the measurement,
            // and nobody is there to end them.
            Stop::Exec | Stop::Signal(libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU) => {}
            Stop::Signal(signal) => deliver = signal as usize,
        }
    }
    let told = loading.zip(running);
    Ok(told.map(|(loading, running)| Handover { program, has_loader, loading, running }))
}

/// The entry with a breakpoint set, whether there is a loader, and what stood at the entry.
fn prepare(pid: libc::pid_t) -> io::Result<(usize, bool, usize)> {
    let options = libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACEEXIT | libc::PTRACE_O_TRACEEXEC;
    request(libc::PTRACE_SETOPTIONS, pid, 0, options as usize)?;
    let vector = std::fs::read(format!("/proc/{pid}/auxv"))?;
    let words: Vec<u64> =
        vector.chunks_exact(8).map(|w| u64::from_ne_bytes(w.try_into().unwrap_or_default())).collect();
    let of = |key| words.chunks_exact(2).find(|pair| pair[0] == key).map(|pair| pair[1]);
    let none = || io::Error::new(io::ErrorKind::NotFound, "the kernel names no entry of this program");
    let entry = of(AT_ENTRY).and_then(|e| usize::try_from(e).ok()).filter(|e| *e != 0).ok_or_else(none)?;
    // A word that begins there must not reach into a page that is not mapped: 8 bytes never do before code.
    let text = peek(pid, entry)?;
    request(libc::PTRACE_POKETEXT, pid, entry, arch::with_breakpoint(text))?;
    Ok((entry, of(AT_BASE).is_some_and(|b| b != 0), text))
}

fn peek(pid: libc::pid_t, addr: usize) -> io::Result<usize> {
    // SAFETY: errno is this thread's own; reading a word of the child's touches no memory of ours.
    let (word, errno) = unsafe {
        *libc::__errno_location() = 0;
        let word = libc::ptrace(libc::PTRACE_PEEKTEXT, pid, addr, 0_usize);
        (word, *libc::__errno_location())
    };
    if errno == 0 { Ok(word as usize) } else { Err(io::Error::from_raw_os_error(errno)) }
}

/// Kills a child and waits for it. Also a killed one stops before it exits, and would stay there.
fn end(pid: libc::pid_t) {
    // SAFETY: a child of ours that was not waited for.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    while !matches!(wait(pid), Ok(Stop::Ended) | Err(_)) {
        // One that is gone already is told by the next wait.
        let _ = request(libc::PTRACE_CONT, pid, 0, 0);
    }
}

enum Stop {
    Signal(i32),
    Exec,
    Exit,
    Ended,
}

fn wait(pid: libc::pid_t) -> io::Result<Stop> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is a live local variable; the pid is our own child's.
        let done = unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) };
        if done == pid {
            break;
        }
        let e = io::Error::last_os_error();
        if e.kind() != io::ErrorKind::Interrupted {
            return Err(e);
        }
    }
    Ok(match status >> 16 {
        _ if !libc::WIFSTOPPED(status) => Stop::Ended,
        libc::PTRACE_EVENT_EXIT => Stop::Exit,
        libc::PTRACE_EVENT_EXEC => Stop::Exec,
        _ => Stop::Signal(libc::WSTOPSIG(status)),
    })
}

/// Has the next exec stop. Called in the child.
pub(super) fn ask() -> bool {
    // SAFETY: a request without arguments, async-signal-safe.
    unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0_usize, 0_usize) != -1 }
}

/// Whether programs can be traced on this processor.
pub(super) const fn is_possible() -> bool {
    arch::POSSIBLE
}

#[cfg(target_arch = "x86_64")]
mod arch {
    use std::io;

    pub(super) const POSSIBLE: bool = true;
    /// `int3`.
    const BREAKPOINT: usize = 0xcc;

    pub(super) fn with_breakpoint(text: usize) -> usize {
        (text & !0xff) | BREAKPOINT
    }

    /// Whether the breakpoint stopped it; then it goes on at the instruction that stood there.
    pub(super) fn is_at(pid: libc::pid_t, entry: usize) -> io::Result<bool> {
        // SAFETY: the structure holds plain integers, for which zero is valid.
        let mut regs: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        let at = std::ptr::from_mut(&mut regs) as usize;
        super::request(libc::PTRACE_GETREGS, pid, 0, at)?;
        if regs.rip != entry as u64 + 1 {
            return Ok(false);
        }
        regs.rip = entry as u64;
        super::request(libc::PTRACE_SETREGS, pid, 0, std::ptr::from_mut(&mut regs) as usize)?;
        Ok(true)
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod arch {
    pub(super) const POSSIBLE: bool = false;

    pub(super) fn with_breakpoint(text: usize) -> usize {
        text
    }

    #[allow(clippy::unnecessary_wraps)] // the other one can fail
    pub(super) fn is_at(_: libc::pid_t, _: usize) -> std::io::Result<bool> {
        Ok(false)
    }
}
