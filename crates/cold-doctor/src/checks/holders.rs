//! Running processes that hold files of the command: what they map stays in the cache.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cold_model::Shown as _;
use cold_model::figures::plural;

use crate::context::{Context, name_processes};
use crate::finding::Finding;
use crate::processes::Process;
use crate::programs::Program;

/// What one process maps of the command's files.
#[derive(Default)]
struct Held {
    /// The program's own file, or one in its own directory.
    own: BTreeSet<PathBuf>,
    /// Interpreters and libraries it shares with others.
    shared: BTreeSet<PathBuf>,
}

pub(crate) fn run(c: &Context) -> Vec<Finding> {
    let Some(program) = &c.program else { return Vec::new() };
    let mut holders: Vec<(&Process, Held)> = Vec::new();
    let mut closed: Vec<&Process> = Vec::new();
    let own_pid = i32::try_from(std::process::id()).unwrap_or(0);
    for process in c.processes.iter().filter(|p| !p.kernel_thread && p.pid != own_pid) {
        match c.proc.maps(process.pid) {
            Ok(maps) => {
                let paths = maps.iter().filter(|m| !m.deleted).filter_map(|m| m.path.as_deref());
                let held = held(program, paths);
                if !held.own.is_empty() || !held.shared.is_empty() {
                    holders.push((process, held));
                }
            }
            Err(e) if matches!(e.errno(), Some(libc::ENOENT | libc::ESRCH)) => {} // it ended
            Err(_) => closed.push(process),
        }
    }
    let mut findings = Vec::new();
    findings.extend(instances(program, &holders));
    findings.extend(own_files(&holders, program));
    findings.extend(shared_files(program, &holders));
    findings.extend(hidden(c, program, &closed));
    findings.extend(unresolved(program));
    if findings.is_empty() {
        findings.push(
            Finding::ok("holder", format!("no process maps {} or its libraries", program.path.shown()))
                .so("all its pages can be evicted"),
        );
    }
    findings
}

/// A script is not mapped: whoever runs it has it among its arguments, which [`instances`] looks at.
fn held<'a>(program: &Program, paths: impl Iterator<Item = &'a Path>) -> Held {
    let mut held = Held::default();
    for path in paths {
        if !path.starts_with("/") {
            continue; // [heap], anon_inode:…
        }
        let in_directory = program.directory.as_ref().is_some_and(|d| path.starts_with(d));
        if path == program.path || in_directory {
            held.own.insert(path.to_owned());
        } else if program.libraries.contains(path) || program.interpreters.iter().any(|i| i == path) {
            held.shared.insert(path.to_owned());
        }
    }
    held
}

/// Processes that run the same program.
fn instances(program: &Program, holders: &[(&Process, Held)]) -> Option<Finding> {
    let script = program.is_script().then(|| program.path.to_string_lossy().into_owned());
    let runs = |p: &Process| {
        p.exe.as_ref() == Some(&program.path)
            || script.as_ref().is_some_and(|s| p.cmdline.iter().take(3).any(|a| a == s))
    };
    let running: Vec<&Process> = holders.iter().map(|(p, _)| *p).filter(|p| runs(p)).collect();
    // The oldest ancestor among them is the one to end; its children follow.
    let roots: Vec<&Process> =
        running.iter().filter(|p| !running.iter().any(|q| q.pid == p.ppid)).copied().collect();
    if running.is_empty() {
        return None;
    }
    let end: Vec<String> = roots.iter().map(|p| p.pid.to_string()).collect();
    Some(
        Finding::disturbs(
            "holder.instance",
            format!("{} runs already: pid {}", program.given, family(&running)),
        )
        .about(program.path.shown().to_string())
        .so("what it maps cannot be evicted, so no start is cold; a new start may just hand over to it")
        .remedy(format!("end it: kill {}", end.join(" ")))
        .pids(running.iter().map(|p| p.pid)),
    )
}

/// Other programs that map files from the command's own directory.
fn own_files(holders: &[(&Process, Held)], program: &Program) -> Option<Finding> {
    let others: Vec<&(&Process, Held)> =
        holders.iter().filter(|(p, h)| p.exe.as_ref() != Some(&program.path) && !h.own.is_empty()).collect();
    if others.is_empty() {
        return None;
    }
    let files: BTreeSet<&PathBuf> = others.iter().flat_map(|(_, h)| &h.own).collect();
    Some(
        Finding::disturbs(
            "holder.own_files",
            format!(
                "{} of its own files {} mapped by {}: {}",
                files.len(),
                if files.len() == 1 { "is" } else { "are" },
                name_processes(others.iter().map(|(p, _)| *p), 3),
                names(files.iter().map(|p| p.as_path()), 4)
            ),
        )
        .so("their mapped pages stay in the cache through every eviction")
        .remedy("end these processes for the measurement")
        .pids(others.iter().map(|(p, _)| p.pid)),
    )
}

