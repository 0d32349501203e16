//! `cold probe`: counts against the disk's own log, limits that hold, scripts, endings.

use std::fs::{self, File};
use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::support::*;

/// Everything in a directory, without the names that were there before.
fn files(place: &Sandbox) -> Vec<PathBuf> {
    let all = fs::read_dir(place.path("tmp")).unwrap();
    all.map(|e| e.unwrap().path()).collect()
}

fn probe(place: &Sandbox, args: &[&str]) -> Cold {
    let dir = place.text("tmp");
    place.cold([&["probe"], args, &["--dir", &dir]].concat())
}

#[test]
fn every_experiment_that_needs_no_root_runs_and_leaves_nothing() {
    let place = Sandbox::new();
    let quick: [&[&str]; 8] = [
        &["table", "--count", "16", "--repeat", "2"],
        &["ramp", "--seconds", "0.5", "--interval", "50"],
        &["small", "--seconds", "0.5", "--interval", "50"],
        &["records", "--bytes", "1Mi", "--seconds", "0.05"],
        &["exec"],
        &["large-pages", "--bytes", "4Mi", "--repeat", "1"],
        &["prefetch", "--bytes", "1Mi"],
        &["device", "--bytes", "8Mi"],
    ];
    for args in quick {
        attempts(|| {
            let ran = probe(&place, &[args, &["--json"]].concat()).run();
            check(ran.code() != 5, || ran.stderr.clone())?;
            let found = ran.expect(0).json();
            assert_eq!(found["format"], "coldstart-probe");
            assert_eq!(found["experiment"], args[0]);
            assert!(!found["result"].is_null());
            Ok(())
        });
        attempts(|| {
            let ran = probe(&place, args).run();
            check(ran.code() != 5, || ran.stderr.clone())?;
            let text = ran.expect(0).stdout;
            // The first line says where and on what, and may be long; tables are not.
            assert!(text.lines().filter(|l| l.contains("  ")).all(|l| l.chars().count() <= 220), "{text}");
            Ok(())
        });
    }
    assert_eq!(files(&place), [] as [PathBuf; 0]);
}

#[test]
fn pauses_stop_the_command_itself_and_too_few_lengths_tell_no_law() {
    let place = Sandbox::new();
    let pauses = ["pauses", "--repeat", "1", "--pause", "0.1,2", "--every", "1"];
    // It computes for some milliseconds, and its child does, too.
    let loops = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
    let both = format!("{loops}; sh -c '{loops}'");
    let run = |command: &[&str]| {
        let dir = place.text("tmp");
        place.cold([&["probe"], &pauses[..], &["--dir", &dir, "--json", "--"], command].concat()).run()
    };
    let result = run(&["sh", "-c", &both]).expect(0).json()["result"].clone();
    assert_eq!(result["command"], json!(["sh", "-c", both]));
    let rows = result["found"]["rows"].as_array().unwrap();
    assert_eq!(rows.iter().map(|r| &r["pause_ns"]).collect::<Vec<_>>(), [&json!(100_000), &json!(2_000_000)]);
    for row in rows {
        assert!(row["pauses"].as_f64().unwrap() >= 2.0, "{row}");
        assert!(row["paused_ns"].as_f64().unwrap() >= row["pause_ns"].as_f64().unwrap(), "{row}");
        assert!(row["cpu_ns"].as_f64().unwrap() > 2e6, "{row}");
    }
    assert!(result["found"]["cooling"]["unknown"].is_string(), "{result}");
    let failed = run(&["false"]).expect(1).stderr;
    assert!(failed.contains("did not end with success"), "{failed}");
    assert!(run(&["/nowhere/at/all"]).expect(1).stderr.contains("execute /nowhere/at/all: No such file"));
}

