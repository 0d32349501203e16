use cold_model::Known;
use cold_model::bench::{Residual, ResidualFile};

use super::*;
use crate::sample::{noise, report};

fn ids(report: &Report) -> Vec<&'static str> {
    diagnose(report).into_iter().map(|f| f.id).collect()
}

fn text(report: &Report, id: &str) -> String {
    let found = diagnose(report);
    found.iter().find(|f| f.id == id).unwrap_or_else(|| panic!("no {id} in {found:?}")).text.clone()
}

#[test]
fn quiet_series_have_no_findings() {
    let r = report(&[
        ("a", State::Cold, noise(400.0, 0.05, 20, 1)),
        ("a", State::Warm, noise(90.0, 0.02, 20, 2)),
    ]);
    assert_eq!(diagnose(&r), []);
}

#[test]
fn taints_are_summed_up_by_reason() {
    let mut r = report(&[("a", State::Cold, noise(400.0, 0.05, 14, 1))]);
    for i in [2, 5, 6] {
        r.runs[i].taints.push(Taint::CachesDropped { times: 1 });
    }
    r.runs[9]
        .taints
        .push(Taint::ForeignReads { bytes: Bytes(1_288_490_188), readers: vec!["dd[77]".into()] });
    assert_eq!(
        text(&r, "tainted"),
        "4 of 14 runs do not count (tainted): caches were dropped by another process (3), other processes read 1.20 GiB \
         (among them dd[77]) (1)"
    );
    for run in &mut r.runs {
        run.taints = vec![Taint::Failed { ending: cold_model::bench::Ending::Code(3) }];
    }
    let all = diagnose(&r);
    assert_eq!(all[0].severity, Severity::Error);
    assert_eq!(
        all[0].text,
        "14 of 14 runs do not count (tainted): the command failed with code 3 (14); no run counts"
    );
}

#[test]
fn who_kept_pages_warm_is_named() {
    let mut r = report(&[("a", State::Cold, noise(400.0, 0.05, 10, 1))]);
    for run in &mut r.runs {
        let file = ResidualFile {
            path: "/usr/lib/firefox-esr/libxul.so".into(),
            bytes: Bytes(34 << 20),
            holders: vec!["firefox-esr[4711]".into()],
            held: vec![],
        };
        let bytes = Bytes(35 << 20);
        run.residual =
            Known::Value(Residual { bytes, unknown_bytes: Bytes(0), files: vec![file], left: None });
        run.taints.push(Taint::NotCold { bytes, holders: vec!["firefox-esr[4711]".into()], held: vec![] });
    }
    assert_eq!(
        text(&r, "kept_warm"),
        "kept warm by firefox-esr[4711] (10 runs): up to 35.0 MiB were cached before 10 of 10 starts, most of \
         /usr/lib/firefox-esr/libxul.so"
    );
    r.runs[3].residual = Known::unknown("the kernel does not tell about foreign files");
    assert_eq!(
        text(&r, "unproven"),
        "1 of 10 starts are not proved cold: the kernel does not tell about foreign files"
    );
}

#[test]
fn two_modes_come_with_their_runs_and_what_differs() {
    let times = [100.0, 250.0].repeat(5);
    let mut r = report(&[("a", State::Cold, times)]);
    assert_eq!(
        text(&r, "two_modes"),
        "has two modes: 100 ms (rounds: 1, 3, 5, 7, 9) and 250 ms (rounds: 2, 4, 6, 8, 10); nothing else that \
         was measured differs between them"
    );
    for run in r.runs.iter_mut().filter(|r| r.ready.0 > 200_000_000) {
        run.read_bytes = Known::Value(Bytes(40 << 20));
    }
    assert!(
        text(&r, "two_modes").ends_with("the slower ones had read bytes 40.0 MiB against 5.16 MiB"),
        "{}",
        text(&r, "two_modes")
    );
}

#[test]
fn a_first_run_that_filled_the_cache_is_named() {
    let mut times = noise(90.0, 0.02, 12, 3);
    times[0] = 480.0;
    let mut r = report(&[("a", State::Warm, times)]);
    assert_eq!(ids(&r), ["first_run"]);
    r.runs[0].read_bytes = Known::Value(Bytes(5 << 20));
    assert_eq!(ids(&r), ["cold_then_warm"]);
    assert!(text(&r, "cold_then_warm").contains("had 5.00 MiB read bytes against 0 B"));
}

