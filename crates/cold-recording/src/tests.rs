use std::path::Path;

use cold_model::recording::{Manifest, Recording};
use cold_model::{Known, Nanos};

use super::*;

mod corrupt;
mod round_trip;
mod sql;

fn finished(recording: &Recording) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), recording).unwrap();
    dir
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_is_written_is_read() {
    for sample in [sample::small(), sample::firefox_like(30_000, 3)] {
        let dir = finished(&sample);
        assert_eq!(read(dir.path()).unwrap(), sample);
        assert_eq!(names(dir.path()).len(), 18);
    }
}

#[test]
fn a_table_that_was_not_recorded_stays_absent() {
    let sample = sample::small();
    let tier_d = Recording {
        fills: None,
        evictions: None,
        residency: None,
        readahead: None,
        advice: None,
        device_reads: None,
        transfers: None,
        stalls: None,
        off_cpu: None,
        lookups: None,
        stacks: None,
        touches: Some(Vec::new()),
        ..sample
    };
    let dir = finished(&tier_d);
    let back = read(dir.path()).unwrap();
    assert_eq!(back, tier_d);
    assert!(back.fills.is_none() && back.touches == Some(Vec::new()));
    assert_eq!(
        names(dir.path()),
        [
            "files.parquet",
            "mappings.parquet",
            "processes.parquet",
            "recording.json",
            "threads.parquet",
            "touches.parquet"
        ]
    );
}

#[test]
fn until_it_is_finished_a_recording_is_known_as_unfinished() {
    let sample = sample::small();
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("a.cold");
    let known =
        Manifest { complete: false, ready: Some(Known::unknown("not yet")), ..sample.manifest.clone() };
    begin(&dir, &known, false).unwrap();
    log::Writer::create(&dir, 4096, Nanos(1)).unwrap().append(1, b"raw").unwrap();
    let unfinished = |dir: &Path| matches!(read(dir), Err(Error::Unfinished { .. }));
    assert!(unfinished(&dir));
    assert_eq!(manifest_of(&dir).unwrap(), known);
    // Killed between the tables and the manifest: still unfinished, and the log is there.
    write::put_tables(&dir, &sample, cold_sys::whole::Ownership::Result).unwrap();
    assert!(unfinished(&dir) && dir.join(log::NAME).exists());
    write(&dir, &sample).unwrap();
    assert_eq!(read(&dir).unwrap(), sample);
    assert!(!dir.join(log::NAME).exists());
    // What a recovery writes is readable, and says that it is not complete.
    let recovered = Recording { manifest: known, ..sample };
    begin(&dir, &recovered.manifest, true).unwrap();
    write(&dir, &recovered).unwrap();
    assert_eq!(read(&dir).unwrap(), recovered);
}

#[test]
fn an_existing_recording_is_replaced_only_when_asked_and_nothing_else_ever() {
    let sample = sample::small();
    let dir = finished(&sample);
    let begin = |dir: &Path, overwrite| begin(dir, &sample.manifest, overwrite);
    assert!(matches!(begin(dir.path(), false), Err(Error::Exists { .. })));
    assert!(matches!(write(dir.path(), &sample), Err(Error::Exists { .. })));
    assert_eq!(read(dir.path()).unwrap(), sample, "untouched");
    begin(dir.path(), true).unwrap();
    assert_eq!(names(dir.path()), ["recording.json"]);
    std::fs::write(dir.path().join("thesis.tex"), "x").unwrap();
    let said = begin(dir.path(), true).unwrap_err().to_string();
    assert!(said.contains("thesis.tex") && said.contains("not replaced"), "{said}");

    let place = tempfile::tempdir().unwrap();
    let (file, link) = (place.path().join("file"), place.path().join("link.cold"));
    std::fs::write(&file, "x").unwrap();
    assert!(matches!(begin(&file, true), Err(Error::NotReplaced { .. })));
    std::os::unix::fs::symlink(place.path(), &link).unwrap();
    let said = begin(&link, true).unwrap_err().to_string();
    assert!(said.contains("symbolic link"), "{said}");
    assert!(begin(&place.path().join("none/a.cold"), true).unwrap_err().to_string().contains("none/a.cold"));
}