#[test]
fn a_table_ends_with_the_answer_in_words_and_the_json_with_what_proves_it() {
    let place = Sandbox::new();
    let read = ["table", "--order", "sequential", "--action", "read"];
    attempts(|| {
        let ran = probe(&place, &[&read[..], &["--repeat", "6", "--json"]].concat()).run();
        check(ran.code() != 5, || ran.stderr.clone())?;
        let result = ran.expect(0).json()["result"].clone();
        assert_eq!((&result["rounds"], &result["interrupted"]), (&json!(6), &json!(false)));
        assert!(
            result["rows"].as_array().unwrap().iter().all(|r| r["rounds_ms"].as_array().unwrap().len() == 6)
        );
        let answers = result["answers"].as_array().unwrap();
        let states: Vec<_> = answers.iter().map(|a| a["state"].as_str().unwrap()).collect();
        assert_eq!(states, ["cold", "warm"]);
        for a in answers {
            let others = a["others"].as_array().unwrap();
            let slower = |o: &Value| o["comparison"]["interval"]["low"].as_f64().unwrap() > 1.0;
            assert!(others.iter().all(|o| slower(o) == (o["verdict"] == "slower")), "{a}");
            assert_eq!(a["proved"], json!(others.iter().all(slower)), "{a}");
        }
        // A request for each page can be hidden by nothing: the other ways make a handful.
        let direct = answers[0]["others"].as_array().unwrap().iter().find(|o| o["mode"] == "direct");
        check(direct.is_some_and(|o| o["verdict"] == "slower"), || format!("{}", answers[0]))
    });
    attempts(|| {
        let ran = probe(&place, &[&read[..], &["--repeat", "6"]].concat()).run();
        check(ran.code() != 5, || ran.stderr.clone())?;
        let text = ran.expect(0).stdout;
        let (_, answer) = text.split_once("\nThe answer, over 6 rounds\n").expect("it ends with the answer");
        for state in ["Cold: ", "Warm: "] {
            let line = answer.lines().find_map(|l| l.strip_prefix(state)).expect(answer);
            let words = ["map it", "read it", "no difference proved"];
            assert!(words.iter().any(|w| line.starts_with(&format!("{w} for sequential read ("))), "{line}");
            assert!(line.contains("× [") && line.contains(" … "), "an interval stands behind it: {line}");
        }
        Ok(())
    });
    attempts(|| {
        let ran = probe(&place, &[&read[..], &["--repeat", "1", "--state", "warm"]].concat()).run();
        check(ran.code() != 5, || ran.stderr.clone())?;
        let text = ran.expect(0).stdout;
        assert!(
            text.contains("Warm: too few rounds (one has no interval: --repeat 10) for sequential read."),
            "{text}"
        );
        assert!(!text.contains("Cold: "), "{text}");
        Ok(())
    });
}

