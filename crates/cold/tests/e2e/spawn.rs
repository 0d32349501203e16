//! `cold spawn`: figures, growth with its cause, whole trees, and what is left behind.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Ran, Sandbox, attempts, cgroups_named, check, until};

fn series(document: &Value) -> &Vec<Value> {
    document["series"].as_array().unwrap()
}

#[test]
fn a_series_has_its_figures_and_every_start_in_csv() {
    let place = Sandbox::for_all();
    let (csv, svg, html) = (place.text("s.csv"), place.text("s.svg"), place.text("s.html"));
    let args =
        ["spawn", "-n", "120", "--json", "--no-observe", "--csv", &csv, "--svg", &svg, "--html", &html];
    let ran = place.cold(args.into_iter().chain(["--", &place.subject(), "sleep", "1"])).run().expect(0);
    let document = ran.json();
    assert_eq!(document["schema"].as_str(), Some("coldstart.spawn/1"));
    let [s] = &series(&document)[..] else { panic!("{document}") };
    let starts = s["starts"].as_array().unwrap();
    assert_eq!((starts.len(), s["failures"].as_u64()), (120, Some(0)));
    let index: Vec<u64> = starts.iter().map(|t| t["index"].as_u64().unwrap()).collect();
    assert_eq!(index, (0..120).collect::<Vec<_>>(), "in the order in which they began");
    let median = s["times"]["p50"].as_f64().unwrap();
    assert!(median >= 1e6, "it sleeps for a millisecond: {median}");
    assert!(
        starts
            .iter()
            .all(|t| t["created_ns"].as_u64() < t["ns"].as_u64() && t["control_ns"].as_u64() > Some(0))
    );
    let parts: f64 = s["parts"].as_array().unwrap().iter().map(|p| p["ns"].as_f64().unwrap()).sum();
    assert!(parts >= median * 0.999, "{parts} {median}");
    let rate = s["per_second"].as_f64().unwrap();
    assert!(rate > 0.0 && rate < 1000.0, "{rate}");
    assert_eq!(s["not_observed"].as_str(), Some("--no-observe"));
    if cfg!(target_arch = "x86_64") {
        let handed = &s["handed"];
        assert_eq!(handed["starts"].as_u64(), Some(7), "{handed} {}", s["not_traced"]);
        let running = handed["running_ns"].as_f64().unwrap();
        assert!(
            running >= 1e6 && handed["stop_ns"].as_f64() > Some(0.0),
            "it sleeps after its entry: {handed}"
        );
    }
    assert_eq!(fs::read_to_string(&csv).unwrap().lines().count(), 121);
    assert!(fs::read_to_string(&svg).unwrap().starts_with("<svg"));
    assert!(fs::read_to_string(&html).unwrap().contains("</html>"));
    assert_eq!(place.temporary(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn all_methods_start_it_and_only_copies_pay_for_the_parents_memory() {
    let place = Sandbox::for_all();
    let args = ["spawn", "-n", "20", "--json", "--no-observe", "--method", "all", "--parent-mb", "128", "--"];
    let ran = place.cold(args.into_iter().chain([place.subject().as_str(), "spin", "0"])).run().expect(0);
    let document = ran.json();
    let create = |method: &str| {
        let s = series(&document).iter().find(|s| s["method"] == method).unwrap();
        assert_eq!(
            (s["starts"].as_array().unwrap().len(), s["failures"].as_u64()),
            (20, Some(0)),
            "{method}"
        );
        s["baselines"][0]["times"]["p10"].as_f64().unwrap()
    };
    let (shares, copies) = (create("vfork").max(create("posix_spawn")), create("fork").min(create("clone3")));
    assert!(copies > 3.0 * shares, "{copies} {shares}");
}

#[test]
fn a_jobs_series_keeps_all_starts_apart() {
    let place = Sandbox::for_all();
    let args = ["spawn", "-n", "50", "--jobs", "3", "--json", "--no-observe", "--"];
    let ran = place.cold(args.into_iter().chain([place.subject().as_str(), "spin", "0"])).run().expect(0);
    let document = ran.json();
    assert_eq!(series(&document)[0]["starts"].as_array().unwrap().len(), 50);
    assert_eq!(series(&document)[0]["jobs"], 3);
}

#[test]
fn what_cannot_be_executed_is_named_for_every_method() {
    let place = Sandbox::for_all();
    let script = place.script("broken", "exit 0");
    fs::write(&script, "#!/nonexistent/interpreter\n").unwrap();
    for method in ["posix-spawn", "vfork", "fork", "clone3"] {
        let ran = place.cold(["spawn", "--no-observe", "--method", method, "--", &script]).run().expect(1);
        let error = ran.error();
        assert!(error.contains(&script) && error.contains("No such file"), "{method}: {error}");
    }
    place.cold(["spawn", "-n", "0", "--", "true"]).run().expect(2);
    place.cold(["spawn", "--csv", "/nonexistent/x.csv", "--", "true"]).run().expect(2);
    assert_eq!(place.temporary(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn too_few_starts_and_failing_ones_are_told() {
    let place = Sandbox::for_all();
    let subject = place.subject();
    let few = ["spawn", "-n", "30", "--no-observe", "--fail-if", "growth", "--", &subject, "spin", "0"];
    let ran = place.cold(few).run().expect(4);
    assert!(ran.stdout.contains("too few starts"), "{}", ran.stdout);
    let ran = place
        .cold(["spawn", "-n", "5", "--no-observe", "--", &subject, "growing", "scan", "/nonexistent"])
        .run();
    assert!(ran.expect(0).stdout.contains("5 of 5 starts did not exit with 0"));
}

/// Waits until neither a process nor a file of it is left.
#[track_caller]
fn gone(place: &Sandbox, what: &str) {
    let processes = || place.processes().is_empty().then_some(());
    until(&format!("{what}: the end of {:?}", place.processes()), processes);
    let files = || place.temporary().is_empty().then_some(());
    until(&format!("{what}: the end of {:?}", place.temporary()), files);
}

/// Ends `cold` in the midst of a start that would take ten minutes.
fn ended_by(signal: Signal, method: &str) {
    let place = Sandbox::for_all();
    let subject = place.subject();
    let args = ["spawn", "-n", "9", "--no-observe", "--method", method, "--", &subject, "sleep", "600000"];
    let cold = place.cold(args).start();
    let pid = cold.pid();
    let starts = || place.processes().iter().any(|p| p.contains("sleep 600000") && !p.contains("spawn"));
    until("a start", || starts().then_some(()));
    cold.kill(signal);
    let code = cold.end().code();
    assert_eq!(code, if signal == Signal::KILL { 137 } else { 130 }, "{method}");
    gone(&place, method);
    let group = format!("cold-spawn-{pid}");
    until("the end of its control group", || cgroups_named(&group).is_empty().then_some(()));
}

#[test]
fn a_killed_spawn_leaves_nothing() {
    for method in ["posix-spawn", "vfork", "fork", "clone3"] {
        ended_by(Signal::KILL, method);
    }
}

#[test]
fn an_interrupted_spawn_leaves_nothing_although_a_start_hangs() {
    ended_by(Signal::INT, "posix-spawn");
    ended_by(Signal::TERM, "vfork");
}

mod root {
    use std::path::Path;

    use super::*;
    use cold_testbed::needs_root;

    /// `--json` of a program that grows in a known way, and the directory it leaves things in.
    fn growing(place: &Sandbox, kind: &str, more: &[&str], code: i32) -> (Value, String) {
        let left = place.text(kind);
        (grown(place, kind, &left, more).expect(code).json()["series"][0].clone(), left)
    }

    fn grown(place: &Sandbox, kind: &str, left: &str, more: &[&str]) -> Ran {
        fs::create_dir(left).unwrap();
        let subject = place.subject();
        let mut args = vec!["spawn", "-n", "200", "--json"];
        args.extend(more);
        args.extend(["--", &subject, "growing", kind, left]);
        place.cold(args).run()
    }

    #[test]
    fn growth_is_classed_and_its_cause_is_named() {
        needs_root!();
        let place = Sandbox::for_all();
        for (kind, class, what, suffix) in [
            ("scan", "linear", "name_scan", "/report.{n}.log"),
            ("list", "linear", "directory_list", ""),
            ("file", "linear", "file_read", "/log"),
            ("gallop", "logarithmic", "lookups", ""),
        ] {
            let (s, left) = growing(&place, kind, &["--fail-if", "growth"], 3);
            let judged = &s["judged"];
            assert_eq!(
                (&judged["verdict"]["class"], &judged["verdict"]["from"]),
                (&class.into(), &"counts".into()),
                "{kind}"
            );
            let cause = &judged["causes"][0];
            assert_eq!(
                (&cause["what"], &cause["name"]),
                (&what.into(), &format!("{left}{suffix}").into()),
                "{kind}"
            );
            assert_eq!(cause["directory"].as_str(), Some(&*left));
            let code = cause["code"].to_string();
            assert!(code.contains("cold_subject::main"), "{kind}: {code}");
            let [.., last] = &s["observed"].as_array().unwrap()[..] else { panic!("{kind}: {s}") };
            assert!(last["calls"]["openat"]["calls"].as_u64() > Some(0), "{kind}: {last}");
            assert!(last["stages"]["run"].as_u64() > Some(0), "{kind}: {last}");
        }
        // Judged by times: a machine that gets busier within a quarter of a second looks like growth.
        for (kind, class) in [("constant", "constant"), ("step", "step")] {
            let mut n = 0;
            attempts(|| {
                n += 1;
                let ran = grown(&place, kind, &place.text(&format!("{kind}{n}")), &["--fail-if", "growth"]);
                let found = ran.json()["series"][0]["judged"]["verdict"]["class"].clone();
                check(ran.code() == 0 && found == class, || format!("{kind}: {found}, {}", ran.code()))
            });
        }
    }

    #[test]
    fn a_name_scan_vanishes_when_what_starts_leave_is_dropped() {
        needs_root!();
        let place = Sandbox::for_all();
        let (s, left) = growing(&place, "scan", &["--confirm", "--extrapolate", "30000"], 0);
        let slope = s["judged"]["causes"][0]["growth"]["slope"].as_f64().unwrap();
        assert!((slope - 1.0).abs() < 1e-6, "one name more per start: {slope}");
        let c = &s["confirmation"];
        assert_eq!((&c["vanished"], &c["failed"]), (&true.into(), &Value::Null), "{c}");
        assert!(c["dropped"][0].as_str().unwrap().contains(&left), "{c}");
        // Timed, recorded, and traced ones.
        let made = 200 + 20 + if cfg!(target_arch = "x86_64") { 7 } else { 0 };
        assert_eq!(fs::read_dir(&left).unwrap().count(), made, "the repetition's own names are gone");
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        assert!(!mounts.contains(&left) && place.temporary().is_empty(), "{mounts}");
    }

    /// The program lies where its starts leave things: copied there a moment ago, or on a mount below, which an
    /// overlay does not show; and with the place for temporary files there, too.
    #[test]
    fn a_program_in_the_covered_directory_starts() {
        needs_root!();
        let place = Sandbox::for_all();
        for (kind, mounted) in [("new", false), ("mount", true)] {
            let left = place.text(kind);
            let (tmp, app) = (format!("{left}/tmp"), format!("{left}/app"));
            for dir in [&left, &tmp, &app] {
                fs::create_dir(dir).unwrap();
            }
            let _mount = mounted.then(|| Bound::new(&place.path(""), Path::new(&app)));
            let program = format!("{}/cold-subject", if mounted { &app } else { &left });
            if !mounted {
                fs::copy(place.subject(), &program).unwrap();
            }
            let args =
                ["spawn", "-n", "200", "--confirm", "--json", "--", &program, "growing", "scan", &left];
            let ran = place.cold(args).env("TMPDIR", &tmp).run().expect(0);
            let c = &ran.json()["series"][0]["confirmation"];
            assert_eq!((&c["failed"], &c["vanished"]), (&Value::Null, &true.into()), "{kind}: {c}");
            assert!(Path::new(&program).is_file() && fs::read_dir(&tmp).unwrap().count() == 0, "{kind}");
        }
    }

    /// A directory shown at another place, until it is dropped.
    struct Bound(std::path::PathBuf);

    impl Bound {
        fn new(from: &Path, at: &Path) -> Self {
            let ran = std::process::Command::new("mount").arg("--bind").args([from, at]).status().unwrap();
            assert!(ran.success());
            Self(at.to_owned())
        }
    }

    impl Drop for Bound {
        fn drop(&mut self) {
            let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
        }
    }

    #[test]
    fn the_picture_of_a_series_has_lines() {
        needs_root!();
        let place = Sandbox::for_all();
        let ran = place.cold(["spawn", "-n", "200", "--", &place.subject(), "marker", "x"]).run();
        let axis = ran.stdout.lines().filter(|line| line.contains(['│', '|']));
        assert!(axis.count() > 5 && !ran.stdout.contains("\\n"), "{}", ran.stdout);
    }

    #[test]
    fn a_killed_confirmation_leaves_no_mounts() {
        needs_root!();
        let place = Sandbox::for_all();
        let left = place.text("left");
        fs::create_dir(&left).unwrap();
        let subject = place.subject();
        let args = ["spawn", "-n", "300", "--confirm", "--", &subject, "growing", "scan", &left];
        let cold = place.cold(args).start();
        let layers =
            || place.temporary().iter().any(|d| Path::new(d).join("posix-spawn-0/confirm/layers-0").exists());
        until("a repetition", || layers().then_some(()));
        cold.kill(Signal::KILL);
        assert_eq!(cold.end().code(), 137);
        gone(&place, "confirm");
        assert!(!fs::read_to_string("/proc/mounts").unwrap().contains(&left));
    }

    #[test]
    fn the_processes_of_a_tree_are_counted() {
        needs_root!();
        let place = Sandbox::for_all();
        let subject = place.subject();
        let ran = place
            .cold(["spawn", "--watch", "--json", "--", &subject, "spawn-tree", "2", "3"])
            .run()
            .expect(0);
        let document = ran.json();
        let tree = &document["tree"];
        assert_eq!((tree["processes"].as_u64(), tree["execs"].as_u64()), (Some(13), Some(13)), "{tree}");
        assert_eq!(tree["programs"][0]["name"], "cold-subject");
        assert_eq!(tree["deepest"].as_array().unwrap().len(), 3);
        assert!(document["creation_estimate_ns"].as_f64() > Some(0.0));
        assert_eq!(place.temporary(), Vec::<std::path::PathBuf>::new());
        let failing = ["spawn", "--watch", "--", &subject, "growing", "scan", "/nonexistent"];
        place.cold(failing).run().expect(1);
    }
}
