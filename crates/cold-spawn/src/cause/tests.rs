use cold_model::recording::{Lookup, LookupKind, Recording};

use super::*;
use crate::evidence;
use crate::growth::Class;

fn start(lookups: Vec<Lookup>) -> Evidence {
    let recording = Recording { lookups: Some(lookups), ..Recording::default() };
    Evidence { wall_ns: 4_000_000, ..evidence::of(&recording, |_| true) }
}

fn probe(path: String, result: i64) -> Lookup {
    Lookup {
        at: cold_model::Nanos(0),
        ended: cold_model::Nanos(2000),
        pid: 1,
        tid: 1,
        kind: LookupKind::Stat,
        path: Some(path),
        result,
        flags: 0,
        file: None,
        root: None,
        stack: None,
    }
}

#[test]
fn the_name_scan_is_named_with_directory_template_and_slope() {
    let observed: Vec<Observed> = (0..20)
        .map(|k| {
            let taken = 5 + k * 50;
            let mut all: Vec<Lookup> = (0..taken).map(|n| probe(format!("/logs/app.{n}"), 0)).collect();
            all.push(probe(format!("/logs/app.{taken}"), -2));
            (k * 50, start(all))
        })
        .collect();
    let found = causes(&observed, 1000);
    let [cause] = &found[..] else { panic!("{found:?}") };
    assert_eq!((cause.what, cause.name.as_str()), (What::NameScan, "/logs/app.{n}"));
    assert_eq!(cause.directory, "/logs");
    assert_eq!((cause.growth.class, cause.present), (Class::Linear, 956.0));
    assert!((cause.growth.slope - 1.0).abs() < 1e-9);
    // 956 lookups of 2 µs in a start of 4 ms.
    assert!((cause.share.expect("told") - 0.478).abs() < 1e-9);
}

#[test]
fn a_longer_directory_is_a_cause_and_a_constant_one_is_not() {
    let observed: Vec<Observed> = (0..20)
        .map(|k: u64| {
            let list = |path: &str, bytes| Lookup { kind: LookupKind::List, ..probe(path.into(), bytes) };
            (k, start(vec![list("/spool", 48 * k.cast_signed()), list("/etc", 4096)]))
        })
        .collect();
    let found = causes(&observed, 20);
    assert_eq!(
        found.iter().map(|c| (c.what, c.name.as_str())).collect::<Vec<_>>(),
        [(What::DirectoryList, "/spool")]
    );
}

#[test]
fn without_observations_nothing_is_claimed() {
    assert_eq!(causes(&[], 100), []);
    assert_eq!(causes(&[(0, Evidence::default())], 1), []);
}
