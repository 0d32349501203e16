//! The constants that the programs are loaded with (`struct cold_knobs` in `state.h`).

use super::support::Shapes;
use super::{BpfOptions, Scope, Stacks};

const CALL_NUMBERS: usize = 512;

/// What a system call is to the programs: `enum cold_call_class`. arm64 has only the calls with a directory.
#[derive(Clone, Copy)]
enum Class {
    #[cfg(target_arch = "x86_64")]
    Open = 1,
    OpenAt = 2,
    OpenAt2,
    #[cfg(target_arch = "x86_64")]
    Creat,
    Path = 5,
    PathAt,
    Path2nd,
    SymlinkAt,
    #[cfg(target_arch = "x86_64")]
    Paths,
    PathsAt = 10,
    Exec,
    ExecAt,
    List,
    Read,
    Pread,
    Sendfile,
    Copy,
    Fd,
    AdviceFd,
    Advice,
    Mmap,
    Socket,
    Protect,
}

#[cfg(target_arch = "x86_64")]
const OLD_CALLS: [(libc::c_long, Class); 18] = [
    (libc::SYS_open, Class::Open),
    (libc::SYS_creat, Class::Creat),
    (libc::SYS_stat, Class::Path),
    (libc::SYS_lstat, Class::Path),
    (libc::SYS_access, Class::Path),
    (libc::SYS_readlink, Class::Path),
    (libc::SYS_mkdir, Class::Path),
    (libc::SYS_rmdir, Class::Path),
    (libc::SYS_mknod, Class::Path),
    (libc::SYS_unlink, Class::Path),
    (libc::SYS_chmod, Class::Path),
    (libc::SYS_chown, Class::Path),
    (libc::SYS_lchown, Class::Path),
    (libc::SYS_utime, Class::Path),
    (libc::SYS_utimes, Class::Path),
    (libc::SYS_symlink, Class::Path2nd),
    (libc::SYS_rename, Class::Paths),
    (libc::SYS_link, Class::Paths),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: [(libc::c_long, Class); 0] = [];

const CALLS: [(libc::c_long, Class); 53] = [
    (libc::SYS_openat, Class::OpenAt),
    (libc::SYS_openat2, Class::OpenAt2),
    (libc::SYS_newfstatat, Class::PathAt),
    (libc::SYS_statx, Class::PathAt),
    (libc::SYS_faccessat, Class::PathAt),
    (libc::SYS_faccessat2, Class::PathAt),
    (libc::SYS_readlinkat, Class::PathAt),
    (libc::SYS_mkdirat, Class::PathAt),
    (libc::SYS_mknodat, Class::PathAt),
    (libc::SYS_unlinkat, Class::PathAt),
    (libc::SYS_fchmodat, Class::PathAt),
    (libc::SYS_fchownat, Class::PathAt),
    (libc::SYS_utimensat, Class::PathAt),
    (libc::SYS_chdir, Class::Path),
    (libc::SYS_chroot, Class::Path),
    (libc::SYS_statfs, Class::Path),
    (libc::SYS_truncate, Class::Path),
    (libc::SYS_getxattr, Class::Path),
    (libc::SYS_lgetxattr, Class::Path),
    (libc::SYS_inotify_add_watch, Class::Path2nd),
    (libc::SYS_symlinkat, Class::SymlinkAt),
    (libc::SYS_linkat, Class::PathsAt),
    (libc::SYS_renameat, Class::PathsAt),
    (libc::SYS_renameat2, Class::PathsAt),
    (libc::SYS_execve, Class::Exec),
    (libc::SYS_execveat, Class::ExecAt),
    (libc::SYS_getdents64, Class::List),
    (libc::SYS_read, Class::Read),
    (libc::SYS_readv, Class::Read),
    (libc::SYS_pread64, Class::Pread),
    (libc::SYS_preadv, Class::Pread),
    (libc::SYS_preadv2, Class::Pread),
    (libc::SYS_sendfile, Class::Sendfile),
    (libc::SYS_splice, Class::Copy),
    (libc::SYS_copy_file_range, Class::Copy),
    (libc::SYS_write, Class::Fd),
    (libc::SYS_pwrite64, Class::Fd),
    (libc::SYS_writev, Class::Fd),
    (libc::SYS_pwritev, Class::Fd),
    (libc::SYS_pwritev2, Class::Fd),
    (libc::SYS_fsync, Class::Fd),
    (libc::SYS_fdatasync, Class::Fd),
    (libc::SYS_sync_file_range, Class::Fd),
    (libc::SYS_ftruncate, Class::Fd),
    (libc::SYS_fallocate, Class::Fd),
    (libc::SYS_readahead, Class::AdviceFd),
    (libc::SYS_fadvise64, Class::AdviceFd),
    (libc::SYS_madvise, Class::Advice),
    (libc::SYS_mmap, Class::Mmap),
    (libc::SYS_connect, Class::Socket),
    (libc::SYS_bind, Class::Socket),
    (libc::SYS_mprotect, Class::Protect),
    (libc::SYS_pkey_mprotect, Class::Protect),
];

/// The bytes of `struct cold_knobs`.
pub(super) fn bytes(shapes: Shapes, tier_b: bool, options: &BpfOptions) -> Vec<u8> {
    let stacks = match options.stacks {
        Stacks::None => 0,
        Stacks::FramePointers => 1,
        Stacks::Copy => 2,
    };
    let (root_dev, root_inode) = root().unwrap_or_default();
    let words = [
        std::process::id(),
        u32::from(options.scope == Scope::Machine),
        u32::from(tier_b),
        stacks,
        u32::from(shapes.folio),
        u32::from(shapes.queue_first),
        u32::from(shapes.prev_state),
        u32::from(shapes.io_start),
        u32::from(shapes.page_faults),
        cold_sys::page::page_size().trailing_zeros(),
        u32::from(options.count_calls),
        u32::from(shapes.walks_areas),
        root_dev,
        root_inode as u32,
        (root_inode >> 32) as u32,
    ];
    let mut calls = [0; CALL_NUMBERS];
    for (number, class) in CALLS.into_iter().chain(OLD_CALLS) {
        if let Some(slot) = usize::try_from(number).ok().and_then(|n| calls.get_mut(n)) {
            *slot = class as u8;
        }
    }
    words.iter().flat_map(|word| word.to_le_bytes()).chain(calls).collect()
}

/// File system, as the kernel numbers it inside, and inode of this process' root directory. `None` inside a chroot whose
/// directory is no mount, and where `/proc` tells nothing.
fn root() -> Option<(u32, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    let mounts = cold_sys::procfs::ProcFs::default().mounts().ok()?;
    let mount = mounts.into_iter().rfind(|m| m.mount_point == std::path::Path::new("/"))?;
    let inode = std::path::Path::new("/").metadata().ok()?.ino();
    Some((mount.dev.major << 20 | mount.dev.minor, inode))
}
