//! A process of one thread that makes copies of itself in other processes' control groups, for work whose memory is
//! theirs.
//!
//! The kernel charges pages of files to the group of the process that brings them, by its memory and not by its thread.
//! With version 2 the copy begins in the group (`CLONE_INTO_CGROUP`, Linux 5.7). With version 1 it goes there by itself:
//! a process of one thread that writes 0 to the group's `tasks` is there in 0.06 ms (since Linux 5.5, which does not
//! wait for other processes then; its commit 9a3284fad42f), where to move one by `cgroup.procs` takes 9 (medians of 40).
//! A copy of a process with several threads may do next to nothing, so the one that is copied has a single one.

use std::ffi::CStr;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use cold_model::Shown as _;
use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

use crate::cgroup::CLONE_INTO_CGROUP;
use crate::helper::is_readable;
use crate::{Error, Result, child, detached};

/// Numbers that a copy is given.
pub const NUMBERS: usize = 16;
/// Descriptors that a copy is given, at most.
pub const MOST_FDS: usize = 12;

/// The way to the process that makes copies.
#[derive(Debug)]
pub struct Copier {
    orders: OwnedFd,
    /// Where it is our own.
    pid: Option<i32>,
}

/// What a copy is given.
#[derive(Debug)]
pub struct Order {
    numbers: [u64; NUMBERS],
    fds: Vec<OwnedFd>,
    caller: Caller,
}

/// Who has ordered a copy, as the copy knows it.
#[derive(Debug)]
pub struct Caller(OwnedFd);

/// A copy, as its caller knows it. It ends by itself where [`Caller::is_gone`] is asked, once this is dropped.
#[derive(Debug)]
pub struct Copied(OwnedFd);

impl Copier {
    /// Makes a process that waits for orders and has each done by a copy of itself; it ends with this one, and so do its
    /// copies. It is called `name` where processes are listed, and has none of our descriptors. To be called in the first
    /// thread, while there is no other.
    pub fn fork(name: &CStr, job: &dyn Fn(Order)) -> Result<Self> {
        let refused = |e| Error::io("start", "a process that makes copies of itself", e);
        if !detached::single_threaded() {
            return Err(refused(io::Error::other("this process has several threads")));
        }
        let flags = SocketFlags::CLOEXEC;
        let (orders, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
                .map_err(|e| refused(e.into()))?;
        let parent = std::process::id();
        // SAFETY: there is no other thread (checked above), so the copy may do anything.
        match unsafe { libc::fork() } {
            0 => {
                if !dies_with(parent) {
                    detached::end();
                }
                usual_signals();
                detached::drop_inherited(name, &[theirs.as_raw_fd()]);
                // A panic must not unwind into the frames of the process this is a copy of.
                let serve = || serve(&theirs, name, job);
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(serve));
                detached::end()
            }
            pid if pid > 0 => Ok(Self { orders, pid: Some(pid) }),
            _ => Err(refused(io::Error::last_os_error())),
        }
    }

    /// One that another process is, which listens at `path` and calls [`serve`] for who comes.
    pub fn connect(path: &Path) -> Result<Self> {
        let refused = |e: Errno| Error::io("connect to", path.shown().to_string(), e.into());
        let orders =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(refused)?;
        let to = SocketAddrUnix::new(path).map_err(refused)?;
        rustix::net::connect(&orders, &to).map_err(refused)?;
        Ok(Self { orders, pid: None })
    }

    /// Its process id, where it is one of our own.
    pub fn pid(&self) -> Option<i32> {
        self.pid
    }

    /// Orders a copy in the control group that this is the [entrance](crate::cgroup::MemoryGroup::entrance) of. Returns
    /// at once: whether it came to be is told by [`Copied::refusal`] once [`Copied::has_ended`].
    pub fn order(
        &self,
        group: BorrowedFd<'_>,
        numbers: [u64; NUMBERS],
        fds: &[BorrowedFd<'_>],
    ) -> io::Result<Copied> {
        let too_many = || io::Error::other("more descriptors than a copy can be given");
        if fds.len() > MOST_FDS {
            return Err(too_many());
        }
        let (told, tells) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let all: Vec<BorrowedFd<'_>> =
            [tells.as_fd(), group].into_iter().chain(fds.iter().copied()).collect();
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_FDS + 2))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        if !rights.push(SendAncillaryMessage::ScmRights(&all)) {
            return Err(too_many());
        }
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_ne_bytes()).collect();
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        rustix::net::sendmsg(&self.orders, &[IoSlice::new(&bytes)], &mut rights, flags)?;
        Ok(Copied(told))
    }
}