#[test]
fn drift_and_changes_are_told_apart() {
    let drifting: Vec<f64> =
        noise(100.0, 0.004, 20, 4).iter().enumerate().map(|(i, t)| t + 0.4 * i as f64).collect();
    let r = report(&[("a", State::Warm, drifting)]);
    assert_eq!(ids(&r), ["drift"]);
    assert!(text(&r, "drift").starts_with("drifts: slower by 0.4%"), "{}", text(&r, "drift"));
    let mut stepped = noise(100.0, 0.01, 10, 5);
    stepped.extend(noise(130.0, 0.01, 10, 6));
    let r = report(&[("a", State::Warm, stepped)]);
    assert_eq!(ids(&r), ["change"]);
    assert!(
        text(&r, "change").starts_with("changes its level at round 11: median "),
        "{}",
        text(&r, "change")
    );
}

#[test]
fn a_prefetcher_is_claimed_only_with_a_warm_control() {
    let mut r = report(&[
        ("a", State::Cold, noise(200.0, 0.05, 10, 1)),
        ("a", State::Warm, noise(90.0, 0.02, 10, 2)),
    ]);
    let taint =
        |pid: usize| Taint::ForeignReads { bytes: Bytes(30 << 20), readers: vec![format!("preload[{pid}]")] };
    for (i, run) in r.runs.iter_mut().enumerate().filter(|(_, r)| r.series == 0) {
        run.taints.push(taint(i));
    }
    assert!(
        text(&r, "prefetcher")
            .starts_with("preload may be a prefetcher at work: it was seen during 10 of 10")
    );
    for (i, run) in r.runs.iter_mut().enumerate().filter(|(_, r)| r.series == 1) {
        run.taints.push(taint(i));
    }
    assert!(!ids(&r).contains(&"prefetcher"), "it reads all the time");
}

#[test]
fn prefetched_starts_say_which_plan_they_followed_and_why_not() {
    let mut r = report(&[("a", State::Prefetched, noise(120.0, 0.05, 10, 1))]);
    assert_eq!(text(&r, "plan"), "followed the plan in 10 of 10 runs");
    r.commands[0].plan = Some("a-0123".into());
    for (run, why) in r.runs.iter_mut().zip(["the disk was busy", "its files were cached already"]) {
        run.taints = vec![Taint::NotPrefetched { why: why.into() }];
    }
    assert_eq!(text(&r, "plan"), "followed the plan a-0123 in 8 of 10 runs");
    assert_eq!(
        text(&r, "tainted"),
        "2 of 10 runs do not count (tainted): the launcher did not follow the plan: its files were cached already; \
         the disk was busy (2)"
    );
}

/// A report of one cold series with quiet times, changed run by run.
fn cold(runs: usize, mut change: impl FnMut(usize, &mut Run)) -> Report {
    let mut r = report(&[("a", State::Cold, noise(400.0, 0.03, runs, 1))]);
    for (i, run) in r.runs.iter_mut().enumerate() {
        change(i, run);
    }
    r
}

#[test]
fn how_much_a_taint_matters_depends_on_how_many_runs_are_left() {
    let severity = |tainted: usize| {
        let r = cold(10, |i, run| {
            if i < tainted {
                run.taints = vec![Taint::CachesDropped { times: 1 }];
            }
        });
        diagnose(&r).into_iter().find(|f| f.id == "tainted").map(|f| f.severity)
    };
    assert_eq!([0, 5, 6].map(severity), [None, Some(Severity::Info), Some(Severity::Warning)]);
    assert_eq!([9, 10].map(severity), [Some(Severity::Warning), Some(Severity::Error)]);
}

#[test]
fn of_several_runs_the_most_is_told_and_the_most_frequent_reason_first() {
    let r = cold(8, |i, run| {
        run.taints = match i {
            0 => vec![Taint::Steal { percent: 12.0 }],
            1 => vec![Taint::PagesReclaimed { pages: 300 }, Taint::TimedOut { limit: Nanos(3_000_000_000) }],
            2 => vec![Taint::PagesReclaimed { pages: 4000 }],
            _ => vec![],
        };
    });
    let found = text(&r, "tainted");
    let expected = "3 of 8 runs do not count (tainted): up to 4000 pages were reclaimed (2), the hypervisor took 12.0% \
                    of the CPU time (1), not ready within 3.00 s (1)";
    assert_eq!(found, expected);
    let one = cold(8, |i, run| run.taints.extend((i == 3).then_some(Taint::Refaults { pages: 256 })));
    assert!(text(&one, "tainted").starts_with("1 of 8 runs does not count (tainted): 256 pages had"));
}

