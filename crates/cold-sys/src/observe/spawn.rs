//! Starting the command under a filter: everything is prepared before `fork`, the child allocates
//! nothing.

use std::ffi::OsStr;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::error::{ObserveError, Result};
use super::protocol::Request;
use super::ptrace;
use crate::child::{Image, Mask, NO_PROGRAM};
use crate::error::errno;
use crate::search;

/// The report of the child: one byte that says what, then an error number.
const NO_NEW_PRIVS: u8 = b'n';
const CHDIR_FAILED: u8 = b'c';
const FILTER_FAILED: u8 = b'f';
const EXEC_FAILED: u8 = b'x';
const REPORT_BYTES: usize = 5;

/// A seized child that has been told to go.
#[derive(Debug)]
pub(super) struct Spawned {
    pub(super) pid: i32,
    reports: PipeReader,
}

/// What the child reported by the time it runs the program, or is gone.
#[derive(Debug, Default)]
pub(super) struct Start {
    /// It had to give up set-user-ID programs to be allowed to install the filter.
    pub(super) no_new_privs: bool,
    /// Why the program does not run.
    pub(super) failure: Option<ObserveError>,
}

/// Forks, seizes and releases the child, whose system calls `filter` stops.
pub(super) fn spawn(request: &Request, mask: &Mask, filter: &[libc::sock_filter]) -> Result<Spawned> {
    let program = find_program(request)?;
    let (argv, env) = (request.argv.iter().map(|a| a.as_bytes()), request.env.iter().map(|e| e.as_bytes()));
    let image = Image::new(&program, request.cwd.first().map(PathBuf::as_path), argv, env);
    let image = image.map_err(|_| ObserveError::Nul)?;
    let (go_reader, mut go) = std::io::pipe().map_err(|e| ObserveError::os("create a pipe", &e))?;
    let (reports, report) = std::io::pipe().map_err(|e| ObserveError::os("create a pipe", &e))?;
    // SAFETY: this process has one thread; the child calls only async-signal-safe functions on memory
    // prepared above, and leaves by exec or _exit.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(ObserveError::os("fork", &std::io::Error::last_os_error()));
    }
    if pid == 0 {
        // The child's copy of this end would keep its own wait from ever seeing the parent's death.
        drop(go);
        child(&image, filter, mask, &go_reader, &report);
    }
    drop((go_reader, report));
    if let Err(e) = ptrace::seize(pid) {
        // SAFETY: kill and waitpid on our own child, which has not been waited for.
        unsafe {
            libc::kill(pid, libc::SIGKILL);
            libc::waitpid(pid, std::ptr::null_mut(), 0);
        }
        return Err(ObserveError::Denied { errno: e.raw_os_error().unwrap_or(libc::EIO) });
    }
    go.write_all(b"g").map_err(|e| ObserveError::os("release the child", &e))?;
    Ok(Spawned { pid, reports })
}

/// The child between fork and exec.
fn child(
    image: &Image,
    filter: &[libc::sock_filter],
    mask: &Mask,
    go: &PipeReader,
    report: &PipeWriter,
) -> ! {
    let tell = |what: u8| {
        let mut bytes = [what; REPORT_BYTES];
        bytes[1..].copy_from_slice(&errno().to_ne_bytes());
        // SAFETY: writes from a live array to an open descriptor; the reader sees short writes as none.
        unsafe { libc::write(report.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
    };
    let fail = |what: u8| -> ! {
        tell(what);
        // SAFETY: _exit ends the child without running anything of the parent's.
        unsafe { libc::_exit(NO_PROGRAM) }
    };
    let mut byte = 0u8;
    // SAFETY: reads one byte into a live variable.
    if unsafe { libc::read(go.as_raw_fd(), (&raw mut byte).cast(), 1) } != 1 {
        fail(EXEC_FAILED); // the observer died before it could seize us
    }
    mask.restore();
    if !image.enter() {
        fail(CHDIR_FAILED);
    }
    if !install(filter) {
        // Without CAP_SYS_ADMIN a filter is allowed only to who renounces set-user-ID programs.
        // SAFETY: prctl with integers.
        let renounced =
            errno() == libc::EACCES && unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } == 0;
        if !renounced || !install(filter) {
            fail(FILTER_FAILED);
        }
        tell(NO_NEW_PRIVS);
    }
    image.execute();
    fail(EXEC_FAILED)
}

fn install(filter: &[libc::sock_filter]) -> bool {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SPEC_ALLOW: before Linux 5.16 a filter would otherwise switch on costly speculation mitigations
    // for the tree and falsify its CPU time.
    // SAFETY: the kernel copies the program and does not write to it.
    let r = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
            &raw const program,
        )
    };
    r == 0
}

