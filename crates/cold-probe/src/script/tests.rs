use super::*;
use crate::variate::Normal;

fn at(text: &str) -> PathBuf {
    PathBuf::from(text)
}

/// The samples of the Response Probe's documentation: does nothing; one record a hundred times past the
/// cache; computing over 4 MB of code; and the one of version 2.3.
const SAMPLES: [&str; 4] = [
    "THINKTIME 0  0 (milliseconds)\nCYCLEREADS 0  0 (number)\nFILESEEK 0 0 (records)\nCPUTIME 0 0 (milliseconds)\nDATAPAGE 0 0 (pages)\nCODEPAGE 0 0 (pages)\nFILEACCESS access.dat (name)\n",
    "THINKTIME 0 0 (milliseconds)\nCYCLEREADS 100 0 (number)\nFILESEEK 0 0 (records)\nCPUTIME 0 0 (milliseconds)\nDATAPAGE 0 0 (pages)\nCODEPAGE 0 0 (pages)\nFILEACCESS access.dat (name)\nRECORDSIZE 1024 (default: 4096 bytes)\nFILEATTRIBUTE RANDOM (R | S)\nFILEACCESSMODE UNBUFFERED (B | U | M)\nFILEACTIO R (read/write pattern)\n",
    "THINKTIME 0 0\nCYCLEREADS 0 0\nFILESEEK 0 0\nCPUTIME 1000 0\nDATAPAGE 0 0\nCODEPAGE 512 170\nFILEACCESS access.dat\n",
    "THINKTIME 0 0\nCPUTIME 0 0\nCYCLEREADS 100 30\nFILESEEK 0 0\nDATAPAGE 0 0\nFUNCTION 500 0\nFILEACCESS workfile.dat\nFILEATTRIBUTE SEQUENTIAL\nFILEACCESSMODE UNBUFFER\nRECORDSIZE 2048\nFILEACTION R\n",
];

#[test]
fn the_documented_scripts_are_read_as_documented() {
    let path = at("X.SCR");
    let text = "# two lines\nPROCESS  LikeMine.scp 500 SomeCode.dat MyProg.exe H\nREPEAT 3 PROCESS  LikeHis.scp 300 OtherCod.dat HisProg.exe N\n";
    let found = script(&path, text).unwrap();
    let (mine, his) = (&found[0], &found[1]);
    assert_eq!((mine.repeat, mine.file.as_str(), mine.data_pages), (1, "LikeMine.scp", 500));
    assert_eq!((mine.code_file.as_deref(), mine.name.as_deref()), (Some("SomeCode.dat"), Some("MyProg.exe")));
    assert_eq!((mine.class, his.class, his.repeat, his.line), (Some('H'), Some('N'), 3, 3));
    // From 2.1 on there is no code page file.
    let newer = script(&path, "process a.scp 1 word.exe realtime").unwrap();
    assert_eq!(
        (newer[0].code_file.as_deref(), newer[0].name.as_deref(), newer[0].class),
        (None, Some("word.exe"), Some('R'))
    );

    let threads =
        process(&at("X.SCP"), "REPEAT 5 THREAD a.sct T\nTHREAD b.sct\nthread c.sct abovenormal").unwrap();
    assert_eq!((threads[0].repeat, threads[0].priority.as_deref()), (5, Some("TimeCritical")));
    assert_eq!((threads[1].priority.as_deref(), threads[2].priority.as_deref()), (None, Some("AboveNormal")));

    let [nothing, direct, compute, newest] = SAMPLES.map(|s| thread(&at("X.SCT"), s).unwrap());
    assert_eq!((nothing.mode, nothing.record, nothing.sequential), (Mode::BUFFERED, 4096, false));
    assert_eq!((nothing.action.as_slice(), nothing.reads.mean), (&[Act::R][..], 0.0));
    assert_eq!((direct.mode, direct.record, direct.reads.mean), (Mode::Direct, 1024, 100.0));
    assert_eq!((compute.cpu.mean, compute.code), (1000.0, Normal { mean: 512.0, sd: 170.0 }));
    assert_eq!(
        (newest.reads, newest.sequential, newest.code.mean),
        (Normal { mean: 100.0, sd: 30.0 }, true, 500.0)
    );
    let pattern = format!("{}FILEACTION RRWRR", SAMPLES[0]);
    assert_eq!(thread(&at("X.SCT"), &pattern).unwrap().action, [Act::R, Act::R, Act::W, Act::R, Act::R]);
}

