//! Damaged, forged and later recordings.

use std::os::unix::fs::{FileExt, symlink};

use super::*;

fn said(dir: &Path) -> String {
    read(dir).unwrap_err().to_string()
}

fn edit(dir: &Path, change: impl FnOnce(&mut serde_json::Value)) {
    let path = dir.join(manifest::NAME);
    let mut document = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut document);
    std::fs::write(&path, serde_json::to_vec(&document).unwrap()).unwrap();
}

#[test]
fn a_later_version_names_both() {
    let dir = finished(&sample::small());
    edit(dir.path(), |d| {
        d["version"] = 7.into();
        // Nothing else of a later version need look as it does today.
        d["machine"] = "quantum".into();
    });
    let said = said(dir.path());
    assert!(said.contains("version 7") && said.contains("version 1") && said.contains("update"), "{said}");
}

#[test]
fn what_is_no_recording_is_said_so() {
    let dir = tempfile::tempdir().unwrap();
    assert!(said(dir.path()).contains("is not a recording: there is no recording.json"));
    std::fs::write(dir.path().join("recording.json"), "{}").unwrap();
    assert!(said(dir.path()).contains("recording.json is damaged: missing field `format`"));
    std::fs::write(dir.path().join("recording.json"), r#"{"format":"x","version":1}"#).unwrap();
    assert!(said(dir.path()).contains("its format is \"x\""));
    std::fs::write(dir.path().join("recording.json"), "").unwrap();
    assert!(said(dir.path()).contains("damaged"));
    assert!(said(&dir.path().join("recording.json")).contains("it is not a directory"));
    assert!(said(&dir.path().join("none")).contains("No such file"));
}

#[test]
fn damaged_tables_are_named() {
    let sample = sample::small();
    let dir = finished(&sample);
    let path = dir.path().join("fills.parquet");
    let whole = std::fs::read(&path).unwrap();
    for n in [0, 1, 4, 11, 12, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..n]).unwrap();
        let said = said(dir.path());
        assert!(said.contains("fills.parquet is damaged: it has") && said.contains("record again"), "{said}");
    }
    for at in (0..whole.len()).step_by(97) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert!(said(dir.path()).contains("checksum"));
    }
    std::fs::remove_file(&path).unwrap();
    assert!(said(dir.path()).contains("fills.parquet"));
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(read(dir.path()).unwrap(), sample);
    edit(dir.path(), |d| drop(d["tables"].as_object_mut().unwrap().remove("files")));
    assert!(said(dir.path()).contains("does not list the table files"));
    edit(dir.path(), |d| d["tables"]["people"] = d["tables"]["fills"].clone());
    assert!(said(dir.path()).contains("lists a table \"people\""));
}

#[test]
fn links_and_fifos_are_refused() {
    let dir = finished(&sample::small());
    let elsewhere = tempfile::tempdir().unwrap();
    let path = dir.path().join("touches.parquet");
    std::fs::rename(&path, elsewhere.path().join("t")).unwrap();
    symlink(elsewhere.path().join("t"), &path).unwrap();
    assert!(said(dir.path()).contains("not a regular file (symbolic link)"));
    std::fs::remove_file(&path).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success() && said(dir.path()).contains("(FIFO)"));
    let json = dir.path().join("recording.json");
    std::fs::rename(&json, elsewhere.path().join("j")).unwrap();
    symlink(elsewhere.path().join("j"), &json).unwrap();
    assert!(said(dir.path()).contains("symbolic link"));
}

/// Encodes rows as a table, as a forger with our own writer would.
fn forged<R: 'static>(table: &schema::Table<R>, rows: &[R]) -> std::fs::File {
    let mut file = tempfile::tempfile().unwrap();
    columns::encode(table, rows, &mut file).unwrap();
    file
}

#[test]
fn another_tables_file_is_refused() {
    let touches = sample::small().touches.unwrap();
    let file = forged(&schema::tables::TOUCHES, &touches);
    let wrong = columns::decode(&schema::tables::FILLS, file, Path::new("x")).err().unwrap();
    assert!(wrong.to_string().contains("its columns are not those of the format"), "{wrong}");
}

