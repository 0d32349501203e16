//! Which system calls the observer stops at, per ABI, and where their arguments lie.
//!
//! Numbers are written out instead of taken from `libc::SYS_*`, because a 64-bit kernel also runs
//! programs of its 32-bit ABI, whose numbers libc does not export. Sources: arch/x86/entry/syscalls/
//! `syscall_64.tbl` and `syscall_32.tbl`, include/uapi/asm-generic/unistd.h, arch/arm/tools/syscall.tbl.

/// What the call does, as far as the observer cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallKind {
    /// Opens a file; the flags are found there.
    Open(Flags),
    /// Replaces the program.
    Exec,
    /// Resolves a path and opens nothing.
    Lookup,
    /// `ptrace` by the observed program itself, which cannot work under observation.
    Ptrace,
    /// `io_uring_setup`: opens through the ring make no system call of the open family.
    IoUring,
}

/// Where the open flags lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flags {
    /// In this argument.
    Arg(usize),
    /// In the first word of the structure this argument points to (`openat2`).
    Pointer(usize),
    /// Nowhere: `creat` always creates, truncates and writes.
    Create,
}

/// Where the path lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Path {
    /// Argument 0, relative to the working directory.
    Cwd,
    /// Argument 1, relative to the directory descriptor in argument 0.
    At,
    /// The call takes none.
    None,
}

/// One system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    /// Number, its ABI's `ignored_bits` cleared.
    pub(super) nr: u32,
    /// What it does.
    pub(super) kind: CallKind,
    /// Where its path lies.
    pub(super) path: Path,
    /// The argument in which `AT_EMPTY_PATH` makes it look at a descriptor instead of a path: the
    /// filter lets such calls pass (`fstat` of glibc since 2.33 is one, the most frequent of all).
    pub(super) empty_path_arg: Option<u32>,
}

const fn call(nr: u32, kind: CallKind, path: Path) -> Call {
    Call { nr, kind, path, empty_path_arg: None }
}
const fn stat_at(nr: u32, flags: u32) -> Call {
    Call { nr, kind: CallKind::Lookup, path: Path::At, empty_path_arg: Some(flags) }
}

/// The system calls of one ABI.
#[derive(Debug)]
pub(super) struct Abi {
    /// `AUDIT_ARCH_*`.
    pub(super) arch: u32,
    /// Bits of the number that do not distinguish calls (x32 sets bit 30 on the x86-64 numbers).
    pub(super) ignored_bits: u32,
    /// The calls stopped at.
    pub(super) calls: &'static [Call],
}

use CallKind::{Exec, IoUring, Lookup, Open, Ptrace};
use Path::{At, Cwd, None as NoPath};

#[cfg(target_arch = "x86_64")]
pub(super) const ABIS: &[Abi] = &[
    Abi {
        arch: 0xC000_003E, // AUDIT_ARCH_X86_64
        ignored_bits: 0x4000_0000,
        calls: &[
            call(2, Open(Flags::Arg(1)), Cwd),
            call(85, Open(Flags::Create), Cwd),
            call(257, Open(Flags::Arg(2)), At),
            call(437, Open(Flags::Pointer(2)), At),
            call(304, Open(Flags::Arg(2)), NoPath), // open_by_handle_at
            call(59, Exec, Cwd),
            call(322, Exec, At),
            call(520, Exec, Cwd), // x32
            call(545, Exec, At),  // x32
            call(4, Lookup, Cwd),
            call(6, Lookup, Cwd),
            stat_at(262, 3), // newfstatat
            stat_at(332, 2), // statx
            call(21, Lookup, Cwd),
            call(269, Lookup, At),
            call(439, Lookup, At),
            call(89, Lookup, Cwd),
            call(267, Lookup, At),
            call(101, Ptrace, NoPath),
            call(521, Ptrace, NoPath), // x32
            call(425, IoUring, NoPath),
        ],
    },
    Abi {
        arch: 0x4000_0003, // AUDIT_ARCH_I386
        ignored_bits: 0,
        calls: &[
            call(5, Open(Flags::Arg(1)), Cwd),
            call(8, Open(Flags::Create), Cwd),
            call(295, Open(Flags::Arg(2)), At),
            call(437, Open(Flags::Pointer(2)), At),
            call(342, Open(Flags::Arg(2)), NoPath),
            call(11, Exec, Cwd),
            call(358, Exec, At),
            call(18, Lookup, Cwd),  // oldstat
            call(84, Lookup, Cwd),  // oldlstat
            call(106, Lookup, Cwd), // stat
            call(107, Lookup, Cwd), // lstat
            call(195, Lookup, Cwd), // stat64
            call(196, Lookup, Cwd), // lstat64
            stat_at(300, 3),        // fstatat64
            stat_at(383, 2),        // statx
            call(33, Lookup, Cwd),
            call(307, Lookup, At),
            call(439, Lookup, At),
            call(85, Lookup, Cwd),
            call(305, Lookup, At),
            call(26, Ptrace, NoPath),
            call(425, IoUring, NoPath),
        ],
    },
];

