//! Processors: how many, how fast, whose.

use std::collections::{BTreeMap, BTreeSet};

use cold_model::figures::plural;

use crate::context::Context;
use crate::finding::Finding;

const CPUS: &str = "devices/system/cpu";

pub(crate) fn topology(c: &Context) -> Vec<Finding> {
    let read = |rel: &str| c.sys.read_opt(format!("{CPUS}/{rel}")).ok().flatten().filter(|t| !t.is_empty());
    let Some(online) = read("online") else {
        return vec![Finding::unknown("cpus", "processors", "no /sys/devices/system/cpu/online")];
    };
    let count = count_list(&online);
    let smt = match read("smt/active").as_deref() {
        Some("1") => ", SMT on",
        Some("0") => ", SMT off",
        _ => "",
    };
    let nodes = c.sys.list("devices/system/node").unwrap_or_default();
    let nodes =
        nodes.iter().filter(|n| n.strip_prefix("node").is_some_and(|d| d.parse::<u32>().is_ok())).count();
    let isolated = read("isolated").map_or(String::new(), |l| format!(", isolated: {l}"));
    let numa = if nodes > 1 { format!(", {nodes} NUMA nodes") } else { String::new() };
    let processors = plural(count as u64, "processor");
    let fact = format!("{processors}{smt}{numa}{isolated}");
    let mut findings = vec![if count == 1 {
        Finding::note("cpus", fact)
            .so("the measured program, cold and the kernel's writeback share one processor: overlap of reading and \
                 computing does not show")
            .remedy("give the machine a second processor")
    } else {
        Finding::ok("cpus", fact).so("the observer and the observed need not share one")
    }];
    if nodes > 1 {
        findings.push(
            Finding::note("cpus.numa", format!("{nodes} NUMA nodes"))
                .so("cached pages may be near or far from the program's processor: warm runs fall into two modes")
                .remedy("numactl --cpunodebind=0 --membind=0 cold bench …"),
        );
    }
    findings
}

/// Processors in a list like `0-3,8`.
fn count_list(list: &str) -> usize {
    list.split(',')
        .filter_map(|range| match range.split_once('-') {
            Some((a, b)) => Some(b.parse::<usize>().ok()?.checked_sub(a.parse().ok()?)? + 1),
            None => range.parse::<usize>().ok().map(|_| 1),
        })
        .sum()
}

pub(crate) fn frequency(c: &Context) -> Vec<Finding> {
    let cpus = match c.sys.list(CPUS) {
        Ok(cpus) => cpus,
        Err(e) => return vec![Finding::unknown("frequency", "frequency scaling", e)],
    };
    let mut governors: BTreeMap<String, usize> = BTreeMap::new();
    let mut preferences = BTreeSet::new();
    for cpu in cpus.iter().filter(|n| n.strip_prefix("cpu").is_some_and(|d| d.parse::<u32>().is_ok())) {
        let read = |rel: &str| c.sys.read_opt(format!("{CPUS}/{cpu}/cpufreq/{rel}")).ok().flatten();
        if let Some(governor) = read("scaling_governor") {
            *governors.entry(governor).or_default() += 1;
        }
        preferences.extend(read("energy_performance_preference"));
    }
    if governors.is_empty() {
        return vec![
            Finding::ok("frequency", "the kernel does not scale the frequency")
                .so("in a virtual machine the host may still do it, unseen from here"),
        ];
    }
    let names: Vec<&str> = governors.keys().map(String::as_str).collect();
    let driver = c.sys.read_opt(format!("{CPUS}/cpu0/cpufreq/scaling_driver")).ok().flatten();
    let driver = driver.map_or(String::new(), |d| format!(" ({d})"));
    let preference = if preferences.is_empty() {
        String::new()
    } else {
        format!(", energy preference {}", preferences.into_iter().collect::<Vec<_>>().join(" and "))
    };
    let fact = format!("governor {}{driver}{preference}", names.join(" and "));
    let mut findings = vec![if names == ["performance"] {
        Finding::ok("frequency", fact).so("programs start at full clock")
    } else {
        Finding::disturbs("frequency", fact)
            .so("a start waits mostly for storage, so the clock is low when data arrives and depends on what ran \
                 before: runs vary, and cold looks slower than the storage makes it")
            .remedy("cpupower frequency-set -g performance (restore it afterwards)")
    }];
    findings.extend(turbo(c));
    findings
}

