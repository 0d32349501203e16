//! The loop that follows the tree: one report of `waitpid` at a time.
//!
//! State per thread is one pending system call at most. Whatever happens between a call's entry and
//! its exit (death, an exec by another thread, a signal) only drops that state.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path as FsPath;
use std::time::Instant;

use cold_model::bench::Ending;
use cold_model::observed::{How, ObservedStart};

use super::calls::{self, Call, CallKind, Flags};
use super::collect::Collector;
use super::image::{self, Target};
use super::ptrace::{self, EVENT_STOP, SyscallInfo};
use super::serve::Follower;
use super::watch::{Act, End};
use super::{filter, place};
use crate::procfs::ProcFs;
use crate::tree;

const SYSCALL_STOP: i32 = libc::SIGTRAP | 0x80;
/// Results by which the kernel says "this call will be restarted": linux/errno.h.
const RESTARTS: std::ops::RangeInclusive<i64> = -516..=-512;

/// One thread of the tree.
#[derive(Debug, Default)]
struct ObservedTask {
    process: i32,
    /// Runs in its parent's memory until it execs: nothing new is mapped there.
    borrows_memory: bool,
    pending: Option<Pending>,
}

/// A system call between its entry and its exit.
#[derive(Debug)]
struct Pending {
    call: &'static Call,
    args: [u64; 6],
    /// For exec: what the path led to before the memory that holds it was replaced.
    target: Option<Target>,
}

/// Follows one tree.
#[derive(Debug)]
pub(super) struct Tracer {
    root: i32,
    tasks: HashMap<i32, ObservedTask>,
    set: Collector,
    has_started: bool,
    ending: Option<Ending>,
    end: Option<End>,
    processes: u64,
    threads: u64,
    killed_by_force: u64,
    /// Children by vfork whose first stop has not come yet.
    vforked_early: HashSet<i32>,
    /// Processes that set up an `io_uring`: what they opened through it is looked for at their end.
    uring: Vec<i32>,
}

impl Tracer {
    /// `root` is seized and has not execed yet.
    pub(super) fn new(root: i32, started: Instant) -> Self {
        let mut tasks = HashMap::new();
        tasks.insert(root, ObservedTask { process: root, borrows_memory: true, pending: None });
        Self {
            root,
            tasks,
            set: Collector::new(started),
            has_started: false,
            ending: None,
            end: None,
            processes: 1,
            threads: 0,
            killed_by_force: 0,
            vforked_early: HashSet::new(),
            uring: Vec::new(),
        }
    }

    /// A child that may not have stopped yet. It enters `tasks` only by its own first stop: it may as
    /// well be gone already, and a dead entry would never leave.
    fn vforked(&mut self, child: i32) {
        match self.tasks.get_mut(&child) {
            Some(task) => task.borrows_memory = true,
            None => drop(self.vforked_early.insert(child)),
        }
    }

    /// A call of the filter is about to be made.
    fn entry(&mut self, tid: i32) -> io::Result<()> {
        let SyscallInfo::Seccomp { arch, nr, args, data } = ptrace::syscall_info(tid)? else {
            return ptrace::resume(tid, 0);
        };
        if data != u32::from(filter::TAG) {
            self.note(format!(
                "{} filters its own system calls for a tracer (SECCOMP_RET_TRACE): they pass unasked while it \
                 is observed",
                name(tid)
            ));
        }
        let Some(call) = calls::find(arch, nr) else { return ptrace::resume(tid, 0) };
        let mut target = None;
        if call.kind == CallKind::Exec {
            target = place::of_call(tid, call, &args).map(|p| Target::new(&p));
            if let Some(task) = self.tasks.get(&tid).filter(|t| !t.borrows_memory) {
                self.set.maps(task.process);
            }
        }
        if let Some(task) = self.tasks.get_mut(&tid) {
            task.pending = Some(Pending { call, args, target });
        }
        ptrace::run_to_exit(tid)
    }

    /// A call of the filter has returned.
    fn exit(&mut self, tid: i32) -> io::Result<()> {
        let pending = self.tasks.get_mut(&tid).and_then(|t| t.pending.take());
        let (Some(Pending { call, args, target }), SyscallInfo::Exit(result)) =
            (pending, ptrace::syscall_info(tid)?)
        else {
            return Ok(());
        };
        if RESTARTS.contains(&result) {
            return Ok(());
        }
        if call.path != calls::Path::None {
            self.set.lookup();
            if result == -i64::from(libc::ENOENT) || result == -i64::from(libc::ENOTDIR) {
                let shown = match target {
                    Some(target) => Some(target.shown),
                    None => place::of_call(tid, call, &args).filter(|p| p.named).map(|p| p.shown),
                };
                self.set.miss(shown.and_then(|p| p.parent().map(FsPath::to_owned)));
            }
        }
        match call.kind {
            CallKind::Open(flags) if result >= 0 => self.opened(tid, result, flags, &args),
            CallKind::Ptrace if result == -i64::from(libc::EPERM) && is_attach(args[0]) => self.note(format!(
                "{} wanted to trace a process (crash reporter, debugger, sandbox?) and could not while it was \
                 observed",
                name(tid)
            )),
            CallKind::IoUring if result >= 0 => {
                self.note(format!(
                    "{} uses io_uring: a file it opens through the ring is seen only if it is mapped or still \
                     open at the end",
                    name(tid)
                ));
                self.uring.extend(self.tasks.get(&tid).map(|t| t.process));
            }
            _ => {}
        }
        Ok(())
    }

