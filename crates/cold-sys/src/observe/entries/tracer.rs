//! The loop that follows the tree and serves its breakpoints: one report of `waitpid` at a time.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use cold_model::bench::Ending;
use cold_model::file::Content;
use cold_model::order::{Crash, FirstEntry, StartFacts, TracedFile, TracedStart, Tracing};
use cold_model::{FileId, Nanos, Shown as _};

use super::super::filter::TAG;
use super::super::ptrace::{self, EVENT_STOP, SyscallInfo};
use super::super::serve::Follower;
use super::super::watch::{Act, End};
use super::FunctionTables;
use super::arch;
use super::calls::{self, Asked, Map, Stopped};
use super::code::Code;
use super::cpus::Set;
use super::crash::Fault;
use super::space::{Hit, Mapped, Space};
use super::traps;
use super::written::Copies;
use crate::procfs::ProcFs;
use crate::time::monotonic;
use crate::tree;

const SYSCALL_STOP: i32 = libc::SIGTRAP | 0x80;
/// Remarks that are kept; a tree may go wrong in the same way a thousand times.
const MAX_NOTES: usize = 100;

type Shared = Rc<RefCell<Space>>;

/// One thread of the tree.
#[derive(Debug)]
struct EnteringTask {
    process: i32,
    space: Shared,
    /// It executed a program of its own: what its parent tells of the memory that it was given is out of date.
    has_execed: bool,
    /// The call that it is making, whose result matters.
    call: Option<Stopped>,
}

/// Follows one tree.
pub(in super::super) struct Entries<'t> {
    root: i32,
    tables: &'t mut dyn FunctionTables,
    tracing: Tracing,
    tasks: HashMap<i32, EnteringTask>,
    /// The memory of children whose first stop has not come yet.
    early: HashMap<i32, Shared>,
    /// The processors that the tree may run on, where we have bound it to one.
    unbound: Option<Set>,
    faults: HashMap<i32, Fault>,
    /// With what the file was when it was read: an inode is used again.
    codes: HashMap<FileId, (Content, Option<Rc<Code>>)>,
    files: Vec<TracedFile>,
    entered: Vec<FirstEntry>,
    crashes: Vec<Crash>,
    notes: BTreeSet<String>,
    began: Option<Nanos>,
    ending: Option<Ending>,
    end: Option<End>,
    processes: u64,
    threads: u64,
    reading: Nanos,
    planted: u64,
    planting: Nanos,
    stops: u64,
    handling: Nanos,
    written: Copies,
}

impl<'t> Entries<'t> {
    /// `root` is seized and has not execed yet.
    pub(in super::super) fn new(
        root: i32,
        tables: &'t mut dyn FunctionTables,
        tracing: Tracing,
        unbound: Option<Set>,
    ) -> Self {
        let space = Rc::new(RefCell::new(Space::new()));
        let task = EnteringTask { process: root, space, has_execed: false, call: None };
        Self {
            root,
            tables,
            tracing,
            tasks: HashMap::from([(root, task)]),
            early: HashMap::new(),
            unbound,
            faults: HashMap::new(),
            codes: HashMap::new(),
            files: Vec::new(),
            entered: Vec::new(),
            crashes: Vec::new(),
            notes: BTreeSet::new(),
            began: None,
            ending: None,
            end: None,
            processes: 1,
            threads: 0,
            reading: Nanos(0),
            planted: 0,
            planting: Nanos(0),
            stops: 0,
            handling: Nanos(0),
            written: Copies::default(),
        }
    }

