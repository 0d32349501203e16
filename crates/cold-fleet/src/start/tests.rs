use cold_model::layout::Layouts;
use cold_recording::sample;

use super::*;

fn of(recording: &Recording, words: &Words) -> FleetStart {
    let analysis = cold_analyze::analyze(recording, &Layouts::default());
    rows(recording, &analysis, words).expect("rows")
}

fn words() -> Words {
    Words { scenario: Scenario::Derived("plain".into()), ..Words::default() }
}

#[test]
fn a_start_has_each_needed_page_of_a_file_once() {
    let recording = sample::firefox_like(20_000, 1);
    let made = of(&recording, &words());
    let observed = learn::observe(&recording, &With::default()).unwrap();
    let mut pages: Vec<(&str, u64)> = Vec::new();
    for p in &made.pages {
        assert_eq!(p.start, made.start.start);
        pages.extend((p.first_page..p.first_page + p.pages).map(|n| (p.path.as_str(), n)));
    }
    let all = pages.len();
    pages.sort_unstable();
    pages.dedup();
    assert_eq!(all, pages.len(), "no page twice");
    let mut needed: Vec<(String, u64)> = Vec::new();
    for r in &observed.ranges {
        let f = &observed.files[r.file as usize];
        if f.kind == FileKind::Regular {
            let path = Paths::Plain.text(&f.path);
            needed.extend((r.first_page..r.first_page + u64::from(r.pages)).map(|n| (path.clone(), n)));
        }
    }
    needed.sort_unstable();
    needed.dedup();
    assert!(needed.iter().map(|(p, n)| (p.as_str(), *n)).eq(pages), "those that a plan would have");
}

#[test]
fn the_name_of_a_start_is_the_recording_s_and_decides_its_fold() {
    let recording = sample::firefox_like(5_000, 1);
    let (a, b) = (of(&recording, &words()), of(&recording, &words()));
    assert_eq!(a, b);
    assert_eq!(a.start.start.len(), 32);
    assert!(a.start.fold < FOLDS);
    let mut later = recording;
    later.manifest.end.0 += 1;
    assert_ne!(of(&later, &words()).start.start, a.start.start);
}

#[test]
fn redacted_rows_hold_no_path_outside_of_system_directories() {
    let recording = sample::firefox_like(5_000, 2);
    let plain = of(&recording, &words());
    let paths = Paths::Redacted { salt: b"s".to_vec() };
    let hidden = of(&recording, &Words { paths, ..words() });
    assert_eq!(plain.pages.len(), hidden.pages.len());
    assert_eq!(plain.start.scenario, "plain");
    assert!(hidden.start.scenario.starts_with("redacted-"), "{}", hidden.start.scenario);
    let all = hidden.pages.iter().map(|p| &p.path).chain([&hidden.start.executable, &hidden.start.script]);
    for path in all.filter(|p| !p.is_empty()) {
        assert!(
            path.starts_with("redacted/") || path.starts_with("/usr/") || path.starts_with("/lib"),
            "{path}"
        );
    }
}

#[test]
fn disturbed_and_cut_off_starts_do_not_count() {
    let recording = sample::firefox_like(5_000, 3);
    let mut lost = recording.clone();
    lost.manifest.lost.insert("filemap".into(), 1);
    let mut cut = recording.clone();
    cut.manifest.complete = false;
    let mut disturbed = recording.clone();
    disturbed.manifest.taints.push("the machine was suspended".into());
    let counts = [&recording, &lost, &cut, &disturbed].map(|r| {
        let row = of(r, &words()).start;
        (row.whole, row.undisturbed)
    });
    assert_eq!(counts, [(true, true), (false, false), (false, false), (true, false)]);
    let mut machine = recording;
    machine.manifest.subject = Subject::Machine;
    let analysis = cold_analyze::analyze(&machine, &Layouts::default());
    assert_eq!(
        rows(&machine, &analysis, &words()).unwrap_err(),
        AddsNothing::Learn(learn::TeachesNothing::NotACommand)
    );
}

#[test]
fn the_program_is_the_one_that_plans_know_where_that_is_known() {
    let recording = sample::firefox_like(5_000, 4);
    let first = of(&recording, &words()).start.executable;
    let other = recording.files.iter().filter(|f| f.kind == cold_model::recording::FileKind::Regular);
    let other =
        other.filter_map(cold_model::recording::File::place).find(|p| Paths::Plain.text(p) != first).unwrap();
    let named = of(&recording, &Words { executable: Some(other.clone()), ..words() });
    assert_eq!(named.start.executable, Paths::Plain.text(&other));
    // One that the recording does not have is none.
    let unknown = of(&recording, &Words { executable: Some("/nowhere".into()), ..words() });
    assert_eq!(unknown.start.executable, first);
}
