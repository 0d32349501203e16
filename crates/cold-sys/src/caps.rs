//! What this process may do: ids, capabilities, `no_new_privs`, seccomp. See capabilities(7).

use crate::procfs::ProcFs;
use crate::{Error, Result};

/// A capability that measuring needs, with its bit number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Capability {
    /// Passes file permission checks.
    DacOverride = 1,
    /// Passes read and search permission checks.
    DacReadSearch = 2,
    /// Counts as the owner of every file (`mincore` then tells the truth about it).
    Fowner = 3,
    /// Reads other users' /proc/PID/maps, traces them.
    SysPtrace = 19,
    /// The old catch-all: mounts, cgroups, fanotify, BPF before 5.8.
    SysAdmin = 21,
    /// Real-time and higher priorities, affinity of other users' tasks.
    SysNice = 23,
    /// Raises resource limits.
    SysResource = 24,
    /// Perf events and BPF tracing of everybody (5.8).
    Perfmon = 38,
    /// Loads BPF programs and maps (5.8).
    Bpf = 39,
}

impl Capability {
    /// Its name as capabilities(7) and setcap(8) write it, without `CAP_`.
    pub fn name(self) -> &'static str {
        match self {
            Self::DacOverride => "DAC_OVERRIDE",
            Self::DacReadSearch => "DAC_READ_SEARCH",
            Self::Fowner => "FOWNER",
            Self::SysPtrace => "SYS_PTRACE",
            Self::SysAdmin => "SYS_ADMIN",
            Self::SysNice => "SYS_NICE",
            Self::SysResource => "SYS_RESOURCE",
            Self::Perfmon => "PERFMON",
            Self::Bpf => "BPF",
        }
    }
}

/// Fields of `/proc/PID/status` on privileges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credentials {
    /// Effective user id.
    pub euid: u32,
    /// Effective capabilities as a bit set.
    pub effective: u64,
    /// exec cannot raise privileges any more; `None` before Linux 4.10.
    pub no_new_privs: Option<bool>,
    /// 0 off, 1 strict, 2 filter; `None` without seccomp in the kernel.
    pub seccomp: Option<u8>,
}

impl Credentials {
    /// Whether the capability is effective.
    pub fn has(&self, capability: Capability) -> bool {
        self.effective & (1 << (capability as u8)) != 0
    }
}

/// As whom this process acts.
pub fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether this process acts as root (effective user id 0).
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl ProcFs {
    /// The privileges of this process (`/proc/self/status`).
    pub fn own_credentials(&self) -> Result<Credentials> {
        let text = self.read("self/status")?;
        parse(&text).ok_or_else(|| Error::Parse {
            file: self.path("self/status"),
            text: text.chars().take(120).collect(),
            expected: "lines Uid: and CapEff: as in proc(5)",
        })
    }
}

fn parse(text: &str) -> Option<Credentials> {
    let field = |key: &str| text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':')).map(str::trim);
    Some(Credentials {
        euid: field("Uid")?.split_whitespace().nth(1)?.parse().ok()?,
        effective: u64::from_str_radix(field("CapEff")?, 16).ok()?,
        no_new_privs: field("NoNewPrivs").map(|v| v != "0"),
        seccomp: field("Seccomp").and_then(|v| v.parse().ok()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_without_sys_resource() {
        let text = "Name:\tx\nUid:\t1000\t0\t0\t0\nCapEff:\t000001fffeffffff\nNoNewPrivs:\t0\nSeccomp:\t2\n\
                    Seccomp_filters:\t1\n";
        let c = parse(text).expect("parses");
        assert_eq!((c.euid, c.no_new_privs, c.seccomp), (0, Some(false), Some(2)));
        assert!(c.has(Capability::SysAdmin) && c.has(Capability::Bpf));
        assert!(!c.has(Capability::SysResource));
    }
}
