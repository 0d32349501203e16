//! The calls at which a traced thread stops, and the seccomp program that stops it there.

use libc::sock_filter;

use super::super::filter::{
    ALLOW, IF_BITS, IF_EQUAL, LOAD_WORD, OFFSET_ARCH, OFFSET_ARGS, OFFSET_NR, RETURN, TRACE, op, unless_skip,
};

/// Numbers of the calls in one ABI. Sources: as of `observe/calls.rs`.
struct Abi {
    /// `AUDIT_ARCH_*`.
    arch: u32,
    mmap: &'static [u32],
    prctl: &'static [u32],
    sigaction: &'static [u32],
    /// `sched_setaffinity` and `sched_getaffinity`.
    affinity: [u32; 2],
    /// Bytes that one unit of the mapping's offset stands for (`mmap2` counts 4096).
    unit: u64,
}

#[cfg(target_arch = "x86_64")]
const ABIS: &[Abi] = &[
    // With the same numbers of x32.
    Abi {
        arch: 0xC000_003E,
        mmap: &[9, 0x4000_0009],
        prctl: &[157, 0x4000_009d],
        sigaction: &[13, 0x4000_0200],
        affinity: [203, 204],
        unit: 1,
    },
    // i386; its old `mmap` of one argument is used by no C library.
    Abi {
        arch: 0x4000_0003,
        mmap: &[192],
        prctl: &[172],
        sigaction: &[174],
        affinity: [241, 242],
        unit: 4096,
    },
];
#[cfg(target_arch = "aarch64")]
const ABIS: &[Abi] = &[
    Abi { arch: 0xC000_00B7, mmap: &[222], prctl: &[167], sigaction: &[134], affinity: [122, 123], unit: 1 },
    Abi {
        arch: 0x4000_0028,
        mmap: &[192],
        prctl: &[172],
        sigaction: &[174],
        affinity: [241, 242],
        unit: 4096,
    },
];

/// `PR_SET_DUMPABLE`.
const SET_DUMPABLE: u32 = 4;

/// A call that was stopped at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    /// A file is mapped to be executed.
    Map(Map),
    /// The process takes itself out of others' reach.
    Undumpable,
    /// The process says what a SIGTRAP shall do; at this address lies what.
    OwnTraps(u64),
    /// A thread is bound to processors.
    Bind,
    /// The processors of a thread are asked for.
    Asked(Asked),
}

/// The arguments of `sched_getaffinity`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    /// 0: the caller.
    pub(super) thread: i32,
    /// Where the answer is written.
    pub(super) to: u64,
}

/// The arguments of such an `mmap`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Map {
    pub(super) bytes: u64,
    pub(super) flags: u64,
    pub(super) fd: i32,
    /// Where in the file the mapping begins, bytes.
    pub(super) offset: u64,
}

/// The program, for every ABI of this architecture.
pub(in super::super) fn program() -> Vec<sock_filter> {
    const EXEC: u32 = libc::PROT_EXEC as u32;
    const ANONYMOUS: u32 = libc::MAP_ANONYMOUS as u32;
    let mut all = vec![op(LOAD_WORD, OFFSET_ARCH)];
    for abi in ABIS {
        let mut part = vec![op(LOAD_WORD, OFFSET_NR)];
        for number in abi.mmap {
            // Protection and flags are in the low halves of their arguments: both architectures are little-endian.
            part.extend([
                unless_skip(IF_EQUAL, *number, 6),
                op(LOAD_WORD, OFFSET_ARGS + 8 * 2),
                unless_skip(IF_BITS, EXEC, 3),
                op(LOAD_WORD, OFFSET_ARGS + 8 * 3),
                sock_filter { code: IF_BITS, jt: 1, jf: 0, k: ANONYMOUS },
                op(RETURN, TRACE),
                op(RETURN, ALLOW),
            ]);
        }
        let by_first = |numbers: &'static [u32], value| numbers.iter().map(move |n| (*n, value));
        let sigtrap = libc::SIGTRAP as u32;
        for (number, first) in by_first(abi.prctl, SET_DUMPABLE).chain(by_first(abi.sigaction, sigtrap)) {
            part.extend([
                unless_skip(IF_EQUAL, number, 4),
                op(LOAD_WORD, OFFSET_ARGS),
                unless_skip(IF_EQUAL, first, 1),
                op(RETURN, TRACE),
                op(RETURN, ALLOW),
            ]);
        }
        for number in abi.affinity {
            part.extend([unless_skip(IF_EQUAL, number, 1), op(RETURN, TRACE)]);
        }
        part.push(op(RETURN, ALLOW));
        all.push(unless_skip(IF_EQUAL, abi.arch, part.len() as u8));
        all.extend(part);
    }
    all.push(op(RETURN, ALLOW));
    all
}

