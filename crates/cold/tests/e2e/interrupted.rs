//! Ctrl-C and kill -9 in the middle: nothing stays, and the next start is right.

use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::support::*;

/// A benchmark that hangs in its start number `hang` (1 is the observed one); it has begun that start.
fn hanging(place: &Sandbox, hang: usize, more: &[&str]) -> Started {
    let log = place.text("log");
    let _ = std::fs::remove_file(&log);
    let text = format!(
        "echo x >> {log}; test $(wc -l < {log}) -lt {hang} || {{ {0} daemon --seconds 600; exec {0} sleep 600000; }}",
        place.subject()
    );
    let script = place.script("hangs", &text);
    let args = ["--states", "cold,warm", "-r", "2"];
    let started = place.bench(args.iter().chain(more).chain(&["--", &script])).start_as_job();
    until("it hangs", || {
        let daemon = place.processes().iter().any(|p| p.contains("--generation=2"));
        (daemon && place.processes().iter().any(|p| p.ends_with("sleep 600000 "))).then_some(())
    });
    started
}

fn nothing_stays(place: &Sandbox, pid: Pid) {
    assert_eq!(place.processes(), [] as [String; 0]);
    assert_eq!(cgroups(pid), [] as [PathBuf; 0]);
    assert_eq!(place.temporary(), [] as [PathBuf; 0]);
}

#[test]
fn ctrl_c_ends_the_tree_runs_the_cleanup_and_exits_with_130() {
    let place = Sandbox::new();
    let cleaned = place.text("cleaned");
    for (hang, whole_group) in [(1, true), (1, false), (3, true), (3, false)] {
        let started = hanging(&place, hang, &["--cleanup", &format!("echo x >> {cleaned}")]);
        let pid = started.pid();
        if whole_group {
            kill_process_group(pid, Signal::INT).unwrap(); // as a terminal does
        } else {
            started.kill(Signal::INT);
        }
        let ran = started.end().expect(130);
        nothing_stays(&place, pid);
        if hang > 1 {
            assert_eq!(ran.report().stopped.as_deref(), Some("interrupted"));
        }
    }
    assert_eq!(place.lines("cleaned").len(), 4);
}

#[test]
fn after_kill_9_the_tree_ends_by_itself_and_the_next_benchmark_is_right() {
    let _machine = together();
    let place = Sandbox::new();
    for (hang, more) in [(1, &["--ready", "notify"][..]), (3, &[])] {
        let started = hanging(&place, hang, more);
        let pid = started.pid();
        started.kill(Signal::KILL);
        started.end().expect(128 + 9);
        until("the supervisor ends the tree", || place.processes().is_empty().then_some(()));
        // What the orphaned helper has not undone, the next start undoes.
        attempts(|| {
            let args = ["--states", "cold,warm", "-r", "1", "--", &place.subject(), "sleep", "1"];
            place.bench(args).run().done_or_disturbed().map(drop)
        });
        nothing_stays(&place, pid);
    }
}

#[test]
fn when_even_the_supervisor_is_killed_repair_undoes_what_is_left() {
    let place = Sandbox::new();
    let started = hanging(&place, 3, &[]);
    let pid = started.pid();
    // Stopped first, or one of them would undo everything when the other dies.
    started.kill(Signal::STOP);
    let supervisors: Vec<Pid> = place
        .processes()
        .iter()
        .filter(|line| line.contains("__supervise"))
        .map(|line| Pid::from_raw(line.split(' ').next().unwrap().parse().unwrap()).unwrap())
        .collect();
    assert_eq!(supervisors.len(), 1);
    kill_process(supervisors[0], Signal::KILL).unwrap();
    started.kill(Signal::KILL);
    started.end().expect(128 + 9);
    // The kernel kills the command with its supervisor; its daemon is nobody's child and lives on.
    for line in place.processes() {
        kill_process(Pid::from_raw(line.split(' ').next().unwrap().parse().unwrap()).unwrap(), Signal::KILL)
            .unwrap();
    }
    until("all are gone", || place.processes().is_empty().then_some(()));
    place.cold(["doctor", "--repair", "--json"]).run().expect(0).json();
    nothing_stays(&place, pid);
}

#[test]
fn a_program_that_was_paused_when_cold_ended_is_neither_left_stopped_nor_running() {
    let place = Sandbox::new();
    let on = place.text("on");
    // Ends when nobody wants it to go on; asked to end it does not, and its child is no better.
    let asked = "trap '' HUP TERM; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
    let waits = format!("while [ -e {on} ]; do sleep 0.01; done");
    let both = format!("{asked}; sh -c '{waits}' & {waits}; wait");
    let dir = place.text("tmp");
    let pauses = ["probe", "pauses", "--repeat", "1", "--pause", "10000", "--every", "1", "--dir", &dir];
    let state = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    for (signal, code) in [(Signal::INT, 130), (Signal::KILL, 128 + 9)] {
        let started = place.cold([&pauses[..], &["--", "sh", "-c", &both]].concat()).start_as_job();
        until("it is paused", || {
            let all = place.processes();
            let stopped = |line: &String| state(line.split(' ').next().unwrap()).contains(") T ");
            all.iter().any(stopped).then_some(())
        });
        std::fs::write(&on, "").unwrap();
        started.kill(signal);
        started.end().expect(code);
        until("what was paused is ended", || place.processes().is_empty().then_some(()));
        std::fs::remove_file(&on).unwrap();
    }
    // A program that nobody pauses, and which Ctrl-C ends as well, is not told to have failed.
    let forever = format!(": {on}; while :; do sleep 0.01; done");
    let started = place.cold([&pauses[..], &["--", "sh", "-c", &forever]].concat()).start_as_job();
    // Not what names it only: `cold` and its supervisor. A Ctrl-C before `cold` listens may be one that is ignored, as that
    // of a job in the background is.
    let is_it =
        |line: &String| line.split_once(' ').is_some_and(|(_, command)| command.starts_with("sh -c : "));
    until("it runs", || place.processes().iter().any(is_it).then_some(()));
    kill_process_group(started.pid(), Signal::INT).unwrap();
    started.end().expect(130);
    until("it is ended", || place.processes().is_empty().then_some(()));
}
