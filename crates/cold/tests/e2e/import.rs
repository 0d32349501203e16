//! Windows' own evidence: made-up files of every form, imported and reported.

use std::collections::BTreeMap;
use std::fs;

use cold_windows::pf::Version;
use cold_windows::{etl, pf, text};
use serde_json::Value;

use crate::support::*;

#[test]
fn an_event_trace_becomes_a_recording_that_every_report_reads() {
    let place = Sandbox::new();
    for (pointer, compress) in [(4, false), (8, true)] {
        let name = format!("{pointer}.etl");
        fs::write(place.path(&name), etl::sample::small(pointer, compress)).unwrap();
        let recording = format!("{pointer}.cold");
        let told = place.cold(["import", "etl", &name, "-o", &recording]).run().expect(0).stdout;
        assert!(told.contains("found        1 hard fault, 1 disk read"), "{told}");
        assert!(
            told.contains("start        app.exe (process 77): 1 hard fault, 101 µs waited, 16.0 KiB read"),
            "{told}"
        );
        let again = place.cold(["import", "etl", &name, "-o", &recording]).run().expect(2).stderr;
        assert!(again.contains("exists") && again.contains("--overwrite"), "{again}");
        place.cold(["import", "etl", &name, "-o", &recording, "--overwrite", "-p", "APP"]).run().expect(0);

        let report = place.cold(["report", &recording]).run().expect(0).stdout;
        for said in
            ["waited for storage 101 µs", "needed unknown; read 16.0 KiB", "/Device/HarddiskVolume1/app.exe"]
        {
            assert!(report.contains(said), "{said}: {report}");
        }
        // Nothing of Linux is advised.
        assert!(!report.contains("read_ahead") && !report.contains("What would help"), "{report}");
        // The cluster of the fault is what the start needs at most.
        let asked = ["simulate", &recording, "--disk", "hdd", "--policy", "windows,nothing"];
        let simulated = place.cold(asked).run().expect(0).stdout;
        assert!(
            simulated.contains("windows: today") && simulated.contains("which page a hard fault wanted"),
            "{simulated}"
        );
        let rows = simulated_rows(&place, &asked);
        assert_eq!(rows["nothing"], (5, 5 * 4096), "page by page; its 16 KiB begin at 0x1400");
        let json: Value =
            serde_json::from_str(&place.cold(["report", &recording, "--json"]).run().expect(0).stdout)
                .unwrap();
        assert_eq!(json["headline"]["tier"], "IMPORTED");
        assert_eq!(json["files"][0]["read"], 16_384);
        let page = format!("{pointer}.html");
        place
            .cold(["report", &recording, "--html", &page, "--svg", "a.svg", "--perfetto", "a.pftrace"])
            .run()
            .expect(0);
        assert!(fs::read_to_string(place.path(&page)).unwrap().contains("app.exe"));
    }
    let listed = place.cold(["import", "etl", "8.etl", "--list"]).run().expect(0).stdout;
    assert!(listed.contains(" 77            1  101 µs      1  16.0 KiB  in it  app.exe"), "{listed}");
    let other = place.cold(["import", "etl", "8.etl", "-p", "other"]).run().expect(2).stderr;
    assert!(other.contains("no process of the trace is other: it has app.exe (77)"), "{other}");
    let compared = place.cold(["report", "4.cold", "8.cold"]).run().expect(0).stdout;
    assert!(compared.contains("time to ready") && compared.contains("16.0 KiB"), "{compared}");
}

/// Requests and bytes of each policy, of one disk.
fn simulated_rows(place: &Sandbox, asked: &[&str]) -> BTreeMap<String, (u64, u64)> {
    let asked: Vec<&str> = asked.iter().copied().chain(["--json"]).collect();
    let json = place.cold(asked).run().expect(0).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    let rows = json["disks"][0]["rows"].as_array().unwrap();
    let figure = |row: &Value, name: &str| row[name].as_u64().unwrap();
    let row = |row: &Value| {
        let name = row["policy"].as_str().unwrap().to_owned();
        (name, (figure(row, "requests"), figure(row, "read_bytes")))
    };
    rows.iter().map(row).collect()
}