#[test]
fn large_pages_are_judged_by_intervals_and_what_is_refused_says_why() {
    let place = Sandbox::new();
    attempts(|| {
        let ran = probe(&place, &["large-pages", "--bytes", "4Mi", "--repeat", "6", "--json"]).run();
        check(ran.code() != 5, || ran.stderr.clone())?;
        let result = ran.expect(0).json()["result"].clone();
        let found = &result["found"];
        assert_eq!((&found["rounds"], &found["interrupted"]), (&json!(6), &json!(false)));
        let rows = found["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 40);
        for r in rows {
            let (seen, refused) = (!r["usual"].is_null(), !r["refused"].is_null());
            assert!(seen != refused, "{r:#}");
            assert_eq!(r["cold_ms"].as_array().unwrap().len(), if seen { 6 } else { 0 });
            if refused {
                assert!(!r["refused"]["why"].as_str().unwrap().is_empty(), "{r:#}");
                continue;
            }
            let pages = if r["touches"] == "all" { 4 << 20 } else { 16 * 4096 };
            let cached = r["usual"]["cached_bytes"].as_u64().unwrap();
            assert!(cached <= 4 << 20, "{r:#}");
            // Background reclaim may take pages right after they were touched (seen: 7 of 1024).
            let is_undisturbed = cached >= pages && r["usual"]["warm"]["used"]["major_faults"] == 0;
            check(is_undisturbed, || format!("pages were taken meanwhile: {r:#}"))?;
        }
        // Plain faults read from the disk; each answer follows from its interval and the margin.
        assert!(rows.iter().all(|r| r["way"] != "faults" || r["usual"]["cold"]["used"]["read_bytes"] != 0));
        let margin = result["margin"].as_f64().unwrap();
        let answers = found["answers"].as_array().unwrap();
        assert!(answers.iter().any(|a| a["way"] == "faults_again"), "the control is answered");
        for a in answers {
            let of = |end: &str| a["comparison"]["interval"][end].as_f64().unwrap();
            assert_eq!(a["verdict"] == "faster", of("high") < 1.0 - margin, "{a:#}");
            assert_eq!(a["verdict"] == "slower", of("low") > 1.0 + margin, "{a:#}");
        }
        assert_eq!(found["judgements"].as_array().unwrap().len(), 2);
        Ok(())
    });
    attempts(|| {
        let ran = probe(&place, &["large-pages", "--bytes", "4Mi", "--repeat", "1"]).run();
        check(ran.code() != 5, || ran.stderr.clone())?;
        let text = ran.expect(0).stdout;
        let (_, verdict) = text.split_once("\nThe verdict, over 1 round\n").expect(&text);
        assert!(
            verdict.contains("Code: MADV_HUGEPAGE where huge pages fit proves nothing here"),
            "{verdict}"
        );
        assert!(verdict.contains("A plan has nothing to go by"), "{verdict}");
        Ok(())
    });
}

#[test]
fn counters_and_pictures_are_written_in_the_forms_that_are_asked_for() {
    let place = Sandbox::new();
    let (csv, parquet, svg, html) =
        (place.text("a.csv"), place.text("a.parquet"), place.text("a.svg"), place.text("a.html"));
    let short = ["ramp", "--seconds", "0.6", "--interval", "50"];
    attempts(|| {
        let ran = probe(&place, &[&short[..], &["--log", &csv, "--svg", &svg]].concat()).run();
        check(ran.code() != 5, || ran.stderr.clone())?;
        ran.expect(0);
        let ran = probe(&place, &[&short[..], &["--log", &parquet, "--html", &html]].concat()).run();
        check(ran.code() != 5, || ran.stderr.clone())?;
        ran.expect(0);
        Ok(())
    });
    let text = fs::read_to_string(csv).unwrap();
    assert!(text.starts_with("at_ms,phase,subject,counter,value\n"), "{text}");
    for wanted in ["available_bytes", ",file ramp,cached_bytes", "working_set_file_bytes", "missed_share"] {
        assert!(text.contains(wanted), "{wanted} is not in the log");
    }
    assert_eq!(&fs::read(parquet).unwrap()[..4], b"PAR1");
    assert!(fs::read_to_string(svg).unwrap().contains("</svg>"));
    assert!(fs::read_to_string(html).unwrap().contains("Hits"));
    let wrong = probe(&place, &["exec", "--log", "x.txt"]).run().expect(2);
    assert!(wrong.error().contains(".parquet"), "{}", wrong.stderr);
}

const SAMPLE: &str = "THINKTIME 0 0 (milliseconds)\nCYCLEREADS 100 30 (number)\nFILESEEK 128 42 (records)\n\
    CPUTIME 0 0 (milliseconds)\nDATAPAGE 0 0 (pages)\nCODEPAGE 0 0 (pages)\nFILEACCESS access.dat (name)\n";

#[test]
fn a_script_prints_its_columns_and_writes_no_file_that_is_not_given_up() {
    let place = Sandbox::new();
    let put = |name: &str, text: &str| fs::write(place.path(name), text).unwrap();
    put("mail.scr", "PROCESS mail.scp 10 none.dat\nREPEAT 2 PROCESS mail.scp 10 none.dat mail.exe N\n");
    put("mail.scp", "THREAD mail.sct\n");
    put("mail.sct", SAMPLE);
    let (script, out) = (place.text("mail.scr"), place.text("mail.out"));
    let ran = probe(&place, &["script", &script, "--seconds", "0.4", "--out", &out]).run().expect(0);
    assert!(ran.stdout.contains("Resp") && ran.stdout.contains("SDev"), "{}", ran.stdout);
    let rows: Vec<Vec<String>> = fs::read_to_string(&out)
        .unwrap()
        .lines()
        .map(|l| l.split('\t').map(str::to_owned).collect())
        .collect();
    assert_eq!((rows.len(), rows[0].len()), (5, 21));
    assert_eq!((rows[2][2].as_str(), rows[2][3].as_str(), rows[4][0].as_str()), ("R B", "4096", "3"));
    assert!(rows[2][6].parse::<u64>().unwrap() > 0, "{rows:?}");
    assert!(!place.path("access.dat").exists());

    put("mail.sct", &format!("{SAMPLE}FILEACTION W\n"));
    let precious = vec![7_u8; 1 << 20];
    fs::write(place.path("access.dat"), &precious).unwrap();
    let refused = probe(&place, &["script", &script, "--seconds", "0.2"]).run().expect(1);
    assert!(refused.error().contains("--destroy"), "{}", refused.stderr);
    assert!(fs::read(place.path("access.dat")).unwrap() == precious, "it was written");
    let given = place.text("access.dat");
    place.cold(["probe", "script", &script, "--seconds", "0.2", "--destroy", &given]).run().expect(0);
    assert!(fs::read(place.path("access.dat")).unwrap() != precious, "it was not used");

    put("mail.sct", &format!("{SAMPLE}FILEACTION RXW\n"));
    let wrong = probe(&place, &["script", &script]).run().expect(2);
    assert!(wrong.error().contains("mail.sct:8:") && wrong.error().contains("'X'"), "{}", wrong.stderr);
}

/// The processes that `cold` started, when there are at least so many.
fn children(pid: Pid, least: usize) -> Vec<Pid> {
    until("the workers run", || {
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", pid.as_raw_nonzero()));
        let pids =
            children.ok()?.split_whitespace().map(|p| Pid::from_raw(p.parse().unwrap()).unwrap()).collect();
        Some(pids).filter(|pids: &Vec<Pid>| pids.len() >= least)
    })
}

/// Ends an experiment that would last by a signal; nothing of it may be left.
fn ends_without_a_trace(args: &[&str], processes: usize, signal: Signal, whole_group: bool) {
    let place = Sandbox::new();
    let started = probe(&place, args).start_as_job();
    let pid = started.pid();
    let children = children(pid, processes);
    if whole_group {
        kill_process_group(pid, signal).unwrap();
    } else {
        started.kill(signal);
    }
    let code = started.end().code();
    // A signal that can be caught ends `cold` in order; the second of both is what the shell says of SIGKILL.
    assert!([130, 128 + signal.as_raw()].contains(&code), "{args:?} {signal:?}: {code}");
    // Not every machine's first process buries the dead at once.
    let gone = |pid: &Pid| match fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())) {
        Ok(stat) => stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X'])),
        Err(_) => true,
    };
    until("its processes are gone", || children.iter().all(gone).then_some(()));
    until("its group is gone", || cgroups(pid).is_empty().then_some(()));
    assert_eq!(files(&place), [] as [PathBuf; 0]);
}