    /// A call of the filter is about to be made.
    fn call(&mut self, tid: i32) -> io::Result<()> {
        let SyscallInfo::Seccomp { arch, nr, args, data } = ptrace::syscall_info(tid)? else {
            return ptrace::resume(tid, 0);
        };
        let ours = (data == u32::from(TAG)).then(|| calls::stopped(arch, nr, &args)).flatten();
        let why = match ours {
            Some(call @ (Stopped::Map(_) | Stopped::Asked(_))) => {
                if let Some(task) = self.tasks.get_mut(&tid) {
                    task.call = Some(call);
                }
                return ptrace::run_to_exit(tid);
            }
            Some(Stopped::Bind) => {
                // That of another process, by `taskset -p`, is bound as well; it is rarely asked for afterwards.
                let named = self.tasks.get(&(args[0] as i32)).or_else(|| self.tasks.get(&tid));
                if let Some(task) = named {
                    task.space.borrow_mut().is_bound = true;
                }
                return ptrace::resume(tid, 0);
            }
            // The memory of its children could not be opened, and they would die of their breakpoints.
            Some(Stopped::Undumpable) if args[1] == 0 && !rustix::process::geteuid().is_root() => {
                "makes itself undumpable (PR_SET_DUMPABLE; as root it would be traced)"
            }
            Some(Stopped::OwnTraps(action)) => match self.own_traps(tid, action) {
                Some(why) => why,
                None => return ptrace::resume(tid, 0),
            },
            Some(Stopped::Undumpable) => return ptrace::resume(tid, 0),
            None => {
                self.note(format!(
                    "{} filters its own system calls for a tracer (SECCOMP_RET_TRACE): they pass unasked while it \
                     is traced",
                    name(tid)
                ));
                return ptrace::resume(tid, 0);
            }
        };
        if let Some(task) = self.tasks.get(&tid) {
            let cleared = task.space.borrow_mut().clear(tid);
            let left = cleared.map_or_else(
                |e| format!("; its breakpoints could not be taken out: {e}"),
                |()| String::new(),
            );
            self.note(format!("{} {why}: what it enters from then on is not traced{left}", name(tid)));
        }
        ptrace::resume(tid, 0)
    }