/// The file that execvp(3) would run. Searched here, so that the search does not count as lookups.
fn find_program(request: &Request) -> Result<PathBuf> {
    let name = request.argv.first().ok_or(ObserveError::NoCommand)?;
    let cwd = request.cwd.first().map_or(Path::new(""), |d| d.as_path());
    let path = request.env.iter().find_map(|e| e.as_bytes().strip_prefix(b"PATH="));
    let path = path.map(OsStr::from_bytes);
    if let Some(found) = search::find(name, path, cwd) {
        return Ok(found);
    }
    Err(match search::candidates(name, path).find(|file| cwd.join(file).is_file()) {
        Some(path) => ObserveError::Exec { path, errno: libc::EACCES },
        None => ObserveError::NotFound { command: name.to_string_lossy().into_owned() },
    })
}

impl Spawned {
    /// To be called once the program runs or the child is gone: both close the other end.
    pub(super) fn start(&mut self, request: &Request) -> Start {
        let mut bytes = Vec::new();
        let mut start = Start::default();
        if self.reports.read_to_end(&mut bytes).is_err() {
            return start;
        }
        for report in bytes.chunks_exact(REPORT_BYTES) {
            let &[what, a, b, c, d] = report else { continue };
            let errno = i32::from_ne_bytes([a, b, c, d]);
            let cwd = request.cwd.first().cloned().unwrap_or_default();
            match what {
                NO_NEW_PRIVS => start.no_new_privs = true,
                CHDIR_FAILED => start.failure = Some(ObserveError::Chdir { path: cwd, errno }),
                FILTER_FAILED => start.failure = Some(ObserveError::Filter { errno }),
                _ => {
                    let path = find_program(request).unwrap_or_default();
                    start.failure = Some(ObserveError::Exec { path, errno });
                }
            }
        }
        start
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn request(argv: &[&str], env: &[&str], cwd: &Path) -> Request {
        Request {
            argv: argv.iter().map(Into::into).collect(),
            env: env.iter().map(Into::into).collect(),
            cwd: vec![cwd.to_owned()],
            deadline_ns: None,
            grace_ns: 0,
        }
    }

    #[test]
    fn a_program_is_searched_in_the_path_and_the_directory_of_the_request() {
        let dir = tempfile::tempdir().unwrap();
        for (name, mode) in [("plain/it", 0o644), ("right/it", 0o755)] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let find = |argv: &[&str], env: &[&str]| find_program(&request(argv, env, dir.path()));
        assert_eq!(find(&["it"], &["XPATH=x", "PATH=plain:right", "PATH=none"]), Ok("right/it".into()));
        let denied = ObserveError::Exec { path: "plain/it".into(), errno: libc::EACCES };
        assert_eq!(find(&["it"], &["PATH=none:plain"]), Err(denied));
        assert_eq!(find(&["it"], &["PATH=none"]), Err(ObserveError::NotFound { command: "it".into() }));
        assert_eq!(find(&[""], &[]), Err(ObserveError::NotFound { command: String::new() }));
        assert_eq!(find(&["./none"], &["PATH=right"]), Ok("./none".into()), "the kernel says what is wrong");
        assert_eq!(find(&[], &[]), Err(ObserveError::NoCommand));
    }

    #[test]
    fn a_childs_reports_are_read_whole_and_the_last_failure_counts() {
        let told = |bytes: &[u8]| {
            let (reports, mut end) = std::io::pipe().unwrap();
            end.write_all(bytes).unwrap();
            drop(end);
            let start = Spawned { pid: 0, reports }.start(&request(&["/a/b"], &[], Path::new("/c")));
            (start.no_new_privs, start.failure)
        };
        let report = |what: u8, errno: i32| [&[what][..], &errno.to_ne_bytes()].concat();
        assert_eq!(told(b""), (false, None));
        assert_eq!(told(&report(NO_NEW_PRIVS, 0)), (true, None));
        let exec = ObserveError::Exec { path: "/a/b".into(), errno: libc::ENOENT };
        let both = [report(NO_NEW_PRIVS, 0), report(EXEC_FAILED, libc::ENOENT)].concat();
        assert_eq!(told(&both), (true, Some(exec)));
        let nowhere = ObserveError::Chdir { path: "/c".into(), errno: libc::EACCES };
        assert_eq!(told(&report(CHDIR_FAILED, libc::EACCES)), (false, Some(nowhere)));
        assert_eq!(told(&report(FILTER_FAILED, 1)), (false, Some(ObserveError::Filter { errno: 1 })));
        assert_eq!(told(&report(EXEC_FAILED, libc::ENOENT)[..4]), (false, None), "it died while it told");
    }
}
