//! Starting programs from a process of one thread.
//!
//! All that a child needs is made before it ([`Image`], [`Mask`], [`Stack`]): between its creation and its exec
//! nothing may allocate, because it shares our memory, or is a copy of it.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::{MmapMut, MmapRaw};

use crate::error::errno;

/// What a child that comes to no program ends with, as shells have it.
pub(crate) const NO_PROGRAM: c_int = 127;

/// C strings, and pointers to them that end with a null.
struct Strings {
    _strings: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl Strings {
    fn new(strings: impl IntoIterator<Item: Into<Vec<u8>>>) -> io::Result<Self> {
        let strings: Vec<CString> = strings.into_iter().map(c_string).collect::<io::Result<_>>()?;
        let pointers = strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect();
        Ok(Self { _strings: strings, pointers })
    }
}

fn c_string(bytes: impl Into<Vec<u8>>) -> io::Result<CString> {
    CString::new(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// A program, ready for exec.
pub(crate) struct Image {
    path: CString,
    /// The directory that it is started in, where that is not this process's own.
    pub(crate) cwd: Option<CString>,
    argv: Strings,
    env: Strings,
}

impl Image {
    /// The file `path` with arguments (argv\[0\] first) and variables (`NAME=value`), to be started in `cwd`, or
    /// where this process is. `EINVAL` for a zero byte in any of them.
    pub(crate) fn new(
        path: &Path,
        cwd: Option<&Path>,
        argv: impl IntoIterator<Item: Into<Vec<u8>>>,
        env: impl IntoIterator<Item: Into<Vec<u8>>>,
    ) -> io::Result<Self> {
        Ok(Self {
            path: c_string(path.as_os_str().as_bytes())?,
            cwd: cwd.map(|dir| c_string(dir.as_os_str().as_bytes())).transpose()?,
            argv: Strings::new(argv)?,
            env: Strings::new(env)?,
        })
    }

    /// The program's file.
    pub(crate) fn path(&self) -> &CStr {
        &self.path
    }

    /// The arguments, as exec takes them.
    pub(crate) fn argv(&self) -> *const *const c_char {
        self.argv.pointers.as_ptr()
    }

    /// The variables, as exec takes them.
    pub(crate) fn env(&self) -> *const *const c_char {
        self.env.pointers.as_ptr()
    }

    /// Enters its directory, if it has one; false with `errno` set. Async-signal-safe.
    pub(crate) fn enter(&self) -> bool {
        // SAFETY: a C string that lives across the call.
        self.cwd.as_ref().is_none_or(|dir| unsafe { libc::chdir(dir.as_ptr()) } == 0)
    }

    /// Becomes the program; returns with `errno` set where that fails. Async-signal-safe.
    pub(crate) fn execute(&self) {
        // SAFETY: C strings, and arrays of them that end with a null, which live until the exec.
        unsafe { libc::execve(self.path.as_ptr(), self.argv(), self.env()) };
    }
}

/// This process's variables as `NAME=value`, with those of `set` in place of its own.
pub(crate) fn environment(set: &[(Vec<u8>, Vec<u8>)]) -> Vec<Vec<u8>> {
    let is_set = |name: &[u8]| set.iter().any(|(n, _)| n == name);
    let own = std::env::vars_os().filter(|(name, _)| !is_set(name.as_bytes()));
    own.map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat())
        .chain(set.iter().map(|(name, value)| [name.as_slice(), b"=", value].concat()))
        .collect()
}

/// A set of these signals.
pub(crate) fn set_of(signals: &[c_int]) -> libc::sigset_t {
    // SAFETY: an all-zero set is a valid place to write to.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        set
    }
}

/// The signals that a program shall find blocked.
#[derive(Clone, Copy)]
pub(crate) struct Mask(pub(crate) libc::sigset_t);

impl Mask {
    /// Changes this thread's mask (`SIG_BLOCK`, `SIG_UNBLOCK`, `SIG_SETMASK`); returns the one from before.
    pub(crate) fn change(how: c_int, signals: &libc::sigset_t) -> Self {
        let mut old = set_of(&[]);
        // SAFETY: both sets live across the call.
        unsafe { libc::sigprocmask(how, signals, &raw mut old) };
        Self(old)
    }

    /// Blocks every signal; returns the mask from before.
    pub(crate) fn block_all() -> Self {
        let mut all = set_of(&[]);
        // SAFETY: a valid place to write to.
        unsafe { libc::sigfillset(&raw mut all) };
        Self::change(libc::SIG_SETMASK, &all)
    }