    /// The process says what a SIGTRAP shall do: why it is left alone from now on, if it is.
    fn own_traps(&self, tid: i32, action: u64) -> Option<&'static str> {
        let mut space = self.tasks.get(&tid)?.space.borrow_mut();
        match traps::action(tid, action)?.handled(self.tracing.own_traps) {
            Ok(has_handler) => space.has_trap_handler = has_handler,
            Err(why) => return Some(why),
        }
        None
    }

    /// A call has returned.
    fn returned(&mut self, tid: i32) -> io::Result<()> {
        let Some(call) = self.tasks.get_mut(&tid).and_then(|t| t.call.take()) else { return Ok(()) };
        let SyscallInfo::Exit(result) = ptrace::syscall_info(tid)? else { return Ok(()) };
        let Ok(result) = u64::try_from(result) else { return Ok(()) };
        match call {
            Stopped::Map(map) => self.mapped(tid, map, result),
            Stopped::Asked(asked) => self.answer(tid, asked, result),
            Stopped::Undumpable | Stopped::OwnTraps(_) | Stopped::Bind => {}
        }
        Ok(())
    }

    /// Answers which processors a thread may run on as if we had not bound it.
    fn answer(&self, tid: i32, asked: Asked, bytes: u64) {
        let thread = if asked.thread == 0 { tid } else { asked.thread };
        let (Some(task), Some(set)) = (self.tasks.get(&thread), &self.unbound) else { return };
        let Some(set) = set.get(..bytes as usize).filter(|_| !task.space.borrow().is_bound) else { return };
        if let Some(task) = self.tasks.get(&tid) {
            // Where it cannot be written, the true answer stands.
            let _ = task.space.borrow_mut().write(tid, asked.to, set);
        }
    }

    /// A mapping has been made.
    fn mapped(&mut self, tid: i32, map: Map, address: u64) {
        let addresses = address..address.saturating_add(map.bytes);
        // A breakpoint in a shared mapping would be written to the file.
        if map.flags & libc::MAP_TYPE as u64 != libc::MAP_PRIVATE as u64 {
            if let Some(task) = self.tasks.get(&tid) {
                task.space.borrow_mut().forget(&addresses);
            }
            return;
        }
        let link = PathBuf::from(format!("/proc/{tid}/fd/{}", map.fd));
        let path = std::fs::read_link(&link).unwrap_or_default();
        if let Some(code) = self.code(&link, &path, None) {
            self.plant(tid, Mapped::new(addresses, map.offset, code), &path);
        }
    }

    /// The breakpoints of a file that can be reached at `reach` and is called `path`; `None` where it has none.
    /// `inode`: it must be this one.
    fn code(&mut self, reach: &Path, path: &Path, inode: Option<u64>) -> Option<Rc<Code>> {
        let (file, meta) = match crate::open::regular(reach, true) {
            Ok(opened) => opened,
            Err(e) => {
                self.note(format!("{} cannot be read, and is not traced: {e}", path.shown()));
                return None;
            }
        };
        let id = FileId::of(&meta);
        if inode.is_some_and(|inode| inode != id.ino) {
            return None;
        }
        let content = Content::of(&meta);
        if let Some((_, known)) = self.codes.get(&id).filter(|(read, _)| *read == content) {
            return known.clone();
        }
        let began = monotonic();
        let table = self.tables.read(file, meta, path);
        self.reading = since(began, self.reading);
        let code = match table {
            Ok(table) => {
                let index = u32::try_from(self.files.len()).ok()?;
                let code = Code::new(index, &table, &self.tracing.exclude);
                if code.places.is_empty() {
                    self.note(format!("no functions to trace in {}", path.shown()));
                }
                self.files.push(table);
                Some(Rc::new(code))
            }
            Err(why) => {
                self.note(format!("not traced: {why}"));
                None
            }
        };
        self.codes.insert(id, (content, code.clone()));
        code
    }

    fn plant(&mut self, tid: i32, mapped: Mapped, path: &Path) {
        let Some(task) = self.tasks.get(&tid) else { return };
        let began = monotonic();
        let planted = task.space.borrow_mut().plant(tid, mapped);
        self.planting = since(began, self.planting);
        match planted {
            Ok(n) => self.planted = self.planted.saturating_add(n),
            Err(e) => self.note(format!(
                "no breakpoints in {} of {}: writing to its memory failed: {e}",
                path.shown(),
                name(tid)
            )),
        }
    }

    /// The thread's process runs a new program. An exec by another thread than the first ends all others, and the
    /// calling thread takes over the process' id.
    fn exec(&mut self, pid: i32) {
        self.began.get_or_insert_with(monotonic);
        let is_bound = self.tasks.get(&pid).is_some_and(|t| t.space.borrow().is_bound);
        self.tasks.retain(|tid, task| task.process != pid || *tid == pid);
        let mut space = Space::new();
        space.is_bound = is_bound;
        let space = Rc::new(RefCell::new(space));
        self.tasks.insert(pid, EnteringTask { process: pid, space, has_execed: true, call: None });
        self.faults.remove(&pid);
        if traps::are_ignored(pid) {
            if let Some(task) = self.tasks.get(&pid) {
                task.space.borrow_mut().leave();
            }
            self.note(format!("{} was started with SIGTRAP ignored, and is not traced", name(pid)));
        } else {
            for (mapped, path) in self.mappings(pid, None) {
                self.plant(pid, mapped, &path);
            }
        }
    }

    /// The private executable mappings of files in a process; only that at an address, where one is given.
    fn mappings(&mut self, tid: i32, only: Option<u64>) -> Vec<(Mapped, PathBuf)> {
        let exe = PathBuf::from(format!("/proc/{tid}/exe"));
        let maps = ProcFs::default().maps(tid).unwrap_or_default();
        let mut found = Vec::new();
        for entry in maps {
            let [_, _, b'x', b'p'] = entry.perms else { continue };
            let (Some(path), true) = (entry.path, entry.inode != 0) else { continue };
            if only.is_some_and(|address| !(entry.start..entry.end).contains(&address)) {
                continue;
            }
            // The program itself can always be reached, also when it is deleted; others by their names.
            let named = || {
                let inside = path.strip_prefix("/").unwrap_or(&path);
                PathBuf::from(format!("/proc/{tid}/root")).join(inside)
            };
            let is_program = std::fs::read_link(&exe).is_ok_and(|exe| exe == path);
            let reach = if is_program { exe.clone() } else { named() };
            if let Some(code) = self.code(&reach, &path, Some(entry.inode)) {
                found.push((Mapped::new(entry.start..entry.end, entry.offset, code), path));
            }
        }
        found
    }

    /// A thread has made another, or a process; `copied`: of its memory.
    fn made(&mut self, parent: i32, copied: bool) -> io::Result<()> {
        let child = ptrace::event_message(parent)? as i32;
        let Some(space) = self.tasks.get(&parent).map(|t| &t.space) else { return Ok(()) };
        let space = if copied { Rc::new(RefCell::new(space.borrow().forked())) } else { Rc::clone(space) };
        match self.tasks.get_mut(&child) {
            Some(task) if task.has_execed => {}
            Some(task) => task.space = space,
            None => drop(self.early.insert(child, space)),
        }
        Ok(())
    }

    /// Serves a breakpoint; whether it was one of ours.
    fn trap(&mut self, tid: i32) -> io::Result<bool> {
        let now = monotonic();
        if !arch::is_breakpoint(tid)? {
            return Ok(false);
        }
        let Some(task) = self.tasks.get(&tid) else { return Ok(false) };
        let (process, space) = (task.process, Rc::clone(&task.space));
        let address = arch::pc(tid)?.wrapping_sub(arch::ADVANCE);
        let mut hit = space.borrow_mut().hit(tid, address);
        if matches!(hit, Ok(Hit::Unknown)) {
            for (mapped, _) in self.mappings(tid, Some(address)) {
                // What cannot be looked at stays unknown.
                let _ = space.borrow_mut().adopt(tid, mapped);
            }
            hit = space.borrow_mut().hit(tid, address);
        }
        match hit {
            Ok(Hit::Entered { file, function, first }) => {
                if first {
                    let at = now.saturating_sub(self.began.unwrap_or(now));
                    let (pid, tid) = (process.cast_unsigned(), tid.cast_unsigned());
                    self.entered.push(FirstEntry { at, pid, tid, file, function });
                }
            }
            Ok(Hit::Gone) => {}
            Ok(Hit::Unknown) => return Ok(false),
            Err(e) => {
                self.note(format!("a breakpoint could not be taken out of {}: {e}", name(tid)));
                return Ok(false);
            }
        }
        let lost = space.borrow().has_trap_handler && !traps::are_caught(tid);
        if lost {
            space.borrow_mut().has_trap_handler = false;
            self.note(format!(
                "{} blocked SIGTRAP when it entered a function, and the kernel took its handler of it away",
                name(tid)
            ));
        }
        arch::set_pc(tid, address)?;
        self.stops = self.stops.saturating_add(1);
        self.handling = since(now, self.handling);
        Ok(true)
    }

    /// A thread is about to end: with the first or the last one of its process its memory is looked at once more.
    fn ends(&mut self, tid: i32) {
        let Some(process) = self.tasks.get(&tid).map(|t| t.process) else { return };
        let is_last = self.tasks.values().filter(|t| t.process == process).count() == 1;
        if (tid == process || is_last)
            && let Err(e) = self.written.look(tid, &self.files)
        {
            self.note(format!("which data {} wrote is not known: {e}", name(tid)));
        }
    }

    /// A signal is about to be delivered: it may be the last thing that its process sees.
    fn fault(&mut self, tid: i32, signal: i32) -> io::Result<()> {
        let Some(task) = self.tasks.get(&tid).filter(|_| signal != 0) else { return Ok(()) };
        let (process, space) = (task.process, Rc::clone(&task.space));
        if let Some(fault) = Fault::look(tid, signal, &mut space.borrow_mut(), &self.files)? {
            self.faults.insert(process, fault);
        }
        Ok(())
    }

    /// The result, once the tree is gone.
    pub(in super::super) fn finish(self) -> TracedStart {
        let ending = match self.end {
            Some(End::Deadline) => Ending::TimedOut,
            Some(End::Asked | End::Abandoned) | None => self.ending.unwrap_or(Ending::Ended),
        };
        let duration = self.began.map_or(Nanos(0), |began| monotonic().saturating_sub(began));
        let facts = StartFacts {
            ending,
            processes: self.processes,
            threads: self.threads,
            duration_ns: duration.0,
            reading_ns: self.reading.0,
            planted: self.planted,
            planting_ns: self.planting.0,
            stops: self.stops,
            handling_ns: self.handling.0,
            crashes: self.crashes,
            notes: self.notes.into_iter().collect(),
            written: Some(self.written.told()),
        };
        TracedStart { files: self.files, entries: self.entered, facts }
    }
}

