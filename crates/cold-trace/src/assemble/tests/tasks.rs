//! Processes and threads.

use cold_model::Nanos;
use cold_model::recording::tables::Began;

use super::*;
use crate::blocks::Existing;

fn exit(at: u64, pid: u32, tid: u32, status: u32, last: u32) -> Vec<u8> {
    Body::new().u32(status).u32(last).by(4, at, pid, tid, 0)
}

fn exec(at: u64, pid: u32, file: Id, arguments: &[u8], total: u32, comm: &str) -> Vec<u8> {
    let body = Body::new().id(file).u32(0).u32(arguments.len() as u32).u32(total).u32(0).text(comm, 16);
    body.bytes(arguments).by(3, at, pid, pid, 0)
}

#[test]
fn fork_exec_threads_and_exit() {
    let f = id(5);
    let r = run(&[
        named(f, 1, "python3"),
        task(2, 10, SUPERVISOR, PID, PID, "cold"),
        exec(20, PID, f, b"python3\0-c\0pass\0", 16, "python3"),
        task(2, 30, PID, PID, 101, "python3"),
        task(5, 31, PID, PID, 101, "worker"),
        task(2, 40, PID, 200, 200, "python3"),
        task(2, 41, 900, 901, 901, "bystander"),
        exec(45, 200, f, b"a\0long", 2000, "sh"),
        exit(50, PID, 101, 0, 0),
        exit(60, PID, PID, 256, 1),
    ]);
    let rows: Vec<_> =
        r.processes.iter().map(|p| (p.pid, p.how, p.parent, p.name.as_str(), p.in_tree)).collect();
    assert_eq!(
        rows,
        [
            (PID, Began::Fork, SUPERVISOR, "cold", true),
            (PID, Began::Exec, SUPERVISOR, "python3", true),
            (200, Began::Fork, PID, "python3", true),
            (901, Began::Fork, 900, "bystander", false),
            (200, Began::Exec, PID, "sh", true),
        ]
    );
    let p = &r.processes;
    assert_eq!((p[0].ended, p[1].ended, p[1].status), (Some(Nanos(20)), Some(Nanos(60)), Some(256)));
    assert_eq!((p[0].status, p[4].ended), (None, None), "an image ends by exec without a status");
    assert_eq!(
        p[1].arguments.as_deref(),
        Some(&["python3".to_owned(), "-c".to_owned(), "pass".to_owned()][..])
    );
    assert_eq!(p[4].arguments.as_deref(), Some(&["a".to_owned(), "long…".to_owned()][..]));
    assert_eq!(p[1].executable.map(|f| path(&r, f)), Some("/python3".to_owned()));
    let threads: Vec<_> =
        r.threads.iter().map(|t| (t.tid, t.pid, t.name.as_str(), t.ended.map(|n| n.0))).collect();
    assert_eq!(
        threads,
        [
            (PID, PID, "python3", Some(60)),
            (101, PID, "worker", Some(50)),
            (200, 200, "sh", None),
            (901, 901, "bystander", None),
        ]
    );
}

#[test]
fn an_exec_ends_the_other_threads_and_the_supervisor_is_no_part_of_the_start() {
    let f = id(5);
    let of_supervisor = |record: Vec<u8>| {
        let mut record = record;
        record[8..12].copy_from_slice(&SUPERVISOR.to_le_bytes());
        record
    };
    let r = run(&[
        named(f, 10, "x"),
        task(2, 10, SUPERVISOR, PID, PID, "cold"),
        task(2, 11, PID, PID, 101, "cold"),
        exec(20, PID, f, b"", 0, "x"),
        of_supervisor(pages(7, 30, fault_context(29, f, 1), f, 1, 1)),
        pages(7, 31, fault_context(30, f, 2), f, 2, 2),
    ]);
    assert_eq!(r.threads.iter().map(|t| t.ended.map(|n| n.0)).collect::<Vec<_>>(), [None, Some(20)]);
    assert_eq!(r.processes[1].arguments, None);
    assert_eq!(touches(&r).iter().map(|t| t.2).collect::<Vec<_>>(), [2]);
}

/// What ran at `at`, as the session tells it.
fn existing(at: u64, pid: u32, threads: &[(u32, &str)]) -> Fact {
    Fact::Existing(Box::new(Existing {
        at,
        pid,
        parent: 1,
        name: "service".to_owned(),
        arguments: None,
        threads: threads.iter().map(|(tid, name)| (*tid, (*name).to_owned())).collect(),
        areas: Vec::new(),
        executable: None,
    }))
}

/// A recording of what was running, with these surveys.
fn attached(surveyed: impl IntoIterator<Item = Fact>, events: &[Vec<u8>]) -> Recording {
    let mut facts = facts();
    facts.push(Fact::Follow { at: 5, pid: PID, itself: true });
    facts.extend(surveyed);
    assemble(log(&facts, events), &mut InnermostOnly, &mut Cached(Vec::new(), None))
}

fn processes(r: &Recording) -> Vec<(u32, Began, Option<u64>)> {
    r.processes.iter().map(|p| (p.pid, p.how, p.ended.map(|at| at.0))).collect()
}

#[test]
fn a_child_born_while_what_runs_is_surveyed_is_one_process() {
    let surveyed =
        [existing(10, PID, &[(PID, "service"), (101, "worker")]), existing(10, 200, &[(200, "service")])];
    let events = [
        task(2, 12, PID, 200, 200, "service"), // its fork was seen, too
        exit(20, 200, 200, 0, 1),
        task(2, 30, PID, 200, 200, "service"), // another one with its number
    ];
    let r = attached(surveyed, &events);
    let names: Vec<_> = r.threads.iter().map(|t| (t.tid, t.name.as_str())).collect();
    assert_eq!(names, [(PID, "service"), (101, "worker"), (200, "service"), (200, "service")]);
    assert_eq!(
        processes(&r),
        [(PID, Began::Existing, None), (200, Began::Existing, Some(20)), (200, Began::Fork, None)]
    );
}

#[test]
fn what_ended_before_it_was_surveyed_is_not_born_again() {
    // Its parent has not waited for it yet, and /proc lists threads for a moment longer, too.
    let surveyed = [
        existing(5, PID, &[(PID, "service"), (101, "service")]),
        existing(15, 200, &[(200, "cat")]),
        existing(16, PID, &[(PID, "service"), (101, "service")]),
        existing(25, 200, &[(200, "cat")]),
    ];
    let events = [
        task(2, 10, PID, 200, 200, "cat"),
        exit(12, 200, 200, 0, 1),
        exit(13, PID, 101, 0, 0),
        task(2, 20, PID, 200, 200, "cat"), // another one with its number, and its survey
    ];
    let r = attached(surveyed, &events);
    assert_eq!(
        processes(&r),
        [(PID, Began::Existing, None), (200, Began::Fork, Some(12)), (200, Began::Fork, None)]
    );
    let threads: Vec<_> = r.threads.iter().map(|t| (t.tid, t.ended.map(|at| at.0))).collect();
    assert_eq!(threads, [(PID, None), (101, Some(13)), (200, Some(12)), (200, None)]);
}