    /// Makes it the current one, with SIGPIPE at its default again: Rust's runtime ignores it, and an ignored
    /// signal stays ignored across exec. Async-signal-safe.
    pub(crate) fn restore(&self) {
        // SAFETY: constants, and a set that lives across the call.
        unsafe {
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut());
        }
    }
}

/// Memory for the stack of a child that shares our own.
pub(crate) struct Stack(MmapRaw);

impl Stack {
    /// Of so many bytes, a multiple of a page; those that are never touched cost nothing.
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let mut memory = MmapMut::map_anon(bytes)?;
        // What every child touches: no fault of it in a start that is timed.
        if let Some(top) = memory.last_mut() {
            *top = 0;
        }
        Ok(Self(memory.into()))
    }

    /// Creates a child that shares our memory (`CLONE_VM`) and sends `signal` when it ends, 0 for none. Returns
    /// its process id when it has executed a program or ended: until then we are suspended (`CLONE_VFORK`).
    ///
    /// # Safety
    /// `arg` is what `run` expects, and `run` does nothing that leaves our memory in disorder. No other child runs
    /// on this stack meanwhile.
    pub(crate) unsafe fn vfork(
        &self,
        run: extern "C" fn(*mut c_void) -> c_int,
        arg: *mut c_void,
        signal: c_int,
    ) -> io::Result<libc::pid_t> {
        // SAFETY: the end of the mapping, which begins at a page and has whole ones, so it is aligned as the ABI
        // wants; it outlives the child's use of it, because we are suspended meanwhile. The rest is promised.
        let pid = unsafe {
            let top = self.0.as_mut_ptr().add(self.0.len());
            libc::clone(run, top.cast(), libc::CLONE_VM | libc::CLONE_VFORK | signal, arg)
        };
        if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid) }
    }
}

/// A child on its way to its program.
pub(crate) struct Start<'a> {
    /// What it becomes; `None`: it ends at once.
    pub(crate) image: Option<&'a Image>,
    /// The signals that it finds blocked.
    pub(crate) mask: Mask,
    /// Who starts it: it dies with this process.
    pub(crate) parent: libc::pid_t,
    /// Where it leaves the reason why it comes to no program: in memory that it shares.
    pub(crate) failed: &'a AtomicU32,
    /// Called last before the exec; false with `errno` set ends it.
    pub(crate) last: fn() -> bool,
}

