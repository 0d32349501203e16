//! With a worker that misbehaves: `tests/fixtures/worker.sh`.

use super::*;
use crate::spec::Limit;

fn runner() -> Runner {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/worker.sh").into();
    Runner { program, interrupt: Arc::default(), dev: None }
}

/// One trial of workers that do as they are called.
fn run(runner: &Runner, names: &[&str]) -> Result<Trial> {
    let limit = Limit::Records { records: 1 };
    let crew = |name: &&str| Crew {
        name: (*name).to_owned(),
        threads: vec![],
        limit,
        seed: 1,
        stream: 0,
        tick_ms: 0,
    };
    runner.run(&names.iter().map(crew).collect::<Vec<_>>(), None, &Log::off())
}

fn why(names: &[&str]) -> String {
    run(&runner(), names).unwrap_err().to_string()
}

#[test]
fn reports_come_in_the_order_of_the_crews_and_the_first_to_end_ends_all() {
    let trial = run(&runner(), &["ends late", "ends", "ends late"]).unwrap();
    assert_eq!(trial.crews.len(), 3);
    assert!(trial.crews.iter().all(|c| c.loops_per_ms == Some(7.0)));
    assert_eq!(trial.device, None);
}

#[test]
fn a_worker_that_cannot_begin_is_named_with_its_reason() {
    assert_eq!(why(&["refuses"]), "the process refuses failed: no memory");
    assert_eq!(why(&["hurries"]), "the process hurries failed: it was done before it began");
    assert_eq!(why(&["dies"]), "the process dies failed: it ended without an answer (exit status: 3)");
    let babbles = why(&["babbles"]);
    assert!(babbles.starts_with("the process babbles failed: expected "), "{babbles}");
}

#[test]
fn a_worker_that_fails_on_the_way_ends_the_others_and_is_the_one_named() {
    assert_eq!(why(&["ends late", "fails later"]), "the process fails later failed: disk full");
    assert_eq!(why(&["repeats", "ends late"]), "the process repeats failed: it began twice");
    assert_eq!(
        why(&["ends late", "is killed"]),
        "the process is killed failed: it ended without an answer (signal: 9 (SIGKILL))"
    );
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let runner = Runner { program: "/nowhere/cold".into(), ..runner() };
    let why = run(&runner, &["ends"]).unwrap_err().to_string();
    assert!(why.starts_with("cannot start /nowhere/cold: "), "{why}");
}

#[test]
fn an_interrupt_before_the_trial_starts_nothing() {
    let runner = runner();
    runner.interrupt.store(true, Ordering::Relaxed);
    assert!(matches!(run(&runner, &["dies"]), Err(Error::Interrupted)));
}

#[test]
fn an_interrupt_ends_workers_that_do_not_listen() {
    let dir = tempfile::tempdir().unwrap();
    let marker = dir.path().join("marker");
    let runner = runner();
    let interrupt = Arc::clone(&runner.interrupt);
    let began = marker.clone();
    let user = std::thread::spawn(move || {
        while !began.exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        interrupt.store(true, Ordering::Relaxed);
    });
    let sleeps = format!("sleeps {}", marker.display());
    assert!(matches!(run(&runner, &[&sleeps, "ends late"]), Err(Error::Interrupted)));
    user.join().unwrap();
}

#[test]
fn counters_that_went_back_are_no_huge_numbers() {
    let of = |n| DeviceCount { reads: n, read_bytes: 10 * n, writes: 2, write_bytes: n };
    assert_eq!(of(5).since(of(3)), DeviceCount { reads: 2, read_bytes: 20, writes: 0, write_bytes: 2 });
    assert_eq!(of(3).since(of(5)), DeviceCount::default());
}