#[test]
fn a_mistake_has_its_line_and_its_reason() {
    let scr = |t: &str| script(&at("A.SCR"), t).unwrap_err();
    let scp = |t: &str| process(&at("A.SCP"), t).unwrap_err();
    let sct = |t: &str| thread(&at("A.SCT"), &format!("{}{t}", SAMPLES[0])).unwrap_err();
    for (mistake, line, why) in [
        (scr(""), 0, "no PROCESS"),
        (scr("\n\nPROCES a.scp 1"), 3, "\"PROCES\" is not known"),
        (scr("PROCESS a.scp"), 1, "number of data pages"),
        (scr("PROCESS a.scp -5"), 1, "\"-5\""),
        (scr("PROCESS a.scp 99999999999"), 1, "whole number up to"),
        (scr("PROCESS a.scp 1 c.dat x.exe Q"), 1, "no priority class"),
        (scr("PROCESS a.scp 1 c.dat x.exe H more"), 1, "too many"),
        (scr("REPEAT 0 PROCESS a.scp 1"), 1, "0 repetitions"),
        (scr("REPEAT 200 PROCESS a.scp 1\nREPEAT 200 PROCESS a.scp 1"), 2, "more than 256"),
        (scr("REPEAT"), 1, "number of repetitions"),
        (scp("THREAD"), 1, "a .SCT file"),
        (scp("THREAD a.sct Urgent"), 1, "\"Urgent\" is no priority"),
        (sct("RECORDSIZE 0"), 8, "at least 1 byte"),
        (sct("RECORDSIZE 1.5"), 8, "whole number"),
        (sct("RECORDSIZE 99999999"), 8, "up to 16777216"),
        (sct("FILEACTION RXW"), 8, "'X'"),
        (sct("FILEACCESSMODE CACHED"), 8, "MAPPED, BUFFERED, UNBUFFERED"),
        (sct("FILEACCESSMODE UNBUFFERED\nRECORDSIZE 1000"), 9, "sector"),
        (sct("THINKTIME 1 1"), 8, "second time"),
        (sct("SPEED 9"), 8, "no keyword"),
        (sct("RECORDSIZE 512 512"), 8, "too many"),
        (thread(&at("A.SCT"), "THINKTIME nan 0").unwrap_err(), 1, "\"nan\""),
        (thread(&at("A.SCT"), "THINKTIME 1").unwrap_err(), 1, "standard deviation"),
        (thread(&at("A.SCT"), "THINKTIME 1 0").unwrap_err(), 0, "CYCLEREADS"),
    ] {
        assert_eq!(mistake.line, line, "{mistake}");
        assert!(mistake.why.contains(why), "{mistake} does not say {why:?}");
    }
}

#[test]
fn priorities_become_nice_values() {
    for (class, priority, expected) in [
        (None, None, 0),
        (Some('N'), Some("Normal"), 0),
        (Some('N'), Some("AboveNormal"), -3),
        (Some('N'), Some("Lowest"), 6),
        (Some('N'), Some("Idle"), 19),
        (Some('N'), Some("TimeCritical"), -20),
        (Some('I'), None, 12),
        (Some('H'), None, -15),
        (Some('H'), Some("BelowNormal"), -12),
        (Some('R'), Some("Idle"), -20),
    ] {
        assert_eq!(nice(class, priority), expected, "{class:?} {priority:?}");
    }
}

