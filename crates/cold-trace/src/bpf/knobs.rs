//! The constants that the programs are loaded with (`struct cold_knobs` in `state.h`).

use super::support::Shapes;
use super::{Scope, Stacks};

const CALL_NUMBERS: usize = 512;

/// What a system call is to the programs: `enum cold_call_class`.
#[derive(Clone, Copy)]
enum Class {
    #[cfg(target_arch = "x86_64")]
    Open = 1,
    OpenAt = 2,
    OpenAt2,
    #[cfg(target_arch = "x86_64")]
    Creat,
    #[cfg(target_arch = "x86_64")]
    Path,
    PathAt = 6,
    Exec,
    ExecAt,
    List,
    Read,
    Pread,
    Sendfile,
    Copy,
    AdviceFd,
    Advice,
    Mmap,
}

/// arm64 has only the calls with a directory.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: [(libc::c_long, Class); 6] = [
    (libc::SYS_open, Class::Open),
    (libc::SYS_creat, Class::Creat),
    (libc::SYS_stat, Class::Path),
    (libc::SYS_lstat, Class::Path),
    (libc::SYS_access, Class::Path),
    (libc::SYS_readlink, Class::Path),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: [(libc::c_long, Class); 0] = [];

const CALLS: [(libc::c_long, Class); 22] = [
    (libc::SYS_openat, Class::OpenAt),
    (libc::SYS_openat2, Class::OpenAt2),
    (libc::SYS_newfstatat, Class::PathAt),
    (libc::SYS_statx, Class::PathAt),
    (libc::SYS_faccessat, Class::PathAt),
    (libc::SYS_faccessat2, Class::PathAt),
    (libc::SYS_readlinkat, Class::PathAt),
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
    (libc::SYS_readahead, Class::AdviceFd),
    (libc::SYS_fadvise64, Class::AdviceFd),
    (libc::SYS_madvise, Class::Advice),
    (libc::SYS_mmap, Class::Mmap),
];

/// The bytes of `struct cold_knobs`.
pub(super) fn bytes(shapes: Shapes, tier_b: bool, scope: Scope, stacks: Stacks) -> Vec<u8> {
    let stacks = match stacks {
        Stacks::None => 0,
        Stacks::FramePointers => 1,
        Stacks::Copy => 2,
    };
    let words = [
        std::process::id(),
        u32::from(scope == Scope::Machine),
        u32::from(tier_b),
        stacks,
        u32::from(shapes.folio),
        u32::from(shapes.queue_first),
        u32::from(shapes.prev_state),
        u32::from(shapes.io_start),
        u32::from(shapes.page_faults),
        cold_sys::page::page_size().trailing_zeros(),
    ];
    let mut calls = [0; CALL_NUMBERS];
    for (number, class) in CALLS.into_iter().chain(OLD_CALLS) {
        if let Some(slot) = usize::try_from(number).ok().and_then(|n| calls.get_mut(n)) {
            *slot = class as u8;
        }
    }
    words.iter().flat_map(|word| word.to_le_bytes()).chain(calls).collect()
}
