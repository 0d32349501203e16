use cold_bench::sample::{noise, report};
use cold_bench::summary::analyze;
use cold_model::Nanos;
use cold_model::bench::{State, Taint};

use super::*;

/// Fails unless all elements of XML are closed in order and no bare `&` or `<` occurs.
pub(crate) fn assert_well_formed(xml: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = xml;
    while let Some(start) = rest.find('<') {
        assert!(!rest[..start].contains('>'), "a bare > before {:.60}", &rest[start..]);
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        assert!(!tag.contains('<'), "a bare < in {tag}");
        assert!(tag.matches('"').count().is_multiple_of(2), "quotes in {tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().unwrap());
        }
        rest = &rest[end + 1..];
    }
    assert_eq!(open, Vec::<&str>::new());
    for (at, _) in xml.match_indices('&') {
        let entity = xml[at..].split(';').next().unwrap();
        assert!(["&amp", "&lt", "&gt", "&quot", "&#39"].contains(&entity), "{entity}");
    }
}

#[test]
fn pictures_are_well_formed_whatever_the_commands_are_called() {
    for n in [0, 1, 10] {
        for series in [0, 1, 2, 9] {
            let names = ["<b>&'\"", "]]>", "\u{1b}[0m\u{0}", "ü", "</svg>", "a", "b", "c", "d"];
            let list: Vec<_> = names[..series]
                .iter()
                .enumerate()
                .map(|(i, name)| (*name, State::Cold, noise(100.0, 0.1, n, i as u64)))
                .collect();
            let r = report(&list);
            let drawn = svg(&r, &analyze(&r, 0.0));
            assert_well_formed(&drawn);
            assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{n} runs of {series}");
            assert!(!drawn.contains('\u{1b}') && !drawn.contains('\u{0}'));
        }
    }
}

#[test]
fn every_run_is_drawn_twice_and_tainted_ones_hollow() {
    let mut r = report(&[
        ("a", State::Cold, noise(400.0, 0.05, 10, 1)),
        ("a", State::Warm, noise(100.0, 0.05, 10, 2)),
    ]);
    r.runs[0].taints.push(Taint::CachesDropped { times: 1 });
    r.runs[6].taints.push(Taint::TimedOut { limit: Nanos(9_000_000_000) });
    r.runs[6].ready = Nanos(9_000_000_000);
    let drawn = svg(&r, &analyze(&r, 0.0));
    assert_eq!(drawn.matches("class=\"hollow\"").count(), 4);
    // Circles are cold, polygons warm: each run twice, the legend and the foot of the strip once each.
    assert_eq!(drawn.matches("<circle").count(), 22);
    assert_eq!(drawn.matches("<polygon").count(), 22);
    assert!(drawn.contains("hollow: tainted, not counted"));
    assert!(drawn.contains("(above the axis)") && drawn.contains(">9.00 s</text>"));
    assert!(drawn.contains("time to ready [ms]"), "the timeout does not stretch the axis");
    assert!(drawn.contains("cold, round 1: "));
}

#[test]
fn places_stay_inside_the_picture() {
    let r = report(&[("a", State::Cold, noise(400.0, 0.3, 60, 1))]);
    let drawn = svg(&r, &analyze(&r, 0.0));
    for part in drawn.split("cx=\"").skip(1) {
        let x: f64 = part.split('"').next().unwrap().parse().unwrap();
        assert!((LEFT..=WIDTH - RIGHT).contains(&x), "{x}");
    }
}

#[test]
fn labels_of_runs_do_not_touch() {
    for count in 1..400 {
        let ticks = run_ticks(count);
        assert!(ticks.len() <= 14 && ticks.iter().all(|t| (1..=count).contains(t)), "{count}: {ticks:?}");
    }
}