    fn opened(&mut self, tid: i32, fd: i64, flags: Flags, args: &[u64; 6]) {
        let bits = match flags {
            Flags::Arg(n) => args.get(n).copied().unwrap_or(0),
            Flags::Create => libc::O_WRONLY as u64,
            Flags::Pointer(n) => {
                let mut how = [0u8; 8];
                match ptrace::read_memory(tid, args.get(n).copied().unwrap_or(0), &mut how) {
                    Ok(8) => u64::from_ne_bytes(how),
                    _ => 0,
                }
            }
        } as i32;
        if bits & libc::O_PATH != 0 {
            return; // a handle on a name: the file itself stays shut
        }
        let how = How { opened: true, written: bits & libc::O_ACCMODE != libc::O_RDONLY, ..How::default() };
        self.set.file_at_link(FsPath::new(&format!("/proc/{tid}/fd/{fd}")), how);
    }

    /// The thread's process runs a new program. An exec by another thread than the first ends all
    /// others, and the calling thread takes over the process' id.
    fn exec(&mut self, pid: i32) -> io::Result<()> {
        let former = ptrace::event_message(pid)? as i32;
        let pending = self.tasks.get_mut(&former).and_then(|t| t.pending.take());
        self.tasks.retain(|tid, task| task.process != pid || *tid == pid);
        self.tasks.insert(pid, ObservedTask { process: pid, ..ObservedTask::default() });
        self.set.lookup();
        if !self.has_started {
            self.has_started = true;
            self.set.descriptors(pid, How { inherited: true, ..How::default() });
        }
        image::executed(&mut self.set, pid, pending.and_then(|p| p.target));
        Ok(())
    }

    /// The thread is about to end; its process' memory is still there.
    fn exit_event(&mut self, tid: i32) {
        let Some(task) = self.tasks.get(&tid).filter(|t| t.process == tid && !t.borrows_memory) else {
            return;
        };
        let process = task.process;
        self.set.maps(process);
        if self.uring.contains(&process) {
            self.set.descriptors(process, How { opened: true, ..How::default() });
        }
    }

    /// The result, once the tree is gone.
    pub(super) fn finish(self) -> ObservedStart {
        let ending = match self.end {
            Some(End::Deadline) => Ending::TimedOut,
            Some(End::Asked | End::Abandoned) | None => self.ending.unwrap_or(Ending::Ended),
        };
        let mut result = self.set.finish(ending, self.killed_by_force);
        result.processes = self.processes;
        result.threads = self.threads;
        result
    }
}

impl Follower for Tracer {
    fn gone(&mut self, tid: i32, how: Ending) {
        self.tasks.remove(&tid);
        // What the command does after it was told to end is not its own ending.
        if tid == self.root && self.end.is_none() {
            self.ending.get_or_insert(how);
        }
    }

    /// Enters a thread that is seen for the first time: its first stop may come before its parent's
    /// report of having made it.
    fn known(&mut self, tid: i32) {
        if self.tasks.contains_key(&tid) {
            return;
        }
        let process = ProcFs::default()
            .process_field(tid, "status", "Tgid")
            .ok()
            .flatten()
            .map_or(tid, |tgid| tgid as i32);
        if process == tid {
            self.processes += 1;
        } else {
            self.threads += 1;
        }
        let borrows_memory = self.vforked_early.remove(&tid);
        self.tasks.insert(tid, ObservedTask { process, borrows_memory, pending: None });
    }

    fn stopped(&mut self, tid: i32, signal: i32, event: i32) -> io::Result<()> {
        match event {
            libc::PTRACE_EVENT_SECCOMP => return self.entry(tid),
            libc::PTRACE_EVENT_EXEC => self.exec(tid)?,
            libc::PTRACE_EVENT_VFORK => self.vforked(ptrace::event_message(tid)? as i32),
            libc::PTRACE_EVENT_EXIT => self.exit_event(tid),
            EVENT_STOP if matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU) => {
                return ptrace::listen(tid);
            }
            0 if signal == SYSCALL_STOP => self.exit(tid)?,
            0 => return ptrace::resume(tid, signal),
            _ => {}
        }
        ptrace::resume(tid, 0)
    }

    fn has_started(&self) -> bool {
        self.has_started
    }

    fn note(&mut self, text: String) {
        self.set.note(text);
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Ask(why) => {
                self.end.get_or_insert(why);
                tree::ask_to_end(|_| false);
            }
            Act::Kill(why) => {
                self.end.get_or_insert(why);
                let n = tree::signal(libc::SIGKILL, |_| false);
                self.killed_by_force = self.killed_by_force.max(n);
            }
        }
    }
}

/// `PTRACE_TRACEME`, `PTRACE_ATTACH` or `PTRACE_SEIZE`.
fn is_attach(request: u64) -> bool {
    [libc::PTRACE_TRACEME, libc::PTRACE_ATTACH, libc::PTRACE_SEIZE].contains(&(request as u32))
}

fn name(tid: i32) -> String {
    ProcFs::default().comm(tid).unwrap_or_else(|_| format!("process {tid}"))
}