/// Links planted under the names of a recording are replaced, not followed.
#[test]
fn planted_links_lead_nowhere() {
    let sample = sample::small();
    let place = tempfile::tempdir().unwrap();
    let (victim, dir) = (place.path().join("victim"), place.path().join("a.cold"));
    std::fs::write(&victim, "precious").unwrap();
    begin(&dir, &sample.manifest, false).unwrap();
    for name in ["touches.parquet", "fills.parquet.partial", "recording.json.partial", "events.log"] {
        std::os::unix::fs::symlink(&victim, dir.join(name)).unwrap();
    }
    write(&dir, &sample).unwrap();
    assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    assert_eq!(read(&dir).unwrap(), sample);
}

/// What is recorded holds command lines; what is exported is a result like others.
#[test]
fn a_recording_is_for_its_owner_alone_and_an_export_is_not() {
    use std::os::unix::fs::PermissionsExt;
    let sample = sample::small();
    let place = tempfile::tempdir().unwrap();
    let modes = |dir: &Path| -> Vec<u32> {
        let files = names(dir).into_iter().map(|name| dir.join(name));
        let all = files.chain([dir.to_owned()]);
        all.map(|p| p.metadata().unwrap().permissions().mode() & 0o777).collect()
    };
    let (recorded, exported) = (place.path().join("a.cold"), place.path().join("b.cold"));
    begin(&recorded, &sample.manifest, false).unwrap();
    drop(log::Writer::create(&recorded, 4096, Nanos(0)).unwrap());
    assert_eq!(modes(&recorded), [0o600, 0o600, 0o700]);
    write(&recorded, &sample).unwrap();
    write(&exported, &sample).unwrap();
    let (recorded, exported) = (modes(&recorded), modes(&exported));
    assert_eq!(recorded.len(), exported.len());
    assert!(
        recorded.iter().rev().skip(1).all(|m| *m == 0o600) && recorded.last() == Some(&0o700),
        "{recorded:?}"
    );
    // As a file and a directory that are made without any care.
    std::fs::write(place.path().join("c"), "").unwrap();
    std::fs::create_dir(place.path().join("d")).unwrap();
    let plain = modes(place.path());
    assert!(
        exported.iter().rev().skip(1).all(|m| *m == plain[2]) && exported.last() == Some(&plain[3]),
        "{exported:?}"
    );
}

#[test]
fn a_recording_that_breaks_a_rule_is_not_written() {
    let place = tempfile::tempdir().unwrap();
    let refused = |change: &dyn Fn(&mut Recording), words: &[&str]| {
        let mut r = sample::small();
        change(&mut r);
        let said = write(&place.path().join("a.cold"), &r).unwrap_err().to_string();
        assert!(words.iter().all(|w| said.contains(w)), "{said}");
        assert!(!place.path().join("a.cold").exists());
    };
    refused(
        &|r| r.touches.as_mut().unwrap()[3].file = 99,
        &["touches, row 3", "file names row 99", "13 rows"],
    );
    refused(&|r| r.touches.as_mut().unwrap()[3].stack = Some(200), &["touches, row 3: stack"]);
    refused(&|r| r.stalls.as_mut().unwrap()[0].lookup = Some(u32::MAX), &["stalls, row 0: lookup"]);
    refused(&|r| r.lookups = None, &["lookup names row"]);
    refused(&|r| r.fills.as_mut().unwrap()[0].pages = 0, &["fills, row 0: a range of no pages"]);
    refused(
        &|r| r.fills.as_mut().unwrap()[0].first_page = u64::MAX,
        &["fills, row 0: first_page", "63 bits"],
    );
    refused(&|r| r.fills.as_mut().unwrap()[0].first_page = 1 << 51, &["a page beyond the largest file"]);
    refused(&|r| r.fills.as_mut().unwrap()[5].at = Nanos(0), &["fills, row 5: not sorted by at"]);
    refused(&|r| r.transfers.as_mut().unwrap()[5].request = 0, &["transfers, row 5: not sorted by request"]);
    refused(&|r| r.device_reads.as_mut().unwrap()[0].sector = 1 << 60, &["a sector beyond"]);
    refused(&|r| r.mappings.as_mut().unwrap()[0].address = u64::MAX, &["beyond the address space"]);
    refused(&|r| r.manifest.page_bytes = 0, &["a page size of 0"]);
    refused(&|r| r.manifest.version = 2, &["version 2"]);
    refused(&|r| r.processes[1].executable = Some(13), &["processes, row 1: executable"]);
}
