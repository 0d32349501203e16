//! The supervisor's side: runs single-threaded in its own process.

use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU32, Ordering};

use cold_model::Nanos;
use cold_model::Shown as _;

use super::protocol::{Order, SupervisorEvent, Usage};
use crate::child::{self, Image, Mask, Stack, Start};
use crate::helper::Channel;
use crate::procfs::ProcFs;
use crate::time::{monotonic, process_cpu};
use crate::{Error, Result, tree};
use pacer::Pacer;

mod pacer;

/// How often processes are killed again while the tree does not go away.
const KILL_AGAIN: Nanos = Nanos(10_000_000);
/// For so long a helper may still enter what it did when the program is killed.
const HELPER_GRACE: Nanos = Nanos(1_000_000_000);
/// Grace for the tree when `cold` itself has died: short, since nobody waits any more.
const ORPHAN_GRACE: Nanos = Nanos(2_000_000_000);

/// Why [`serve`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// The client has been told everything.
    Complete,
    /// `cold` died; the tree has been ended. The caller should undo what `cold` left in its journal.
    Orphaned,
}

/// Runs the supervisor. `args` are the arguments after [`super::ARGUMENT`]: the number of the control
/// socket's descriptor, then the command's argv.
pub fn serve(args: &[OsString]) -> Result<Served> {
    let channel = Channel::adopt(args)?;
    let argv = args.get(1..).unwrap_or_default();
    let mask = Mask::block_all();
    // SAFETY: prctl with integer arguments only.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    Supervisor {
        channel,
        usage: Usage::default(),
        phase: Phase::Running,
        main: 0,
        pacer: None,
        gone: false,
        helper: None,
        last: None,
    }
    .run(argv, mask)
}

enum Phase {
    Running,
    Asked { deadline: Nanos },
    Forced { since: Nanos },
}

/// What waiting comes to.
enum Ended {
    /// All children still run.
    Nobody,
    /// This one has ended.
    Child(libc::pid_t),
    /// There is no child any more.
    All,
}

struct Supervisor {
    channel: Channel,
    usage: Usage,
    phase: Phase,
    main: libc::pid_t,
    /// The command's pauses, until it was waited for or is to end.
    pacer: Option<Pacer>,
    gone: bool,
    /// Name of processes of the tree that are not the program.
    helper: Option<String>,
    /// When the last process that is no helper was waited for.
    last: Option<Nanos>,
}

impl Supervisor {
    fn run(mut self, argv: &[OsString], mask: Mask) -> Result<Served> {
        let Some(Order::Prepare { program, cgroups, helper, pauses }) = self.order() else {
            return Ok(Served::Orphaned);
        };
        self.helper = helper;
        for dir in &cgroups {
            let file = dir.join("cgroup.procs");
            if let Err(e) = crate::knob::write(&file, "0") {
                return Ok(self.fail(format!("join cgroup {}", dir.shown()), &e));
            }
        }
        let words = argv.iter().map(|word| word.as_bytes());
        let image = match Image::new(&program, None, words, child::environment(&[])) {
            Ok(image) => image,
            Err(e) => return Ok(self.fail(format!("execute {}", program.shown()), &e)),
        };
        if pauses.is_some() {
            Pacer::sleep_through_stops();
        }
        let signals = signal_fd()?;
        self.send(&SupervisorEvent::Ready);
        match self.order() {
            Some(Order::Go) => {}
            // Not wanted after all.
            Some(_) => return Ok(Served::Complete),
            None => return Ok(Served::Orphaned),
        }
        match start(&image, mask, pauses.is_some()) {
            Ok((pid, at)) => {
                self.main = pid;
                self.pacer = pauses.map(|pauses| Pacer::new(pauses, pid, monotonic()));
                self.send(&SupervisorEvent::Started { pid, at });
            }
            Err(e) => return Ok(self.fail(format!("execute {}", image.path().to_string_lossy()), &e)),
        }
        let served = self.watch(&signals);
        // Whoever removes the groups of a dead `cold` (perhaps we ourselves) kills what is in them.
        for dir in cgroups.iter().filter_map(|d| d.parent()) {
            let _ = crate::knob::write(&dir.join("cgroup.procs"), "0");
        }
        Ok(served)
    }