fn turbo(c: &Context) -> Option<Finding> {
    let read = |rel: &str| c.sys.read_opt(format!("{CPUS}/{rel}")).ok().flatten();
    let (on, switch) = if let Some(off) = read("intel_pstate/no_turbo") {
        (off == "0", "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo")
    } else {
        (read("cpufreq/boost")? == "1", "echo 0 > /sys/devices/system/cpu/cpufreq/boost")
    };
    Some(if on {
        Finding::note("frequency.turbo", "turbo is on")
            .so("the clock depends on temperature and on the other cores: the first runs of a series are faster")
            .remedy(format!("{switch} for figures that do not drift"))
    } else {
        Finding::ok("frequency.turbo", "turbo is off").so("the clock does not drift with heat")
    })
}

pub(crate) fn virtualisation(c: &Context) -> Vec<Finding> {
    let id = "virtualisation";
    let info = match c.proc.read("cpuinfo") {
        Ok(info) => info,
        Err(e) => return vec![Finding::unknown(id, "virtualisation", e)],
    };
    let flag =
        info.lines().any(|l| l.starts_with("flags") && l.split_whitespace().any(|w| w == "hypervisor"));
    match hypervisor(c).or_else(|| flag.then(|| "of unknown make".to_owned())) {
        Some(name) => vec![
            Finding::note(id, format!("a virtual machine ({name})"))
                .so("the host's load, clock and disk cache enter the figures and are only partly visible (steal)")
                .remedy("interleave what you compare (cold bench does), and repeat at another time"),
        ],
        None if info.contains("flags") => {
            vec![Finding::ok(id, "no hypervisor").so("processors and disks are this system's alone")]
        }
        None => vec![Finding::unknown(id, "virtualisation", "this architecture's cpuinfo does not tell")],
    }
}

/// Names in DMI's vendor and product, and the hypervisor behind them.
const DMI: &[(&str, &str)] = &[
    ("QEMU", "QEMU"),
    ("KVM", "KVM"),
    ("OpenStack", "OpenStack"),
    ("Amazon EC2", "Amazon EC2"),
    ("Google Compute Engine", "Google Compute Engine"),
    ("DigitalOcean", "DigitalOcean"),
    ("Hetzner", "Hetzner"),
    ("VMware", "VMware"),
    ("VirtualBox", "VirtualBox"),
    ("innotek", "VirtualBox"),
    ("Xen", "Xen"),
    ("Bochs", "Bochs"),
    ("Parallels", "Parallels"),
    ("BHYVE", "bhyve"),
    ("Virtual Machine", "Hyper-V"),
];

fn hypervisor(c: &Context) -> Option<String> {
    if c.release.to_lowercase().contains("microsoft") {
        return Some("WSL".to_owned());
    }
    let read = |rel: &str| c.sys.read_opt(rel).ok().flatten();
    let dmi = ["sys_vendor", "product_name"].map(|f| read(&format!("class/dmi/id/{f}")).unwrap_or_default());
    // Bare-metal instances of the clouds carry their vendor's name too, so DMI counts with the flag or by
    // a product that only exists as a virtual machine.
    if let Some((_, name)) = DMI.iter().find(|(text, _)| dmi.iter().any(|d| d.contains(text))) {
        let metal = dmi[1].contains("metal");
        return (!metal).then(|| (*name).to_owned());
    }
    if let Some(kind) = read("hypervisor/type") {
        return Some(kind);
    }
    let clocks = read("devices/system/clocksource/clocksource0/available_clocksource").unwrap_or_default();
    let by_clock = [("kvm-clock", "KVM"), ("hyperv", "Hyper-V"), ("xen", "Xen")];
    by_clock.iter().find(|(clock, _)| clocks.contains(clock)).map(|(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::count_list;

    #[test]
    fn processor_lists() {
        for (list, n) in [("0", 1), ("0-3", 4), ("0-3,8", 5), ("0,2,4-5", 4), ("", 0), ("5-2", 0)] {
            assert_eq!(count_list(list), n, "{list}");
        }
    }
}
