//! Prefetchers, indexers, package managers, backups: the table of [`crate::known`] against what runs.

use std::os::unix::fs::MetadataExt;

use crate::context::{Context, name_processes};
use crate::finding::Finding;
use crate::known::{Disturbance, KNOWN, Known, PACKAGE_LOCK_FILES, PACKAGE_LOCKS, UNIT_DIRECTORIES};
use crate::processes::Process;

/// Share of one CPU in percent from which a daemon counts as working.
const WORKING_PERCENT: f64 = 2.0;

pub(crate) fn running(c: &Context) -> Vec<Finding> {
    let mut findings: Vec<Finding> = KNOWN.iter().filter_map(|k| one(c, k)).chain(own_service(c)).collect();
    if findings.is_empty() {
        findings.push(
            Finding::ok(
                "program",
                "no known prefetcher, indexer, scanner, package manager, sync or backup runs",
            )
            .so("nothing known here reads files on its own"),
        );
    }
    findings
}

/// `cold service run`: by its words, as its lock and socket are root's.
fn own_service(c: &Context) -> Option<Finding> {
    let runs = |p: &&Process| {
        // Flags may stand in front of the command and behind it.
        let mut words = p.cmdline.iter().skip(1).filter(|word| !word.starts_with('-'));
        p.is_called("cold") && words.by_ref().any(|w| w == "service") && words.any(|w| w == "run")
    };
    let processes: Vec<&Process> = c.processes.iter().filter(runs).collect();
    if processes.is_empty() {
        return None;
    }
    let at = name_processes(processes.iter().copied(), 3);
    let finding = Finding::disturbs("program.service", format!("cold service is running: {at}"))
        .so("it reads ahead for every start that has a plan, and after the cache was emptied: what is to be cold is not")
        .remedy("cold service pause for the measurement, cold service resume afterwards");
    Some(finding.about("cold service").pids(processes.iter().map(|p| p.pid)))
}

fn one(c: &Context, known: &Known) -> Option<Finding> {
    let processes: Vec<&Process> = c.called(known.names).collect();
    if processes.is_empty() {
        return None;
    }
    let seen = c.observed();
    let working = processes
        .iter()
        .filter_map(|p| seen.of_process(p.pid))
        .any(|b| b.cpu_percent >= WORKING_PERCENT || b.read_bytes.is_some_and(|n| n > 0));
    let at = name_processes(processes.iter().copied(), 3);
    let state = if working { "is working" } else { "is running, idle just now" };
    let fact = |verb: &str| format!("{} {verb}: {at}", known.what);
    let stop = match known.units.first() {
        Some(unit) => format!("systemctl stop {unit} for the measurement"),
        None => "end it or wait until it is done".to_owned(),
    };
    let by_work = |consequence: &str| {
        if working {
            Finding::disturbs("program", fact(state))
        } else {
            Finding::note("program", fact(state))
        }
        .so(consequence.to_owned())
        .remedy(stop.clone())
    };
    let finding = match known.kind {
        Disturbance::Prefetcher => Finding::disturbs("program.prefetcher", fact("is running"))
            .so("it reads files before they are asked for, so evicted pages come back by themselves")
            .remedy(stop),
        Disturbance::MemoryProfile => Finding::disturbs("program.memory_profile", fact("is running"))
            .so("profiles live in tmpfs: their part of a start is never cold")
            .remedy(stop),
        Disturbance::OnAccess => Finding::disturbs("program.on_access", fact("is running"))
            .so("each open waits until the file is scanned, which also reads the whole file into the cache")
            .remedy(stop),
        Disturbance::Indexer => {
            by_work("it reads files whenever something changes: foreign reads, pages that warm up")
        }
        Disturbance::Job => Finding::disturbs("program.job", fact("is running"))
            .so("it reads or writes much, and may replace the very files that are measured")
            .remedy("wait until it is done"),
        Disturbance::PackageDaemon => {
            by_work("it wakes up on its own to refresh and to install, which replaces files")
        }
        Disturbance::Sync => by_work("it reads what programs write, also profiles that a start touches"),
        Disturbance::Containers => {
            by_work("pulls and starts of containers read and write much, on the same disks")
        }
    };
    Some(finding.about(known.what).pids(processes.iter().map(|p| p.pid)))
}

/// Prefetchers and on-access scanners that are installed and enabled but do not run now: they act at
/// boot or at login.
pub(crate) fn installed(c: &Context) -> Vec<Finding> {
    let mut findings = Vec::new();
    for known in KNOWN {
        if !matches!(known.kind, Disturbance::Prefetcher | Disturbance::MemoryProfile | Disturbance::OnAccess)
            || c.called(known.names).next().is_some()
        {
            continue;
        }
        if let Some(unit) = known.units.iter().find(|unit| enabled(c, unit)) {
            findings.push(
                Finding::note("installed", format!("{} is enabled ({unit}) but not running", known.what))
                    .about(known.what)
                    .so("it acts at boot or login: the first start afterwards is not the one users without it see")
                    .remedy(format!("systemctl disable {unit} before measuring first starts after boot")),
            );
        }
    }
    findings
}

/// Whether some target wants the unit: a link to it lies in a `*.wants` directory.
fn enabled(c: &Context, unit: &str) -> bool {
    UNIT_DIRECTORIES.iter().any(|dir| {
        let entries = std::fs::read_dir(c.roots.path(dir)).into_iter().flatten().flatten();
        entries
            .filter(|e| e.file_name().to_string_lossy().ends_with(".wants"))
            .any(|e| e.path().join(unit).symlink_metadata().is_ok())
    })
}

pub(crate) fn package_locks(c: &Context) -> Vec<Finding> {
    let id = "package_lock";
    let finding = |path: &str, pid: Option<i32>| {
        let holder = pid.map_or(String::new(), |p| format!(" by {} (pid {p})", c.name_of(p)));
        Finding::disturbs(id, format!("{path} is locked{holder}"))
            .about(path)
            .so("a package manager is at work and may replace the files that are measured")
            .remedy("wait until it is done")
            .pids(pid)
    };
    let mut findings: Vec<Finding> = PACKAGE_LOCK_FILES
        .iter()
        .filter(|path| c.roots.path(path).exists())
        .map(|path| finding(path, None))
        .collect();
    let locks = match c.proc.locks() {
        Ok(locks) => locks,
        Err(e) => {
            findings.push(Finding::unknown(id, "locks of package managers", e));
            return findings;
        }
    };
    for path in PACKAGE_LOCKS {
        let Ok(meta) = std::fs::metadata(c.roots.path(path)) else { continue };
        // Inodes alone could meet on two file systems; the device differs from st_dev on btrfs, so a pid
        // that we know or the same device is asked for as well.
        let dev = cold_model::Dev::of_number(meta.dev());
        if let Some(lock) =
            locks.iter().find(|l| l.inode == meta.ino() && (l.dev == dev || l.dev.is_anonymous()))
        {
            findings.push(finding(path, Some(lock.pid).filter(|p| *p > 0)));
        }
    }
    findings
}