#[test]
fn three_of_those_who_hold_or_read_are_named_and_each_once() {
    let held = |pid: u64| Held { holder: format!("p[{pid}]"), bytes: Known::Value(Bytes(pid << 20)) };
    let words = taints::words(&Taint::NotCold {
        bytes: Bytes(10 << 20),
        holders: vec![],
        held: [1, 4, 2, 3].map(held).to_vec(),
    });
    let expected = "10.0 MiB stayed cached (held by p[4] 4.00 MiB, p[3] 3.00 MiB, p[2] 2.00 MiB, …)";
    assert_eq!(words, expected);
    let r = cold(8, |i, run| {
        if i < 2 {
            let readers = ["a[1]", "b[2]"].map(str::to_owned).to_vec();
            run.taints = vec![Taint::ForeignReads { bytes: Bytes(2 << 20), readers }];
        }
    });
    let found = text(&r, "tainted");
    assert!(found.contains("up to 2.00 MiB (among them a[1], b[2]) (2)"), "{found}");
}

#[test]
fn less_than_six_runs_are_named_and_none_at_all_is_an_error_of_its_own() {
    let few = |counted: usize| {
        let r = cold(8, |i, run| {
            if i >= counted {
                run.taints = vec![Taint::CachesDropped { times: 1 }];
            }
        });
        diagnose(&r).into_iter().find(|f| f.id == "few_runs").map(|f| f.text)
    };
    assert_eq!([few(0), few(6)], [None, None]);
    assert_eq!(few(1).as_deref(), Some("only 1 run counted: a 95% interval needs 6"));
    assert_eq!(few(5).as_deref(), Some("only 5 runs counted: a 95% interval needs 6"));
}

#[test]
fn what_the_kernel_does_not_tell_of_some_files_leaves_the_start_partly_proved() {
    let r = cold(8, |i, run| {
        let unknown_bytes = Bytes(if i < 3 { (i as u64 + 1) << 20 } else { 0 });
        run.residual = Known::Value(Residual { unknown_bytes, ..Residual::default() });
    });
    let expected = "3 of 8 starts are only partly proved cold: the kernel does not tell what is cached of up to 3.00 MiB";
    assert_eq!(text(&r, "unproven"), expected);
}

#[test]
fn what_nobody_was_seen_to_hold_stayed_all_the_same() {
    let r = cold(8, |i, run| {
        let bytes = Bytes(if i == 5 { 8192 } else { 0 });
        run.residual = Known::Value(Residual { bytes, ..Residual::default() });
    });
    let expected = "stayed warm although no process was seen to hold it: up to 8.00 KiB were cached before 1 of 8 starts";
    assert_eq!(text(&r, "kept_warm"), expected);
}

#[test]
fn of_many_holders_three_are_named_with_their_runs_and_the_rest_is_counted() {
    let r = cold(8, |i, run| {
        let held = |pid: u64| Held { holder: format!("p[{pid}]"), bytes: Known::Value(Bytes(pid << 12)) };
        // The fifth holds something in one run only.
        let held = (1..=4 + u64::from(i == 0)).map(held).collect();
        let file = ResidualFile { path: "/lib/x".into(), bytes: Bytes(1 << 20), holders: vec![], held };
        run.residual =
            Known::Value(Residual { bytes: Bytes(1 << 20), files: vec![file], ..Residual::default() });
    });
    let found = text(&r, "kept_warm");
    let named =
        "kept warm by p[5] (20.0 KiB, 1 run), p[4] (16.0 KiB, 8 runs), p[3] (12.0 KiB, 8 runs) and 2 more: ";
    assert!(found.starts_with(named) && found.ends_with("before 8 of 8 starts, most of /lib/x"), "{found}");
}

#[test]
fn a_tree_that_outlives_its_first_process_is_named_when_most_runs_show_it() {
    let outlived = |runs: usize, after: u64| {
        let r = cold(10, |i, run| {
            run.exit = Known::Value(run.ready);
            let first = if i < runs { Nanos(run.ready.0 - after) } else { run.ready };
            run.first_exit = Known::Value(first);
        });
        ids(&r).contains(&"outlived")
    };
    // 5% of about 400 ms.
    assert!(outlived(10, 40_000_000) && outlived(5, 40_000_000) && !outlived(4, 40_000_000));
    assert!(!outlived(10, 5_000_000));
    // A start that --ready ends is over before its tree.
    let by_ready = cold(10, |_, run| {
        run.exit = Known::Value(Nanos(run.ready.0 + 1));
        run.first_exit = Known::Value(Nanos(1));
    });
    assert!(!ids(&by_ready).contains(&"outlived"));
}

#[test]
fn a_plan_that_no_start_followed_is_an_error() {
    let followed = |n: usize| {
        let mut r = report(&[("a", State::Prefetched, noise(100.0, 0.03, 4, 1))]);
        for run in r.runs.iter_mut().skip(n) {
            run.taints = vec![Taint::NotPrefetched { why: "it is switched off".into() }];
        }
        diagnose(&r).into_iter().find(|f| f.id == "plan").map(|f| f.severity).unwrap()
    };
    assert_eq!([0, 1, 4].map(followed), [Severity::Error, Severity::Warning, Severity::Info]);
}
