//! What can be recorded: the tier, and whether ptrace works.

use cold_model::recording::manifest::Tier;
use cold_trace::Survey;

use crate::context::Context;
use crate::finding::Finding;

use cold_sys::caps::Capability;

/// What `cold trace` would record with: its own code decides.
pub(crate) fn recording(c: &Context) -> &Survey {
    c.recording.get_or_init(c.probes.recording)
}

/// Why a better tier was refused; `None` if it was not.
fn refusal(survey: &Survey, tier: Tier) -> Option<&str> {
    survey.refused.iter().find(|(refused, _)| *refused == tier).map(|(_, why)| why.as_str())
}

pub(crate) fn tiers(c: &Context) -> Vec<Finding> {
    let survey = recording(c);
    // The reason names what to do, so it is the remedy too.
    let bpf = refusal(survey, Tier::B).unwrap_or("no reason was given").to_owned();
    let mut findings = vec![match survey.tier {
        Tier::A => Finding::ok("tier", "tier A: BPF on BTF tracepoints, with file map fault events")
            .so("every page that is needed (touch) or read into the cache (fill), every disk read and every \
                 wait for storage (stall) can be recorded, with file and offset"),
        Tier::B => Finding::note("tier", "tier B: BPF on BTF tracepoints, without file map fault events")
            .so("pages read into the cache, disk reads and waits for storage can be recorded; of the pages that are \
                 needed those that fault, not buffered reads of cached ones")
            .remedy("Linux 6.12 or later has the missing events"),
        Tier::C => Finding::missing("tier", "tier C: perf events, no BPF")
            .so("page faults can be recorded, with file, offset and stack; no disk reads and no waits for storage")
            .remedy(bpf),
        Tier::D | Tier::Imported => Finding::missing("tier", "tier D: only own processes can be observed")
            .so("page faults of your own processes can be recorded; no disk reads and no waits for storage")
            .remedy(bpf),
    }];
    findings.extend(perf(c));
    findings.extend(kernel_addresses(c));
    findings
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
    match (c.probes.perf_own)() {
        Ok(()) => refusal(recording(c), Tier::C).map(|why| {
            Finding::note(
                "tier.perf",
                format!("perf events of own code only (perf_event_paranoid {level}): {why}"),
            )
            .so("own faults can be sampled; those inside system calls cannot")
            .remedy("sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON")
        }),
        Err(refusal) => Some(
            Finding::missing(
                "tier.perf",
                format!("perf events refused (perf_event_paranoid {level}): {refusal}"),
            )
            .so("not even own faults can be sampled")
            .remedy(
                "sysctl kernel.perf_event_paranoid=2; in a container --cap-add PERFMON and a seccomp profile that \
                 allows perf_event_open",
            ),
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
                .so("the pages that are needed can be recorded exactly (cold trace --exact-need)"),
        ];
    }
    let known = c.proc.read_opt("filesystems").ok().flatten().unwrap_or_default();
    let has_debugfs = known.lines().any(|l| l.split_whitespace().last() == Some("debugfs"));
    vec![match (has_debugfs, c.has(Capability::SysAdmin)) {
        (true, true) => {
            Finding::ok(id, "debugfs is not mounted; cold trace --exact-need reaches it without a mount")
                .so("the pages that are needed can be recorded exactly")
        }
        (true, false) => Finding::missing(id, "debugfs is not readable, and mounting it needs root")
            .so("the kernel maps neighbours of a faulting page (fault-around): whether they were needed stays unknown")
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
            .so("the files of a command are found by observing one start"),
        Err(e) => Finding::missing("ptrace", format!("a child cannot be traced{scope}: {e}"))
            .so("the files of a command cannot be found by observing a start, so cold cannot be proved")
            .remedy("sysctl kernel.yama.ptrace_scope=1; in a container: --cap-add SYS_PTRACE"),
    }]
}
