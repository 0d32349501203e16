use cold_model::layout::Layouts;
use cold_model::recording::FillCause;

use super::*;
use crate::analyze;
use cold_model::sample::{PAGE, empty, kib, ms};

#[test]
fn files_are_paired_by_path_and_figures_by_name() {
    let (mut a, mut b) = (empty(), empty());
    let both = a.file("/both", 100 * PAGE);
    a.fault(1, 5, both, 10, 8..16);
    let only = a.file("/old", 100 * PAGE);
    a.fault(10, 1, only, 0, 0..4);
    let new = b.file("/new", 100 * PAGE);
    b.fault(1, 1, new, 0, 0..1);
    let both = b.file("/both", 100 * PAGE);
    b.fault(4, 2, both, 10, 8..12);
    b.manifest.ready = Some(Known::Value(ms(500)));
    let sides = (analyze(&a, &Layouts::default()), analyze(&b, &Layouts::default()));
    let c = compare(&a, &sides.0, &b, &sides.1);
    assert!(c.comparable && c.conditions.is_empty(), "{:?}", c.conditions);
    assert_eq!((c.only_a, c.only_b), (1, 1));
    let paths: Vec<_> = c.files.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(paths, ["/both", "/old", "/new"]);
    let pair = &c.files[0];
    assert_eq!(
        pair.difference,
        SideDifference { needed: 0, read: -16 * 1024, unused: -16 * 1024, stall: -3_000_000, requests: 0 }
    );
    assert_eq!(sides.0.files[pair.a.as_ref().unwrap().index].path, "/both");
    assert_eq!(sides.1.files[pair.b.as_ref().unwrap().index].path, "/both");
    assert_eq!((c.files[1].b.as_ref(), c.files[1].difference.read), (None, -16 * 1024));
    let ready = &c.headline[0];
    assert_eq!((ready.difference, ready.ratio), (Some(-500_000_000), Some(Ratio(500))));
    let around = c.causes.iter().find(|c| c.cause == FillCause::ReadAround).unwrap();
    assert_eq!((around.a, around.b), (kib(40), kib(12)));
    assert_eq!((around.share_a, around.share_b), (Some(Ratio(833)), Some(Ratio(600))));
}

#[test]
fn other_tiers_forbid_and_other_kernels_only_explain() {
    let (a, mut b) = (empty(), empty());
    b.manifest.machine.kernel = "6.1".to_string();
    let sides = (analyze(&a, &Layouts::default()), analyze(&b, &Layouts::default()));
    let c = compare(&a, &sides.0, &b, &sides.1);
    assert!(c.comparable);
    assert_eq!((c.conditions[0].id.as_str(), c.conditions[0].b.as_str()), ("kernel", "6.1"));
    b.manifest.tier = cold_model::recording::manifest::Tier::C;
    b.fills = None;
    let side_b = analyze(&b, &Layouts::default());
    let c = compare(&a, &sides.0, &b, &side_b);
    assert!(!c.comparable);
    let read = c.headline.iter().find(|f| f.id == "read").unwrap();
    assert_eq!((read.difference, read.a.value()), (None, Some(&0)));
}

#[test]
fn a_file_of_another_size_or_build_is_said_to_have_changed() {
    let (mut a, mut b) = (empty(), empty());
    for (r, size, id) in [(&mut a, 100, "x"), (&mut b, 100, "y")] {
        let f = r.file("/f", size * PAGE);
        r.fault(1, 1, f, 0, 0..1);
        r.files[0].build_id = Some(id.to_string());
    }
    let changed = |a: &Recording, b: &Recording| {
        compare(a, &analyze(a, &Layouts::default()), b, &analyze(b, &Layouts::default())).files[0].changed
    };
    assert!(changed(&a, &b));
    assert!(!changed(&a, &a));
    b.files[0].build_id = None;
    assert!(!changed(&a, &b));
    b.files[0].size = Some(5 * PAGE);
    assert!(changed(&a, &b));
}
