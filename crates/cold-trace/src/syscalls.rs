//! System calls by what they mean for a start. Numbers are those of the architecture this is built for.

mod names;

pub use names::name;

use cold_model::recording::LookupKind;

/// What a system call is to a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Resolves a path, or lists a directory.
    Lookup(LookupKind),
    /// Inodes and directories by descriptor or address: fstat, fchdir, …
    Directory,
    /// Reads file contents.
    Read,
    /// Writes or syncs.
    Write,
    /// Asks for pages, or gives them up.
    Advice,
    /// Makes a process; vfork waits for it uninterruptibly.
    Clone,
    Other,
}

/// The class of a number; negative: none is in progress.
pub(crate) fn class(number: i32) -> Class {
    let number = libc::c_long::from(number);
    legacy(number).unwrap_or_else(|| common(number))
}

/// Calls that only older architectures have.
#[cfg(target_arch = "x86_64")]
fn legacy(number: libc::c_long) -> Option<Class> {
    use Class::{Clone, Lookup};
    Some(match number {
        libc::SYS_open | libc::SYS_creat => Lookup(LookupKind::Open),
        libc::SYS_stat | libc::SYS_lstat => Lookup(LookupKind::Stat),
        libc::SYS_access => Lookup(LookupKind::Access),
        libc::SYS_readlink => Lookup(LookupKind::Readlink),
        libc::SYS_getdents => Lookup(LookupKind::List),
        libc::SYS_mkdir
        | libc::SYS_rmdir
        | libc::SYS_mknod
        | libc::SYS_unlink
        | libc::SYS_rename
        | libc::SYS_link
        | libc::SYS_symlink => Lookup(LookupKind::Change),
        libc::SYS_chmod | libc::SYS_chown | libc::SYS_lchown | libc::SYS_utime | libc::SYS_utimes => {
            Lookup(LookupKind::Other)
        }
        libc::SYS_fork | libc::SYS_vfork => Clone,
        _ => return None,
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn legacy(_: libc::c_long) -> Option<Class> {
    None
}

fn common(number: libc::c_long) -> Class {
    match number {
        libc::SYS_openat | libc::SYS_openat2 => Class::Lookup(LookupKind::Open),
        libc::SYS_newfstatat | libc::SYS_statx => Class::Lookup(LookupKind::Stat),
        libc::SYS_faccessat | libc::SYS_faccessat2 => Class::Lookup(LookupKind::Access),
        libc::SYS_readlinkat => Class::Lookup(LookupKind::Readlink),
        libc::SYS_execve | libc::SYS_execveat => Class::Lookup(LookupKind::Exec),
        libc::SYS_getdents64 => Class::Lookup(LookupKind::List),
        libc::SYS_mkdirat
        | libc::SYS_mknodat
        | libc::SYS_unlinkat
        | libc::SYS_renameat
        | libc::SYS_renameat2
        | libc::SYS_linkat
        | libc::SYS_symlinkat
        // A socket's address may be a path, which is made. (A network is no storage: nobody waits for it
        // uninterruptibly.)
        | libc::SYS_bind => Class::Lookup(LookupKind::Change),
        libc::SYS_chdir
        | libc::SYS_chroot
        | libc::SYS_statfs
        | libc::SYS_truncate
        | libc::SYS_fchmodat
        | libc::SYS_fchownat
        | libc::SYS_utimensat
        | libc::SYS_getxattr
        | libc::SYS_lgetxattr
        | libc::SYS_inotify_add_watch
        | libc::SYS_connect => Class::Lookup(LookupKind::Other),
        libc::SYS_fstat | libc::SYS_fstatfs | libc::SYS_fchdir | libc::SYS_fgetxattr => Class::Directory,
        libc::SYS_read
        | libc::SYS_pread64
        | libc::SYS_readv
        | libc::SYS_preadv
        | libc::SYS_preadv2
        | libc::SYS_sendfile
        | libc::SYS_splice
        | libc::SYS_copy_file_range
        | libc::SYS_finit_module => Class::Read,
        libc::SYS_write
        | libc::SYS_pwrite64
        | libc::SYS_writev
        | libc::SYS_pwritev
        | libc::SYS_pwritev2
        | libc::SYS_fsync
        | libc::SYS_fdatasync
        | libc::SYS_sync
        | libc::SYS_syncfs
        | libc::SYS_sync_file_range
        | libc::SYS_msync
        | libc::SYS_ftruncate
        | libc::SYS_fallocate => Class::Write,
        libc::SYS_readahead
        | libc::SYS_fadvise64
        | libc::SYS_madvise
        | libc::SYS_process_madvise
        | libc::SYS_mmap
        | libc::SYS_mlock
        | libc::SYS_mlock2
        | libc::SYS_mlockall => Class::Advice,
        libc::SYS_clone | libc::SYS_clone3 => Class::Clone,
        _ => Class::Other,
    }
}
