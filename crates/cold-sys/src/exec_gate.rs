//! Holding back those who are about to execute a file, for the moments in which that would fail.
//!
//! While a file is open for writing, executing it fails with `ETXTBSY`. A watcher of `FAN_OPEN_EXEC_PERM` (fanotify(7),
//! Linux 5.0, root) is asked by the kernel before each such start, which waits for the answer; when the watcher dies,
//! everybody is let in.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::{Error, Result};

/// Events that are read at a time.
const EVENTS: usize = 64;
/// The kernel denies writers some lines of code after it has asked us. Who was let in has got there after this; on a
/// machine that runs nothing for longer, the start fails as beside any other writer.
const ARRIVED: Duration = Duration::from_millis(20);

/// The watch on some files. Ends when it is dropped.
#[derive(Debug)]
pub struct ExecGate {
    group: File,
    /// When somebody was last let in, or may have passed before a watch began.
    last: Instant,
}

impl ExecGate {
    /// A watch on nothing yet. An error without root, before Linux 5.0, and where the kernel is built without
    /// `CONFIG_FANOTIFY_ACCESS_PERMISSIONS`.
    pub fn new() -> Result<Self> {
        let flags = libc::FAN_CLASS_CONTENT | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK;
        // SAFETY: takes no pointers; the second argument is of the descriptors that come with events.
        let fd = unsafe { libc::fanotify_init(flags, (libc::O_RDONLY | libc::O_CLOEXEC) as u32) };
        if fd < 0 {
            return Err(Error::last_os("watch executions with", "fanotify"));
        }
        // SAFETY: the kernel just gave us this descriptor, nobody else has it.
        let group = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        Ok(Self { group, last: Instant::now() })
    }

    /// From now on who executes this file waits, until [`ExecGate::let_in`].
    pub fn close(&mut self, file: &File) -> Result<()> {
        self.mark(file, libc::FAN_MARK_ADD)?;
        self.last = Instant::now();
        Ok(())
    }

    /// Everybody may execute it again. Call [`ExecGate::let_in`] afterwards for those who wait.
    pub fn open(&mut self, file: &File) -> Result<()> {
        self.mark(file, libc::FAN_MARK_REMOVE)
    }

    fn mark(&self, file: &File, how: u32) -> Result<()> {
        let path = format!("/proc/self/fd/{}\0", file.as_raw_fd());
        // SAFETY: the path ends in a NUL and outlives the call.
        let rc = unsafe {
            libc::fanotify_mark(
                self.group.as_raw_fd(),
                how,
                libc::FAN_OPEN_EXEC_PERM,
                libc::AT_FDCWD,
                path.as_ptr().cast(),
            )
        };
        if rc == 0 { Ok(()) } else { Err(Error::last_os("watch executions of", path.trim_end_matches('\0'))) }
    }

    /// Waits until nobody who was let in can still be on his way; to be called before the file is opened for writing.
    pub fn settle(&self) {
        if let Some(left) = ARRIVED.checked_sub(self.last.elapsed()) {
            std::thread::sleep(left);
        }
    }

    /// Lets everybody in who waits. Returns how many did.
    pub fn let_in(&mut self) -> Result<usize> {
        const HEADER: usize = size_of::<libc::fanotify_event_metadata>();
        let mut waited = 0;
        loop {
            let mut bytes = [0_u8; EVENTS * HEADER];
            let got = match (&self.group).read(&mut bytes) {
                Ok(got) => got,
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return Ok(waited),
                Err(e) => return Err(Error::io("read events of", "fanotify", e)),
            };
            let mut rest = bytes.get(..got).unwrap_or_default();
            while rest.len() >= HEADER {
                // SAFETY: there are as many bytes as the structure has, which is plain numbers; it may be unaligned.
                let event = unsafe { rest.as_ptr().cast::<libc::fanotify_event_metadata>().read_unaligned() };
                if event.fd >= 0 {
                    // SAFETY: the kernel opened this descriptor for us with the event.
                    let theirs = unsafe { OwnedFd::from_raw_fd(event.fd) };
                    self.answer(&theirs)?;
                    waited += 1;
                }
                rest = rest.get((event.event_len as usize).max(HEADER)..).unwrap_or_default();
            }
            self.last = Instant::now();
        }
    }

    fn answer(&self, theirs: &OwnedFd) -> Result<()> {
        let mut answer = [0_u8; 8];
        let (fd, allow) = answer.split_at_mut(4);
        fd.copy_from_slice(&theirs.as_raw_fd().to_ne_bytes());
        allow.copy_from_slice(&libc::FAN_ALLOW.to_ne_bytes());
        let wrote = std::io::Write::write(&mut &self.group, &answer);
        wrote.map(drop).map_err(|e| Error::io("answer", "fanotify", e))
    }
}

#[cfg(test)]
mod root {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_start_waits_while_the_file_is_open_for_writing_and_then_succeeds() {
        if !crate::caps::effective_user().eq(&0) {
            eprintln!("SKIPPED: needs root");
            assert!(std::env::var_os("CI").is_none(), "CI runs as root");
            return;
        }
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
        let program = dir.path().join("program");
        std::fs::copy("/bin/true", &program).expect("copied");
        let file = File::open(&program).expect("opened");
        // A process of its own, forked before: a child of this one would hold the file open for writing itself.
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "read go && exec \"$0\""]).arg(&program).stdin(Stdio::piped());
        let mut started = shell.spawn().expect("a shell");
        let mut gate = ExecGate::new().expect("a gate");
        gate.close(&file).expect("closed");
        gate.settle();
        let writer = crate::blocks::for_writing(&file).expect("opened for writing");
        started.stdin.take().expect("piped").write_all(b"go\n").expect("told");
        std::thread::sleep(Duration::from_millis(100));
        assert!(started.try_wait().expect("a child").is_none(), "it waits");
        drop(writer);
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut waited = 0;
        while waited == 0 && Instant::now() < deadline {
            waited += gate.let_in().expect("let in");
        }
        assert_eq!(waited, 1);
        gate.open(&file).expect("opened");
        gate.let_in().expect("nobody else");
        assert!(started.wait().expect("ended").success());
    }
}
