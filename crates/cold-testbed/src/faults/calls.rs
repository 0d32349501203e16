//! The system calls that can fail for reasons outside the program, and with which errors.
//!
//! Left out are calls that only a wrong program can make fail (`close` of an open descriptor, `futex`, `munmap`),
//! and those whose errors the kernel does not give to the calls as programs make them.

use libc::{
    EACCES, EAGAIN, EDQUOT, EINTR, EIO, EMFILE, ENFILE, ENOBUFS, ENODEV, ENOENT, ENOMEM, ENOSPC, ENOSYS,
    EPERM,
};

/// Where the call's arguments say what it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    /// A path in this argument.
    Path(usize),
    /// A path in the second of these, relative to the directory in the first.
    At(usize, usize),
    /// A descriptor in this argument.
    Descriptor(usize),
    /// A descriptor in the fifth argument of `mmap`, if any.
    Mapping,
    /// Nothing that has a name.
    Nothing,
}

/// One system call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) nr: i64,
    pub(super) name: &'static str,
    pub(super) about: About,
    pub(super) errors: &'static [i32],
}

use About::{At, Descriptor, Mapping, Nothing, Path};

const OPEN: &[i32] = &[ENOSPC, EIO, EMFILE, ENOMEM, EINTR, EACCES];
const LOOK: &[i32] = &[EIO, ENOMEM, EACCES];
const CHANGE: &[i32] = &[ENOSPC, EIO, EDQUOT, EACCES];
const REMOVE: &[i32] = &[EIO, EACCES];
const WRITE: &[i32] = &[ENOSPC, EIO, EINTR, EDQUOT];
const READ: &[i32] = &[EIO, EINTR];
const SYNC: &[i32] = &[EIO, ENOSPC, EDQUOT];
const DESCRIPTORS: &[i32] = &[EMFILE, ENFILE, ENOMEM];
const PROCESS: &[i32] = &[EAGAIN, ENOMEM];
const EXEC: &[i32] = &[ENOMEM, EIO, EACCES];
const WAIT: &[i32] = &[EINTR];
const MAP: &[i32] = &[ENOMEM];

