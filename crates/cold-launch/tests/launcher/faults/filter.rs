//! A seccomp filter that refuses system calls, from the launcher's first instruction on.
#![allow(unsafe_code)] // the filter is installed between fork and exec

use std::process::Command;

use crate::subject::{before, check};

/// System calls have numbers below this, with some room (470 are known in Linux 6.18).
pub(super) const CALLS: i64 = 480;

/// The command, to which these calls answer with this error.
pub(super) fn refusing<'a>(command: &'a mut Command, numbers: &[i64], errno: i32) -> &'a mut Command {
    let word = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    // The number is the first field of what the filter looks at.
    let mut program = vec![word(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0)];
    for number in numbers {
        program.push(word(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, *number as u32));
        program.push(word(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32));
    }
    program.push(word(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW));
    before(command, move || {
        let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
        // SAFETY: the program lives across the calls; the kernel copies it.
        unsafe {
            check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
            check(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter))
        }
    })
}
