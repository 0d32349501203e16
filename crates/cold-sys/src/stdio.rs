//! The three standard descriptors as this process was given them.
//!
//! Rust's runtime opens `/dev/null` in place of one that is closed. So a result that is written to a closed
//! standard output would be lost without an error, and a program that is started would find it open. Without
//! that runtime a file of this process may lie in its place, and must not be taken for it.

use std::ffi::c_int;
use std::io;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::error::errno;

/// Bit N: descriptor N was closed when this process began.
static CLOSED_AT_START: AtomicU8 = AtomicU8::new(0);
/// What a pipe always takes at once when poll(2) says that it takes something (`PIPE_BUF`).
const AT_ONCE: usize = 4096;

extern "C" fn look() {
    let closed = |fd: i32| {
        // SAFETY: asks for the flags of a descriptor; no memory is passed.
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
        flags == -1 && errno() == libc::EBADF
    };
    let bits = (0..3).filter(|fd| closed(*fd)).fold(0, |bits, fd| bits | 1 << fd);
    CLOSED_AT_START.store(bits, Ordering::Relaxed);
}

// SAFETY: the C library calls every entry of .init_array before `main`; the function above uses nothing
// that is not ready by then.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

fn was_closed(fd: c_int) -> bool {
    CLOSED_AT_START.load(Ordering::Relaxed) & 1 << fd != 0
}

/// Whether standard output was closed when this process began: what is written to it reaches nobody.
pub fn output_was_closed() -> bool {
    was_closed(libc::STDOUT_FILENO)
}

/// The next program finds closed what this process found closed, not what has been opened in its place.
pub(crate) fn close_again() {
    for fd in (0..3).filter(|fd| was_closed(*fd)) {
        // SAFETY: sets a flag of a descriptor that is this process's own; no memory is passed.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

extern "C" fn nothing(_: c_int) {}

/// From now on a write to a pipe without a reader, or beyond the limit of file size, is an error and no signal
/// that ends the process. The next program finds both signals as this process was given them. False where that
/// is refused.
pub fn without_signals() -> bool {
    [libc::SIGPIPE, libc::SIGXFSZ]
        .iter()
        .all(|signal| crate::exec::handle(*signal, nothing, libc::SA_RESTART))
}

/// Whether a line on standard error would reach somebody and hold up nobody: it was not closed, and it is no
/// pipe that is full. Makes such a write harmless, too ([`without_signals`]).
pub fn takes_a_line() -> bool {
    if was_closed(libc::STDERR_FILENO) || !without_signals() {
        return false;
    }
    let mut poll = libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
    // SAFETY: one entry that lives across the call, which does not wait.
    unsafe { libc::poll(&raw mut poll, 1, 0) == 1 && poll.revents & libc::POLLOUT != 0 }
}

/// Says something on standard error, unless that would hold this process up, or end it. Whether it was heard
/// changes nothing, so nothing is returned. Allocates nothing and takes no lock.
pub fn say(text: &[u8]) {
    if takes_a_line() {
        let text = text.get(..AT_ONCE).unwrap_or(text);
        // SAFETY: bytes that live across the call.
        unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
    }
}

/// Writes a result to standard output.
pub fn put(text: &[u8]) -> io::Result<()> {
    if output_was_closed() {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    without_signals();
    let mut rest = text;
    while !rest.is_empty() {
        // SAFETY: bytes that live across the call.
        let done = unsafe { libc::write(libc::STDOUT_FILENO, rest.as_ptr().cast(), rest.len()) };
        match usize::try_from(done) {
            Ok(done) => rest = rest.get(done..).unwrap_or_default(),
            Err(_) if errno() == libc::EINTR => {}
            Err(_) => return Err(io::Error::last_os_error()),
        }
    }
    Ok(())
}
