use std::sync::Arc;

use super::*;
use crate::script::{ProcessLine, ThreadLine, thread};

const READS: &str = "THINKTIME 0 0\nCYCLEREADS 1 0\nFILESEEK 0 0\nCPUTIME 0 0\nDATAPAGE 0 0\nCODEPAGE 0 0\nFILEACCESS a.dat\n";

/// A script of one thread in a directory of its own, and how to run it there.
fn scripted(more: &str) -> (tempfile::TempDir, Loaded, ScriptOptions, Journal) {
    let dir = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
    let p = ProcessLine {
        line: 1,
        repeat: 1,
        file: "p.scp".into(),
        data_pages: 1,
        code_file: None,
        name: None,
        class: None,
    };
    let t = ThreadLine { line: 1, repeat: 1, file: "t.sct".into(), priority: None };
    let script = thread(Path::new("t.sct"), &format!("{READS}{more}")).unwrap();
    let loaded = Loaded { directory: dir.path().to_owned(), processes: vec![(p, vec![(t, script)])] };
    let o = ScriptOptions {
        seconds: 1.0,
        place: dir.path().to_owned(),
        file_bytes: 1 << 16,
        destroy: vec![],
        seed: 1,
        variate: Variate::True,
    };
    let journal = Journal::open_in(dir.path().join("journal"));
    (dir, loaded, o, journal)
}

/// What stands for the script's file.
fn file(loaded: &Loaded, o: &ScriptOptions, journal: &Journal, files: &mut Files) -> Result<(PathBuf, u64)> {
    files.get(&loaded.processes[0].1[0].1, loaded, o, journal)
}

fn none() -> Files {
    Files { own: BTreeMap::new(), found: Vec::new() }
}

#[test]
fn a_file_that_exists_is_written_only_when_it_is_given_up_by_whatever_name() {
    let (dir, loaded, mut o, journal) = scripted("FILEACTION RW\n");
    std::fs::write(dir.path().join("a.dat"), vec![7; 8192]).unwrap();
    let why = file(&loaded, &o, &journal, &mut none()).unwrap_err().to_string();
    assert!(why.contains("a.dat cannot be used: the script writes it; say --destroy "), "{why}");
    let other = dir.path().join("other.dat");
    std::fs::write(&other, "x").unwrap();
    o.destroy = vec![other, dir.path().join("missing")];
    assert!(file(&loaded, &o, &journal, &mut none()).is_err(), "another one was given up");
    std::os::unix::fs::symlink("a.dat", dir.path().join("link")).unwrap();
    o.destroy.push(dir.path().join("link"));
    let mut files = none();
    let (path, bytes) = file(&loaded, &o, &journal, &mut files).unwrap();
    assert_eq!((std::fs::read(path).unwrap(), bytes), (vec![7; 8192], 8192));
    assert_eq!((files.found.len(), files.own.len()), (1, 0));
}

#[test]
fn a_file_that_is_only_read_needs_no_leave() {
    let (dir, loaded, o, journal) = scripted("");
    std::fs::write(dir.path().join("A.DAT"), "in another case").unwrap();
    assert_eq!(file(&loaded, &o, &journal, &mut none()).unwrap().1, 15);
}

#[test]
fn a_file_that_does_not_exist_is_made_once_and_goes_with_the_trial() {
    let (dir, loaded, o, journal) = scripted("FILEACTION RW\n");
    let mut files = none();
    let first = file(&loaded, &o, &journal, &mut files).unwrap();
    assert_eq!(file(&loaded, &o, &journal, &mut files).unwrap(), first, "all threads share it");
    assert_eq!((files.own.len(), first.1), (1, 1 << 16));
    assert!(!dir.path().join("a.dat").exists(), "the scripts' directory is left alone");
    drop(files);
    let left = dir.path().read_dir().unwrap().map(|e| e.unwrap().file_name());
    assert_eq!(left.filter(|name| name != "journal").count(), 0);
}

#[test]
fn a_record_that_the_file_does_not_hold_is_a_mistake_of_its_thread() {
    let (dir, loaded, o, journal) = scripted("RECORDSIZE 8192\n");
    std::fs::write(dir.path().join("a.dat"), vec![7; 8191]).unwrap();
    let runner = Runner { program: "/nowhere/cold".into(), interrupt: Arc::default(), dev: None };
    let why = run(&loaded, &o, &runner, &journal, &Log::off()).unwrap_err().to_string();
    assert!(why.ends_with("t.sct:0: a.dat has 8191 bytes, less than a record of 8192"), "{why}");
    // One byte more, and the trial begins.
    std::fs::write(dir.path().join("a.dat"), vec![7; 8192]).unwrap();
    let why = run(&loaded, &o, &runner, &journal, &Log::off()).unwrap_err().to_string();
    assert!(why.starts_with("cannot start /nowhere/cold"), "{why}");
}

#[test]
fn every_mean_has_to_repeat() {
    assert!(repeats(&[Some(100.0), Some(3.0)], &[Some(96.0), Some(3.0)], 0.05));
    assert!(!repeats(&[Some(100.0), Some(3.0)], &[Some(96.0), Some(3.3)], 0.05));
    assert!(!repeats(&[None], &[None], 0.05));
    assert!(repeats(&[Some(0.0)], &[Some(0.0)], 0.05));
}
