//! What can be recorded: the tier, and whether ptrace works.

use std::io;

use cold_sys::caps::Capability;

use crate::context::Context;
use crate::finding::Finding;
use crate::report::Tier;

/// BTF name of the tracepoint's function type; present wherever the event is compiled in.
const FAULT_EVENT_BTF: &[u8] = b"btf_trace_mm_filemap_fault";

/// The kernel's answers that decide the tier.
pub(crate) struct Facilities {
    btf: bool,
    /// Whether this kernel has `mm_filemap_fault`; `Err` when neither place that tells can be read.
    fault_event: Result<bool, String>,
    bpf: io::Result<()>,
    perf_own: io::Result<()>,
    perf_machine: io::Result<()>,
}

fn facilities(c: &Context) -> &Facilities {
    c.tier.get_or_init(|| Facilities {
        btf: has_btf(c),
        fault_event: fault_event(c),
        bpf: (c.probes.bpf)(),
        perf_own: (c.probes.perf_own)(),
        perf_machine: (c.probes.perf_machine)(),
    })
}

/// The best tier that works here.
pub(crate) fn tier(c: &Context) -> Tier {
    let f = facilities(c);
    if f.btf && f.bpf.is_ok() && c.config.has_bpf_programs {
        return if f.fault_event == Ok(true) { Tier::A } else { Tier::B };
    }
    if f.perf_machine.is_ok() { Tier::C } else { Tier::D }
}

fn has_btf(c: &Context) -> bool {
    std::fs::File::open(c.sys.path("kernel/btf/vmlinux")).is_ok()
}

/// Looks for `mm_filemap_fault` in tracefs, else in BTF.
fn fault_event(c: &Context) -> Result<bool, String> {
    for tracefs in ["kernel/tracing", "kernel/debug/tracing"] {
        // A mounted tracefs always has an events directory; an empty mount point tells nothing.
        if std::fs::read_dir(c.sys.path(tracefs).join("events")).is_ok() {
            let event = c.sys.path(tracefs).join("events/filemap/mm_filemap_fault");
            return Ok(event.is_dir());
        }
    }
    let path = c.sys.path("kernel/btf/vmlinux");
    let btf = std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(btf.split(|b| *b == 0).any(|name| name == FAULT_EVENT_BTF))
}

pub(crate) fn tiers(c: &Context) -> Vec<Finding> {
    let facilities = facilities(c);
    let refusal = match &facilities.bpf {
        _ if !c.config.has_bpf_programs => "; this build has no BPF programs".to_owned(),
        _ if !facilities.btf => "; no BTF".to_owned(),
        Err(e) => format!("; BPF: {e}"),
        Ok(()) => String::new(),
    };
    let mut findings = vec![match tier(c) {
        Tier::A => Finding::ok("tier", "tier A: BPF on BTF tracepoints, with file map fault events")
            .so("every touch, fill, device read and stall can be recorded with its file and offset"),
        Tier::B => Finding::note("tier", "tier B: BPF on BTF tracepoints, without file map fault events")
            .so("fills and device reads can be recorded; touches of mapped files only through perf faults")
            .remedy("Linux 6.12 or later has the missing events"),
        Tier::C => {
            Finding::missing("tier", format!("tier C: perf events of the whole machine, no BPF{refusal}"))
                .so("faults and device reads can be recorded, without read-ahead decisions or lookups")
                .remedy(bpf_remedy(c))
        }
        Tier::D => Finding::missing("tier", format!("tier D: only own processes can be observed{refusal}"))
            .so("faults of own processes; no device reads, no fills, no stalls per file")
            .remedy(bpf_remedy(c)),
    }];
    if !facilities.btf {
        findings.push(
            Finding::missing("tier.btf", "/sys/kernel/btf/vmlinux is absent or unreadable")
                .so("BPF programs cannot adapt to this kernel's structures, so tiers A and B are out")
                .remedy("boot a kernel built with CONFIG_DEBUG_INFO_BTF=y (distribution kernels are)"),
        );
    } else if let Err(why) = &facilities.fault_event {
        findings.push(
            Finding::unknown("tier.fault_event", "file map fault events", why)
                .so("tier A may be possible after all"),
        );
    }
    findings.extend(perf(c));
    findings.extend(kernel_addresses(c));
    findings
}

