//! `cold` and the helper processes that it starts: the way to start one, and what passes between the two.
//!
//! A helper is `cold` itself with a hidden first argument; the second is the number of its end of a socket pair.
//! Messages are lines of JSON. Either side learns from the end of the other's messages that it is gone.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::{Errno, FdFlags};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Error, Result};

/// More than any message has: 1 GiB holds some millions of files of an observed start.
const LONGEST: u64 = 1 << 30;

/// One end of the socket pair, with what came in and is not read yet.
#[derive(Debug)]
pub struct Channel(BufReader<UnixStream>);

/// Starts `program` as the helper that `argument` names. `set_up` gets the command with both arguments.
///
/// # Errors
/// No socket pair, or the program cannot be started.
pub fn start(
    program: &OsStr,
    argument: &str,
    set_up: impl FnOnce(&mut Command),
) -> io::Result<(Child, Channel)> {
    let (ours, theirs) = UnixStream::pair()?;
    let fd = theirs.as_raw_fd();
    let mut command = Command::new(program);
    command.arg(argument).arg(fd.to_string());
    set_up(&mut command);
    // In the child: another thread of ours that starts a program meanwhile must not hand it on.
    // SAFETY: fcntl is async-signal-safe, and the closure touches nothing but an integer.
    unsafe {
        command.pre_exec(move || match libc::fcntl(fd, libc::F_SETFD, 0) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
    Ok((command.spawn()?, Channel(BufReader::new(ours))))
}

impl Channel {
    /// The helper's end, in the helper. `args` are the arguments after the hidden one.
    ///
    /// # Errors
    /// They do not name an open socket.
    pub fn adopt(args: &[OsString]) -> Result<Self> {
        let refused = || Error::Parse {
            file: PathBuf::from("command line"),
            text: format!("{args:?}"),
            expected: "a socket's descriptor (this argument is for cold's own use)",
        };
        let fd = args.first().and_then(|a| a.to_str()?.parse::<RawFd>().ok());
        let fd = fd.filter(|fd| *fd > 2).ok_or_else(refused)?;
        // SAFETY: not -1. A descriptor that is not open is an error in what follows.
        let held = unsafe { BorrowedFd::borrow_raw(fd) };
        rustix::net::sockopt::socket_type(held).map_err(|_| refused())?;
        let passed = |e: Errno| Error::io("keep", "the socket of a helper process", e.into());
        rustix::io::fcntl_setfd(held, FdFlags::CLOEXEC).map_err(passed)?;
        // SAFETY: an open socket that was inherited for this purpose; nobody else in this process knows it.
        Ok(Self(BufReader::new(unsafe { OwnedFd::from_raw_fd(fd) }.into())))
    }

    /// Sends a message; waits while the other side reads nothing and the socket is full.
    ///
    /// # Errors
    /// The other side is gone (`BrokenPipe`).
    pub fn send(&self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.0.get_ref().write_all(&line)
    }

    /// The next message; `None` when the other side is gone.
    ///
    /// # Errors
    /// It is no such message, or longer than 1 GiB.
    pub fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        receive(&mut self.0)
    }

    /// Whether a message, or the other side's end, is there within `wait` (`None`: for ever). A signal ends the
    /// wait early.
    ///
    /// # Errors
    /// Those of poll(2).
    pub fn is_readable(&self, wait: Option<Duration>) -> io::Result<bool> {
        Ok(!self.0.buffer().is_empty() || is_readable(self.as_fd(), wait)?)
    }

    /// Tells the other side that nothing more comes, and wants nothing more from it.
    pub fn close(&self) {
        // It may be gone already.
        let _ = self.0.get_ref().shutdown(std::net::Shutdown::Both);
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }
}

/// The next message of a stream; `None` at its end, and where it ends within a message.
pub(crate) fn receive<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    match from.take(LONGEST).read_until(b'\n', &mut line) {
        // It was killed with messages of ours unread.
        Err(e) if e.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
        other => other?,
    };
    match line.last() {
        Some(b'\n') => Ok(Some(serde_json::from_slice(&line)?)),
        _ if line.len() as u64 == LONGEST => Err(io::ErrorKind::InvalidData.into()),
        _ => Ok(None),
    }
}

