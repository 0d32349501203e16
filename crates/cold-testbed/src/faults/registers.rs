//! The two registers by which a system call is skipped and answered; the injector's only code per processor.

use std::io;

use super::ptrace::request;

#[cfg(target_arch = "x86_64")]
mod arch {
    use super::{io, request};

    fn poke(tid: i32, register: usize, value: i64) -> io::Result<()> {
        request(libc::PTRACE_POKEUSER, tid, register * 8, value.cast_unsigned() as usize)
    }
    pub(super) fn skip(tid: i32) -> io::Result<()> {
        poke(tid, libc::ORIG_RAX as usize, -1)
    }
    pub(super) fn answer(tid: i32, value: i64) -> io::Result<()> {
        poke(tid, libc::RAX as usize, value)
    }
}

#[cfg(target_arch = "aarch64")]
mod arch {
    use super::{io, request};

    const NT_PRSTATUS: usize = 1;
    const NT_ARM_SYSTEM_CALL: usize = 0x404;

    fn set<T>(tid: i32, kind: usize, value: &mut T, what: libc::c_uint) -> io::Result<()> {
        let base = std::ptr::from_mut(value).cast();
        let mut part = libc::iovec { iov_base: base, iov_len: std::mem::size_of::<T>() };
        request(what, tid, kind, std::ptr::from_mut(&mut part) as usize)
    }
    pub(super) fn skip(tid: i32) -> io::Result<()> {
        let mut none: libc::c_int = -1;
        set(tid, NT_ARM_SYSTEM_CALL, &mut none, libc::PTRACE_SETREGSET)
    }
    pub(super) fn answer(tid: i32, value: i64) -> io::Result<()> {
        // x0 to x30, sp, pc, pstate: user_pt_regs of the kernel.
        let mut registers = [0_u64; 34];
        set(tid, NT_PRSTATUS, &mut registers, libc::PTRACE_GETREGSET)?;
        registers[0] = value.cast_unsigned();
        set(tid, NT_PRSTATUS, &mut registers, libc::PTRACE_SETREGSET)
    }
}

/// At the entry of a call: it is not made.
pub(super) fn skip(tid: i32) -> io::Result<()> {
    arch::skip(tid)
}

/// At its exit: what it returns.
pub(super) fn answer(tid: i32, value: i64) -> io::Result<()> {
    arch::answer(tid, value)
}
