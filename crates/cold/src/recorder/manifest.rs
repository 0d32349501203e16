//! What `recording.json` says of the command and its preparation; the recorder adds the machine.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use cold_bench::diagnose::taints;
use cold_bench::launch::LaunchedStart;
use cold_bench::session::ExactNeed;
use cold_bench::session::single::Single;
use cold_model::Known;
use cold_model::bench::Ending;
use cold_model::hash::fnv1a128;
use cold_model::recording::manifest::{
    Device, FORMAT, Load, ReachedBy, StartState, Subject, VERSION, WantedState,
};
use cold_model::recording::{Manifest, Recording};
use cold_sys::page::page_size;
use cold_sys::procfs::ProcFs;
use cold_sys::time::monotonic;

/// Variables that make programs search: they explain misses. All others stay in the digest only.
const SEARCH: [&str; 14] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PYTHONPATH",
    "PYTHONHOME",
    "NODE_PATH",
    "CLASSPATH",
    "PERL5LIB",
    "RUBYLIB",
    "GEM_PATH",
    "XDG_DATA_DIRS",
    "XDG_CONFIG_DIRS",
    "GI_TYPELIB_PATH",
    "LOCPATH",
];

/// What is known before the start: of what, with which arguments (of a command), and what ready means in words.
pub(crate) fn before(subject: Subject, argv: &[OsString], ready: &str) -> Manifest {
    let mut m = Manifest {
        format: FORMAT.into(),
        version: VERSION,
        tool: env!("CARGO_PKG_VERSION").into(),
        page_bytes: u32::try_from(page_size()).unwrap_or(4096),
        started_at: now(),
        start: monotonic(),
        state: StartState { wanted: WantedState::AsFound, ..StartState::default() },
        ..Manifest::default()
    };
    match &subject {
        Subject::Command => {
            m.command = argv.to_vec();
            ready.clone_into(&mut m.ready_means);
            m.directory = std::env::current_dir().unwrap_or_default();
            environment(&mut m, std::env::vars_os().collect());
        }
        Subject::Process { pid } => running(&mut m, pid.cast_signed()),
        Subject::Machine => {}
    }
    m.subject = subject;
    m
}

/// What a process that has just been started was given, and when that is: command, directory, environment; all else is
/// left empty.
pub(crate) fn of_process(pid: i32) -> Manifest {
    let proc = ProcFs::default();
    let mut m = Manifest { started_at: now(), ..Manifest::default() };
    let arguments = proc.cmdline(pid).unwrap_or_default();
    m.command = arguments.into_iter().map(OsString::from).collect();
    m.directory = std::fs::read_link(proc.path(format!("{pid}/cwd"))).unwrap_or_default();
    match std::fs::read(proc.path(format!("{pid}/environ"))) {
        Ok(bytes) => environment(&mut m, variables(&bytes)),
        Err(e) => m.notes.push(format!("the environment of process {pid} could not be read ({e})")),
    }
    m
}

/// What a process that already runs was started with, and where it is now.
fn running(m: &mut Manifest, pid: i32) {
    let given = of_process(pid);
    (m.command, m.directory) = (given.command, given.directory);
    (m.environment, m.search_paths) = (given.environment, given.search_paths);
    m.notes.extend(given.notes);
    if super::afterwards::same_mounts(pid.cast_unsigned()) == Some(false) {
        m.notes.push(format!(
            "process {pid} has mounts of its own (a container): paths are as it sees them, not as this shell does"
        ));
    }
    m.notes.push(
        "the process already ran: what it had mapped and read before is not among what it needed".to_owned(),
    );
}

/// `NAME=VALUE` after each other, as execve(2) was given them.
fn variables(environ: &[u8]) -> Vec<(OsString, OsString)> {
    let text = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    let pair = |entry: &[u8]| {
        let at = entry.iter().position(|b| *b == b'=')?;
        Some((text(&entry[..at]), text(&entry[at + 1..])))
    };
    environ.split(|b| *b == 0).filter_map(pair).collect()
}

fn environment(m: &mut Manifest, vars: Vec<(OsString, OsString)>) {
    let search = vars.iter().filter_map(|(name, value)| {
        let name = name.to_str().filter(|name| SEARCH.contains(name))?;
        Some((name.to_owned(), value.to_string_lossy().into_owned()))
    });
    m.search_paths = search.collect();
    m.environment = digest(vars);
}