#[test]
fn a_script_is_loaded_with_its_files_in_any_case() {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    put("main.scr", "PROCESS ONE.SCP 10 none.dat\n");
    put("one.scp", "THREAD two.SCT\n");
    put("TWO.sct", SAMPLES[0]);
    let loaded = load(&dir.path().join("main.scr")).unwrap();
    assert_eq!(loaded.processes[0].1[0].1.access, "access.dat");
    put("one.scp", "THREAD two.SCT\nTHREAD missing.sct\n");
    let why = load(&dir.path().join("main.scr")).unwrap_err().to_string();
    assert!(why.contains("one.scp:2:") && why.contains("missing.sct"), "{why}");
}

#[test]
fn no_bytes_make_it_panic() {
    let mut rng = cold_stats::Pcg::new(1, 1);
    let words = [
        "PROCESS",
        "REPEAT",
        "THREAD",
        "FILEACTION",
        "RECORDSIZE",
        "9",
        "-1",
        "é",
        "#",
        "\n",
        " ",
        "(",
        "1e300",
        "R",
    ];
    for _ in 0..20_000 {
        let text: String = (0..rng.below(12)).flat_map(|_| [words[rng.below(14) as usize], " "]).collect();
        let _ = (script(&at("a"), &text), process(&at("b"), &text), thread(&at("c"), &text));
    }
}

#[test]
fn names_are_found_below_directories_of_another_system_and_exactly_where_both_are_there() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    for name in ["sub/One.SCP", "two.sct", "TWO.SCT"] {
        std::fs::write(dir.path().join(name), "").unwrap();
    }
    let found = |name: &str| find(dir.path(), name).strip_prefix(dir.path()).unwrap().to_owned();
    assert_eq!(found("sub\\one.scp"), at("sub/One.SCP"));
    assert_eq!((found("TWO.SCT"), found("two.sct")), (at("TWO.SCT"), at("two.sct")));
    // What is not there keeps its name, for the message.
    assert_eq!((found("None.sct"), found("none\\x.sct")), (at("None.sct"), at("none/x.sct")));
}

#[test]
fn a_script_that_is_too_large_is_refused_and_one_that_is_no_text_has_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("main.scr");
    let why = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        load(&path).unwrap_err().to_string()
    };
    let large = why(&vec![b'#'; (LARGEST + 1) as usize]);
    assert!(large.ends_with("main.scr:0: it has 1048577 bytes; a script has at most 1048576"), "{large}");
    assert!(why(&vec![b'#'; LARGEST as usize]).ends_with("it names no PROCESS"));
    let binary = why(b"# fine\n\xff\xfe\0 1");
    assert!(binary.contains("main.scr:2: ") && binary.contains("is not known here"), "{binary}");
    assert!(load(dir.path()).unwrap_err().to_string().contains("directory"));
}

#[test]
fn a_row_of_the_table_has_milliseconds_and_a_dash_for_what_did_not_happen() {
    let ran = |report: crate::worker::ThreadReport| Ran {
        place: (2, 3),
        script: ThreadScript {
            reads: Normal { mean: 100.0, sd: 2.5 },
            ..thread(&at("X.SCT"), SAMPLES[3]).unwrap()
        },
        nice: 0,
        report,
    };
    let nothing = crate::worker::ThreadReport { ns: 1_500_000, ..Default::default() };
    let mut cycles = cold_stats::Histogram::default();
    cycles.add(2_000_000);
    cycles.add(4_000_000);
    let two = crate::worker::ThreadReport { cycles: cycles.closed(), ..nothing.clone() };
    let rows = table(&[ran(nothing), ran(two)]);
    assert_eq!((rows.len(), rows.iter().all(|r| r.len() == 21)), (4, true));
    assert_eq!(rows[2][..11], ["2", "3", "S U", "2048", "1.500", "-", "0", "-", "-", "-", "-"]);
    // Two responses of 2 and 4 ms: 6 ms in all, a deviation of the square root of 2.
    assert_eq!(rows[3][4..11], ["1.500", "6.000", "2", "3.000", "1.414", "2.000", "4.000"]);
    assert_eq!(rows[3][13..15], ["100", "2.5"]);
}
