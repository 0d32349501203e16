//! Every command under faults: one system call fails, or a signal arrives as it is made. The exit code is right, an
//! error is told, nothing is left and nothing is lost.
//!
//! By default each command gets a seeded choice of places; `COLD_FAULTS=full` tries all, `COLD_FAULTS_SEED=N`
//! others, `COLD_FAULTS_MOST=N` so many for each command. docs/testbed.md tells what is asked of each run.

// clippy's allowance for tests does not reach the helper functions of an integration test.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

#[path = "faults/cases.rs"]
mod cases;
#[path = "faults/check.rs"]
mod check;
#[path = "faults/world.rs"]
mod world;

use cases::Case;
use world::World;

/// The cases in a world and a thread of their own: the thread has its own mounts, and the tracer waits for all
/// children of its thread.
fn under_faults(cases: fn(&mut World) -> Vec<Case>) {
    if let Some(why) = cold_testbed::faults::refused() {
        assert!(!cold_testbed::need(false, &format!("ptrace ({why})")));
        return;
    }
    let done = std::thread::spawn(move || {
        let mut world = World::new();
        let cases = cases(&mut world);
        let wrong: Vec<String> = cases.iter().flat_map(|case| check::case(&world, case)).collect();
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    });
    if let Err(panic) = done.join() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn the_cache_commands_keep_their_word_under_faults() {
    under_faults(cases::cache);
}

#[test]
fn benchmarks_keep_their_word_under_faults() {
    under_faults(cases::bench);
}

#[test]
fn recordings_keep_their_word_under_faults() {
    under_faults(cases::trace);
}

#[test]
fn reports_keep_their_word_under_faults() {
    under_faults(cases::report);
}

#[test]
fn imports_keep_their_word_under_faults() {
    under_faults(cases::import);
}

#[test]
fn plans_keep_their_word_under_faults() {
    under_faults(cases::plans);
}

#[test]
fn learning_keeps_its_word_under_faults() {
    under_faults(cases::learn);
}

#[test]
fn probes_keep_their_word_under_faults() {
    under_faults(cases::probe);
}

#[test]
fn spawning_keeps_its_word_under_faults() {
    under_faults(cases::spawn);
}

#[test]
fn the_service_commands_keep_their_word_under_faults() {
    under_faults(cases::service);
}

#[test]
fn the_doctor_and_the_generators_keep_their_word_under_faults() {
    under_faults(cases::others);
}