impl Drop for Copier {
    /// Ends our own, and its copies with it.
    fn drop(&mut self) {
        let Some(pid) = self.pid else { return };
        // SAFETY: no memory is passed; our own child, which nobody else waits for, so the number is still its.
        unsafe {
            libc::kill(pid, libc::SIGKILL);
            libc::waitpid(pid, std::ptr::null_mut(), 0);
        }
    }
}

impl Copied {
    /// Whether it has ended, or never came to be, within `limit`. A signal ends the wait early.
    pub fn has_ended(&self, limit: Duration) -> bool {
        // What cannot be asked is not waited for.
        is_readable(self.0.as_fd(), Some(limit)).unwrap_or(true)
    }

    /// Why it did not come to be, for one that has ended; `None` where it did.
    pub fn refusal(&self) -> Option<io::Error> {
        let mut error = [0; 4];
        match rustix::io::read(&self.0, &mut error) {
            Ok(4) => Some(io::Error::from_raw_os_error(i32::from_ne_bytes(error))),
            _ => None,
        }
    }
}

impl Caller {
    /// Whether the caller has dropped its [`Copied`], or ended, within `limit`.
    pub fn is_gone(&self, limit: Duration) -> bool {
        // Of a pipe's writing end nothing but an error is heard: that nobody reads it any more.
        let mut polled = [PollFd::new(&self.0, PollFlags::empty())];
        let limit = Timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(limit.subsec_nanos()),
        };
        match rustix::event::poll(&mut polled, Some(&limit)) {
            Ok(n) => n > 0,
            Err(e) => e != Errno::INTR,
        }
    }

    /// Says why there is no copy.
    fn refuse(&self, errno: i32) {
        // Where nobody reads it nobody needs it.
        let _ = rustix::io::write(&self.0, &errno.to_ne_bytes());
    }
}

impl Order {
    /// Who wants it; the numbers and the descriptors that were given, which mean what caller and job have agreed on.
    pub fn into_parts(self) -> (Caller, [u64; NUMBERS], Vec<OwnedFd>) {
        (self.caller, self.numbers, self.fds)
    }
}

/// The one listening socket that systemd left this process (`sd_listen_fds(3)`).
pub fn inherited_socket() -> Result<OwnedFd> {
    /// The first of them.
    const FIRST: i32 = 3;
    let none = |why: &str| Error::io("take", "the socket of systemd", io::Error::other(why.to_owned()));
    let told = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u32>().ok());
    if told("LISTEN_PID") != Some(std::process::id()) || told("LISTEN_FDS") != Some(1) {
        return Err(none("this process was given none"));
    }
    // SAFETY: asks for flags of a descriptor, whether there is one or not.
    if unsafe { libc::fcntl(FIRST, libc::F_GETFD) } < 0 {
        return Err(none("the one that it was given is closed"));
    }
    // SAFETY: open, told by whoever started this process to be its own, and nobody else uses it.
    let socket = unsafe { OwnedFd::from_raw_fd(FIRST) };
    let kind = rustix::net::sockopt::socket_type(&socket).map_err(|e| none(&e.to_string()))?;
    if kind != SocketType::SEQPACKET {
        return Err(none("it is none for messages in order (ListenSequentialPacket=)"));
    }
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC).map_err(|e| none(&e.to_string()))?;
    Ok(socket)
}

/// The next who connects, and as which user.
pub fn accept(listening: &OwnedFd) -> Result<(OwnedFd, u32)> {
    let refused = |e: Errno| Error::io("accept", "who connects", e.into());
    let orders = rustix::net::accept_with(listening, SocketFlags::CLOEXEC).map_err(refused)?;
    let who = rustix::net::sockopt::socket_peercred(&orders).map_err(refused)?;
    Ok((orders, who.uid.as_raw()))
}

