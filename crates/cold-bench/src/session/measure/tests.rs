use std::path::Path;

use cold_journal::Journal;
use cold_model::bench::{Ending, Held, Residual, ResidualFile};
use cold_plan::history::{Record, Skip, append};
use cold_sys::procfs::ProcFs;
use cold_sys::supervise::protocol::Usage;

use cold_model::Nanos;

use super::*;
use crate::config::{CommandSpec, Launcher};
use crate::session::cgroups::TreeCgroups;
use crate::session::state::Preparer;
use crate::session::tests::{config, spec};

fn before(residual: Known<Residual>) -> Before {
    Before {
        cached: None,
        residual,
        warm_bytes: 100 << 20,
        not_restored: None,
        missing: 0,
        expected: 0,
        changed: None,
        reading: Reading::default(),
    }
}

fn start(usage: Usage) -> LaunchedStart {
    LaunchedStart {
        at: Nanos(1),
        serving: None,
        ready: Some(Nanos(400)),
        reached_by: None,
        first_gone: Some(Nanos(300)),
        gone: Nanos(500),
        own_cpu: None,
        usage,
        ending: Ending::Code(0),
        interrupted: false,
    }
}

/// The run that this start and this activity come to, on a machine whose /proc lies in `proc`.
fn judged(proc: &Path, start: &LaunchedStart, activity: &Activity) -> Run {
    let config = config(&[State::Cold], &["a"]);
    let proc = ProcFs::new(proc);
    let journal = Journal::open_in(std::env::temp_dir().join("never-made"));
    let mut preparer = Preparer::new(&config, &journal).unwrap();
    let subjects = [Subject::unobserved(&config.commands[0], "it hid".into())];
    let cgroups = TreeCgroups::create(&config, &proc, &journal, &subjects).unwrap();
    let rounds = Rounds {
        config: &config,
        proc: &proc,
        journal: &journal,
        subjects: &subjects,
        preparer: &mut preparer,
        cgroups: &cgroups,
        interrupt: &std::sync::atomic::AtomicBool::new(false),
        around: &mut (),
        as_found: false,
    };
    let before = before(Known::Value(Residual::default()));
    let after = AfterStart { lost: 0, code: code(&subjects[0], None), not_prefetched: None, not_set: None };
    let turn = Turn { series: 0, round: 3, sequence: 7 };
    rounds.judged(&subjects[0], &State::Cold, start, before, activity, after, turn)
}

/// A /proc without control groups; with `io`, of a kernel that keeps an account of it.
fn proc(io: bool) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("self")).unwrap();
    std::fs::write(dir.path().join("self/mountinfo"), "").unwrap();
    if io {
        std::fs::write(dir.path().join("self/io"), "").unwrap();
    }
    dir
}

fn why<T>(known: &Known<T>) -> &str {
    match known {
        Known::Unknown { unknown } => unknown,
        Known::Value(_) => "it is known",
    }
}

#[test]
fn a_peak_no_larger_than_the_launchers_own_is_unknown() {
    let proc = proc(true);
    let peak = |peak_memory| {
        let usage = Usage { peak_memory, peak_memory_floor: 4 << 20, ..Usage::default() };
        judged(proc.path(), &start(usage), &Activity::default()).peak_memory
    };
    assert_eq!(why(&peak(4 << 20)), "at most 4.00 MiB, the launcher's own");
    assert_eq!(peak((4 << 20) + 1).value(), Some(&Bytes((4 << 20) + 1)));
}

#[test]
fn requests_that_others_share_are_nobodys() {
    let proc = proc(true);
    let usage = Usage { read_bytes: 10 << 20, ..Usage::default() };
    let run = |device_read_bytes| {
        let activity = Activity {
            device_reads: Some(50),
            device_read_bytes: Some(device_read_bytes),
            ..Activity::default()
        };
        judged(proc.path(), &start(usage), &activity)
    };
    let alone = run(10 << 20);
    assert_eq!((alone.read_requests.value(), alone.counts()), (Some(&50), true));
    let shared = run(100 << 20);
    assert_eq!(why(&shared.read_requests), "other processes read from the same devices");
    assert_eq!(shared.taints[0].kind(), "foreign_reads");
    let blind = judged(proc.path(), &start(usage), &Activity::default());
    assert_eq!(why(&blind.read_requests), "its files are unknown");
}

#[test]
fn what_cold_ended_has_no_exit_of_its_own() {
    let proc = proc(true);
    let run = |ended| judged(proc.path(), &start(Usage { ended, ..Usage::default() }), &Activity::default());
    let (own, ours) = (run(false), run(true));
    assert_eq!((own.exit.value(), own.first_exit.value()), (Some(&Nanos(500)), Some(&Nanos(300))));
    assert_eq!(why(&ours.exit), "cold ended it once it was ready");
    assert_eq!((ours.exit.value(), ours.first_exit.value(), ours.ready), (None, None, Nanos(400)));
    assert_eq!((own.round, own.sequence), (3, 7));
}

