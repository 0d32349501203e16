use cold_bench::sample::{noise, report};
use cold_bench::summary::analyze;
use cold_model::bench::{State, Taint};

use super::*;

fn cold_and_warm() -> Report {
    let mut r = report(&[
        ("a", State::Cold, vec![400.0, 410.0, 900.0, 390.0, 405.0, 402.0]),
        ("a", State::Warm, vec![100.0, 101.0, 99.0, 100.0, 300.0, 102.0]),
    ]);
    r.runs[4].taints.push(Taint::CachesDropped { times: 1 });
    r.runs[9].taints.push(Taint::CachesDropped { times: 1 });
    r
}

#[test]
fn unicode_plot() {
    let r = cold_and_warm();
    let expected = "\
600 ms ┤            ↑
       │
       │
       │      ●                               │
400 ms ┤●                  ●     ●     ●      ●
       │                            □
       │
200 ms ┤
       │
       │   ■     ■     ■      ■            ■    ■
       │
  0 ms ┤
       └────────────────────────────────────
        1                             run 12
● cold: median 402 ms [390 ms to 410 ms, 93.8%], 5 runs, 1 tainted ○
■ warm: median 100 ms [99.0 ms to 102 ms, 93.8%], 5 runs, 1 tainted □
↑ 1 tainted above the axis
";
    let drawn = plot(&r, &analyze(&r, 0.0), 72, Charset::Unicode);
    assert_eq!(drawn, expected, "\n{drawn}");
}

#[test]
fn ascii_plot_has_only_ascii() {
    let mut r = cold_and_warm();
    for run in &mut r.runs {
        run.ready.0 /= 1000;
    }
    let drawn = plot(&r, &analyze(&r, 0.0), 72, Charset::Ascii);
    assert!(drawn.is_ascii(), "{drawn}");
    assert!(drawn.contains("C cold: median") && drawn.contains("1 tainted w"), "{drawn}");
}

#[test]
fn every_line_fits_the_width() {
    let names = ["a rather long command --with=options", "b", "c", "d", "e", "f"];
    for n in [1, 2, 30] {
        for series in [1, 2, 6] {
            let list: Vec<_> = names[..series]
                .iter()
                .enumerate()
                .map(|(i, name)| (*name, State::Cold, noise(100.0, 0.1, n, i as u64)))
                .collect();
            let r = report(&list);
            let analysis = analyze(&r, 0.0);
            for width in [40, 80, 200] {
                for charset in [Charset::Unicode, Charset::Ascii] {
                    let drawn = plot(&r, &analysis, width, charset);
                    let widest = drawn.lines().map(|l| l.chars().count()).max().unwrap_or(0);
                    assert!(widest <= width, "{widest} > {width}:\n{drawn}");
                }
            }
        }
    }
}

#[test]
fn without_runs_there_is_no_plot() {
    let r = report(&[("a", State::Cold, vec![])]);
    assert_eq!(plot(&r, &analyze(&r, 0.0), 80, Charset::Unicode), "");
}

#[test]
fn a_hostile_name_stays_on_its_line() {
    let r = report(&[("evil\n\u{1b}[31m", State::Cold, vec![1.0, 2.0]), ("b", State::Cold, vec![1.0, 2.0])]);
    let drawn = plot(&r, &analyze(&r, 0.0), 80, Charset::Unicode);
    assert!(!drawn.contains('\u{1b}'));
    assert!(drawn.contains("● evil  [31m (cold): median 1.50 ms"), "{drawn}");
}