#[test]
fn interrupts_and_kill_9_leave_nothing() {
    for (signal, whole_group) in
        [(Signal::INT, true), (Signal::INT, false), (Signal::TERM, false), (Signal::KILL, false)]
    {
        ends_without_a_trace(&["ramp", "--seconds", "600"], 1, signal, whole_group);
        ends_without_a_trace(&["large-pages", "--repeat", "1000"], 1, signal, whole_group);
    }
}

#[test]
fn priorities_of_a_script_are_nice_values_of_its_threads() {
    let place = Sandbox::new();
    fs::write(place.path("mail.scr"), "PROCESS mail.scp 10 none.dat mail.exe Idle\n").unwrap();
    fs::write(place.path("mail.scp"), "THREAD mail.sct\nTHREAD mail.sct BelowNormal\n").unwrap();
    fs::write(place.path("mail.sct"), SAMPLE).unwrap();
    let script = place.text("mail.scr");
    let started = probe(&place, &["script", &script, "--seconds", "600"]).start_as_job();
    let worker = children(started.pid(), 1)[0].as_raw_nonzero();
    until("its threads have their values", || {
        let mut found: Vec<i32> = fs::read_dir(format!("/proc/{worker}/task"))
            .ok()?
            .filter_map(|task| {
                let stat = fs::read_to_string(task.ok()?.path().join("stat")).ok()?;
                // Behind the name come the fields from the third on; nice is the nineteenth.
                stat.rsplit_once(')')?.1.split_whitespace().nth(16)?.parse().ok()
            })
            .filter(|nice| *nice != 0)
            .collect();
        found.sort_unstable();
        (found == [12, 15]).then_some(())
    });
    started.kill(Signal::INT);
    started.end().expect(130);
    let ran = probe(&place, &["script", &script, "--seconds", "0.2"]).run().expect(0);
    assert!(ran.stdout.contains("process 1, thread 2: its priority is nice 15"), "{}", ran.stdout);
    let longer = ["script", &script, "--seconds", "0.05", "--until-it-repeats", "--json"];
    let found = probe(&place, &longer).run().expect(0).json();
    let seconds = found["result"]["seconds"].as_f64().unwrap();
    assert!((0.1..=3.2).contains(&seconds) && found["result"]["repeats"].is_boolean(), "{found:#}");
}

mod root {
    use cold_model::Bytes;
    use cold_sys::extents::extents;
    use cold_testbed::disk::{Op, Preset, Request};
    use cold_testbed::{SlowDisk, need_root, needs_root};
    use serde_json::Value;

    use super::*;