macro_rules! calls {
    ($($(#[$cfg:meta])? $number:ident $name:literal $about:expr, $errors:expr;)*) => {
        &[$($(#[$cfg])? Call { nr: libc::$number, name: $name, about: $about, errors: $errors },)*]
    };
}

/// The calls, in no order.
pub(super) const CALLS: &[Call] = calls! {
    #[cfg(target_arch = "x86_64")] SYS_open "open" Path(0), OPEN;
    #[cfg(target_arch = "x86_64")] SYS_creat "creat" Path(0), OPEN;
    #[cfg(target_arch = "x86_64")] SYS_stat "stat" Path(0), LOOK;
    #[cfg(target_arch = "x86_64")] SYS_lstat "lstat" Path(0), LOOK;
    #[cfg(target_arch = "x86_64")] SYS_access "access" Path(0), LOOK;
    #[cfg(target_arch = "x86_64")] SYS_readlink "readlink" Path(0), LOOK;
    #[cfg(target_arch = "x86_64")] SYS_rename "rename" Path(1), CHANGE;
    #[cfg(target_arch = "x86_64")] SYS_link "link" Path(1), CHANGE;
    #[cfg(target_arch = "x86_64")] SYS_symlink "symlink" Path(1), CHANGE;
    #[cfg(target_arch = "x86_64")] SYS_mkdir "mkdir" Path(0), CHANGE;
    #[cfg(target_arch = "x86_64")] SYS_rmdir "rmdir" Path(0), REMOVE;
    #[cfg(target_arch = "x86_64")] SYS_unlink "unlink" Path(0), REMOVE;
    #[cfg(target_arch = "x86_64")] SYS_chmod "chmod" Path(0), REMOVE;
    #[cfg(target_arch = "x86_64")] SYS_poll "poll" Nothing, WAIT;
    #[cfg(target_arch = "x86_64")] SYS_select "select" Nothing, WAIT;
    #[cfg(target_arch = "x86_64")] SYS_epoll_wait "epoll_wait" Nothing, WAIT;
    #[cfg(target_arch = "x86_64")] SYS_pipe "pipe" Nothing, DESCRIPTORS;
    #[cfg(target_arch = "x86_64")] SYS_dup2 "dup2" Descriptor(0), &[EINTR];
    #[cfg(target_arch = "x86_64")] SYS_fork "fork" Nothing, PROCESS;
    #[cfg(target_arch = "x86_64")] SYS_vfork "vfork" Nothing, PROCESS;
    SYS_openat "openat" At(0, 1), OPEN;
    SYS_openat2 "openat2" At(0, 1), OPEN;
    SYS_newfstatat "newfstatat" At(0, 1), LOOK;
    SYS_statx "statx" At(0, 1), LOOK;
    SYS_fstat "fstat" Descriptor(0), &[EIO, ENOMEM];
    SYS_statfs "statfs" Path(0), LOOK;
    SYS_fstatfs "fstatfs" Descriptor(0), &[EIO];
    SYS_faccessat "faccessat" At(0, 1), LOOK;
    SYS_faccessat2 "faccessat2" At(0, 1), LOOK;
    SYS_readlinkat "readlinkat" At(0, 1), LOOK;
    SYS_renameat "renameat" At(2, 3), CHANGE;
    SYS_renameat2 "renameat2" At(2, 3), CHANGE;
    SYS_linkat "linkat" At(2, 3), CHANGE;
    SYS_symlinkat "symlinkat" At(1, 2), CHANGE;
    SYS_mkdirat "mkdirat" At(0, 1), CHANGE;
    SYS_unlinkat "unlinkat" At(0, 1), REMOVE;
    SYS_fchmod "fchmod" Descriptor(0), REMOVE;
    SYS_fchmodat "fchmodat" At(0, 1), REMOVE;
    SYS_fchown "fchown" Descriptor(0), &[EIO, EPERM];
    SYS_ftruncate "ftruncate" Descriptor(0), &[EIO, ENOSPC, EINTR];
    SYS_fallocate "fallocate" Descriptor(0), WRITE;
    SYS_utimensat "utimensat" At(0, 1), REMOVE;
    SYS_getdents64 "getdents64" Descriptor(0), &[EIO, ENOMEM];
    SYS_chdir "chdir" Path(0), LOOK;
    SYS_getcwd "getcwd" Nothing, &[ENOENT, ENOMEM];
    SYS_read "read" Descriptor(0), READ;
    SYS_readv "readv" Descriptor(0), READ;
    SYS_pread64 "pread64" Descriptor(0), READ;
    SYS_preadv2 "preadv2" Descriptor(0), READ;
    SYS_write "write" Descriptor(0), WRITE;
    SYS_writev "writev" Descriptor(0), WRITE;
    SYS_pwrite64 "pwrite64" Descriptor(0), WRITE;
    SYS_copy_file_range "copy_file_range" Descriptor(2), WRITE;
    SYS_sendfile "sendfile" Descriptor(0), WRITE;
    SYS_fsync "fsync" Descriptor(0), SYNC;
    SYS_fdatasync "fdatasync" Descriptor(0), SYNC;
    SYS_syncfs "syncfs" Descriptor(0), SYNC;
    SYS_flock "flock" Descriptor(0), &[EINTR, ENOMEM];
    SYS_lseek "lseek" Descriptor(0), &[EIO];
    SYS_ioctl "ioctl" Descriptor(0), &[EIO, ENOMEM];
    SYS_fcntl "fcntl" Descriptor(0), &[EMFILE];
    SYS_dup3 "dup3" Descriptor(0), &[EINTR];
    SYS_pipe2 "pipe2" Nothing, DESCRIPTORS;
    SYS_eventfd2 "eventfd2" Nothing, DESCRIPTORS;
    SYS_memfd_create "memfd_create" Nothing, DESCRIPTORS;
    SYS_epoll_create1 "epoll_create1" Nothing, DESCRIPTORS;
    SYS_epoll_ctl "epoll_ctl" Descriptor(0), &[ENOMEM, ENOSPC];
    SYS_signalfd4 "signalfd4" Nothing, DESCRIPTORS;
    SYS_timerfd_create "timerfd_create" Nothing, DESCRIPTORS;
    SYS_inotify_init1 "inotify_init1" Nothing, DESCRIPTORS;
    SYS_pidfd_open "pidfd_open" Nothing, DESCRIPTORS;
    SYS_socket "socket" Nothing, &[EMFILE, ENOBUFS, EACCES];
    SYS_socketpair "socketpair" Nothing, DESCRIPTORS;
    SYS_sendmsg "sendmsg" Descriptor(0), &[EINTR, ENOBUFS, ENOMEM];
    SYS_sendto "sendto" Descriptor(0), &[EINTR, ENOBUFS];
    SYS_recvmsg "recvmsg" Descriptor(0), &[EINTR, ENOMEM];
    SYS_recvfrom "recvfrom" Descriptor(0), &[EINTR];
    SYS_mmap "mmap" Mapping, MAP;
    SYS_mremap "mremap" Nothing, MAP;
    SYS_mprotect "mprotect" Nothing, MAP;
    SYS_madvise "madvise" Nothing, &[ENOMEM, EIO, EAGAIN];
    SYS_mincore "mincore" Nothing, &[ENOMEM, EAGAIN];
    SYS_mlock "mlock" Nothing, &[ENOMEM, EAGAIN];
    SYS_fadvise64 "fadvise64" Descriptor(0), &[EIO, EINTR];
    SYS_readahead "readahead" Descriptor(0), &[EIO, EINTR];
    SYS_clone "clone" Nothing, PROCESS;
    SYS_clone3 "clone3" Nothing, PROCESS;
    SYS_execve "execve" Path(0), EXEC;
    SYS_execveat "execveat" At(0, 1), EXEC;
    SYS_wait4 "wait4" Nothing, WAIT;
    SYS_waitid "waitid" Nothing, WAIT;
    SYS_ppoll "ppoll" Nothing, &[EINTR, ENOMEM];
    SYS_pselect6 "pselect6" Nothing, WAIT;
    SYS_epoll_pwait "epoll_pwait" Nothing, WAIT;
    SYS_nanosleep "nanosleep" Nothing, WAIT;
    SYS_clock_nanosleep "clock_nanosleep" Nothing, WAIT;
    SYS_getrandom "getrandom" Nothing, WAIT;
    SYS_mount "mount" Path(1), &[EPERM, ENODEV, ENOMEM];
    SYS_umount2 "umount2" Path(0), &[EPERM];
    SYS_unshare "unshare" Nothing, &[EPERM, ENOMEM, ENOSPC];
    SYS_bpf "bpf" Nothing, &[EPERM, ENOMEM, EMFILE];
    SYS_perf_event_open "perf_event_open" Nothing, &[EPERM, ENOMEM, EMFILE];
    SYS_io_uring_setup "io_uring_setup" Nothing, &[ENOSYS, ENOMEM, EMFILE];
    SYS_io_uring_enter "io_uring_enter" Nothing, &[EINTR, EAGAIN];
    SYS_prlimit64 "prlimit64" Nothing, &[EPERM];
    SYS_setpriority "setpriority" Nothing, &[EACCES];
    SYS_sched_getaffinity "sched_getaffinity" Nothing, &[EPERM];
    SYS_seccomp "seccomp" Nothing, &[EPERM, ENOMEM];
};

/// The call of that number, if it is one of them and can fail when made like this.
pub(super) fn find(nr: i64, args: &[u64; 6]) -> Option<&'static Call> {
    // Rust's library asks for the flags of each descriptor before it is closed; that needs no new one.
    let duplicates = || [libc::F_DUPFD, libc::F_DUPFD_CLOEXEC].contains(&(args[1] as i32));
    CALLS.iter().find(|call| call.nr == nr).filter(|call| call.nr != libc::SYS_fcntl || duplicates())
}

/// The call of that name.
pub(super) fn named(name: &str) -> Option<&'static Call> {
    CALLS.iter().find(|call| call.name == name)
}

/// The errors of this module by name.
pub(super) fn errno_name(errno: i32) -> &'static str {
    const NAMES: &[(i32, &str)] = &[
        (EACCES, "EACCES"),
        (EAGAIN, "EAGAIN"),
        (EDQUOT, "EDQUOT"),
        (EINTR, "EINTR"),
        (EIO, "EIO"),
        (EMFILE, "EMFILE"),
        (ENFILE, "ENFILE"),
        (ENOBUFS, "ENOBUFS"),
        (ENODEV, "ENODEV"),
        (ENOENT, "ENOENT"),
        (ENOMEM, "ENOMEM"),
        (ENOSPC, "ENOSPC"),
        (ENOSYS, "ENOSYS"),
        (EPERM, "EPERM"),
    ];
    NAMES.iter().find(|(number, _)| *number == errno).map_or("another error", |(_, name)| name)
}