#[cfg(target_arch = "aarch64")]
pub(super) const ABIS: &[Abi] = &[
    Abi {
        arch: 0xC000_00B7, // AUDIT_ARCH_AARCH64
        ignored_bits: 0,
        calls: &[
            call(56, Open(Flags::Arg(2)), At),
            call(437, Open(Flags::Pointer(2)), At),
            call(265, Open(Flags::Arg(2)), NoPath),
            call(221, Exec, Cwd),
            call(281, Exec, At),
            stat_at(79, 3),
            stat_at(291, 2),
            call(48, Lookup, At),
            call(439, Lookup, At),
            call(78, Lookup, At),
            call(117, Ptrace, NoPath),
            call(425, IoUring, NoPath),
        ],
    },
    Abi {
        arch: 0x4000_0028, // AUDIT_ARCH_ARM
        ignored_bits: 0,
        calls: &[
            call(5, Open(Flags::Arg(1)), Cwd),
            call(8, Open(Flags::Create), Cwd),
            call(322, Open(Flags::Arg(2)), At),
            call(437, Open(Flags::Pointer(2)), At),
            call(371, Open(Flags::Arg(2)), NoPath),
            call(11, Exec, Cwd),
            call(387, Exec, At),
            call(106, Lookup, Cwd),
            call(107, Lookup, Cwd),
            call(195, Lookup, Cwd),
            call(196, Lookup, Cwd),
            stat_at(327, 3),
            stat_at(397, 2),
            call(33, Lookup, Cwd),
            call(334, Lookup, At),
            call(439, Lookup, At),
            call(85, Lookup, Cwd),
            call(332, Lookup, At),
            call(26, Ptrace, NoPath),
            call(425, IoUring, NoPath),
        ],
    },
];

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("observe: the table of system calls for this architecture is missing");

/// The call with this number in this ABI, if the observer stops at it.
pub(super) fn find(arch: u32, nr: u64) -> Option<&'static Call> {
    let abi = ABIS.iter().find(|abi| abi.arch == arch)?;
    let nr = u32::try_from(nr).ok()? & !abi.ignored_bits;
    abi.calls.iter().find(|call| call.nr == nr)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// The calls by the names that the kernel's headers have for their numbers.
    fn named(name: &str) -> Option<(CallKind, Path)> {
        Some(match name {
            "open" => (Open(Flags::Arg(1)), Cwd),
            "creat" => (Open(Flags::Create), Cwd),
            "openat" => (Open(Flags::Arg(2)), At),
            "openat2" => (Open(Flags::Pointer(2)), At),
            "open_by_handle_at" => (Open(Flags::Arg(2)), NoPath),
            "execve" => (Exec, Cwd),
            "execveat" => (Exec, At),
            "stat" | "lstat" | "oldstat" | "oldlstat" | "stat64" | "lstat64" | "access" | "readlink" => {
                (Lookup, Cwd)
            }
            "newfstatat" | "fstatat64" | "statx" | "faccessat" | "faccessat2" | "readlinkat" => (Lookup, At),
            "ptrace" => (Ptrace, NoPath),
            "io_uring_setup" => (IoUring, NoPath),
            _ => return None,
        })
    }

    fn agrees(header: &str, arch: u32) {
        // Debian's place, then that of others; in linux-libc-dev.
        let paths =
            ["/usr/include/x86_64-linux-gnu/asm", "/usr/include/asm"].map(|dir| format!("{dir}/{header}"));
        let text = paths.iter().find_map(|path| std::fs::read_to_string(path).ok());
        let text = text.expect("the kernel's headers, on which those of the C library depend");
        let mut seen = 0;
        for line in text.lines() {
            // `#define __NR_openat 257`, in x32's `(__X32_SYSCALL_BIT + 257)`.
            let Some((name, number)) = line.strip_prefix("#define __NR_").and_then(|l| l.split_once(' '))
            else {
                continue;
            };
            let digits = number.trim_start_matches("(__X32_SYSCALL_BIT + ").trim_end_matches(')');
            let Ok(nr) = digits.parse::<u64>() else { continue };
            let nr = if digits == number { nr } else { nr | 0x4000_0000 };
            let found = find(arch, nr).map(|call| (call.kind, call.path));
            assert_eq!(found, named(name), "{header}: {name} is {number}");
            seen += 1;
        }
        assert!(seen > 300, "{header} has other lines than expected: {seen}");
    }

    #[test]
    fn the_tables_have_the_numbers_of_the_kernels_headers() {
        agrees("unistd_64.h", 0xC000_003E);
        agrees("unistd_32.h", 0x4000_0003);
        agrees("unistd_x32.h", 0xC000_003E);
    }

    #[test]
    fn a_number_of_another_size_or_architecture_is_no_call() {
        assert!(find(0xC000_003E, 2).is_some());
        assert!(find(0xC000_003E, 2 | 1 << 32).is_none());
        assert!(find(0x4000_0003, 0x4000_0005).is_none(), "only x32 has that bit");
        assert!(find(0xC000_00B7, 56).is_none(), "another architecture's");
    }
}