    /// Waits until the tree is gone.
    fn watch(&mut self, signals: &OwnedFd) -> Served {
        let mut orphaned = false;
        loop {
            let timeout = match (&self.phase, &self.pacer) {
                (Phase::Running, None) => None,
                (Phase::Running, Some(pacer)) => Some(pacer.due().saturating_sub(monotonic())),
                (Phase::Asked { deadline }, _) => Some(deadline.saturating_sub(monotonic())),
                (Phase::Forced { .. }, _) => Some(KILL_AGAIN),
            };
            // A dead client's socket stays readable for ever: it is left out once noticed.
            let socket = if orphaned { -1 } else { self.channel.as_fd().as_raw_fd() };
            let (child, order) = poll2(signals.as_raw_fd(), socket, timeout);
            let now = monotonic();
            if child {
                drain(signals);
            }
            self.reap(now);
            if self.gone {
                return if orphaned { Served::Orphaned } else { Served::Complete };
            }
            if order {
                match self.order() {
                    Some(Order::End { grace }) => self.end(now, grace),
                    Some(_) => {}
                    None => {
                        orphaned = true;
                        self.end(now, ORPHAN_GRACE);
                    }
                }
            }
            self.escalate(now);
            if let Some(pacer) = &mut self.pacer {
                pacer.turn(&mut self.usage, monotonic);
            }
        }
    }

    fn end(&mut self, now: Nanos, grace: Nanos) {
        self.usage.ended = true;
        self.pacer = None;
        let due = Nanos(now.0.saturating_add(grace.0));
        match &mut self.phase {
            Phase::Running => {
                self.phase = Phase::Asked { deadline: due };
                if grace.0 > 0 {
                    tree::ask_to_end(|pid| self.may_leave_its_word(pid));
                }
            }
            // Nobody waits for so long any more: `cold` has died, or wants it by force.
            Phase::Asked { deadline } => *deadline = due.min(*deadline),
            Phase::Forced { .. } => {}
        }
    }

    fn escalate(&mut self, now: Nanos) {
        match self.phase {
            Phase::Asked { deadline } if now >= deadline => {
                self.usage.killed_by_force = tree::signal(libc::SIGKILL, |pid| self.may_leave_its_word(pid));
                self.phase = Phase::Forced { since: now };
            }
            Phase::Forced { since } => {
                let in_time = now.saturating_sub(since) < HELPER_GRACE;
                tree::signal(libc::SIGKILL, |pid| in_time && self.may_leave_its_word(pid));
            }
            _ => {}
        }
    }

    /// A helper ends by itself when the program does, and has its word to leave first: a signal in between would
    /// leave a start of which nobody knows whether it followed its plan.
    fn may_leave_its_word(&self, pid: libc::pid_t) -> bool {
        pid != self.main && self.is_helper(pid)
    }

    /// Collects every process that has ended.
    fn reap(&mut self, now: Nanos) {
        loop {
            let ended = match Self::ended() {
                Ended::Nobody => return,
                Ended::All => {
                    // No descendant is left anywhere, because orphans come to us.
                    self.gone = true;
                    self.usage.peak_memory_floor = own_peak();
                    let usage = self.usage;
                    self.send(&SupervisorEvent::TreeGone { at: self.last.unwrap_or(now), usage });
                    return;
                }
                Ended::Child(pid) => pid,
            };
            let main = ended == self.main;
            // Asked before it is waited for: afterwards nobody has its name, and there are only sums of its
            // CPU time with its children's.
            let cpu = main.then(|| process_cpu(ended)).flatten();
            if main || !self.is_helper(ended) {
                self.last = Some(now);
            }
            if main {
                self.pacer = None;
            }
            let mut status = 0;
            // SAFETY: rusage is plain integers; zero is a valid value.
            let mut ru: libc::rusage = unsafe { std::mem::zeroed() };
            // SAFETY: both pointers are valid for writing. __WALL also takes children made with clone.
            if unsafe { libc::wait4(ended, &raw mut status, libc::__WALL, &raw mut ru) } == ended {
                self.add(&ru);
                if main {
                    self.send(&SupervisorEvent::MainEnded { at: now, status, cpu });
                }
            }
        }
    }