/// The call that stopped, by its ABI, number and arguments.
pub(super) fn stopped(arch: u32, nr: u64, args: &[u64; 6]) -> Option<Stopped> {
    let abi = ABIS.iter().find(|abi| abi.arch == arch)?;
    let nr = u32::try_from(nr).ok()?;
    if abi.prctl.contains(&nr) {
        return Some(Stopped::Undumpable);
    }
    let [first, bytes, third, flags, fd, offset] = *args;
    let [bind, ask] = abi.affinity;
    if nr == bind {
        return Some(Stopped::Bind);
    }
    if nr == ask {
        return Some(Stopped::Asked(Asked { thread: first as i32, to: third }));
    }
    if abi.sigaction.contains(&nr) {
        return Some(Stopped::OwnTraps(bytes));
    }
    abi.mmap.contains(&nr).then(|| {
        let offset = offset.saturating_mul(abi.unit);
        Stopped::Map(Map { bytes, flags, fd: fd as i32, offset })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It stops there.
    fn run(arch: u32, nr: u32, args: [u64; 6]) -> bool {
        crate::observe::filter::run(&program(), arch, nr, args) == TRACE
    }

    #[test]
    fn only_a_file_that_is_mapped_to_be_executed_and_a_process_that_hides_stop() {
        let (read, exec) = (libc::PROT_READ as u64, (libc::PROT_READ | libc::PROT_EXEC) as u64);
        let (private, anonymous) =
            (libc::MAP_PRIVATE as u64, (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64);
        for abi in ABIS {
            for nr in abi.mmap {
                let args = |prot, flags| [0, 8192, prot, flags, 7, 3];
                assert!(run(abi.arch, *nr, args(exec, private)));
                assert!(
                    !run(abi.arch, *nr, args(read, private)) && !run(abi.arch, *nr, args(exec, anonymous))
                );
                let map = Map { bytes: 8192, flags: private, fd: 7, offset: 3 * abi.unit };
                assert_eq!(stopped(abi.arch, (*nr).into(), &args(exec, private)), Some(Stopped::Map(map)));
            }
            for nr in abi.prctl {
                assert!(run(abi.arch, *nr, [4, 0, 0, 0, 0, 0]) && !run(abi.arch, *nr, [15, 4, 4, 4, 4, 4]));
                assert_eq!(stopped(abi.arch, (*nr).into(), &[4; 6]), Some(Stopped::Undumpable));
            }
            for nr in abi.sigaction {
                assert!(run(abi.arch, *nr, [5, 1, 0, 8, 0, 0]) && !run(abi.arch, *nr, [2, 5, 5, 8, 0, 0]));
                assert_eq!(stopped(abi.arch, (*nr).into(), &[5, 9, 0, 8, 0, 0]), Some(Stopped::OwnTraps(9)));
            }
            let [bind, ask] = abi.affinity;
            assert!(run(abi.arch, bind, [0; 6]) && run(abi.arch, ask, [0; 6]));
            let asked = Asked { thread: 3, to: 5 };
            assert_eq!(stopped(abi.arch, ask.into(), &[3, 4, 5, 0, 0, 0]), Some(Stopped::Asked(asked)));
            assert_eq!(stopped(abi.arch, bind.into(), &[3; 6]), Some(Stopped::Bind));
            let numbers = [abi.mmap, abi.prctl, abi.sigaction, &abi.affinity];
            let ours = |nr| numbers.iter().any(|numbers| numbers.contains(&nr));
            for nr in (0..600).filter(|nr| !ours(*nr)) {
                assert!(!run(abi.arch, nr, [5, 4, 4, 0, 0, 0]), "{:#x} {nr}", abi.arch);
            }
        }
        assert!(!run(1, 9, [4; 6]) && stopped(1, 9, &[4; 6]).is_none(), "an architecture that is not ours");
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_numbers_are_those_of_the_c_library() {
        assert_eq!(i64::from(ABIS[0].mmap[0]), libc::SYS_mmap);
        assert_eq!(i64::from(ABIS[0].prctl[0]), libc::SYS_prctl);
        let affinity = [libc::SYS_sched_setaffinity, libc::SYS_sched_getaffinity];
        assert_eq!(ABIS[0].affinity.map(i64::from), affinity);
        assert_eq!(i64::from(ABIS[0].sigaction[0]), libc::SYS_rt_sigaction);
    }
}