#[test]
fn what_is_no_trace_or_cut_off_is_told() {
    let place = Sandbox::new();
    fs::write(
        place.path("no.etl"),
        "this is no trace, and it is long enough for a header of 72 bytes, as those have",
    )
    .unwrap();
    let told = place.cold(["import", "etl", "no.etl"]).run().expect(1).stderr;
    assert!(told.contains("no.etl is no event trace that can be read"), "{told}");
    let whole = etl::sample::small(8, false);
    fs::write(place.path("cut.etl"), &whole[..whole.len() - 100]).unwrap();
    let cut = place.cold(["import", "etl", "cut.etl", "--list"]).run().expect(0);
    assert!(
        cut.stdout.contains("1 damaged buffers") && cut.stderr.contains("left out"),
        "{}{}",
        cut.stdout,
        cut.stderr
    );
    rustix::fs::mknodat(
        rustix::fs::CWD,
        place.path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    assert!(place.cold(["import", "etl", "pipe"]).run().expect(1).stderr.contains("FIFO"));
}

/// A directory with a file of each version, one of no version, and others.
fn prefetch_files(place: &Sandbox) {
    fs::create_dir_all(place.path("Prefetch/sub")).unwrap();
    for (n, version) in Version::ALL.into_iter().enumerate() {
        let p = pf::sample::small(version);
        let bytes = if n % 2 == 0 { pf::sample::write(&p) } else { pf::sample::packed(&p, n == 3) };
        let directory = if n == 5 { "Prefetch/sub" } else { "Prefetch" };
        fs::write(place.path(&format!("{directory}/{n}.{}", if n == 2 { "PF" } else { "pf" })), bytes)
            .unwrap();
    }
    fs::write(place.path("Prefetch/bad.pf"), b"MAM\x04\xff\xff\xff\xff").unwrap();
    fs::write(place.path("Prefetch/Layout.ini"), b"[OptimalLayoutFile]").unwrap();
}

#[test]
fn a_directory_of_prefetch_files_is_summed_up_and_a_bad_one_is_one_line() {
    let place = Sandbox::new();
    prefetch_files(&place);
    let ran =
        place.cold(["import", "pf", "Prefetch", "--csv", "a.csv", "--timeline", "t.csv"]).run().expect(1);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("bad.pf") && ran.stdout.contains("1 of 7 files could not be read"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("6 prefetch files: they need 96.0 KiB of the 144 KiB"), "{}", ran.stdout);
    assert!(ran.stdout.contains("in 18 runs of 5.33 KiB on average"), "{}", ran.stdout);

    let csv = fs::read_to_string(place.path("a.csv")).unwrap();
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(rows.len(), 8);
    let head: Vec<&str> = rows[0].split(',').collect();
    assert_eq!((head.len(), head[0], head[26], head[27]), (41, "Note", "ParsingError", "VersionNumber"));
    // An empty slot stays where it is.
    let runs = "2017-09-16 01:46:40,2017-05-23 08:00:00,,2017-01-27 14:13:20,,,,";
    assert_eq!(rows.iter().filter(|row| row.contains(runs)).count(), 4, "{csv}");
    assert!(rows[7].contains("bad.pf") && rows[7].contains(",True,"), "{}", rows[7]);
    let timeline = fs::read_to_string(place.path("t.csv")).unwrap();
    assert_eq!(timeline.lines().count(), 1 + 2 + 3 * 4, "{timeline}");
    assert_eq!(timeline.lines().nth(1), Some("2017-09-16 01:46:40,APP.EXE"));

    let json = place.cold(["import", "pf", "Prefetch", "--json"]).run().expect(1).stdout;
    let json: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(json.len(), 6);
    assert!(
        json.iter().all(|d| d["hashed"]["prefetch_number"] == 2 && d["pages"]["needed"] == 4),
        "{json:?}"
    );
    assert_eq!(json[4]["files"][0]["offset"], serde_json::json!([0, 0x1000, 0x5000, 0x2_0400]));
    assert_eq!(json[0]["pages"]["requests"][1], serde_json::json!({"window": 32768, "requests": 2}));
}

#[test]
fn one_prefetch_file_shows_its_pages_and_becomes_a_recording() {
    let place = Sandbox::new();
    prefetch_files(&place);
    let told =
        place.cold(["import", "pf", "Prefetch/4.pf", "--pages", "-o", "app.cold"]).run().expect(0).stdout;
    for said in [
        "with /prefetch:2",
        "ran 3 times, the last time 2017-09-16 01:46:40 UTC",
        "GRÖSSE.DAT",
        "next: cold report app.cold",
    ] {
        assert!(told.contains(said), "{said}: {told}");
    }
    // The latest launch used all four pages of the program, and one of two of the other file.
    let report = place.cold(["report", "app.cold"]).run().expect(0).stdout;
    assert!(report.contains("needed 24.0 KiB") && report.contains("ready: unknown"), "{report}");
    // Pages 0, 1, 5 and, as it begins within a page, 32 and 33 of the program, whose last known one that is; page 4 of
    // the data, behind which nothing is known.
    let asked = ["simulate", "app.cold", "--disk", "hdd", "--policy", "windows,nothing,aligned:2"];
    let rows = simulated_rows(&place, &asked);
    assert_eq!(rows["nothing"], (6, 6 * 4096));
    assert_eq!(rows["aligned:2"], (4, 7 * 4096), "0 and 1, 4 and 5, 32 and 33, 4 of the data");
    assert_eq!(rows["windows"], (3, 11 * 4096), "0 to 7, 32 and 33, 4 of the data");
    let told = place.cold(asked).run().expect(0).stdout;
    assert!(told.contains("ready at an unknown time") && told.contains("no order within a launch"), "{told}");
    let no_window = place.cold(["simulate", "app.cold", "--read-ahead-kb", "64"]).run().expect(2).stderr;
    assert!(no_window.contains("only Linux has windows"), "{no_window}");
    let several = place.cold(["import", "pf", "Prefetch", "-o", "all.cold"]).run().expect(2).stderr;
    assert!(several.contains("one prefetch file"), "{several}");
    assert!(!place.path("all.cold").exists());
}

#[test]
fn a_prefetch_file_becomes_a_plan_for_the_files_of_a_tree_whatever_their_case() {
    let place = Sandbox::new();
    prefetch_files(&place);
    fs::create_dir_all(place.path("drive_c/App")).unwrap();
    let program = place.path("drive_c/App/app.exe");
    fs::copy(place.subject(), &program).unwrap();
    let size = fs::metadata(&program).unwrap().len();
    assert!(size > 0x2_2000, "the sample's pages lie in it");
    let import = ["prefetch", "--store", "plans", "import", "Prefetch/4.pf"];
    place.cold(import).run().expect(2);
    place
        .cold(["prefetch", "--store", "plans", "import", "Prefetch/0.pf", "--root", "Prefetch"])
        .run()
        .expect(2);
    let told = place
        .cold(["prefetch", "--store", "plans", "import", "Prefetch/4.pf", "--root", "drive_c"])
        .run()
        .expect(0);
    assert!(told.stdout.contains("app.exe") && told.stdout.contains("1 file left out"), "{}", told.stdout);
    assert!(told.stderr.contains("another volume"), "{}", told.stderr);
    let show =
        place.cold(["prefetch", "--store", "plans", "show", "app.exe", "--json"]).run().expect(0).stdout;
    let plan: Value = serde_json::from_str(&show).unwrap();
    // Pages 0, 1 and 5, and the gap between them; the one at 128 KiB is not prefetched.
    assert_eq!(plan["bytes"], 6 * PAGE, "{plan:#}");
    // It is the plan of that program's starts.
    place.cold(["launch", "--store", "plans", "--", program.to_str().unwrap(), "exit", "0"]).run();
    place.cold(["prefetch", "--store", "plans", "verify", "app.exe"]).run().expect(0);
}

#[test]
fn a_trace_in_text_is_the_same_start() {
    let place = Sandbox::new();
    let bytes = etl::sample::small(8, false);
    let evidence = etl::gather(etl::Trace::open(bytes.as_slice()).unwrap()).unwrap().evidence;
    let rows = text::sample::dumper(&evidence, true);
    fs::write(place.path("a.etl"), &bytes).unwrap();
    fs::write(place.path("a.csv"), text::sample::utf16(&rows)).unwrap();
    place.cold(["import", "etl", "a.etl", "-o", "etl.cold"]).run().expect(0);
    place.cold(["import", "csv", "a.csv", "-o", "csv.cold"]).run().expect(0);
    let tables = |name: &str| {
        place.cold(["report", &format!("{name}.cold"), "--csv", name]).run().expect(0);
        ["stalls", "touches", "fills", "device_reads", "transfers", "files", "mappings"]
            .map(|table| fs::read_to_string(place.path(&format!("{name}/{table}.csv"))).unwrap())
    };
    assert_eq!(tables("etl"), tables("csv"));

    let table = "Wer;Wieviel;Wo;Bis (ms);Lange (ms)\napp.exe (77);8.192;4.096;20,5;5\nkaputt;1;2;3;4\n";
    fs::write(place.path("t.csv"), table).unwrap();
    let unmapped = place.cold(["import", "csv", "t.csv"]).run().expect(1).stderr;
    assert!(unmapped.contains("--map process=TITLE"), "{unmapped}");
    let map = ["process=Wer", "size=Wieviel", "file-offset=Wo", "end=Bis (ms)", "took=Lange (ms)"];
    let flags = map.iter().flat_map(|m| ["--map", m]);
    let told = place.cold(["import", "csv", "t.csv"].into_iter().chain(flags)).run().expect(0);
    assert!(told.stdout.contains("1 hard fault, 5.00 ms waited"), "{}", told.stdout);
    assert!(told.stderr.contains("1 row of 2 could not be read; the first in line 3"), "{}", told.stderr);
    place.cold(["import", "csv", "t.csv", "--map", "nothing=x"]).run().expect(2);

    fs::write(
        place.path("Layout.ini"),
        text::sample::utf16("[OptimalLayoutFile]\r\nVersion=1\r\nC:\\GRÖSSE\r\n"),
    )
    .unwrap();
    assert_eq!(place.cold(["import", "layout-ini", "Layout.ini"]).run().expect(0).stdout, "C:\\GRÖSSE\n");
    place.cold(["import", "layout-ini", "t.csv"]).run().expect(1);
}

#[test]
fn a_directory_without_prefetch_files_is_no_success() {
    let place = Sandbox::new();
    fs::create_dir(place.path("empty")).unwrap();
    fs::write(place.path("empty/a.txt"), "x").unwrap();
    let told = place.cold(["import", "pf", "empty"]).run().expect(1).stderr;
    assert!(told.contains("no prefetch file (*.pf) in empty"), "{told}");
}