    /// A child that has ended and was not waited for.
    fn ended() -> Ended {
        // SAFETY: siginfo is plain data for which zero is valid.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
        // SAFETY: the pointer is valid for writing.
        if unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, flags) } != 0 {
            return Ended::All; // ECHILD, the only error there can be
        }
        // SAFETY: waitid has filled in a child's fields, or left zeros.
        match unsafe { info.si_pid() } {
            0 => Ended::Nobody,
            pid => Ended::Child(pid),
        }
    }

    /// It bears the helpers' name, which a zombie still has.
    fn is_helper(&self, pid: libc::pid_t) -> bool {
        self.helper.as_ref().is_some_and(|name| ProcFs::default().comm(pid).is_ok_and(|comm| comm == *name))
    }

    fn add(&mut self, ru: &libc::rusage) {
        let ns = |t: libc::timeval| {
            Nanos(t.tv_sec.cast_unsigned() * 1_000_000_000 + t.tv_usec.cast_unsigned() * 1000)
        };
        let u = &mut self.usage;
        u.user += ns(ru.ru_utime);
        u.system += ns(ru.ru_stime);
        u.minor_faults += ru.ru_minflt.cast_unsigned();
        u.major_faults += ru.ru_majflt.cast_unsigned();
        u.read_bytes += ru.ru_inblock.cast_unsigned() * 512;
        u.peak_memory = u.peak_memory.max(ru.ru_maxrss.cast_unsigned() * 1024);
        u.reaped += 1;
    }

    fn fail(&mut self, what: String, error: &std::io::Error) -> Served {
        self.send(&SupervisorEvent::Failed { what, errno: error.raw_os_error().unwrap_or(libc::EIO) });
        Served::Complete
    }

    fn send(&self, event: &SupervisorEvent) {
        // A client that has gone is noticed by the end of its orders.
        let _ = self.channel.send(event);
    }

    /// The next order; `None` when the client has gone.
    fn order(&mut self) -> Option<Order> {
        self.channel.receive().ok().flatten()
    }
}

/// Starts the program. Returns its pid and the time just before the clone; where it comes to no program, why: the
/// child is already waited for then.
fn start(image: &Image, mask: Mask, own_group: bool) -> std::io::Result<(libc::pid_t, Nanos)> {
    let stack = Stack::new(Start::STACK)?;
    let failed = AtomicU32::new(0);
    let parent = std::process::id().cast_signed();
    let last = if own_group { lead_a_group } else { || true };
    let start = Start { image: Some(image), mask, parent, failed: &failed, last };
    let at = monotonic();
    let pid = start.vfork(&stack)?;
    match failed.load(Ordering::Acquire) {
        0 => Ok((pid, at)),
        errno => {
            // SAFETY: waits for the child just created; no status is wanted.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
            Err(std::io::Error::from_raw_os_error(errno.cast_signed()))
        }
    }
}

/// In the child.
fn lead_a_group() -> bool {
    // SAFETY: integers only.
    unsafe { libc::setpgid(0, 0) == 0 }
}

fn own_peak() -> u64 {
    // SAFETY: rusage is plain integers; zero is valid; the pointer is valid for writing.
    unsafe {
        let mut ru: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut ru);
        ru.ru_maxrss.cast_unsigned() * 1024
    }
}

fn signal_fd() -> Result<OwnedFd> {
    // SAFETY: the set is valid; the returned descriptor is ours alone.
    unsafe {
        let set = child::set_of(&[libc::SIGCHLD]);
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 {
            return Err(Error::last_os("create", "a signal descriptor"));
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

fn drain(fd: &OwnedFd) {
    let mut buf = [0_u8; 1024];
    // SAFETY: reads into a buffer of the given size; the descriptor does not block.
    while unsafe { libc::read(fd.as_raw_fd(), buf.as_mut_ptr().cast(), buf.len()) } > 0 {}
}

/// Waits for either descriptor (a negative one is ignored) for so long (`None`: for ever); returns which are readable.
fn poll2(a: RawFd, b: RawFd, timeout: Option<Nanos>) -> (bool, bool) {
    let mut fds = [a, b].map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    let limit = timeout.map(|Nanos(ns)| libc::timespec {
        tv_sec: (ns / 1_000_000_000).cast_signed(),
        tv_nsec: (ns % 1_000_000_000).cast_signed(),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `fds` is valid for its length, `limit` null or a value that lives across the call.
    unsafe { libc::ppoll(fds.as_mut_ptr(), 2, limit, std::ptr::null()) };
    (fds[0].revents != 0, fds[1].revents != 0)
}

#[cfg(test)]
mod tests;