#[test]
fn one_that_was_never_ready_lasts_to_its_end_and_does_not_count() {
    let proc = proc(true);
    let never = LaunchedStart { ready: None, ..start(Usage::default()) };
    let run = judged(proc.path(), &never, &Activity::default());
    assert_eq!((run.ready, run.taints.len(), run.taints[0].kind()), (Nanos(500), 1, "failed"));
}

#[test]
fn bytes_and_stalls_are_unknown_where_the_kernel_keeps_no_account() {
    let usage = Usage { read_bytes: 4096, ..Usage::default() };
    let (with, without) = (proc(true), proc(false));
    let stalled = Activity { io_stall_us: Some(1500), ..Activity::default() };
    let run = judged(with.path(), &start(usage), &stalled);
    assert_eq!((run.read_bytes.value(), run.stall.value()), (Some(&Bytes(4096)), Some(&Nanos(1_500_000))));
    let run = judged(without.path(), &start(usage), &Activity::default());
    assert_eq!(why(&run.read_bytes), "this kernel keeps no account of I/O per task");
    assert_eq!(why(&run.stall), "no version 2 control group is mounted");
}

#[test]
fn a_required_cold_start_says_who_holds_what_is_not_cold() {
    let spec = spec("a");
    let subject = Subject::unobserved(&spec, String::new());
    let residual = |bytes, unknown, held: Vec<Held>| {
        let holders = held.iter().map(|h| h.holder.clone()).collect();
        let file = ResidualFile { path: "/f".into(), bytes: Bytes(bytes), holders, held };
        Known::Value(Residual {
            bytes: Bytes(bytes),
            unknown_bytes: Bytes(unknown),
            files: vec![file],
            left: None,
        })
    };
    let error = |r| require_cold(&subject, &before(r)).err().map(|e| e.to_string());
    assert_eq!(error(residual(0, 0, vec![])), None);
    assert_eq!(
        error(residual(4096, 0, vec![])).unwrap(),
        "a is not cold: 4.00 KiB of its files stayed cached"
    );
    let held = Held { holder: "x[7]".into(), bytes: Known::Value(Bytes(4096)) };
    assert_eq!(
        error(residual(4096, 0, vec![held])).unwrap(),
        "a is not cold: 4.00 KiB of its files stayed cached, held by x[7] 4.00 KiB"
    );
    let unknown = error(residual(0, 8192, vec![])).unwrap();
    assert!(unknown.contains("another 8.00 KiB cannot be checked"), "{unknown}");
    let unproved = error(Known::unknown("it hid itself")).unwrap();
    assert!(unproved.ends_with("nothing is proved: it hid itself"), "{unproved}");
}

/// A subject with a launcher whose history lies at `history`.
fn launched(history: &Path) -> CommandSpec {
    let launcher = Launcher {
        program: "/launcher".into(),
        arguments: vec![],
        plan: "p".into(),
        files: vec![],
        history: history.to_owned(),
        helper: "h".into(),
    };
    CommandSpec { launcher: Some(launcher), ..spec("a") }
}

#[test]
fn whether_a_start_followed_its_plan_is_told_by_the_last_record_that_it_added() {
    let dir = tempfile::tempdir().unwrap();
    let history = dir.path().join("history");
    let spec = launched(&history);
    let subject = Subject::unobserved(&spec, String::new());
    let add = |kind| {
        let record = Record { when_ns: 1, plan: 2, kind, mark: None, bytes: 0, requests: 0, late: false };
        let before = replays(&subject, &State::Prefetched).unwrap();
        append(&history, &record).unwrap();
        not_prefetched(&subject, before)
    };
    assert_eq!(add(LaunchKind::Prefetched), None);
    assert_eq!(add(LaunchKind::Skipped(Skip::DiskBusy)).as_deref(), Some("the disk was busy"));
    assert_eq!(add(LaunchKind::Control).as_deref(), Some("it made a control start, without the plan"));
    assert_eq!(add(LaunchKind::Prefetched), None);
    // That the start before followed it says nothing about this one.
    let before = replays(&subject, &State::Prefetched).unwrap();
    assert_eq!((before, replays(&subject, &State::Cold)), (4, None));
    let nothing = Some("it recorded nothing of what it did");
    assert_eq!(not_prefetched(&subject, before).as_deref(), nothing);
    // A history that was shortened meanwhile.
    std::fs::remove_file(&history).unwrap();
    assert_eq!(not_prefetched(&subject, before).as_deref(), nothing);
}

#[test]
fn a_history_that_others_could_write_is_no_proof() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let history = dir.path().join("history");
    let record = Record {
        when_ns: 1,
        plan: 2,
        kind: LaunchKind::Prefetched,
        mark: None,
        bytes: 0,
        requests: 0,
        late: false,
    };
    append(&history, &record).unwrap();
    std::fs::set_permissions(&history, std::fs::Permissions::from_mode(0o666)).unwrap();
    let spec = launched(&history);
    let why = not_prefetched(&Subject::unobserved(&spec, String::new()), 0).unwrap();
    assert!(why.contains("others may write it"), "{why}");
}