/// What stands between us and BPF, best guess first.
fn bpf_remedy(c: &Context) -> String {
    if !c.config.has_bpf_programs {
        return "build it where clang, libelf and zlib are (make does)".to_owned();
    }
    let capable = c.has(Capability::SysAdmin) || (c.has(Capability::Bpf) && c.has(Capability::Perfmon));
    if !capable {
        return "run as root, or: setcap cap_bpf,cap_perfmon+ep on the cold binary".to_owned();
    }
    match c.sys.read_opt("kernel/security/lockdown") {
        Ok(Some(text)) if !text.contains("[none]") => {
            format!("kernel lockdown is on ({text}): disable secure boot or boot with lockdown=none")
        }
        _ => "capabilities suffice, so a policy of the host, a seccomp filter or a security module refuses; ask \
              the machine's owner"
            .to_owned(),
    }
}

fn perf(c: &Context) -> Option<Finding> {
    let level = match c.proc.read_opt("sys/kernel/perf_event_paranoid") {
        Ok(Some(level)) => level,
        Ok(None) => {
            return Some(
                Finding::missing("tier.perf", "this kernel has no perf events")
                    .so("tier C is out, and tier D cannot sample faults")
                    .remedy("boot a kernel with CONFIG_PERF_EVENTS=y"),
            );
        }
        Err(e) => return Some(Finding::unknown("tier.perf", "kernel.perf_event_paranoid", e)),
    };
    let facilities = facilities(c);
    match (&facilities.perf_own, &facilities.perf_machine) {
        (Ok(()), Ok(())) => None,
        (Ok(()), Err(_)) => Some(
            Finding::note(
                "tier.perf",
                format!("perf events of own processes only (perf_event_paranoid {level})"),
            )
            .so("own faults can be sampled; the machine's events cannot")
            .remedy("sysctl kernel.perf_event_paranoid=0, or CAP_PERFMON"),
        ),
        (Err(refusal), _) => Some(
            Finding::missing(
                "tier.perf",
                format!("perf events refused (perf_event_paranoid {level}): {refusal}"),
            )
            .so("not even own faults can be sampled")
            .remedy("sysctl kernel.perf_event_paranoid=2; in a container: --cap-add PERFMON"),
        ),
    }
}

fn kernel_addresses(c: &Context) -> Option<Finding> {
    let restricted = c.proc.read_opt("sys/kernel/kptr_restrict").ok()??;
    let hidden = restricted == "2" || (restricted == "1" && !c.is_root());
    hidden.then(|| {
        Finding::note(
            "tier.kernel_symbols",
            format!("kernel addresses are hidden (kptr_restrict {restricted})"),
        )
        .so("kernel parts of stacks stay numbers; files and offsets are not affected")
        .remedy("sysctl kernel.kptr_restrict=0 while recording")
    })
}

/// Whether touches can be made exact (`cold trace --exact-need`).
pub(crate) fn exact(c: &Context) -> Vec<Finding> {
    let id = "exact_need";
    // What cannot be read may not be mounted: the directory is root's, nothing tells from outside.
    if let Ok(Some(bytes)) = c.sys.read_opt("kernel/debug/fault_around_bytes") {
        return vec![
            Finding::ok(id, format!("the fault-around window can be set (now {bytes} bytes)"))
                .so("touches can be recorded exactly (cold trace --exact-need)"),
        ];
    }
    let known = c.proc.read_opt("filesystems").ok().flatten().unwrap_or_default();
    let has_debugfs = known.lines().any(|l| l.split_whitespace().last() == Some("debugfs"));
    vec![match (has_debugfs, c.has(Capability::SysAdmin)) {
        (true, true) => {
            Finding::ok(id, "debugfs is not mounted; cold trace --exact-need mounts it for itself")
                .so("touches can be recorded exactly")
        }
        (true, false) => Finding::missing(id, "debugfs is not readable, and mounting it needs root")
            .so("pages mapped around a fault are an upper bound of what was needed")
            .remedy("run cold trace --exact-need as root"),
        (false, _) => Finding::missing(id, "this kernel has no debugfs, so no fault-around window to set")
            .so("cold trace --exact-need turns read-ahead off on the devices instead (root)"),
    }]
}

pub(crate) fn ptrace(c: &Context) -> Vec<Finding> {
    let scope = c.proc.read_opt("sys/kernel/yama/ptrace_scope");
    let scope = match &scope {
        Ok(Some(scope)) => format!(" (Yama ptrace_scope {scope})"),
        _ => String::new(),
    };
    vec![match (c.probes.ptrace)() {
        Ok(()) => Finding::ok("ptrace", format!("a child can be traced{scope}"))
            .so("the file set of a command is found by one observed start"),
        Err(e) => Finding::missing("ptrace", format!("a child cannot be traced{scope}: {e}"))
            .so("the file set of a command cannot be found by observing it, so cold cannot be proved")
            .remedy("sysctl kernel.yama.ptrace_scope=1; in a container: --cap-add SYS_PTRACE"),
    }]
}
