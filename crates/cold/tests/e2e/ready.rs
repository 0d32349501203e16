//! When a start counts as ready, and that nothing of it stays.

use std::fs;
use std::net::TcpListener;

use cold_model::bench::{Ending, Run};

use crate::support::*;

/// A port that nobody listens on now.
pub(crate) fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

/// Two warm runs until `ready`; nothing is alive afterwards.
fn runs(place: &Sandbox, ready: &str, more: &[&str], command: &[&str]) -> Vec<Run> {
    let fixed = ["--states", "warm", "-w", "1", "-r", "2", "--timeout", "60", "--ready", ready];
    let ran = place.bench(fixed.iter().chain(more).chain(&["--"]).chain(command)).run().finished();
    assert_eq!(place.processes(), [] as [String; 0], "--ready {ready}");
    assert_eq!(place.temporary(), [] as [std::path::PathBuf; 0], "--ready {ready}");
    let runs = ran.report().runs;
    assert!(runs.len() >= 2, "--ready {ready}");
    runs
}

#[test]
fn a_daemon_that_forks_twice_is_awaited_by_its_port_socket_file_and_notification() {
    let place = Sandbox::new();
    let (port, socket, file) = (free_port(), place.text("socket"), place.text("ready"));
    let remove = format!("rm -f {socket} {file}");
    let cases = [
        (format!("port:{port}"), vec!["--port", &port]),
        (format!("unix:{socket}"), vec!["--socket", &socket]),
        (format!("file:{file}"), vec!["--ready-file", &file]),
        ("notify".to_owned(), vec!["--notify"]),
    ];
    let subject = place.subject();
    for (ready, flags) in &cases {
        let command =
            [&[subject.as_str(), "daemon", "--delay", "150", "--seconds", "600"], &flags[..]].concat();
        for run in runs(&place, ready, &["-p", &remove], &command) {
            assert_eq!((run.ending, run.killed_by_force), (Ending::Ended, 0), "{ready}");
            assert!(run.ready.as_secs() >= 0.15 && run.ready.as_secs() < 30.0, "{ready}: {}", run.ready);
            assert_eq!(run.exit.value(), None, "its own end was never seen");
            assert!(run.processes >= 2, "{ready}: the command and the daemon were waited for");
        }
    }
}

