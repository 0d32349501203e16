//! The loop that follows the program and does what is to be done at one call.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::MetadataExt;

use super::calls;
use super::key::about;
use super::ptrace::{self, Call};
use super::registers;
use super::{Fault, Injection, Key, Target};

/// What the loop saw.
pub(super) struct Told {
    pub(super) status: i32,
    pub(super) calls: Vec<Key>,
    pub(super) hit: bool,
}

/// A thread that is followed.
#[derive(Debug, Clone)]
struct FaultedTask {
    process: i32,
    who: String,
    /// What the call in which it is will answer.
    answer: Option<i64>,
}

struct Tracer<'a> {
    main: i32,
    /// Device and inode of the program.
    program: (u64, u64),
    target: &'a Target,
    fault: Option<&'a Injection>,
    tasks: BTreeMap<i32, FaultedTask>,
    /// Reported before the call that made them.
    early: BTreeSet<i32>,
    /// The program has begun.
    begun: bool,
    equal: usize,
    told: Told,
    ended: bool,
}

const STOPS: [i32; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// Follows a shell that stops itself and then executes the program.
pub(super) fn follow(main: i32, target: &Target, fault: Option<&Injection>) -> io::Result<Told> {
    let meta = std::fs::metadata(&target.program)?;
    let refused = match ptrace::wait(main)? {
        Some((_, status)) if libc::WIFSTOPPED(status) => ptrace::seize(main).err(),
        _ => return Err(io::Error::other("the shell did not stop itself")),
    };
    ptrace::kill(main, if refused.is_some() { libc::SIGKILL } else { libc::SIGCONT });
    if let Some(e) = refused {
        ptrace::wait(main)?;
        return Err(e);
    }
    let told = Told { status: 0, calls: Vec::new(), hit: false };
    let mut tracer = Tracer {
        main,
        program: (meta.dev(), meta.ino()),
        target,
        fault,
        tasks: BTreeMap::from([(main, FaultedTask { process: main, who: "main".into(), answer: None })]),
        early: BTreeSet::new(),
        begun: false,
        equal: 0,
        told,
        ended: false,
    };
    while let Some((tid, status)) = ptrace::wait(-1)? {
        tracer.report(tid, status)?;
    }
    if tracer.ended { Ok(tracer.told) } else { Err(io::Error::other("the program's end was not seen")) }
}

/// A thread may be killed at any moment; its end is reported like every other.
fn unless_gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        other => other,
    }
}

impl Tracer<'_> {
    fn report(&mut self, tid: i32, status: i32) -> io::Result<()> {
        if !libc::WIFSTOPPED(status) {
            self.tasks.remove(&tid);
            if tid == self.main {
                self.told.status = status;
                self.ended = true;
            }
            return Ok(());
        }
        unless_gone(self.stopped(tid, libc::WSTOPSIG(status), status >> 16))
    }

    fn stopped(&mut self, tid: i32, signal: i32, event: i32) -> io::Result<()> {
        if !self.tasks.contains_key(&tid) {
            self.early.insert(tid);
            return Ok(());
        }
        match event {
            0 if signal == libc::SIGTRAP | 0x80 => self.at_call(tid),
            0 => self.go(tid, signal),
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                // Before the parent goes on: it may trace the child itself.
                let child = ptrace::event_message(tid)?;
                unless_gone(self.born(tid, child))?;
                self.go(tid, 0)
            }
            libc::PTRACE_EVENT_EXEC => self.executed(tid),
            libc::PTRACE_EVENT_STOP if STOPS.contains(&signal) => ptrace::listen(tid),
            _ => self.go(tid, 0),
        }
    }

    /// Lets it run to where it is of interest next.
    fn go(&self, tid: i32, signal: i32) -> io::Result<()> {
        let answers = self.tasks.get(&tid).is_some_and(|t| t.answer.is_some());
        if answers || (self.begun && !self.told.hit) {
            ptrace::resume_to_call(tid, signal)
        } else {
            ptrace::resume(tid, signal)
        }
    }

    fn born(&mut self, parent: i32, child: i32) -> io::Result<()> {
        if !self.early.remove(&child) {
            match ptrace::wait(child)? {
                Some((_, status)) if libc::WIFSTOPPED(status) => {}
                _ => return Ok(()),
            }
        }
        let Some(parent) = self.tasks.get(&parent).cloned() else { return ptrace::detach(child) };
        let is_thread = std::fs::read_to_string(format!("/proc/{child}/status"))?
            .lines()
            .filter_map(|line| line.strip_prefix("Tgid:"))
            .all(|tgid| tgid.trim().parse() != Ok(child));
        let task = if is_thread {
            FaultedTask { answer: None, ..parent }
        } else if parent.who == "main" {
            FaultedTask { process: child, who: "main's child".into(), answer: None }
        } else {
            return ptrace::detach(child);
        };
        self.tasks.insert(child, task);
        self.go(child, 0)
    }

    fn executed(&mut self, pid: i32) -> io::Result<()> {
        // The other threads are gone, and the one that executes has taken over the process' number.
        self.tasks.retain(|tid, task| task.process != pid || *tid == pid);
        let meta = std::fs::metadata(format!("/proc/{pid}/exe"));
        if !meta.is_ok_and(|m| (m.dev(), m.ino()) == self.program) {
            // Another program. The main one is still our child: its end is waited for as before.
            if pid == self.main && !self.begun {
                return self.go(pid, 0);
            }
            self.tasks.remove(&pid);
            return ptrace::detach(pid);
        }
        let line = std::fs::read(format!("/proc/{pid}/cmdline"))?;
        let first = line.split(|b| *b == 0).nth(1).filter(|a| a.starts_with(b"__"));
        let who = match first {
            Some(argument) => String::from_utf8_lossy(argument).into_owned(),
            None if pid == self.main => "main".to_owned(),
            None => "another".to_owned(),
        };
        self.begun = true;
        self.tasks.insert(pid, FaultedTask { process: pid, who, answer: None });
        self.go(pid, 0)
    }

    fn at_call(&mut self, tid: i32) -> io::Result<()> {
        match ptrace::call(tid)? {
            Call::Entry { nr, args } if !self.told.hit => self.entered(tid, nr, &args)?,
            Call::Exit => {
                if let Some(answer) = self.tasks.get_mut(&tid).and_then(|t| t.answer.take()) {
                    registers::answer(tid, answer)?;
                }
            }
            Call::Entry { .. } | Call::Other => {}
        }
        self.go(tid, 0)
    }

    fn entered(&mut self, tid: i32, nr: i64, args: &[u64; 6]) -> io::Result<()> {
        let Some(call) = calls::find(nr, args) else { return Ok(()) };
        let Some(task) = self.tasks.get_mut(&tid) else { return Ok(()) };
        let key = || Key {
            who: task.who.clone(),
            call: call.name,
            about: about(tid, call, args, &self.target.names),
        };
        let Some(injection) = self.fault else {
            self.told.calls.push(key());
            return Ok(());
        };
        if injection.key.call != call.name || injection.key.who != task.who || injection.key != key() {
            return Ok(());
        }
        self.equal += 1;
        if self.equal != injection.nth {
            return Ok(());
        }
        self.told.hit = true;
        match injection.fault {
            Fault::Errno(errno) => {
                registers::skip(tid)?;
                task.answer = Some(-i64::from(errno));
            }
            Fault::Signal(signal) => ptrace::kill(self.main, signal),
            Fault::Kill => ptrace::kill(task.process, libc::SIGKILL),
        }
        Ok(())
    }
}