/// Libraries that others use too: in one line, for there is little to be done.
fn shared_files(program: &Program, holders: &[(&Process, Held)]) -> Option<Finding> {
    let mut users: BTreeMap<&PathBuf, BTreeSet<i32>> = BTreeMap::new();
    for (process, held) in holders.iter().filter(|(p, _)| p.exe.as_ref() != Some(&program.path)) {
        for path in &held.shared {
            users.entry(path).or_default().insert(process.pid);
        }
    }
    let all: BTreeSet<i32> = users.values().flatten().copied().collect();
    if all.is_empty() {
        return None;
    }
    let total = program.libraries.len() + program.interpreters.len();
    let mut by_use: Vec<(&PathBuf, usize)> = users.iter().map(|(path, pids)| (*path, pids.len())).collect();
    by_use.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    Some(
        Finding::note(
            "holder.shared",
            format!(
                "{} of the {total} libraries and interpreters it links are mapped by {} of other programs: {}",
                users.len(),
                plural(all.len() as u64, "process"),
                names(by_use.iter().map(|(p, _)| p.as_path()), 4)
            ),
        )
        .so("these pages stay cached, as they do for every user; runs show them as cached before the start")
        .pids(all),
    )
}

/// Processes whose mappings we may not see; their names still tell of another instance.
fn hidden(c: &Context, program: &Program, closed: &[&Process]) -> Vec<Finding> {
    if closed.is_empty() {
        return Vec::new();
    }
    let name = program.path.file_name().unwrap_or_default().to_string_lossy();
    let given = Path::new(&program.given).file_name().unwrap_or_default().to_string_lossy();
    let same: Vec<&Process> =
        closed.iter().filter(|p| p.is_called(&name) || p.is_called(&given)).copied().collect();
    let mut findings = Vec::new();
    if !same.is_empty() {
        findings.push(
            Finding::disturbs(
                "holder.instance",
                format!("another user runs something of that name: pid {}", family(&same)),
            )
            .so("what it maps cannot be evicted, so the start is probably not cold")
            .remedy("have it ended, or run as root to be sure: sudo cold doctor")
            .pids(same.iter().map(|p| p.pid)),
        );
    }
    let why = format!(
        "the mappings of {} cannot be read: {}",
        plural(closed.len() as u64, "process"),
        name_processes(closed.iter().copied(), 3)
    );
    let finding = Finding::unknown("holder.hidden", "other holders", why)
        .so("pages they map stay warm and nobody can be named for them")
        .pids(closed.iter().map(|p| p.pid));
    // Root is refused only where the machine itself protects a process.
    findings.push(if c.is_root() { finding } else { finding.remedy("run as root: sudo cold doctor") });
    findings
}

fn unresolved(program: &Program) -> Option<Finding> {
    if program.unresolved.is_empty() {
        return None;
    }
    Some(
        Finding::unknown(
            "holder.unresolved",
            "some libraries",
            format!("not found: {}", program.unresolved.join(", ")),
        )
        .so("their holders are not listed; the program may fail to start")
        .remedy(format!("see: ldd {}", program.path.shown())),
    )
}

/// The topmost of these processes, whose children the others are, and how many those are.
fn family(processes: &[&Process]) -> String {
    let top: Vec<String> = processes
        .iter()
        .filter(|p| !processes.iter().any(|q| q.pid == p.ppid))
        .map(|p| p.pid.to_string())
        .collect();
    match processes.len() - top.len() {
        0 => top.join(", "),
        children => format!("{} and {children} below it", top.join(", ")),
    }
}

/// Base names, at most `most`.
fn names<'a>(paths: impl Iterator<Item = &'a Path>, most: usize) -> String {
    let all: Vec<String> =
        paths.filter_map(|p| Some(p.file_name()?.to_string_lossy().into_owned())).collect();
    let text = all.iter().take(most).cloned().collect::<Vec<_>>().join(", ");
    if all.len() > most { format!("{text} and {} more", all.len() - most) } else { text }
}