impl Start<'_> {
    /// Bytes of stack that it needs: it makes a few system calls only.
    pub(crate) const STACK: usize = 64 << 10;

    /// Starts it as `posix_spawn` does, which cannot set the signal by which it dies with its parent.
    pub(crate) fn vfork(&self, stack: &Stack) -> io::Result<libc::pid_t> {
        extern "C" fn run(arg: *mut c_void) -> c_int {
            // SAFETY: the `Start` below, which stays while its thread is suspended.
            unsafe { &*arg.cast::<Start<'_>>() }.run()
        }
        // SAFETY: `run` gets what it casts to, makes async-signal-safe calls only and never returns; the signal
        // table is the child's own (no CLONE_SIGHAND). This thread, the only one, waits for it.
        unsafe { stack.vfork(run, std::ptr::from_ref(self).cast_mut().cast(), libc::SIGCHLD) }
    }

    /// In the child: becomes the program, or ends. Async-signal-safe.
    pub(crate) fn run(&self) -> ! {
        // SAFETY: integers only; each of these ends this process.
        let end = |status| unsafe { libc::_exit(status) };
        let Some(image) = self.image else { end(0) };
        // SAFETY: integers only.
        let parent = unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::getppid()
        };
        if parent != self.parent {
            end(NO_PROGRAM); // the parent died between creation and prctl
        }
        self.mask.restore();
        if image.enter() && (self.last)() {
            image.execute();
        }
        self.failed.store(errno().cast_unsigned(), Ordering::Release);
        end(NO_PROGRAM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts it and waits for its end; returns its exit status and the reason that it left.
    fn run(image: Option<&Image>, last: fn() -> bool) -> (c_int, u32) {
        let (stack, failed) = (Stack::new(Start::STACK).unwrap(), AtomicU32::new(0));
        let parent = std::process::id().cast_signed();
        let mask = Mask(set_of(&[libc::SIGUSR2]));
        let pid = Start { image, mask, parent, failed: &failed, last }.vfork(&stack).unwrap();
        let mut status = 0;
        // SAFETY: a child of this test, and a place to write to.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        assert!(libc::WIFEXITED(status), "{status:#x}");
        (libc::WEXITSTATUS(status), failed.load(Ordering::Acquire))
    }

    #[test]
    fn a_program_gets_its_words_variables_and_directory() {
        let dir = tempfile::tempdir().unwrap();
        let script = "printf '%s|' \"$0\" \"$1\" \"$COLD_CHILD_TEST\" > said";
        let words = [b"sh".as_slice(), b"-c", script.as_bytes(), b"name", b"\xff"];
        let env = environment(&[(b"COLD_CHILD_TEST".to_vec(), b"a=b".to_vec())]);
        assert!(env.iter().any(|v| v.starts_with(b"PATH=")), "its own are kept");
        let image = Image::new(Path::new("/bin/sh"), Some(dir.path()), words, env).unwrap();
        assert_eq!(run(Some(&image), || true), (0, 0));
        assert_eq!(std::fs::read(dir.path().join("said")).unwrap(), b"name|\xff|a=b|");
    }

    #[test]
    fn a_program_finds_the_mask_and_sigpipe_at_its_default() {
        let dir = tempfile::tempdir().unwrap();
        let words = ["cp", "/proc/self/status", "status"];
        let image = Image::new(Path::new("/bin/cp"), Some(dir.path()), words, [""; 0]).unwrap();
        assert_eq!(run(Some(&image), || true), (0, 0));
        let status = std::fs::read_to_string(dir.path().join("status")).unwrap();
        let set = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            u64::from_str_radix(value.trim(), 16).unwrap()
        };
        assert_eq!(set("SigBlk:"), 1 << (libc::SIGUSR2 - 1));
        assert_eq!(set("SigIgn:") & 1 << (libc::SIGPIPE - 1), 0, "Rust ignores it here");
    }

    #[test]
    fn a_variable_that_is_set_takes_the_place_of_its_own() {
        let env = environment(&[(b"PATH".to_vec(), b"/x".to_vec())]);
        let paths: Vec<_> = env.iter().filter(|v| v.starts_with(b"PATH=")).collect();
        assert_eq!(paths, [b"PATH=/x"]);
    }

    #[test]
    fn why_no_program_came_is_left_behind() {
        let image =
            |path: &str, cwd: Option<&Path>| Image::new(Path::new(path), cwd, ["x"], [""; 0]).unwrap();
        let reason = |errno: c_int| (NO_PROGRAM, errno.cast_unsigned());
        let here = None;
        assert_eq!(run(Some(&image("/no/such/file", here)), || true), reason(libc::ENOENT));
        assert_eq!(run(Some(&image("/etc/passwd", here)), || true), reason(libc::EACCES));
        let no_directory = Some(Path::new("/etc/passwd"));
        assert_eq!(run(Some(&image("/bin/true", no_directory)), || true), reason(libc::ENOTDIR));
        let refuse = || {
            // SAFETY: closes no descriptor, and sets errno.
            unsafe { libc::close(-1) == 0 }
        };
        assert_eq!(run(Some(&image("/bin/true", here)), refuse), reason(libc::EBADF));
        assert_eq!(run(None, refuse), (0, 0), "nothing is executed");
    }

    #[test]
    fn a_zero_byte_is_no_part_of_a_word() {
        for (path, word, variable) in [("/b\0", "a", "A=b"), ("/b", "a\0", "A=b"), ("/b", "a", "A=\0")] {
            let made = Image::new(Path::new(path), None, [word], [variable]);
            assert_eq!(made.err().and_then(|e| e.raw_os_error()), Some(libc::EINVAL));
        }
    }

    #[test]
    fn a_mask_comes_back() {
        let before = Mask::block_all();
        let all = Mask::change(libc::SIG_SETMASK, &before.0);
        let blocked = |mask: &Mask, signal| {
            // SAFETY: a set that lives across the call.
            unsafe { libc::sigismember(&raw const mask.0, signal) == 1 }
        };
        assert!(blocked(&all, libc::SIGINT) && blocked(&all, libc::SIGCHLD));
        let now = Mask::change(libc::SIG_BLOCK, &set_of(&[]));
        assert_eq!(blocked(&now, libc::SIGINT), blocked(&before, libc::SIGINT));
    }
}