#[test]
fn a_file_of_an_earlier_version_lacks_columns_that_may_be_empty_and_no_others() {
    let new = &schema::tables::TOUCHES;
    let older = |columns| schema::Table { columns, ..*new };
    let touches = sample::small().touches.unwrap();
    let last = new.columns.len() - 1;
    let decode = |table: &schema::Table<_>| columns::decode(new, forged(table, &touches), Path::new("x"));
    let read = decode(&older(&new.columns[..last])).unwrap();
    let expected: Vec<_> = touches.iter().map(|t| cold_model::recording::Touch { end: None, ..*t }).collect();
    assert!(touches.iter().any(|t| t.end.is_some()));
    assert_eq!(read, expected);
    // Pages are in every version.
    let pages = new.columns.iter().position(|c| c.about.name == "pages").unwrap();
    let wrong = decode(&older(&new.columns[..pages])).err().unwrap();
    assert!(wrong.to_string().contains("its columns are not those of the format"), "{wrong}");
}

/// Columns of the format's first version, which stand in front of those that came later in most tables, and not in all.
#[test]
fn a_file_of_the_first_version_is_read_wherever_its_missing_columns_stand_today() {
    fn without<R: Clone + PartialEq + std::fmt::Debug + 'static>(
        table: &'static schema::Table<R>,
        rows: &[R],
        missing: &str,
        expected: &[R],
    ) {
        let columns = table.columns.iter().filter(|c| c.about.name != missing);
        let columns: &'static [_] =
            Box::leak(columns.map(|c| schema::Column { about: c.about, cell: c.cell }).collect());
        assert_eq!(columns.len() + 1, table.columns.len(), "{missing}");
        let older = schema::Table { columns, ..*table };
        assert_eq!(columns::decode(table, forged(&older, rows), Path::new("x")).unwrap(), expected);
    }
    let full = sample::small();
    let mut advice = full.advice.unwrap();
    for call in &mut advice {
        call.address = Some(1 << 40);
    }
    let expected: Vec<_> =
        advice.iter().map(|a| cold_model::recording::Advice { address: None, ..a.clone() }).collect();
    without(&schema::tables::ADVICE, &advice, "address", &expected);
    let reads = full.device_reads.unwrap();
    let expected: Vec<_> =
        reads.iter().map(|r| cold_model::recording::DeviceRead { file: None, ..*r }).collect();
    without(&schema::tables::DEVICE_READS, &reads, "file", &expected);
}

#[test]
fn a_small_file_cannot_claim_a_billion_rows() {
    // Two million rows that are alike take less than a kilobyte per column.
    let row = cold_model::recording::Eviction { at: Nanos(5), file: 0, first_page: 1, pages: 1 };
    let file = forged(&schema::tables::EVICTIONS, &vec![row; 2_000_000]);
    let bytes = file.metadata().unwrap().len();
    let wrong = columns::decode(&schema::tables::EVICTIONS, file, Path::new("x")).err().unwrap();
    assert!(wrong.to_string().contains("more rows than its size allows"), "{bytes} bytes: {wrong}");
}

#[test]
fn a_small_file_cannot_unpack_to_gigabytes_of_text() {
    let mut row = sample::small().lookups.unwrap()[0].clone();
    row.path = Some("x".repeat(100_000));
    let file = forged(&schema::tables::LOOKUPS, &vec![row; 2000]);
    let bytes = file.metadata().unwrap().len();
    let wrong = columns::decode(&schema::tables::LOOKUPS, file, Path::new("x")).err().unwrap();
    assert!(wrong.to_string().contains("more text"), "{bytes} bytes: {wrong}");
}

/// Every bit of a small file, behind the checksum: an error or rows, nothing else.
#[test]
fn no_flipped_bit_panics() {
    let sample = sample::small();
    let file = forged(&schema::tables::LOOKUPS, &sample.lookups.unwrap()[..10]);
    let size = file.metadata().unwrap().len();
    let mut whole = vec![0; size as usize];
    file.read_exact_at(&mut whole, 0).unwrap();
    let mut refused = 0;
    for at in 0..whole.len() {
        for bit in [0, 2, 5, 7] {
            file.write_all_at(&[whole[at] ^ 1 << bit], at as u64).unwrap();
            let read = columns::decode(&schema::tables::LOOKUPS, file.try_clone().unwrap(), Path::new("x"));
            refused += usize::from(read.is_err());
        }
        file.write_all_at(&whole[at..=at], at as u64).unwrap();
    }
    assert!(refused > whole.len(), "{refused} of {}", whole.len() * 4);
}