/// Adds when the start was ready, and how it ended.
pub(super) fn started(m: &mut Manifest, start: &LaunchedStart) {
    m.start = start.at;
    m.ready = Some(match start.ready {
        Some(t) => Known::Value(start.at + t),
        None if start.interrupted => Known::unknown("it was interrupted"),
        None => Known::unknown("it never got ready"),
    });
    m.serving = start.serving.map(|t| start.at + t);
    m.reached_by = start.reached_by.map(|pid| ReachedBy { pid, tid: None });
    m.ending = Some(start.ending);
}

/// Adds how the process that was followed ended, if it did and the recorder saw its status.
pub(super) fn ended(recording: &mut Recording) {
    let Subject::Process { pid } = recording.manifest.subject else { return };
    let last = recording.processes.iter().rfind(|p| p.pid == pid);
    let Some(status) = last.and_then(|p| p.ended.and(p.status)) else { return };
    recording.manifest.ending = Some(Ending::of_wait_status(status));
}

/// Adds what it started from, and what disturbed it.
pub(super) fn judged(m: &mut Manifest, single: Single) {
    let Single { run, state, notes, exact, load, .. } = single;
    m.state = state;
    // The recorder's own cost is told by itself.
    let own = m.cost.recorder_cpu;
    m.load = Some(load.map(|l| Load { others: l.others.saturating_sub(own), ..l }));
    m.taints = run.taints.iter().map(taints::words).collect();
    m.disqualified_by = run.taints;
    m.notes.extend(notes);
    m.exact_need = match exact {
        ExactNeed::NotAsked => false,
        ExactNeed::FaultAround => true,
        ExactNeed::ReadAhead { devices, why } => {
            for turned_off in &devices {
                let of = |d: &&mut Device| {
                    d.dev == turned_off.dev || d.partition_of.is_some_and(|p| p.0 == turned_off.dev)
                };
                m.devices.iter_mut().filter(of).for_each(|d| d.usual_read_ahead = turned_off.usual);
            }
            m.notes.push(format!(
                "touches are exact because nothing was read ahead on {}, as far as the start was cold and asked for no \
                 huge pages (MADV_HUGEPAGE), which are read whole all the same ({why})",
                devices.iter().map(|d| d.dev.to_string()).collect::<Vec<_>>().join(", ")
            ));
            true
        }
        ExactNeed::Not(why) => {
            m.notes.push(format!(
                "--exact-need could not be had, so pages mapped around faults are an upper bound: {why}"
            ));
            false
        }
    };
}

/// RFC 3339 with fractions: a file that was changed in the second before was not changed by the start.
fn now() -> String {
    jiff::Timestamp::now().to_string()
}

/// 128 bits (FNV-1a) over the sorted variables: tells whether two environments are the same. It is no
/// secret's guard against guessing; it gives away nothing that is not guessed as a whole.
fn digest(mut all: Vec<(OsString, OsString)>) -> String {
    all.sort();
    let parts: Vec<&[u8]> =
        all.iter().flat_map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes(), b"\0"]).collect();
    format!("{:032x}", fnv1a128(&parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_as_the_kernel_shows_it() {
        let vars = variables(b"PATH=/bin\0EMPTY=\0A=b=c\0not one\0");
        let expected = [("PATH", "/bin"), ("EMPTY", ""), ("A", "b=c")];
        assert_eq!(vars, expected.map(|(n, v)| (n.into(), v.into())));
        let mut m = Manifest::default();
        environment(&mut m, vars);
        assert_eq!(m.search_paths.into_iter().collect::<Vec<_>>(), [("PATH".into(), "/bin".into())]);
    }

    #[test]
    fn the_digest_tells_environments_apart_whatever_their_order() {
        let of = |list: &[(&str, &str)]| digest(list.iter().map(|(n, v)| (n.into(), v.into())).collect());
        assert_eq!(of(&[("A", "1"), ("B", "2")]), of(&[("B", "2"), ("A", "1")]));
        assert_ne!(of(&[("A", "1"), ("B", "2")]), of(&[("A", "1"), ("B", "3")]));
        assert_ne!(of(&[("A", "1B=2")]), of(&[("A", "1"), ("B", "2")]));
        assert_eq!(of(&[]).len(), 32);
    }
}
