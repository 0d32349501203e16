use cold_stats::compare::{Undecided, Verdict};

use super::*;

fn touched(huge_bytes: Option<u64>) -> Touched {
    Touched {
        before_ns: 0,
        touch_ns: 0,
        used: crate::worker::ThreadUsed::default(),
        huge_bytes,
        page_table_bytes: None,
        tlb_misses: crate::toucher::Counted::Known(0),
        entered: 0,
    }
}

fn seen(ms: f64, huge_bytes: u64) -> Seen {
    let cold = Touched { touch_ns: (ms * 1e6) as u64, ..touched(Some(huge_bytes)) };
    Seen { warm: cold.clone(), cold, folios: None, cached_bytes: None, device: None }
}

/// Ten rounds around a time, each of which the whole machine makes slower or faster.
fn row(touches: Touches, way: Way, ms: f64, own: &[f64]) -> Row {
    let rounds: Vec<Measured> = (0..10)
        .map(|n| Ok(seen(ms * (1.0 + 0.2 * f64::from(n % 3)) * own[n as usize % own.len()], 0)))
        .collect();
    Row::of(PagesLine { kind: Kind::Code, touches, way }, &rounds, 1)
}

fn refused(touches: Touches, way: Way) -> Row {
    let refusal = Refusal { call: "madvise".to_owned(), errno: Some(22), why: "no".to_owned() };
    Row::of(PagesLine { kind: Kind::Code, touches, way }, &[Ok(seen(1.0, 0)), Err(refusal)], 1)
}

const STEADY: [f64; 2] = [1.0, 1.01];

/// Plain faults take 10 ms with all touched and 1 ms with few; the control is as steady as told.
fn rows(control: f64, huge: (f64, f64), ahead: (f64, f64)) -> Vec<Row> {
    let (all, few) = (Touches::All, Touches::Few);
    vec![
        row(all, Way::Faults, 10.0, &[1.0]),
        row(few, Way::Faults, 1.0, &[1.0]),
        row(all, Way::FaultsAgain, 10.0 * control, &STEADY),
        row(few, Way::FaultsAgain, 1.0, &STEADY),
        row(all, Way::Huge, huge.0, &STEADY),
        row(few, Way::Huge, huge.1, &STEADY),
        row(all, Way::AheadHuge, ahead.0, &STEADY),
        row(few, Way::AheadHuge, ahead.1, &STEADY),
        refused(all, Way::HugeUnaligned),
        refused(few, Way::HugeUnaligned),
    ]
}

#[test]
fn the_judgement_follows_the_intervals_of_both_kinds_of_starts() {
    let of = |huge, ahead| {
        let j = judge(&rows(1.0, huge, ahead), Kind::Code);
        (j.huge, j.left_to_kernel)
    };
    assert_eq!(of((4.0, 0.5), (12.0, 1.0)), (Gain::Gains, Gain::Gains));
    assert_eq!(of((4.0, 1.0), (4.0, 1.0)), (Gain::Gains, Gain::NoDifference));
    assert_eq!(of((4.0, 5.0), (12.0, 1.0)), (Gain::OnlyWithAll, Gain::OnlyWithAll));
    assert_eq!(of((20.0, 0.5), (12.0, 0.2)), (Gain::OnlyWithFew, Gain::Loses));
    assert_eq!(of((10.0, 1.0), (4.0, 0.5)), (Gain::NoDifference, Gain::Loses));
    assert_eq!(of((10.0, 5.0), (10.0, 5.0)).0, Gain::Loses);
    // Less than the margin is no difference, however steady it is.
    assert_eq!(of((9.7, 0.97), (9.7, 0.97)).0, Gain::NoDifference);
}

#[test]
fn a_control_that_differs_takes_every_verdict_away_and_a_refused_way_has_none() {
    let steady = judge(&rows(1.0, (4.0, 0.5), (12.0, 1.0)), Kind::Code);
    assert_eq!(steady.huge_unaligned, Gain::Refused);
    let unsteady = judge(&rows(1.2, (4.0, 0.5), (12.0, 1.0)), Kind::Code);
    assert_eq!((unsteady.huge, unsteady.left_to_kernel), (Gain::Unsteady, Gain::Unsteady));
    assert_eq!(judge(&rows(1.0, (4.0, 0.5), (12.0, 1.0)), Kind::Data).huge, Gain::Refused, "not measured");
    assert!(answers(&rows(1.0, (4.0, 0.5), (12.0, 1.0))).iter().all(|a| a.way != Way::HugeUnaligned));
}

