//! Four ways to create a process, and how long each start takes.

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use cold_model::Nanos;
use cold_model::Shown as _;

use super::{Handover, Method, Program, Timing, guard, handover};
use crate::time::monotonic;
use crate::{Error, Result};

/// Stack of a child that shares our memory: it calls chdir, prctl, sigprocmask and execve only.
const STACK: usize = 64 << 10;

/// A program, ready for exec: between creation and exec nothing may allocate.
pub(super) struct Image {
    name: String,
    /// None: the child exits at once.
    path: Option<CString>,
    cwd: Option<CString>,
    _argv: Vec<CString>,
    argv: Vec<*const c_char>,
    _env: Vec<CString>,
    env: Vec<*const c_char>,
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
}

impl Image {
    pub(super) fn new(program: &Program) -> Result<Self> {
        let name = program.path.shown().to_string();
        let c = |b: &[u8]| {
            CString::new(b).map_err(|_| Error::io("start", &name, io::Error::from_raw_os_error(libc::EINVAL)))
        };
        let args: Vec<CString> = program.argv.iter().map(|a| c(a)).collect::<Result<_>>()?;
        let set = |k: &[u8]| program.env.iter().any(|(name, _)| name == k);
        let mut vars: Vec<CString> = std::env::vars_os()
            .filter(|(k, _)| !set(k.as_bytes()))
            .map(|(k, v)| c(&[k.as_bytes(), b"=", v.as_bytes()].concat()))
            .collect::<Result<_>>()?;
        for (k, v) in &program.env {
            vars.push(c(&[k, &b"="[..], v].concat())?);
        }
        let path = match program.path.as_os_str().as_bytes() {
            [] => None,
            bytes => Some(c(bytes)?),
        };
        let cwd = program.cwd.as_ref().map(|d| c(d.as_os_str().as_bytes())).transpose()?;
        Ok(Self {
            path,
            cwd,
            argv: pointers(&args),
            _argv: args,
            env: pointers(&vars),
            _env: vars,
            name: if name.is_empty() { "a child that exits at once".into() } else { name },
        })
    }
}

/// Memory that the spawner holds, every page of it touched.
pub(super) struct Ballast(Option<(*mut c_void, usize)>);

impl Ballast {
    pub(super) fn new(bytes: u64, huge: bool) -> Result<Self> {
        let Ok(length) = usize::try_from(bytes) else {
            return Err(Error::io("hold", "the ballast", io::Error::from_raw_os_error(libc::ENOMEM)));
        };
        if length == 0 {
            return Ok(Self(None));
        }
        // SAFETY: a new anonymous mapping; no existing memory is touched.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(Error::last_os("hold", "the ballast"));
        }
        let ballast = Self(Some((at, length)));
        let advice = if huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
        // SAFETY: the mapping made above. A kernel without huge pages refuses, which changes nothing.
        unsafe { libc::madvise(at, length, advice) };
        let page = crate::page::page_size() as usize;
        for offset in (0..length).step_by(page) {
            // SAFETY: inside the mapping made above.
            unsafe { at.cast::<u8>().add(offset).write_volatile(1) };
        }
        Ok(ballast)
    }
}

impl Drop for Ballast {
    fn drop(&mut self) {
        if let Some((at, length)) = self.0 {
            // SAFETY: the mapping made in `new`, unmapped once.
            unsafe { libc::munmap(at, length) };
        }
    }
}

/// What a child that shares our memory, or a copy of it, works with.
struct Shared<'a> {
    image: &'a Image,
    mask: libc::sigset_t,
    parent: libc::pid_t,
    errno: *mut c_int,
    /// It stops after its exec.
    traced: bool,
}

/// A word that a child can write whether it shares our memory or has a copy.
struct Word(*mut c_int);

impl Word {
    fn new() -> Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new anonymous mapping; no existing memory is touched.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), size_of::<c_int>(), access, flags, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(Error::last_os("share memory with", "the processes that are started"));
        }
        Ok(Self(at.cast()))
    }
    /// What was written, and 0 from now on.
    fn take(&self) -> c_int {
        // SAFETY: a valid, aligned word of our own mapping; no child that could write it is left.
        unsafe {
            let value = self.0.read_volatile();
            self.0.write_volatile(0);
            value
        }
    }
}