/// Whether there is something to read within `wait` (`None`: for ever). A signal ends the wait early.
pub(crate) fn is_readable(fd: BorrowedFd<'_>, wait: Option<Duration>) -> io::Result<bool> {
    any_is_readable(&[fd], wait)
}

/// Whether one of these has something to read, or its end, within `wait` (`None`: for ever). A signal ends the
/// wait early.
///
/// # Errors
/// Those of poll(2).
pub fn any_is_readable(fds: &[BorrowedFd<'_>], wait: Option<Duration>) -> io::Result<bool> {
    let wait = wait.map(|wait| Timespec {
        tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(wait.subsec_nanos()),
    });
    let mut polled: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    match rustix::event::poll(&mut polled, wait.as_ref()) {
        Ok(n) => Ok(n > 0),
        Err(Errno::INTR) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Channel, Channel) {
        let (a, b) = UnixStream::pair().unwrap();
        (Channel(BufReader::new(a)), Channel(BufReader::new(b)))
    }

    #[test]
    fn messages_arrive_in_order_and_the_end_is_told() {
        let (ours, mut theirs) = pair();
        assert!(!theirs.is_readable(Some(Duration::ZERO)).unwrap());
        ours.send(&"one\n").unwrap();
        ours.send(&2).unwrap();
        assert!(theirs.is_readable(None).unwrap());
        assert_eq!(theirs.receive::<String>().unwrap().as_deref(), Some("one\n"));
        assert!(theirs.is_readable(Some(Duration::ZERO)).unwrap(), "what was read with the first counts");
        assert_eq!(theirs.receive::<u32>().unwrap(), Some(2));
        drop(ours);
        assert!(theirs.is_readable(None).unwrap());
        assert_eq!(theirs.receive::<u32>().unwrap(), None);
    }

    #[test]
    fn who_dies_with_messages_unread_is_gone_and_no_error() {
        let (mut ours, theirs) = pair();
        ours.send(&1).unwrap();
        drop(theirs);
        assert_eq!(ours.receive::<u32>().unwrap(), None);
    }

    #[test]
    fn a_message_cut_off_anywhere_is_an_end_and_nonsense_is_an_error() {
        let whole = b"[1,\"\\n\"]\n";
        for n in 0..whole.len() {
            assert_eq!(receive::<(u32, String)>(&mut &whole[..n]).unwrap(), None, "{n} bytes");
        }
        assert_eq!(receive(&mut &whole[..]).unwrap(), Some((1, "\n".to_owned())));
        assert!(receive::<u32>(&mut &whole[..]).is_err());
        assert!(receive::<u32>(&mut &b"\xff\n"[..]).is_err());
    }

    #[test]
    fn only_a_socket_is_adopted_and_it_is_not_passed_on() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        rustix::io::fcntl_setfd(&theirs, FdFlags::empty()).unwrap();
        let number = std::os::fd::IntoRawFd::into_raw_fd(theirs).to_string();
        let mut adopted = Channel::adopt(&[number.into()]).unwrap();
        assert_eq!(rustix::io::fcntl_getfd(&adopted).unwrap(), FdFlags::CLOEXEC);
        Channel(BufReader::new(ours)).send(&7).unwrap();
        assert_eq!(adopted.receive::<u32>().unwrap(), Some(7));
        let file = std::fs::File::open("/dev/null").unwrap();
        for bad in ["", "x", "0", "-1", "999999", &file.as_raw_fd().to_string()] {
            let error = Channel::adopt(&[bad.into()]).unwrap_err().to_string();
            assert!(error.contains("cold's own use"), "{bad}: {error}");
        }
        assert!(Channel::adopt(&[]).is_err());
    }
}
