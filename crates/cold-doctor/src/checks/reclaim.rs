//! Who takes pages away: DAMON, MGLRU, KSM, and reclaim that is going on.

use cold_model::Bytes;
use cold_model::Shown as _;

use crate::context::Context;
use crate::finding::Finding;
use crate::processes::Process;

/// DAMON schemes that take file pages away or reorder the lists they are taken from.
const HARMFUL_ACTIONS: &[&str] = &["pageout", "cold", "lru_deprio", "migrate_cold", "lru_prio"];

pub(crate) fn damon(c: &Context) -> Vec<Finding> {
    let mut findings = Vec::new();
    let admin = "kernel/mm/damon/admin/kdamonds";
    match c.sys.list(admin) {
        Ok(names) => {
            for name in names.iter().filter(|n| n.parse::<u32>().is_ok()) {
                findings.extend(kdamond(c, &format!("{admin}/{name}")));
            }
        }
        Err(e) => findings.push(Finding::unknown("damon", "DAMON's schemes", e)),
    }
    for module in ["damon_reclaim", "damon_lru_sort"] {
        let on = c.sys.read_opt(format!("module/{module}/parameters/enabled")).ok().flatten();
        if on.is_some_and(|v| v == "Y" || v == "1") {
            findings.push(
                Finding::disturbs("damon", format!("the {module} module is enabled"))
                    .so("pages not used for a while leave the cache: warm starts cool down during pauses")
                    .remedy(format!("echo N > /sys/module/{module}/parameters/enabled")),
            );
        }
    }
    let threads: Vec<&Process> =
        c.processes.iter().filter(|p| p.kernel_thread && p.comm.starts_with("kdamond.")).collect();
    if findings.is_empty() {
        findings.push(if threads.is_empty() {
            Finding::ok("damon", "no DAMON scheme takes pages away").so("idle pages stay cached")
        } else {
            Finding::unknown(
                "damon",
                "what DAMON does",
                format!("{} runs, but its schemes cannot be read", threads[0].comm),
            )
            .so("it may take pages away that were not used for a while: warm starts cool down")
            .remedy("as root: cold doctor")
            .pids(threads.iter().map(|p| p.pid))
        });
    }
    findings
}

fn kdamond(c: &Context, dir: &str) -> Vec<Finding> {
    let read = |rel: String| c.sys.read_opt(rel);
    // Unreadable: the kernel thread still tells that one runs.
    if read(format!("{dir}/state")).ok().flatten().as_deref() != Some("on") {
        return Vec::new();
    }
    let pid: Option<i32> = read(format!("{dir}/pid")).ok().flatten().and_then(|t| t.parse().ok());
    let mut findings = Vec::new();
    for context in c.sys.list(format!("{dir}/contexts")).unwrap_or_default() {
        let schemes = format!("{dir}/contexts/{context}/schemes");
        for scheme in c.sys.list(&schemes).unwrap_or_default() {
            let at = format!("{schemes}/{scheme}");
            let number =
                |rel: &str| read(format!("{at}/{rel}")).ok().flatten().and_then(|t| t.parse::<u64>().ok());
            let action = read(format!("{at}/action")).ok().flatten().unwrap_or_default();
            if !HARMFUL_ACTIONS.contains(&action.as_str()) {
                continue;
            }
            // Ages count in aggregation intervals.
            let interval = read(format!("{dir}/contexts/{context}/monitoring_attrs/intervals/aggr_us"));
            let interval: Option<u64> = interval.ok().flatten().and_then(|t| t.parse().ok());
            let age = number("access_pattern/age/min")
                .zip(interval)
                .map(|(n, us)| n.saturating_mul(us) / 1_000_000);
            let age = age.map_or(String::new(), |s| format!(" on regions unused for {s} s"));
            let quota = match (number("quotas/bytes"), number("quotas/reset_interval_ms")) {
                (Some(bytes), Some(ms)) if bytes > 0 => format!(", up to {} per {ms} ms", Bytes(bytes)),
                _ => String::new(),
            };
            let finding = Finding::disturbs("damon", format!("DAMON applies {action}{age}{quota}"))
                .so("pages not used for a while leave the cache: warm starts cool down during pauses, and a saved \
                     state decays")
                .remedy(format!(
                    "keep pauses short, or echo off > {} for the measurement (ask the machine's owner)",
                    c.sys.path(format!("{dir}/state")).shown()
                ));
            findings.push(finding.pids(pid));
        }
    }
    findings
}

pub(crate) fn mglru(c: &Context) -> Vec<Finding> {
    match c.sys.read_opt("kernel/mm/lru_gen/enabled") {
        Ok(Some(text)) if text != "0x0000" => {
            let ttl = c.sys.read_opt("kernel/mm/lru_gen/min_ttl_ms").ok().flatten();
            let ttl = ttl.map_or(String::new(), |t| format!(", min_ttl_ms {t}"));
            vec![Finding::ok("mglru", format!("multi-generational LRU is on ({text}{ttl})")).so(
                "under pressure pages go by generation; figures under pressure differ from the classic lists",
            )]
        }
        Ok(_) => {
            vec![Finding::ok("mglru", "classic LRU lists").so("under pressure the inactive list goes first")]
        }
        Err(e) => vec![Finding::unknown("mglru", "multi-generational LRU", e)],
    }
}

pub(crate) fn ksm(c: &Context) -> Vec<Finding> {
    match c.sys.read_opt("kernel/mm/ksm/run") {
        Ok(Some(run)) if run == "1" => vec![
            Finding::note("ksm", "KSM merges equal anonymous pages")
                .so("ksmd uses CPU time in the background and adds copy-on-write faults")
                .remedy("echo 0 > /sys/kernel/mm/ksm/run"),
        ],
        Ok(_) => vec![Finding::ok("ksm", "KSM is off").so("no background merging of memory")],
        Err(e) => vec![Finding::unknown("ksm", "KSM", e)],
    }
}

pub(crate) fn going_on(c: &Context) -> Vec<Finding> {
    let seen = c.observed();
    let seconds = seen.seconds();
    // pgsteal_* counts pages reclaimed by kswapd, directly, by khugepaged and proactively (DAMON, cgroups).
    let mut stolen = 0;
    for key in ["pgsteal_kswapd", "pgsteal_direct", "pgsteal_khugepaged", "pgsteal_proactive", "pgsteal_file"]
    {
        match seen.vmstat(key) {
            // pgsteal_file counts DAMON's pageout too, which the others leave out; it overlaps with them.
            Ok(Some((_, moved))) => stolen = stolen.max(moved),
            Ok(None) => {}
            Err(why) => return vec![Finding::unknown("reclaim", "reclaim", why)],
        }
    }
    vec![if stolen > 0 {
        Finding::disturbs("reclaim", format!("at least {stolen} pages were reclaimed within {seconds:.1} s"))
            .so("pages of a warm start may be among them")
            .remedy("free memory, or stop the reclaimer named above; disturbed runs are repeated")
    } else {
        Finding::ok("reclaim", format!("no page was reclaimed within {seconds:.1} s"))
            .so("what is warm stays warm")
    }]
}