impl Follower for Entries<'_> {
    fn gone(&mut self, tid: i32, how: Ending) {
        self.tasks.remove(&tid);
        self.early.remove(&tid);
        if let (Some(fault), Ending::Signal(signal)) = (self.faults.remove(&tid), how)
            && fault.signal == signal
            && self.crashes.len() < MAX_NOTES
        {
            self.crashes.push(fault.crash(tid));
        }
        // What the command does after it was told to end is not its own ending.
        if tid == self.root && self.end.is_none() {
            self.ending.get_or_insert(how);
        }
    }

    /// Enters a thread that is seen for the first time: its first stop may come before its parent's report of
    /// having made it.
    fn known(&mut self, tid: i32) {
        if self.tasks.contains_key(&tid) {
            return;
        }
        let group = ProcFs::default().process_field(tid, "status", "Tgid").ok().flatten();
        let process = group.map_or(tid, |group| group as i32);
        let leaders = || self.tasks.get(&process).map(|t| Rc::clone(&t.space));
        let early = self.early.remove(&tid);
        let space = if process == tid {
            self.processes += 1;
            early
        } else {
            self.threads += 1;
            leaders().or(early)
        };
        // Where nobody has told yet, the first breakpoint will have the memory looked at.
        let space = space.unwrap_or_else(|| Rc::new(RefCell::new(Space::new())));
        self.tasks.insert(tid, EnteringTask { process, space, has_execed: false, call: None });
    }

    fn stopped(&mut self, tid: i32, signal: i32, event: i32) -> io::Result<()> {
        match event {
            libc::PTRACE_EVENT_SECCOMP => return self.call(tid),
            libc::PTRACE_EVENT_EXEC => self.exec(tid),
            libc::PTRACE_EVENT_EXIT => self.ends(tid),
            libc::PTRACE_EVENT_FORK => self.made(tid, true)?,
            libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => self.made(tid, false)?,
            EVENT_STOP if matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU) => {
                return ptrace::listen(tid);
            }
            0 if signal == SYSCALL_STOP => self.returned(tid)?,
            0 => {
                let signal = if signal == libc::SIGTRAP && self.trap(tid)? { 0 } else { signal };
                self.fault(tid, signal)?;
                return ptrace::resume(tid, signal);
            }
            _ => {}
        }
        ptrace::resume(tid, 0)
    }

    fn has_started(&self) -> bool {
        self.began.is_some()
    }

    fn note(&mut self, text: String) {
        if self.notes.len() < MAX_NOTES {
            self.notes.insert(text);
        }
    }

    fn act(&mut self, act: Act) {
        let (why, signal) = match act {
            Act::Ask(why) => (why, None),
            Act::Kill(why) => (why, Some(libc::SIGKILL)),
        };
        self.end.get_or_insert(why);
        match signal {
            None => tree::ask_to_end(|_| false),
            Some(signal) => drop(tree::signal(signal, |_| false)),
        }
    }
}

/// `sum` and the time since `began`.
fn since(began: Nanos, sum: Nanos) -> Nanos {
    Nanos(sum.0.saturating_add(monotonic().saturating_sub(began).0))
}

fn name(tid: i32) -> String {
    ProcFs::default().comm(tid).unwrap_or_else(|_| format!("process {tid}"))
}
