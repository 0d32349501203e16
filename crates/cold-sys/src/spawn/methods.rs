//! Four ways to create a process, and how long each start takes.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use cold_model::Nanos;
use cold_model::Shown as _;
use memmap2::{Advice, MmapMut, MmapOptions};

use super::{Handover, Method, Program, Timing, guard, handover};
use crate::cgroup::CLONE_INTO_CGROUP;
use crate::child::{self, Image, Mask, Stack, Start};
use crate::shared::SharedWords;
use crate::time::monotonic;
use crate::{Error, Result};

/// What a schedule may start.
pub(super) struct Subject {
    name: String,
    /// None: the child exits at once.
    image: Option<Image>,
}

impl Subject {
    pub(super) fn new(program: &Program) -> Result<Self> {
        if program.path.as_os_str().is_empty() {
            return Ok(Self { name: "a child that exits at once".into(), image: None });
        }
        let name = program.path.shown().to_string();
        let env = child::environment(&program.env);
        let image = Image::new(&program.path, program.cwd.as_deref(), program.argv.iter().cloned(), env);
        Ok(Self { image: Some(image.map_err(|e| Error::io("start", &name, e))?), name })
    }
}

/// Memory that the spawner holds, every page of it touched; `None` for none.
pub(super) fn ballast(bytes: u64, huge: bool) -> Result<Option<MmapMut>> {
    let fail = |e| Error::io("hold", "the ballast", e);
    let length = usize::try_from(bytes).map_err(|_| fail(io::Error::from_raw_os_error(libc::ENOMEM)))?;
    if length == 0 {
        return Ok(None);
    }
    let mut ballast = MmapOptions::new().len(length).no_reserve_swap().map_anon().map_err(fail)?;
    // A kernel without huge pages refuses, which changes nothing.
    let _ = ballast.advise(if huge { Advice::HugePage } else { Advice::NoHugePage });
    ballast.iter_mut().step_by(crate::page::page_size() as usize).for_each(|page| *page = 1);
    Ok(Some(ballast))
}

/// Creates processes by one method.
pub(super) struct Starter {
    method: Method,
    cgroup: Option<OwnedFd>,
    stack: Stack,
    /// A child can write to it whether it shares our memory or has a copy.
    shared: SharedWords,
}

impl Starter {
    pub(super) fn new(method: Method, cgroup: Option<&Path>) -> Result<Self> {
        let cgroup = match (method, cgroup) {
            (Method::Clone3, Some(dir)) => Some(
                rustix::fs::open(
                    dir,
                    rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC,
                    rustix::fs::Mode::empty(),
                )
                .map_err(|e| Error::io("open cgroup", dir.shown().to_string(), e.into()))?,
            ),
            _ => None,
        };
        let stack =
            Stack::new(Start::STACK).map_err(|e| Error::io("make a stack for", "what is started", e))?;
        Ok(Self { method, cgroup, stack, shared: SharedWords::new()? })
    }

    fn child<'a>(&'a self, subject: &'a Subject, last: fn() -> bool) -> Start<'a> {
        let mask = Mask(child::set_of(&[]));
        let parent = std::process::id().cast_signed();
        Start { image: subject.image.as_ref(), mask, parent, failed: self.failed(), last }
    }

    /// Where a child leaves the reason why it came to no program.
    fn failed(&self) -> &AtomicU32 {
        &self.shared.words()[0]
    }

    /// That reason; forgotten from now on.
    fn refused(&self, what: &'static str, subject: &Subject) -> Result<()> {
        match self.failed().swap(0, Ordering::Acquire) {
            0 => Ok(()),
            errno => Err(Error::io(what, &subject.name, io::Error::from_raw_os_error(errno.cast_signed()))),
        }
    }

    /// One start under ptrace, created by fork whatever the method is: the creation is not timed. None: it
    /// ended before its entry was reached.
    pub(super) fn trace(&self, subject: &Subject, program: usize) -> Result<Option<Handover>> {
        let fail = |e| Error::io("trace", &subject.name, e);
        if !handover::is_possible() {
            return Err(fail(io::Error::from(io::ErrorKind::Unsupported)));
        }
        let pid = fork(&self.child(subject, handover::ask)).map_err(fail)?;
        guard::waits_for(pid);
        let told = handover::follow(pid, program);
        guard::waits_for(0);
        self.refused("trace", subject)?;
        told.map_err(fail)
    }

