//! Loading a BPF program, opening perf events.

use std::io;

use super::close_fd;
use crate::perf_event::Attr;

/// `BPF_PROG_LOAD` of bpf(2).
const BPF_PROG_LOAD: libc::c_int = 5;
/// `BPF_PROG_TYPE_TRACEPOINT`: the least that tracing needs; checked like `tp_btf` (`CAP_BPF` and
/// `CAP_PERFMON`, lockdown, host policy).
const BPF_PROG_TYPE_TRACEPOINT: u32 = 5;

/// The first members of `union bpf_attr` for `BPF_PROG_LOAD`; the kernel takes a shorter one.
#[repr(C)]
struct ProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
}

/// Loads the program `return 0` for a tracepoint and drops it again; attaches nothing.
pub fn bpf_tracepoint_program() -> io::Result<()> {
    // r0 = 0; exit
    let insns: [u64; 2] = [0x0000_0000_0000_00b7, 0x0000_0000_0000_0095];
    let license = c"GPL";
    let attr = ProgLoad {
        prog_type: BPF_PROG_TYPE_TRACEPOINT,
        insn_cnt: 2,
        insns: insns.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log_buf: 0,
        kern_version: 0,
        prog_flags: 0,
    };
    // SAFETY: attr and what it points to live until the call returns; the size is attr's own.
    let fd = unsafe {
        libc::syscall(libc::SYS_bpf, BPF_PROG_LOAD, &raw const attr, std::mem::size_of::<ProgLoad>())
    };
    close_fd(fd)
}

const PERF_COUNT_SW_PAGE_FAULTS_MAJ: u64 = 6;
const FLAG_DISABLED: u64 = 1;
const FLAG_EXCLUDE_KERNEL: u64 = 1 << 5;
const FLAG_EXCLUDE_HV: u64 = 1 << 6;

/// Opens a disabled counter of this process's major faults in user code: what an unprivileged recorder
/// needs (works at `perf_event_paranoid` 2).
pub fn perf_fault_event() -> io::Result<()> {
    perf_open(FLAG_DISABLED | FLAG_EXCLUDE_KERNEL | FLAG_EXCLUDE_HV)
}

fn perf_open(flags: u64) -> io::Result<()> {
    let attr = Attr::counter(PERF_COUNT_SW_PAGE_FAULTS_MAJ, flags);
    // This thread, any CPU.
    attr.open(0, -1).map(drop)
}
