use std::io::{Read, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use super::super::{Method, Program};
use super::*;

fn setup(paths: &[&str]) -> SpawnOrder {
    let program = |path: &&str| Program {
        path: PathBuf::from(path),
        argv: vec![path.as_bytes().to_vec()],
        env: Vec::new(),
        cwd: None,
    };
    SpawnOrder::Setup(Setup {
        method: Method::Vfork,
        programs: paths.iter().map(program).collect(),
        ballast: 0,
        huge_pages: false,
        cgroup: None,
        fresh: Vec::new(),
    })
}

fn run(schedule: &[usize]) -> SpawnOrder {
    SpawnOrder::Run { schedule: schedule.to_vec() }
}

/// The answers to these orders, after which the other side goes.
fn answers(orders: &[SpawnOrder]) -> Vec<String> {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    for order in orders {
        let mut line = serde_json::to_vec(order).unwrap();
        line.push(b'\n');
        ours.write_all(&line).unwrap();
    }
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    answer_all(Channel::adopt(&[theirs.into_raw_fd().to_string().into()]).unwrap()).unwrap();
    let mut text = String::new();
    ours.read_to_string(&mut text).unwrap();
    let answer = |line: &str| match serde_json::from_str(line).unwrap() {
        Answer::Ready => "ready".to_owned(),
        Answer::Timings(all) => {
            format!("{:?}", all.iter().map(|t| (t.program, t.status)).collect::<Vec<_>>())
        }
        Answer::Handovers(all) => format!("{} handovers", all.len()),
        Answer::Failed { what, errno } => format!("{what}: {errno}"),
    };
    text.lines().map(answer).collect()
}

#[test]
fn a_schedule_is_answered_in_its_order_and_a_failure_ends_only_itself() {
    let told = answers(&[
        run(&[0]),
        setup(&["/bin/true", "/bin/false"]),
        run(&[1, 0, 1]),
        run(&[0, 2]),
        run(&[]),
        setup(&["/no/such/program"]),
        run(&[0]),
    ]);
    let expected = [
        "a schedule before the setup: 71",
        "ready",
        "[(1, 256), (0, 0), (1, 256)]",
        "program 2 of 2: 22",
        "[]",
        "ready",
        "/no/such/program: 2",
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_setup_that_is_refused_leaves_the_one_before() {
    let told = answers(&[setup(&["/bin/true"]), setup(&["/a\0b"]), run(&[0])]);
    assert_eq!((told[0].as_str(), told[2].as_str()), ("ready", "[(0, 0)]"));
    assert!(told[1].ends_with(": 22"), "{}", told[1]);
}
