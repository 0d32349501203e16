//! Faults at single system calls: a program runs under ptrace, and one call of it fails with an error number of
//! our choice, or a signal arrives just as it is made.
//!
//! A first run ([`Target::run`] without a fault) lists the calls. Each is named by what it is and what it is about
//! ([`Key`]), and by how many equal ones came before: addresses, process ids and random names differ between runs,
//! these do not. [`choose`] picks places and faults with a seed; each of them is a run of its own. A place that a
//! run does not reach (threads race) is no fault: [`Ran::hit`] tells.
//!
//! Followed are the threads of the program and its helpers, which are the same executable started again. Everything
//! else it starts is let go at its exec; what a helper forks is let go at once, because helpers trace and observe
//! their children themselves, and a process has one tracer only.
//!
//! Start reading at [`Target`], then the module `tracer`.

mod calls;
mod choose;
mod key;
mod ptrace;
mod registers;
mod tracer;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

pub use choose::{Choice, choose};
pub use key::{Key, Names};
pub use ptrace::own_mounts;

/// A variable with a value of its own in the environment of each run: what has it belongs to that run.
const MARK: &str = "COLD_FAULTS_RUN";

/// What happens at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call is not made, and fails with this error number.
    Errno(i32),
    /// The program gets this signal as the call begins, whichever of its processes makes it.
    Signal(i32),
    /// The process that makes the call is killed before it is made.
    Kill,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Errno(errno) => f.write_str(calls::errno_name(*errno)),
            Self::Signal(libc::SIGINT) => f.write_str("SIGINT"),
            Self::Signal(libc::SIGTERM) => f.write_str("SIGTERM"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Kill => f.write_str("SIGKILL of the process"),
        }
    }
}

/// One fault at one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injection {
    /// The call, by what it is and what it is about.
    pub key: Key,
    /// Which one of the equal ones, from 1.
    pub nth: usize,
    /// What happens there.
    pub fault: Fault,
}

impl std::fmt::Display for Injection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at call {} of {}", self.fault, self.nth, self.key)
    }
}

/// A program to be run with faults.
#[derive(Debug, Clone)]
pub struct Target {
    /// The executable; its helpers are known by it.
    pub program: PathBuf,
    /// Arguments, without the program's own name.
    pub args: Vec<OsString>,
    /// Variables added to the environment.
    pub env: Vec<(OsString, OsString)>,
    /// Directory in which the program starts.
    pub cwd: PathBuf,
    /// What paths are called in keys.
    pub names: Names,
    /// When everything that belongs to the run is killed.
    pub deadline: Duration,
}

/// What a run came to.
#[derive(Debug)]
pub struct Ran {
    /// How the program ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: String,
    /// Its process, which is gone.
    pub pid: i32,
    /// The calls in their order; only of a run without a fault.
    pub calls: Vec<Key>,
    /// Whether the fault's place was reached.
    pub hit: bool,
    /// It had to be killed at the deadline.
    pub late: bool,
    mark: String,
}

impl Ran {
    /// The exit code; 128 + n for signal n, as shells say it.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }
    /// Processes that belong to this run and are still there.
    pub fn processes(&self) -> Vec<i32> {
        marked(&self.mark)
    }
    /// Kills them with SIGKILL, and those that they make meanwhile.
    pub fn end_processes(&self) {
        end_marked(&self.mark);
    }
}

impl Target {
    /// Runs the program to its end, and its helpers to theirs. Must be called by a thread that has no other
    /// children: it waits for all of them.
    pub fn run(&self, fault: Option<&Injection>) -> io::Result<Ran> {
        let mark = cold_sys::place::random_name()?;
        let (mut out, mut err) = (tempfile::tempfile()?, tempfile::tempfile()?);
        // The shell stops itself, so that it is traced before the program begins. Not by PTRACE_TRACEME: only a
        // process that was seized tells a stop of job control from a signal.
        // Before that, signals that this process ignores (a shell's background job does SIGINT) are what they are elsewhere.
        let mut command = Command::new("/usr/bin/env");
        let shell = ["--default-signal", "/bin/sh", "-c", "kill -STOP $$; exec \"$@\"", "sh"];
        command.args(shell).arg(&self.program).args(&self.args);
        command.envs(self.env.iter().cloned()).env(MARK, &mark).current_dir(&self.cwd);
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(err.try_clone()?);
        #[allow(clippy::zombie_processes)] // the tracer waits for it
        let pid = command.spawn()?.id().cast_signed();
        let (ended, end) = mpsc::channel::<()>();
        let watchdog = {
            let (mark, deadline) = (mark.clone(), self.deadline);
            std::thread::spawn(move || {
                let late = end.recv_timeout(deadline) == Err(mpsc::RecvTimeoutError::Timeout);
                if late {
                    end_marked(&mark);
                }
                late
            })
        };
        let told = tracer::follow(pid, self, fault);
        drop(ended);
        let late = watchdog.join().unwrap_or(true);
        if told.is_err() {
            end_marked(&mark);
        }
        let told = told?;
        let stderr = String::from_utf8_lossy(&content(&mut err)?).into_owned();
        let (status, stdout) = (ExitStatus::from_raw(told.status), content(&mut out)?);
        Ok(Ran { status, stdout, stderr, pid, calls: told.calls, hit: told.hit, late, mark })
    }
}

/// Why programs cannot be traced here, if so.
pub fn refused() -> Option<String> {
    let names = Names::default();
    let target = Target {
        program: "/bin/true".into(),
        args: Vec::new(),
        env: Vec::new(),
        cwd: "/".into(),
        names,
        deadline: crate::PATIENCE,
    };
    match std::thread::spawn(move || target.run(None)).join() {
        Ok(Ok(_)) => None,
        Ok(Err(e)) => Some(e.to_string()),
        Err(_) => Some("the tracer panicked".to_owned()),
    }
}

fn content(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn has(pid: i32, mark: &str) -> bool {
    let environment = std::fs::read(Path::new("/proc").join(pid.to_string()).join("environ"));
    let wanted = format!("{MARK}={mark}");
    environment.is_ok_and(|e| e.split(|b| *b == 0).any(|v| v == wanted.as_bytes()))
}

fn marked(mark: &str) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|e| e.file_name().to_str()?.parse().ok()).filter(|pid| has(*pid, mark)).collect()
}

/// Kills what has the mark, until nothing has: one that was just being made is not seen yet.
fn end_marked(mark: &str) {
    for _ in 0..200 {
        let found = marked(mark);
        if found.is_empty() {
            return;
        }
        for pid in found {
            let Some(pid) = rustix::process::Pid::from_raw(pid) else { continue };
            let Ok(fd) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else {
                continue;
            };
            // Looked at again: the number may have gone to another process meanwhile, which the descriptor now holds.
            if has(pid.as_raw_nonzero().get(), mark) {
                let _ = rustix::process::pidfd_send_signal(&fd, rustix::process::Signal::KILL);
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