impl Drop for Word {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`, unmapped once.
        unsafe { libc::munmap(self.0.cast(), size_of::<c_int>()) };
    }
}

/// Creates processes by one method.
pub(super) struct Starter {
    method: Method,
    cgroup: Option<OwnedFd>,
    mask: libc::sigset_t,
    parent: libc::pid_t,
    errno: Word,
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
        // SAFETY: both sets are valid; sigemptyset only writes to it. getpid has no preconditions.
        let (mask, parent) = unsafe {
            let mut mask: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut mask);
            (mask, libc::getpid())
        };
        Ok(Self { method, cgroup, mask, parent, errno: Word::new()? })
    }

    fn shared<'a>(&self, image: &'a Image, traced: bool) -> Shared<'a> {
        Shared { image, mask: self.mask, parent: self.parent, errno: self.errno.0, traced }
    }

    /// One start under ptrace, created by fork whatever the method is: the creation is not timed. None: it
    /// ended before its entry was reached.
    pub(super) fn trace(&self, image: &Image, program: usize) -> Result<Option<Handover>> {
        let fail = |e| Error::io("trace", &image.name, e);
        if !handover::is_possible() {
            return Err(fail(io::Error::from(io::ErrorKind::Unsupported)));
        }
        let pid = fork(&mut self.shared(image, true)).map_err(fail)?;
        guard::waits_for(pid);
        let told = handover::follow(pid, program);
        guard::waits_for(0);
        match self.errno.take() {
            0 => told.map_err(fail),
            errno => Err(fail(io::Error::from_raw_os_error(errno))),
        }
    }

    /// One start, until it is waited for.
    pub(super) fn start(&self, image: &Image, program: usize) -> Result<Timing> {
        let mut shared = self.shared(image, false);
        // Not cleared: the pages of the child's stack must not be touched in the timed part.
        let mut stack = Vec::<u8>::with_capacity(STACK);
        let began = monotonic();
        let created = match self.method {
            Method::PosixSpawn if image.path.is_some() => posix_spawn(image, &self.mask),
            // posix_spawn cannot create without exec; its clone is that of vfork.
            Method::Vfork | Method::PosixSpawn => vfork(&mut shared, &mut stack),
            Method::Fork => fork(&mut shared),
            Method::Clone3 => self.clone3(&mut shared),
        };
        let at = monotonic();
        let pid = created.map_err(|e| Error::io("start", &image.name, e))?;
        guard::waits_for(pid);
        let waited = wait(pid);
        let ended = monotonic();
        guard::waits_for(0);
        let (status, usage) = waited.map_err(|e| Error::io("wait for", &image.name, e))?;
        let errno = self.errno.take();
        if errno != 0 {
            return Err(Error::io("start", &image.name, io::Error::from_raw_os_error(errno)));
        }
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

    fn clone3(&self, shared: &mut Shared<'_>) -> io::Result<libc::pid_t> {
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
            0 => run((&raw mut *shared).cast()),
            n if n < 0 => Err(io::Error::last_os_error()),
            n => i32::try_from(n).map_err(|_| io::Error::from_raw_os_error(libc::EOVERFLOW)),
        }
    }
}

const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Runs in the child. Never returns.
fn run(arg: *mut c_void) -> ! {
    // SAFETY: `arg` is the `Shared` that the parent keeps alive while this runs (it is suspended, or this
    // is a copy); only async-signal-safe calls follow, nothing is allocated or unwound.
    unsafe {
        let shared = &mut *arg.cast::<Shared<'_>>();
        let Some(path) = &shared.image.path else { libc::_exit(0) };
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != shared.parent {
            libc::_exit(127); // the spawner died between creation and prctl
        }
        libc::signal(libc::SIGPIPE, libc::SIG_DFL); // Rust ignores it, and exec keeps that
        libc::sigprocmask(libc::SIG_SETMASK, &raw const shared.mask, std::ptr::null_mut());
        if let Some(dir) = &shared.image.cwd
            && libc::chdir(dir.as_ptr()) != 0
        {
            *shared.errno = *libc::__errno_location();
            libc::_exit(127);
        }
        if shared.traced && !handover::ask() {
            *shared.errno = *libc::__errno_location();
            libc::_exit(127);
        }
        libc::execve(path.as_ptr(), shared.image.argv.as_ptr(), shared.image.env.as_ptr());
        *shared.errno = *libc::__errno_location();
        libc::_exit(127)
    }
}

extern "C" fn run_on_stack(arg: *mut c_void) -> c_int {
    run(arg)
}

fn vfork(shared: &mut Shared<'_>, stack: &mut Vec<u8>) -> io::Result<libc::pid_t> {
    // SAFETY: the stack's allocation outlives the child's use of it, because CLONE_VFORK suspends us until
    // it has exec'd or exited; the top is 16-byte aligned as the ABI wants.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(stack.capacity() - 16);
        let top = top.sub(top as usize % 16);
        libc::clone(
            run_on_stack,
            top.cast(),
            libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
            (&raw mut *shared).cast(),
        )
    };
    if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid) }
}

fn fork(shared: &mut Shared<'_>) -> io::Result<libc::pid_t> {
    // SAFETY: this process has one thread; the child only execs or exits.
    match unsafe { libc::fork() } {
        0 => run((&raw mut *shared).cast()),
        pid if pid < 0 => Err(io::Error::last_os_error()),
        pid => Ok(pid),
    }
}

fn posix_spawn(image: &Image, mask: &libc::sigset_t) -> io::Result<libc::pid_t> {
    let Some(path) = &image.path else { return Err(io::Error::from_raw_os_error(libc::EINVAL)) };
    let mut pid = 0;
    // SAFETY: attributes are initialised before use and destroyed after; strings and arrays outlive the
    // call; the arrays end with null pointers.
    let result = unsafe {
        let mut attributes: libc::posix_spawnattr_t = std::mem::zeroed();
        libc::posix_spawnattr_init(&raw mut attributes);
        let mut defaults: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut defaults);
        libc::sigaddset(&raw mut defaults, libc::SIGPIPE);
        libc::posix_spawnattr_setsigdefault(&raw mut attributes, &raw const defaults);
        libc::posix_spawnattr_setsigmask(&raw mut attributes, mask);
        let flags = libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF;
        libc::posix_spawnattr_setflags(&raw mut attributes, flags as libc::c_short);
        let mut actions: libc::posix_spawn_file_actions_t = std::mem::zeroed();
        libc::posix_spawn_file_actions_init(&raw mut actions);
        if let Some(dir) = &image.cwd {
            libc::posix_spawn_file_actions_addchdir_np(&raw mut actions, dir.as_ptr());
        }
        let result = libc::posix_spawn(
            &raw mut pid,
            path.as_ptr(),
            &raw const actions,
            &raw const attributes,
            image.argv.as_ptr().cast(),
            image.env.as_ptr().cast(),
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