    #[test]
    fn requests_are_those_of_the_disks_own_log() {
        needs_root!();
        let place = Sandbox::new();
        let disk = SlowDisk::create(Preset::Hdd, Bytes(256 << 20)).unwrap();
        // A file of ours, so that we know its blocks: the file system reads some of its own as well, when
        // it likes (tables of inodes, bitmaps).
        let file = data(disk.mount_point().join("given up"), MIB);
        let blocks = extents(&File::open(&file).unwrap()).unwrap().unwrap();
        let cold = ["probe", "table", "--order", "normal", "--action", "read", "--state", "cold"];
        let more = ["--count", "40", "--repeat", "1", "--json", "--destroy", file.to_str().unwrap()];
        let args = [&cold[..], &more].concat();
        attempts(|| {
            disk.reset_log().unwrap();
            let ran = place.cold(&args).run();
            check(ran.code() != 5, || ran.stderr.clone())?;
            let found = ran.expect(0).json();
            // Nothing but the trials reads these blocks.
            let log = disk.log().unwrap();
            let inside = |r: &&Request| {
                r.op == Op::Read
                    && blocks.iter().any(|b| (b.physical..b.physical + b.bytes).contains(&r.offset))
            };
            let told: Vec<u64> = log.iter().filter(inside).map(|r| r.len.0).collect();
            let rows = found["result"]["rows"].as_array().unwrap().clone();
            let sum = |of: &dyn Fn(&Value) -> u64| rows.iter().map(of).sum::<u64>();
            let requests = sum(&|r| r["device"]["reads"].as_u64().unwrap());
            let bytes = sum(&|r| r["device"]["read_bytes"].as_u64().unwrap());
            check((requests, bytes) == (told.len() as u64, told.iter().sum()), || {
                format!("{requests} requests of {bytes} bytes; the disk has {told:?} of {log:?}")
            })?;
            let of = |mode: &str| rows.iter().find(|r| r["mode"] == mode).unwrap();
            let direct = of("direct");
            check(direct["device"]["reads"] == 40, || format!("{direct:#}"))?;
            let exact = of("exact");
            check(exact["misses"] == exact["device"]["reads"], || format!("{exact:#}"))?;
            let mean = |mode: &str| of(mode)["ms"]["mean"].as_f64().unwrap();
            check(mean("mapped") <= mean("buffered") && mean("buffered") <= mean("direct"), || {
                format!("{rows:#?}")
            })
        });
    }

