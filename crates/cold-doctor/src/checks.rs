//! Everything that is looked at: one table.

pub(crate) mod accounting;
pub(crate) mod cache;
pub(crate) mod cgroups;
pub(crate) mod cpu;
pub(crate) mod holders;
pub(crate) mod leftovers;
pub(crate) mod load;
pub(crate) mod memory;
pub(crate) mod privileges;
pub(crate) mod programs;
pub(crate) mod reclaim;
pub(crate) mod schedule;
pub(crate) mod storage;
pub(crate) mod tracing;
pub(crate) mod watchers;

use crate::context::Context;
use crate::finding::{Area, Finding};

/// One check: a name, what it is about, and how it is done.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Stable name; the ids of its findings are this name or begin with it and a dot.
    pub id: &'static str,
    /// What it is about.
    pub area: Area,
    /// It needs counters that were watched for a while, so it runs after those that do not.
    pub observes: bool,
    /// Looks at the machine and says what it found; empty where the check does not apply.
    pub run: fn(&Context) -> Vec<Finding>,
}

const fn check(id: &'static str, area: Area, run: fn(&Context) -> Vec<Finding>) -> Check {
    Check { id, area, observes: false, run }
}

const fn observing(id: &'static str, area: Area, run: fn(&Context) -> Vec<Finding>) -> Check {
    Check { id, area, observes: true, run }
}

/// All checks, in the order of the report.
pub const CHECKS: &[Check] = &[
    check("user", Area::Privileges, privileges::user),
    check("sandbox", Area::Privileges, privileges::sandbox),
    check("tier", Area::Tracing, tracing::tiers),
    check("exact_need", Area::Tracing, tracing::exact),
    check("ptrace", Area::Tracing, tracing::ptrace),
    check("drop_caches", Area::Cache, cache::drop_caches),
    observing("caches_dropped", Area::Cache, cache::dropped_by_others),
    check("cachestat", Area::Cache, cache::cachestat),
    check("mincore", Area::Cache, cache::mincore),
    check("cgroup", Area::Cgroups, cgroups::run),
    check("psi", Area::Accounting, accounting::psi),
    check("delay_accounting", Area::Accounting, accounting::delays),
    check("storage", Area::Storage, storage::run),
    check("thp", Area::Memory, memory::huge_pages),
    check("large_folios", Area::Memory, memory::large_folios),
    check("swap", Area::Memory, memory::swap),
    check("memory", Area::Memory, memory::available),
    check("damon", Area::Memory, reclaim::damon),
    check("mglru", Area::Memory, reclaim::mglru),
    check("ksm", Area::Memory, reclaim::ksm),
    observing("reclaim", Area::Memory, reclaim::going_on),
    check("cpus", Area::Cpu, cpu::topology),
    check("frequency", Area::Cpu, cpu::frequency),
    check("virtualisation", Area::Cpu, cpu::virtualisation),
    observing("steal", Area::Cpu, load::steal),
    observing("thermal", Area::Cpu, load::thermal),
    observing("load", Area::Cpu, load::processors),
    observing("disk_activity", Area::Cpu, load::disks),
    observing("program", Area::Programs, programs::running),
    check("installed", Area::Programs, programs::installed),
    check("package_lock", Area::Programs, programs::package_locks),
    check("watcher", Area::Programs, watchers::run),
    check("timers", Area::Schedule, schedule::timers),
    check("cron", Area::Schedule, schedule::cron),
    check("anacron", Area::Schedule, schedule::anacron),
    check("holder", Area::Holders, holders::run),
    check("leftover", Area::Leftovers, leftovers::run),
];

/// Runs all checks: first those that need no watching, while the window passes.
pub(crate) fn run_all(context: &Context) -> Vec<Finding> {
    let mut order: Vec<usize> = (0..CHECKS.len()).collect();
    order.sort_by_key(|i| CHECKS[*i].observes);
    let mut groups: Vec<Vec<Finding>> = vec![Vec::new(); CHECKS.len()];
    for i in order {
        let check = &CHECKS[i];
        let mut findings = (check.run)(context);
        for finding in &mut findings {
            finding.area = check.area;
        }
        groups[i] = findings;
    }
    groups.into_iter().flatten().collect()
}
