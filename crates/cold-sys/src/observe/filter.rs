//! The seccomp program: stop at the calls of [`super::calls`], let everything else pass.
//!
//! Since Linux 5.11 the kernel runs such a program once per call number when it is installed and
//! remembers which numbers always pass, so that the other system calls cost nothing.

use libc::sock_filter;

use super::calls::ABIS;

/// `SECCOMP_RET_DATA` of our stops, to tell them from those of a filter the program brings along.
pub(super) const TAG: u16 = 0xC01D;

// linux/bpf_common.h and linux/seccomp.h.
pub(super) const LOAD_WORD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
pub(super) const AND: u16 = 0x54; // BPF_ALU | BPF_AND | BPF_K
pub(super) const IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
pub(super) const IF_BITS: u16 = 0x45; // BPF_JMP | BPF_JSET | BPF_K
pub(super) const RETURN: u16 = 0x06; // BPF_RET | BPF_K
pub(super) const ALLOW: u32 = 0x7fff_0000;
pub(super) const TRACE: u32 = 0x7ff0_0000 | TAG as u32;
// struct seccomp_data: nr, arch, instruction pointer, six arguments of 64 bits.
pub(super) const OFFSET_NR: u32 = 0;
pub(super) const OFFSET_ARCH: u32 = 4;
pub(super) const OFFSET_ARGS: u32 = 16;
const AT_EMPTY_PATH: u32 = libc::AT_EMPTY_PATH as u32;

pub(super) const fn op(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}
/// Goes on with the next instruction if the condition holds, else skips `jf`.
pub(super) const fn unless_skip(code: u16, k: u32, jf: u8) -> sock_filter {
    sock_filter { code, jt: 0, jf, k }
}

/// The program, for every ABI of this architecture.
pub(super) fn program() -> Vec<sock_filter> {
    let mut all = vec![op(LOAD_WORD, OFFSET_ARCH)];
    for abi in ABIS {
        let mut part = vec![op(LOAD_WORD, OFFSET_NR), op(AND, !abi.ignored_bits)];
        for call in abi.calls {
            match call.empty_path_arg {
                None => part.extend([unless_skip(IF_EQUAL, call.nr, 1), op(RETURN, TRACE)]),
                // The flags are the low half of the argument: both supported architectures are
                // little-endian.
                Some(arg) => part.extend([
                    unless_skip(IF_EQUAL, call.nr, 4),
                    op(LOAD_WORD, OFFSET_ARGS + 8 * arg),
                    unless_skip(IF_BITS, AT_EMPTY_PATH, 1),
                    op(RETURN, ALLOW),
                    op(RETURN, TRACE),
                ]),
            }
        }
        part.push(op(RETURN, ALLOW));
        // A table of 21 calls makes 52 instructions: far below the 255 that a jump can skip.
        all.push(unless_skip(IF_EQUAL, abi.arch, part.len() as u8));
        all.extend(part);
    }
    all.push(op(RETURN, ALLOW));
    all
}

/// Runs a program as the kernel would; panics on a jump outside or an unknown instruction.
#[cfg(test)]
pub(super) fn run(program: &[sock_filter], arch: u32, nr: u32, args: [u64; 6]) -> u32 {
    let mut data = Vec::new();
    data.extend(nr.to_le_bytes());
    data.extend(arch.to_le_bytes());
    data.extend(0u64.to_le_bytes());
    data.extend(args.iter().flat_map(|a| a.to_le_bytes()));
    let (mut acc, mut pc) = (0u32, 0usize);
    loop {
        let i = program[pc];
        pc += 1;
        let mut jump = |holds: bool| pc += usize::from(if holds { i.jt } else { i.jf });
        match i.code {
            LOAD_WORD => {
                let at = i.k as usize;
                acc = u32::from_le_bytes(data[at..at + 4].try_into().unwrap());
            }
            AND => acc &= i.k,
            IF_EQUAL => jump(acc == i.k),
            IF_BITS => jump(acc & i.k != 0),
            RETURN => return i.k,
            other => panic!("instruction {other:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(arch: u32, nr: u32, args: [u64; 6]) -> u32 {
        super::run(&program(), arch, nr, args)
    }

    #[test]
    fn it_stops_at_every_call_of_the_tables_and_at_no_other() {
        for abi in ABIS {
            assert!(program().len() < 4096, "BPF_MAXINSNS");
            for nr in 0..700 {
                let expected = abi.calls.iter().any(|c| c.nr == nr);
                assert_eq!(run(abi.arch, nr, [0; 6]) == TRACE, expected, "{:#x} {nr}", abi.arch);
            }
            for call in abi.calls.iter().filter(|c| c.empty_path_arg.is_some()) {
                let mut args = [0u64; 6];
                args[call.empty_path_arg.unwrap() as usize] = u64::from(AT_EMPTY_PATH) | 0x100;
                assert_eq!(run(abi.arch, call.nr, args), ALLOW, "fstat in disguise");
            }
        }
        assert_eq!(run(0x1234, 2, [0; 6]), ALLOW, "an architecture that is not ours");
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn it_stops_at_x32_calls() {
        assert_eq!(run(0xC000_003E, 0x4000_0101, [0; 6]), TRACE);
        assert_eq!(run(0xC000_003E, 0x4000_0208, [0; 6]), TRACE);
        assert_eq!(run(0xC000_003E, 0x4000_0000, [0; 6]), ALLOW);
    }
}
