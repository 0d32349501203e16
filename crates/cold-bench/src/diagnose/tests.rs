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
        run.residual = Known::Value(Residual { bytes, unknown_bytes: Bytes(0), files: vec![file] });
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