#[test]
fn too_few_rounds_prove_nothing() {
    let few: Vec<Row> = rows(1.0, (4.0, 0.5), (12.0, 1.0))
        .into_iter()
        .map(|mut r| {
            r.cold_ms.truncate(5);
            r
        })
        .collect();
    assert_eq!(judge(&few, Kind::Code).huge, Gain::NothingProved);
    let open = answers(&few).into_iter().find(|a| a.way == Way::Huge && a.state == State::Cold).unwrap();
    assert!(
        matches!(open.verdict, Verdict::Inconclusive { why: Undecided::TooFewRuns, runs_needed: Some(1) }),
        "{open:?}"
    );
}

#[test]
fn noise_that_crosses_the_margin_is_said_for_the_start_that_it_is_of() {
    let mut all = rows(1.0, (4.0, 1.0), (12.0, 1.0));
    let noisy = [1.4, 0.7, 1.2, 0.8];
    for r in all.iter_mut().filter(|r| r.way == Way::Huge && r.touches == Touches::Few) {
        *r = row(Touches::Few, Way::Huge, 1.0, &noisy);
    }
    assert_eq!(judge(&all, Kind::Code).huge, Gain::GainsWithAll);
    let few = [row(Touches::Few, Way::Huge, 1.0, &noisy)];
    all.retain(|r| r.way != Way::Huge);
    all.extend(few);
    all.push(row(Touches::All, Way::Huge, 10.0, &noisy));
    assert_eq!(judge(&all, Kind::Code).huge, Gain::NothingProved);
}

#[test]
fn asking_ahead_prevents_where_less_is_mapped_by_huge_entries() {
    let of = |ahead, left| {
        let one = |way, huge| {
            Row::of(PagesLine { kind: Kind::Code, touches: Touches::All, way }, &[Ok(seen(1.0, huge))], 1)
        };
        judge(&[one(Way::AheadHuge, ahead), one(Way::Huge, left)], Kind::Code).ahead_prevents
    };
    assert_eq!((of(0, 4), of(4, 4), of(0, 0)), (Some(true), Some(false), Some(false)));
    assert_eq!(judge(&[], Kind::Code).ahead_prevents, None);
}

#[test]
fn the_usual_round_is_shown_and_a_refusal_in_any_round_leaves_no_figures() {
    let line = PagesLine { kind: Kind::Data, touches: Touches::All, way: Way::Huge };
    let rounds: Vec<Measured> = [(9.0, 1), (2.0, 2), (1.0, 3)].map(|(ms, huge)| Ok(seen(ms, huge))).into();
    let row = Row::of(line, &rounds, 1);
    assert_eq!((row.huge_bytes(), row.cold_median_ms), (Some(2), Some(2.0)));
    let row = refused(Touches::All, Way::Collapse);
    assert_eq!((row.cold_ms.len(), row.usual.is_none(), row.refused.is_some()), (0, true, true));
}

#[test]
fn few_touches_are_one_in_each_part_and_every_line_is_there_once() {
    let mut pages = few(4096, 4096, 7);
    assert_ne!(pages, {
        let mut sorted = pages.clone();
        sorted.sort_unstable();
        sorted
    });
    pages.sort_unstable();
    assert_eq!(pages.iter().map(|p| p / 64).collect::<Vec<_>>(), (0..64).collect::<Vec<_>>());
    assert_eq!(few(64, 1 << 20, 7).len(), 64, "a page larger than the part");
    let all = lines();
    assert_eq!(all.len(), 2 * 2 * Way::ALL.len());
    assert!(all.iter().enumerate().all(|(n, l)| !all[..n].contains(l)));
}

#[test]
fn folios_are_counted_by_their_size() {
    let found = by_size([4096, 2 << 20, 4096, 4096].into_iter());
    assert_eq!(found, [FolioSize { bytes: 4096, count: 3 }, FolioSize { bytes: 2 << 20, count: 1 }]);
}