#[test]
fn a_line_of_output_tells_and_so_does_the_last_one() {
    let place = Sandbox::new();
    let subject = place.subject();
    let marker = |more: &[&'static str]| [&[subject.as_str(), "marker", "ready on 8080"], more].concat();
    let cases: [(&str, Vec<&str>); 3] = [
        ("stdout:ready on [0-9]+", marker(&["--linger", "600"])),
        ("stderr:^ready", marker(&["--linger", "600", "--stderr"])),
        ("stdout:8080$", marker(&[])),
    ];
    for (ready, command) in &cases {
        for run in runs(&place, ready, &[], command) {
            assert!(!tainted(&run, "failed"), "{ready}: {:?}", run.taints);
            assert!(run.ready.as_secs() < 30.0);
        }
    }
    let args = ["--states", "warm", "-r", "1", "--ready", "stdout:never", "--", &subject, "marker", "other"];
    let ran = place.bench(args).run().expect(1);
    assert!(ran.error().contains("never ready"), "{}", ran.stderr);
}

#[test]
fn a_server_without_a_condition_is_noticed_and_nobody_is_told_to_ignore_failures() {
    let place = Sandbox::new();
    let (port, subject) = (free_port(), place.subject());
    // The observed start gets four times as long.
    let args = ["--states", "warm", "-r", "1", "--timeout", "1.5", "--", &subject, "daemon", "--port", &port];
    let ran = place.bench(args).run().expect(1);
    let (noticed, hint) = (format!("listens on {port}"), format!("--ready port:{port}"));
    assert!(
        ran.stderr.contains("still running after 5 s") && ran.stderr.contains(&noticed),
        "{}",
        ran.stderr
    );
    assert!(ran.error().contains("was not ready within 6.00 s"), "{}", ran.stderr);
    let tried = ran.stderr.lines().find(|l| l.contains("try:")).unwrap();
    assert!(tried.contains(&hint) && !tried.contains("ignore-failure"), "{tried}");
    assert_eq!(place.processes(), [] as [String; 0]);
}

#[test]
fn a_tree_that_outlives_its_first_process_is_told_with_both_times() {
    let place = Sandbox::new();
    let script = place.script("leaves", &format!("{} sleep 400 &\nexit 0", place.subject()));
    let ran = place.cold(["bench", "--evict", "files", "--states", "warm", "-r", "2", "--", &script]).run();
    let line = ran.stdout.lines().find(|l| l.contains("its first process ended after")).unwrap_or_default();
    assert!(line.contains("the last process it started after 4"), "{}", ran.stdout);
    let report = place.bench(["--states", "warm", "-r", "2", "--", &script]).run().finished().report();
    for run in report.runs {
        let first = run.first_exit.value().copied().unwrap_or_default();
        assert!(run.ready.as_secs() >= 0.4 && first.0 > 0 && first < run.ready, "{run:?}");
    }
    let subject = place.subject();
    let ran = place
        .cold(["bench", "--evict", "files", "--states", "warm", "-r", "2", "--", &subject, "spin", "20"]);
    let said = ran.run().stdout;
    assert!(!said.contains("its first process ended"), "{said}");
}

#[test]
fn a_page_that_answers_is_ready_and_its_server_is_ended() {
    let place = Sandbox::new();
    let port = free_port();
    fs::write(place.path("index.html"), "hello").unwrap();
    let directory = place.path("");
    let command = ["/usr/bin/python3", "-m", "http.server", "--bind", "127.0.0.1"];
    let command = [&command[..], &["--directory", directory.to_str().unwrap(), &port]].concat();
    let url = format!("http://127.0.0.1:{port}/index.html");
    for run in runs(&place, &url, &[], &command) {
        assert_eq!(run.ending, Ending::Ended);
        assert!(run.ready.as_secs() > 0.01);
    }
    let args = ["--timeout", "2", "-r", "1", "--ready", &format!("{url}.missing"), "--"];
    let ran = place.bench(args.iter().chain(&command)).run();
    assert_ne!(ran.code(), 0, "a page that is not found is not ready");
    assert_eq!(place.processes(), [] as [String; 0]);
}

/// A server whose answer to /slow takes 200 ms more than being ready does.
const SLOW_TO_ANSWER: &str = "
import http.server, sys, time
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path != '/slow':
            return self.send_error(503)
        time.sleep(0.2)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'whole')
    def log_message(self, *_): pass
http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Page).serve_forever()
";

#[test]
fn a_first_request_is_told_apart_from_being_ready() {
    let place = Sandbox::new();
    let port = free_port();
    let command = ["/usr/bin/python3", "-c", SLOW_TO_ANSWER, &port];
    let url = format!("http://127.0.0.1:{port}/slow");
    let asked = |url: &str, more: &[&str]| {
        let fixed = ["--states", "warm", "-w", "1", "-r", "2", "--first-request", url];
        place.bench(fixed.iter().chain(more).chain(&["--"]).chain(&command)).run()
    };
    // Without --ready it is ready when the port of the page listens.
    for more in [&[][..], &["--ready", &format!("port:{port}")]] {
        let ran = asked(&url, more).finished();
        for run in &ran.report().runs {
            let serving = run.serving.value().copied().unwrap_or_else(|| panic!("{run:?}"));
            let answer = run.answer().value().copied().unwrap_or_else(|| panic!("{run:?}"));
            assert_eq!(run.ready, serving + answer);
            assert!(serving.as_secs() > 0.01 && answer.as_secs() >= 0.2, "{serving} and {answer}");
        }
        assert_eq!(place.processes(), [] as [String; 0]);
    }
    let refused = asked(&format!("{url}er"), &[]).expect(1);
    assert!(refused.error().contains("its status is 503"), "{}", refused.stderr);
    let wrong = asked("https://127.0.0.1/", &[]).expect(2);
    assert!(wrong.error().contains("no TLS"), "{}", wrong.stderr);
    let other = TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    let taken = asked(&url, &["--ready", "stdout:up"]).expect(1);
    assert!(taken.error().contains("already open"), "{}", taken.stderr);
    drop(other);
    assert_eq!(place.processes(), [] as [String; 0]);
}
