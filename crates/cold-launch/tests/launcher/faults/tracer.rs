//! Runs a launcher call by call, and makes calls of it fail.
#![allow(unsafe_code)] // ptrace(2)

use std::collections::HashMap;
use std::io::Read;
use std::process::{Command, Stdio};

use crate::subject::{before, check};

/// Whose calls are counted: those of the launcher and of the process between it and its helper, or the helper's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Launcher,
    Helper,
}

/// A system call that is about to be made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) nth: usize,
    pub(super) number: i64,
}

/// How the program ended, and what it said.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

fn ptrace(request: impl Into<i64>, pid: i32, data: usize) -> i64 {
    // SAFETY: the requests below take integers, or the address of something that lives across the call.
    unsafe { libc::syscall(libc::SYS_ptrace, request.into(), pid, 0, data) }
}

fn registers(pid: i32) -> libc::user_regs_struct {
    // SAFETY: all-zero bytes are registers.
    let mut registers = unsafe { std::mem::zeroed::<libc::user_regs_struct>() };
    ptrace(libc::PTRACE_GETREGS, pid, (&raw mut registers) as usize);
    registers
}

fn set_registers(pid: i32, registers: &libc::user_regs_struct) {
    ptrace(libc::PTRACE_SETREGS, pid, std::ptr::from_ref(registers) as usize);
}

/// What is known of a process that is traced.
#[derive(Clone, Copy)]
struct Traced {
    counted: bool,
    inside: bool,
    /// What the call it is in answers instead.
    answer: Option<i32>,
}

/// Starts the command and asks `fails` before each call on one side, until the launcher is its program.
pub(super) fn traced(command: &mut Command, side: Side, fails: &mut dyn FnMut(Call) -> Option<i32>) -> Ran {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    before(command, || check(ptrace(libc::PTRACE_TRACEME, 0, 0)));
    #[allow(clippy::zombie_processes)] // `follow` waits for it, and for all that it makes
    let mut child = command.spawn().expect("the launcher runs");
    let main = child.id().cast_signed();
    let status = follow(main, side, fails);
    let mut ran = Ran { code: None, signal: None, stdout: Vec::new(), stderr: Vec::new() };
    if libc::WIFEXITED(status) {
        ran.code = Some(libc::WEXITSTATUS(status));
    } else {
        ran.signal = Some(libc::WTERMSIG(status));
    }
    child.stdout.take().expect("piped").read_to_end(&mut ran.stdout).expect("read");
    child.stderr.take().expect("piped").read_to_end(&mut ran.stderr).expect("read");
    ran
}

/// Only children and tracees of this thread: other tests wait for theirs.
const OWN: i32 = libc::__WALL | libc::__WNOTHREAD;

/// Until nobody is traced any more. Returns how the first process ended.
fn follow(main: i32, side: Side, fails: &mut dyn FnMut(Call) -> Option<i32>) -> i32 {
    let mut known: HashMap<i32, Traced> = HashMap::new();
    let (mut nth, mut result, mut became) = (0, 0, false);
    loop {
        let mut status = 0;
        // SAFETY: a valid place to write to.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, OWN) };
        if pid < 0 {
            return result;
        }
        if !libc::WIFSTOPPED(status) {
            if pid == main {
                result = status;
            }
            continue;
        }
        let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
        let order = known.len();
        let is_new = !known.contains_key(&pid);
        let of = known.entry(pid).or_insert_with(|| {
            // The launcher, the process between, the helper and its threads, in this order.
            let counted = if order < 2 { side == Side::Launcher } else { side == Side::Helper };
            Traced { counted, inside: false, answer: None }
        });
        let mut deliver = 0;
        if is_new {
            if pid == main {
                let options = libc::PTRACE_O_TRACESYSGOOD
                    | libc::PTRACE_O_TRACEEXEC
                    | libc::PTRACE_O_TRACEFORK
                    | libc::PTRACE_O_TRACEVFORK
                    | libc::PTRACE_O_TRACECLONE
                    | libc::PTRACE_O_EXITKILL;
                ptrace(libc::PTRACE_SETOPTIONS, pid, options as usize);
            } else if order > 1 && side == Side::Launcher {
                ptrace(libc::PTRACE_DETACH, pid, 0);
                continue;
            }
        } else if signal == libc::SIGTRAP | 0x80 {
            of.inside = !of.inside;
            if of.inside {
                of.answer = None;
                let mut now = registers(pid);
                let call = Call { nth, number: now.orig_rax.cast_signed() };
                if of.counted && !became {
                    nth += 1;
                    of.answer = fails(call);
                }
                if of.answer.is_some() {
                    now.orig_rax = u64::MAX;
                    set_registers(pid, &now);
                }
            } else if let Some(errno) = of.answer {
                let mut now = registers(pid);
                now.rax = i64::from(-errno).cast_unsigned();
                set_registers(pid, &now);
            }
        } else if event == libc::PTRACE_EVENT_EXEC && pid == main {
            became = side == Side::Launcher;
            ptrace(libc::PTRACE_DETACH, pid, 0);
            continue;
        } else if event == 0 {
            deliver = signal as usize;
        }
        ptrace(libc::PTRACE_SYSCALL, pid, deliver);
    }
}