    /// One start, until it is waited for.
    pub(super) fn start(&self, subject: &Subject, program: usize) -> Result<Timing> {
        let child = self.child(subject, || true);
        let began = monotonic();
        let created = match (self.method, child.image) {
            (Method::PosixSpawn, Some(image)) => posix_spawn(image, child.mask),
            // posix_spawn cannot create without exec; its clone is that of vfork.
            (Method::Vfork | Method::PosixSpawn, _) => child.vfork(&self.stack),
            (Method::Fork, _) => fork(&child),
            (Method::Clone3, _) => self.clone3(&child),
        };
        let at = monotonic();
        let pid = created.map_err(|e| Error::io("start", &subject.name, e))?;
        guard::waits_for(pid);
        let waited = wait(pid);
        let ended = monotonic();
        guard::waits_for(0);
        let (status, usage) = waited.map_err(|e| Error::io("wait for", &subject.name, e))?;
        self.refused("start", subject)?;
        Ok(Timing {
            program,
            began,
            created: at,
            ended,
            status,
            user: time(usage.ru_utime),
            system: time(usage.ru_stime),
            minor_faults: u64::try_from(usage.ru_minflt).unwrap_or(0),
            major_faults: u64::try_from(usage.ru_majflt).unwrap_or(0),
        })
    }

    fn clone3(&self, child: &Start<'_>) -> io::Result<libc::pid_t> {
        // SAFETY: all zero is a valid clone_args.
        let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
        args.flags = (libc::CLONE_VFORK as u64) & 0xffff_ffff;
        args.exit_signal = libc::SIGCHLD as u64;
        if let Some(cgroup) = &self.cgroup {
            args.flags |= CLONE_INTO_CGROUP;
            args.cgroup = u64::from(cgroup.as_raw_fd().cast_unsigned());
        }
        // SAFETY: without CLONE_VM the child has its own copy of this single-threaded process, as after
        // fork; it only execs or exits.
        let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, size_of::<libc::clone_args>()) };
        match pid {
            0 => child.run(),
            n if n < 0 => Err(io::Error::last_os_error()),
            n => i32::try_from(n).map_err(|_| io::Error::from_raw_os_error(libc::EOVERFLOW)),
        }
    }
}

fn fork(child: &Start<'_>) -> io::Result<libc::pid_t> {
    // SAFETY: this process has one thread; the child only execs or exits.
    match unsafe { libc::fork() } {
        0 => child.run(),
        pid if pid < 0 => Err(io::Error::last_os_error()),
        pid => Ok(pid),
    }
}

fn posix_spawn(image: &Image, mask: Mask) -> io::Result<libc::pid_t> {
    let mut pid = 0;
    // SAFETY: attributes are initialised before use and destroyed after; strings and arrays outlive the
    // call; the arrays end with null pointers.
    let result = unsafe {
        let mut attributes: libc::posix_spawnattr_t = std::mem::zeroed();
        libc::posix_spawnattr_init(&raw mut attributes);
        let defaults = child::set_of(&[libc::SIGPIPE]);
        libc::posix_spawnattr_setsigdefault(&raw mut attributes, &raw const defaults);
        libc::posix_spawnattr_setsigmask(&raw mut attributes, &raw const mask.0);
        let flags = libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF;
        libc::posix_spawnattr_setflags(&raw mut attributes, flags as libc::c_short);
        let mut actions: libc::posix_spawn_file_actions_t = std::mem::zeroed();
        libc::posix_spawn_file_actions_init(&raw mut actions);
        if let Some(dir) = &image.cwd {
            libc::posix_spawn_file_actions_addchdir_np(&raw mut actions, dir.as_ptr());
        }
        let result = libc::posix_spawn(
            &raw mut pid,
            image.path().as_ptr(),
            &raw const actions,
            &raw const attributes,
            image.argv().cast(),
            image.env().cast(),
        );
        libc::posix_spawn_file_actions_destroy(&raw mut actions);
        libc::posix_spawnattr_destroy(&raw mut attributes);
        result
    };
    if result == 0 { Ok(pid) } else { Err(io::Error::from_raw_os_error(result)) }
}

fn wait(pid: libc::pid_t) -> io::Result<(i32, libc::rusage)> {
    let mut status = 0;
    loop {
        // SAFETY: both places are valid to write to; the pid is our own child's.
        let (done, usage) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            (libc::wait4(pid, &raw mut status, 0, &raw mut usage), usage)
        };
        if done == pid {
            return Ok((status, usage));
        }
        let e = io::Error::last_os_error();
        if e.kind() != io::ErrorKind::Interrupted {
            return Err(e);
        }
    }
}

fn time(t: libc::timeval) -> Nanos {
    Nanos(t.tv_sec.cast_unsigned() * 1_000_000_000 + t.tv_usec.cast_unsigned() * 1000)
}

#[cfg(test)]
mod tests;
