//! What differs between processors: the instruction that stops, and where the program counter is.

use std::io;

pub(super) use imp::{ADVANCE, BREAKPOINT, pc, set_pc};

/// An instruction, or as much of one as is overwritten.
pub(super) type Word = [u8; BREAKPOINT.len()];

/// Whether the signal that stopped the thread is that of a breakpoint, and not one that somebody sent.
pub(super) fn is_breakpoint(tid: i32) -> io::Result<bool> {
    /// linux/siginfo.h: x86 says that the kernel sent it, others say what it was.
    const SI_KERNEL: i32 = 0x80;
    const TRAP_BRKPT: i32 = 1;
    Ok(matches!(code(tid)?, SI_KERNEL | TRAP_BRKPT))
}

/// Why the signal that stopped the thread was sent: positive when the kernel did.
pub(super) fn code(tid: i32) -> io::Result<i32> {
    // SAFETY: the structure holds plain integers, for which zero is valid.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    super::super::ptrace::request(libc::PTRACE_GETSIGINFO, tid, 0, std::ptr::from_mut(&mut info) as usize)?;
    Ok(info.si_code)
}

#[cfg(target_arch = "x86_64")]
mod imp {
    use std::io;

    use super::super::super::ptrace::request;

    /// `int3`.
    pub(in super::super) const BREAKPOINT: [u8; 1] = [0xcc];
    /// How far the program counter is past the breakpoint that stopped it.
    pub(in super::super) const ADVANCE: u64 = 1;

    const AT: usize = libc::RIP as usize * 8;

    pub(in super::super) fn pc(tid: i32) -> io::Result<u64> {
        request(libc::PTRACE_PEEKUSER, tid, AT, 0).map(i64::cast_unsigned)
    }

    pub(in super::super) fn set_pc(tid: i32, pc: u64) -> io::Result<()> {
        request(libc::PTRACE_POKEUSER, tid, AT, pc as usize).map(drop)
    }
}

#[cfg(target_arch = "aarch64")]
mod imp {
    use std::io;

    use super::super::super::ptrace::request;

    /// `brk #0`.
    pub(in super::super) const BREAKPOINT: [u8; 4] = [0, 0, 0x20, 0xd4];
    /// How far the program counter is past the breakpoint that stopped it.
    pub(in super::super) const ADVANCE: u64 = 0;

    const NT_PRSTATUS: usize = 1;
    /// x0 to x30, sp, pc, pstate: `user_pt_regs` of the kernel.
    type Registers = [u64; 34];
    const PC: usize = 32;

    fn transfer(what: libc::c_uint, tid: i32, registers: &mut Registers) -> io::Result<()> {
        let bytes = std::mem::size_of::<Registers>();
        let mut part = libc::iovec { iov_base: registers.as_mut_ptr().cast(), iov_len: bytes };
        request(what, tid, NT_PRSTATUS, std::ptr::from_mut(&mut part) as usize).map(drop)
    }

    pub(in super::super) fn pc(tid: i32) -> io::Result<u64> {
        let mut registers = [0; 34];
        transfer(libc::PTRACE_GETREGSET, tid, &mut registers)?;
        Ok(registers[PC])
    }

    pub(in super::super) fn set_pc(tid: i32, pc: u64) -> io::Result<()> {
        let mut registers = [0; 34];
        transfer(libc::PTRACE_GETREGSET, tid, &mut registers)?;
        registers[PC] = pc;
        transfer(libc::PTRACE_SETREGSET, tid, &mut registers)
    }
}