/// Takes orders until nobody can give any more: `job` runs in a copy in the group of each. To be called in a process of
/// one thread, which is called `name` from then on where processes are listed, as its copies are.
pub fn serve(orders: &impl AsFd, name: &CStr, job: &dyn Fn(Order)) {
    // SAFETY: a C string that lives across the call, which copies it.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr(), 0, 0, 0) };
    let orders = orders.as_fd();
    let caught = child::set_of(&[libc::SIGCHLD]);
    let before = child::Mask::change(libc::SIG_BLOCK, &caught);
    // SAFETY: a function that does nothing; without it the signal would not end the wait.
    unsafe { libc::signal(libc::SIGCHLD, nothing as *const () as libc::sighandler_t) };
    loop {
        // No zombie stays until the next order.
        // SAFETY: no memory is passed; every child is a copy, and nobody else waits for them.
        while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
        if !wait_for(orders, &before.0) {
            continue;
        }
        match receive(orders) {
            Ok(Some((order, group))) => make(order, &group, job),
            Ok(None) => {}
            Err(_) => break,
        }
    }
    child::Mask::change(libc::SIG_SETMASK, &before.0);
}

extern "C" fn nothing(_: libc::c_int) {}

/// Whether there is something to read, with the signals of `mask` alone blocked meanwhile; false after a signal.
fn wait_for(orders: BorrowedFd<'_>, mask: &libc::sigset_t) -> bool {
    let mut polled = libc::pollfd { fd: orders.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: both live across the call.
    let ready = unsafe { libc::ppoll(&raw mut polled, 1, std::ptr::null(), mask) };
    ready > 0
}

/// One order and the group it is for; `None` for one that is none. An error once nobody can give any.
fn receive(orders: BorrowedFd<'_>) -> io::Result<Option<(Order, OwnedFd)>> {
    let mut bytes = [0; NUMBERS * 8];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_FDS + 2))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let got = rustix::net::recvmsg(orders, &mut [IoSliceMut::new(&mut bytes)], &mut rights, flags)?;
    let fds: Vec<OwnedFd> = rights
        .drain()
        .filter_map(|m| match m {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        .collect();
    if got.bytes == 0 && fds.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut fds = fds.into_iter();
    let (Some(caller), Some(group), true) = (fds.next(), fds.next(), got.bytes == bytes.len()) else {
        return Ok(None);
    };
    let mut numbers = [0; NUMBERS];
    for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
        *number = u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
    }
    Ok(Some((Order { numbers, fds: fds.collect(), caller: Caller(caller) }, group)))
}

/// Has an order done by a copy. Whoever gave it is told where there can be none.
fn make(order: Order, group: &OwnedFd, job: &dyn Fn(Order)) {
    let parent = std::process::id();
    let is_directory =
        rustix::fs::fstat(group).is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::Directory);
    // SAFETY: this process has one thread, so its copy may do anything.
    let pid = if is_directory { copy_into(group) } else { unsafe { libc::fork() }.into() };
    if pid == 0 {
        if dies_with(parent) {
            match if is_directory { Ok(()) } else { go_into(group) } {
                Ok(()) => {
                    usual_signals();
                    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| job(order)));
                }
                Err(e) => order.caller.refuse(e.raw_os_error()),
            }
        }
        detached::end()
    }
    if pid < 0 {
        order.caller.refuse(crate::error::errno());
    }
}

/// As fork(2) does, with the copy in the group whose directory this is (version 2).
fn copy_into(group: &OwnedFd) -> libc::c_long {
    // SAFETY: all zero is a valid clone_args.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = CLONE_INTO_CGROUP;
    args.exit_signal = libc::SIGCHLD as u64;
    args.cgroup = u64::from(group.as_raw_fd().cast_unsigned());
    // SAFETY: without CLONE_VM the child has its own copy of this process, which has one thread, as after fork. What
    // the C library remembers of its thread number is its parent's: nothing here asks for it.
    unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, size_of::<libc::clone_args>()) }
}

/// Moves this process, of one thread, into the group whose `tasks` this is (version 1). Of several threads it would move
/// the one that calls, whose memory is charged to the group of the first.
fn go_into(tasks: &OwnedFd) -> rustix::io::Result<()> {
    rustix::io::write(tasks, b"0").map(|_| ())
}

/// Has this process killed when `parent` ends; false when that has happened already.
fn dies_with(parent: u32) -> bool {
    // SAFETY: integers only.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        libc::getppid() == parent.cast_signed()
    }
}

/// Signals do what they do in any process, but a pipe that nobody reads is an error.
fn usual_signals() {
    // SAFETY: constants, and a set that lives across the call.
    unsafe {
        for signal in [libc::SIGCHLD, libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
    }
    child::Mask::change(libc::SIG_SETMASK, &child::set_of(&[]));
}

#[cfg(test)]
mod tests;
