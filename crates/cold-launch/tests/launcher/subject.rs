//! A program of 180 bytes that needs nothing: it says its arguments in one call and ends with 7. What keeps
//! any other program from starting (no memory, no descriptors, refused system calls) does not keep this one.
#![allow(unsafe_code)] // what is set between fork and exec

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where machine code is known, it; elsewhere a script.
#[cfg(target_arch = "x86_64")]
fn bytes() -> Vec<u8> {
    const CODE: &[u8] = &[
        0x48, 0x8b, 0x0c, 0x24, // mov rcx, [rsp]: how many arguments
        0x48, 0x8b, 0x74, 0x24, 0x08, // mov rsi, [rsp + 8]: the first
        0x48, 0x8b, 0x54, 0xcc, 0x10, // mov rdx, [rsp + rcx * 8 + 16]: the environment, behind the last
        0x48, 0x29, 0xf2, // sub rdx, rsi
        0xbf, 1, 0, 0, 0, 0xb8, 1, 0, 0, 0, 0x0f, 0x05, // write(1, …)
        0xbf, 7, 0, 0, 0, 0xb8, 231, 0, 0, 0, 0x0f, 0x05, // exit_group(7)
        0xb8, 60, 0, 0, 0, 0x0f, 0x05, // exit(7), where that is refused
        0x0f, 0x0b,
    ];
    const HEADERS: u64 = 64 + 56;
    const BASE: u64 = 0x40_0000;
    let mut out = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let all = HEADERS + CODE.len() as u64;
    for half in [2_u16, 62] {
        out.extend(half.to_le_bytes()); // an executable, x86-64
    }
    out.extend(1_u32.to_le_bytes());
    for word in [BASE + HEADERS, 64, 0] {
        out.extend(word.to_le_bytes()); // where it begins, its one segment's header, no sections
    }
    out.extend(0_u32.to_le_bytes());
    for half in [64_u16, 56, 1, 0, 0, 0] {
        out.extend(half.to_le_bytes());
    }
    for word in [1_u32, 5] {
        out.extend(word.to_le_bytes()); // to be loaded, readable and executable
    }
    for word in [0, BASE, BASE, all, all, 4096] {
        out.extend(word.to_le_bytes());
    }
    out.extend(CODE);
    out
}

#[cfg(not(target_arch = "x86_64"))]
fn bytes() -> Vec<u8> {
    b"#!/bin/sh\nprintf '%s\\0' \"$0\" \"$@\"\nexit 7\n".to_vec()
}

/// The program, in this directory.
pub(crate) fn make(dir: &Path) -> PathBuf {
    let path = dir.join("subject");
    cold_testbed::executable(&path, bytes());
    path
}

/// What it says when it is started with these arguments.
pub(crate) fn says(subject: &Path, arguments: &[&str]) -> Vec<u8> {
    let mut out = subject.as_os_str().as_encoded_bytes().to_vec();
    out.push(0);
    for word in arguments {
        out.extend(word.as_bytes());
        out.push(0);
    }
    out
}

/// Calls `set` in the child just before it becomes the launcher. It may only make system calls.
pub(crate) fn before(
    command: &mut Command,
    set: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) -> &mut Command {
    // SAFETY: the callers' closures make system calls and nothing else.
    unsafe { command.pre_exec(set) }
}

/// The result of a system call as the standard library has it.
pub(crate) fn check(result: impl Into<i64>) -> io::Result<()> {
    if result.into() < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Closes a descriptor.
pub(crate) fn close(fd: i32) -> io::Result<()> {
    // SAFETY: an integer; the child's own descriptor.
    check(unsafe { libc::close(fd) })
}

/// How the C library calls the number of a resource.
pub(crate) type Resource = libc::__rlimit_resource_t;

/// Sets both limits of a resource.
pub(crate) fn limit(resource: Resource, value: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: `limit` lives across the call.
    check(unsafe { libc::setrlimit(resource, &raw const limit) })
}

/// Gives a descriptor this number as well, across an exec: also where it has the number already, by chance, and dup2
/// would leave it to be closed.
pub(crate) fn as_number(fd: i32, number: i32) -> io::Result<()> {
    // SAFETY: integers; the child's own descriptors.
    check(unsafe { if fd == number { libc::fcntl(fd, libc::F_SETFD, 0) } else { libc::dup2(fd, number) } })
}

/// Has orphans fall to this process, and to the program that it becomes.
pub(crate) fn subreaper() -> io::Result<()> {
    // SAFETY: integers only.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) })
}