    /// Bytes that huge entries map of a file in this directory after it was mapped with `MADV_HUGEPAGE` here and
    /// touched, by the kernel's own words; its pages were not cached before.
    fn hugely_mapped(place: &Sandbox, bytes: u64) -> u64 {
        use cold_sys::mapped::{MapAdvice, MapKind, MapPlace, MappedFile};
        let file = File::open(data(place.path("huge"), bytes as usize)).unwrap();
        file.sync_all().unwrap();
        cold_sys::evict::advise_dontneed(&file).unwrap();
        // Where nothing else is, and a huge page fits.
        let at = MapPlace { offset: 0, address: 1 << 45 };
        let map = MappedFile::at(&file, at, bytes, MapKind { exec: true, ..MapKind::default() }).unwrap();
        map.advise(MapAdvice::Huge, 0, bytes).unwrap();
        (0..bytes / 4096).for_each(|page| assert!(map.touch(page * 4096).is_some()));
        let text = fs::read_to_string("/proc/self/smaps").unwrap();
        let (_, own) = text.split_once(&format!("{:x}-", at.address)).unwrap();
        let line = own.lines().find_map(|l| l.strip_prefix("FilePmdMapped:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
    }

    #[test]
    fn folios_and_huge_entries_are_those_that_the_kernel_tells() {
        const BYTES: u64 = 16 << 20;
        if !need_root() || !cold_testbed::need(cfg!(target_arch = "x86_64"), "huge pages of 2 MiB") {
            return;
        }
        let place = Sandbox::new();
        attempts(|| {
            let ran = probe(&place, &["large-pages", "--repeat", "1", "--json"]).run();
            check(ran.code() != 5, || ran.stderr.clone())?;
            let found = ran.expect(0).json()["result"]["found"].clone();
            let rows = found["rows"].as_array().unwrap();
            for r in rows.iter().filter(|r| r["refused"].is_null()) {
                // Two different ways to ask: cachestat, and the flags of each frame.
                let folios = r["usual"]["folios"].as_array().expect("root is told");
                let sum = folios.iter().map(|f| f["bytes"].as_u64().unwrap() * f["count"].as_u64().unwrap());
                check(r["usual"]["cached_bytes"] == sum.sum::<u64>(), || format!("{r:#}"))?;
            }
            let of = |way: &str| {
                let mut all = rows.iter().filter(|r| r["kind"] == "code" && r["touches"] == "all");
                all.find(|r| r["way"] == way).unwrap()["usual"].clone()
            };
            let huge = of("huge");
            let mapped = huge["cold"]["huge_bytes"].as_u64().unwrap();
            let here = hugely_mapped(&place, BYTES);
            check(mapped == here, || format!("{mapped} bytes, here {here}"))?;
            assert_eq!(of("huge_unaligned")["cold"]["huge_bytes"], 0);
            assert_eq!(of("faults")["cold"]["entered"], BYTES / 4096);
            let faults = |seen: &Value| {
                let used = &seen["cold"]["used"];
                used["minor_faults"].as_u64().unwrap() + used["major_faults"].as_u64().unwrap()
            };
            if mapped == BYTES {
                // One for each huge page; one that waited is counted again; and what the code around them takes.
                check((8..=24).contains(&faults(&huge)), || format!("{huge:#}"))?;
                // With a window of 64 KiB, unless folios are larger.
                check(faults(&of("faults")) > 10 * faults(&huge), || format!("{:#}", of("faults")))?;
                let grew = |way: &str| of(way)["cold"]["page_table_bytes"].as_u64().unwrap();
                check(grew("huge") < grew("faults"), || format!("{huge:#}"))?;
            }
            Ok(())
        });
    }

    #[test]
    fn the_memory_limit_holds() {
        needs_root!();
        let place = Sandbox::new();
        let bouts = ["compete", "--spans", "8", "--repeat", "1", "--seconds", "0.2", "--json"];
        attempts(|| {
            let started = probe(&place, &bouts).start();
            let pid = started.pid();
            let ran = started.end();
            check(ran.code() != 5, || ran.stderr.clone())?;
            let found = ran.expect(0).json();
            let found = &found["result"]["found"];
            assert_eq!(found["limit_held"], true);
            let all = found["bouts"].as_array().unwrap();
            assert_eq!(all.len(), 24);
            for b in all.iter().filter(|b| b["span"] == 8) {
                let peak = b["peak"].as_u64().unwrap();
                assert!(((4 << 20)..=(8 << 20)).contains(&peak), "{b:#}");
            }
            assert_eq!(cgroups(pid), [] as [PathBuf; 0]);
            Ok(())
        });
    }

    #[test]
    fn limited_experiments_leave_nothing_when_they_are_ended() {
        needs_root!();
        for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
            // The keeper and both sides; the keeper and one worker.
            ends_without_a_trace(&["compete", "--seconds", "60"], 3, signal, false);
            ends_without_a_trace(&["pressure", "--seconds", "60"], 2, signal, false);
        }
        // Ctrl-C at a terminal reaches all of the group.
        ends_without_a_trace(&["compete", "--seconds", "60"], 3, Signal::INT, true);
    }

    #[test]
    fn an_ordinary_user_measures_and_is_told_what_takes_root() {
        needs_root!();
        let place = Sandbox::for_all();
        let home = place.path("home");
        fs::create_dir(&home).unwrap();
        std::os::unix::fs::chown(&home, Some(65534), Some(65534)).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_cold"), place.path("cold")).unwrap();
        let nobody = |args: &[&str]| {
            let mut found = probe(&place, args).env("HOME", &home).env("XDG_STATE_HOME", home.join("state"));
            found.use_program(&place.path("cold"));
            found.by_nobody().run()
        };
        attempts(|| {
            let ran = nobody(&["table", "--count", "16", "--repeat", "2", "--json"]);
            check(ran.code() != 5, || ran.stderr.clone())?;
            assert_eq!(ran.expect(0).json()["result"]["rows"].as_array().unwrap().len(), 48);
            Ok(())
        });
        attempts(|| {
            let ran = nobody(&["large-pages", "--bytes", "4Mi", "--repeat", "1", "--json"]);
            check(ran.code() != 5, || ran.stderr.clone())?;
            let rows = ran.expect(0).json()["result"]["found"]["rows"].clone();
            let told = rows.as_array().unwrap().iter().filter(|r| !r["usual"]["folios"].is_null()).count();
            assert_eq!(told, 0, "folios are shown to root only");
            Ok(())
        });
        let refused = nobody(&["compete"]).expect(1);
        assert!(refused.error().contains("root"), "{}", refused.stderr);
    }
}
