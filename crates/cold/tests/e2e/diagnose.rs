//! `cold diagnose`: whether the cause that a start was given comes out on top, and whether every moment has a reason.

use std::fs;

use cold_model::recording::manifest::{FORMAT, VERSION};
use cold_model::recording::{OffCpuReason, StallCause, Thread};
use cold_model::sample;
use serde_json::Value;

use crate::ready::free_port;
use crate::support::*;

/// A recorded start of 100 ms, of which 60 wait for a page of /data.
fn stored(place: &Sandbox, name: &str) {
    let mut r = sample::empty();
    (r.manifest.format, r.manifest.version) = (FORMAT.to_owned(), VERSION);
    r.manifest.ready = Some(cold_model::Known::Value(sample::ms(100)));
    let file = r.file("/data", 100 * 4096);
    let first = r.processes[0].pid;
    r.threads = vec![Thread {
        began: sample::ms(0),
        tid: first,
        pid: first,
        name: "prog".into(),
        in_tree: true,
        ended: None,
    }];
    r.off_cpu(20, 60, first, OffCpuReason::Storage);
    let stall = r.stall(20, 60, StallCause::Fault);
    (stall.file, stall.pid, stall.tid) = (Some(file), first, first);
    cold_recording::write(&place.path(name), &r).unwrap();
}

/// The sum of the reasons is the recorded start, of the cold one and of the warm one.
fn sums(told: &Value) {
    for (column, total) in [("cold", "recorded_cold"), ("warm", "recorded_warm")] {
        let rows = told["reasons"].as_array().unwrap_or_else(|| panic!("{told}"));
        let Some(total) = told[total].as_u64() else { continue };
        let sum: u64 = rows.iter().map(|r| r[column].as_u64().unwrap_or_else(|| panic!("{r}"))).sum();
        assert_eq!(sum, total, "{column} of {told}");
    }
    // Piece by piece it is the same start.
    let path = &told["path"];
    let of = |piece: &Value, name: &str| piece[name].as_u64().unwrap_or_else(|| panic!("{piece}"));
    let mut at = of(path, "start");
    let mut sums = std::collections::BTreeMap::<&str, u64>::new();
    for piece in path["pieces"].as_array().unwrap_or_else(|| panic!("{told}")) {
        assert_eq!(of(piece, "from"), at, "{piece}");
        at = of(piece, "to");
        *sums.entry(piece["kind"].as_str().unwrap()).or_default() += at - of(piece, "from");
    }
    assert_eq!(at, of(path, "until"), "{path}");
    for row in told["reasons"].as_array().unwrap() {
        assert_eq!(sums.remove(row["kind"].as_str().unwrap()).unwrap_or(0), of(row, "cold"), "{row}");
    }
    assert!(sums.is_empty(), "{sums:?} are no rows");
}

#[test]
fn anybody_can_ask_a_recording_and_nothing_is_tried() {
    let place = Sandbox::for_all();
    stored(&place, "r.cold");
    let told = place.cold(["diagnose", "r.cold", "--json"]).run().expect(0).json();
    assert_eq!(told["schema"], "coldstart.diagnosis/1");
    assert_eq!(told["recorded_cold"], 100_000_000, "{told}");
    sums(&told);
    let most = told["reasons"].as_array().unwrap().iter().max_by_key(|r| r["cold"].as_u64()).unwrap();
    assert_eq!((&most["kind"], &most["cold"]), (&Value::from("disk_fault"), &Value::from(60_000_000)));
    assert_eq!(most["files"][0][0], "/data", "{most}");
    assert!(most["warm"]["unknown"].is_string(), "never 0: {most}");
    assert!(told["steps"][0]["skipped"].is_string(), "{told}");

    let files = ["--html", "a.html", "--markdown", "a.md"];
    let text = place.cold(["diagnose", "r.cold"].iter().chain(&files)).run().expect(0).stdout;
    assert!(text.contains("waited for the disk: pages of mapped files"), "{text}");
    assert!(text.contains("not done: "), "{text}");
    assert!(fs::read_to_string(place.path("a.html")).unwrap().contains("What the words mean"));
    assert!(fs::read_to_string(place.path("a.md")).unwrap().contains("| why | cold | warm |"));
}

#[test]
fn wrong_usage_is_told() {
    let place = Sandbox::for_all();
    place.cold(["diagnose"]).run().expect(2);
    place.cold(["diagnose", "r.cold", "--", "true"]).run().expect(2);
    place.cold(["diagnose", "r.cold", "--apply"]).run().expect(2);
    place.cold(["diagnose", "--for", "soon", "--", "true"]).run().expect(2);
    place.cold(["diagnose", "--", "there-is-no-such-program"]).run().expect(2);
    place.cold(["diagnose", "no.cold"]).run().expect(1);
}

mod root {
    use cold_testbed::need_root;

    use super::*;

    fn diagnosed(place: &Sandbox, more: &[&str], command: &[&str]) -> Value {
        let args = ["diagnose", "--evict", "files", "--for", "4s", "--json"];
        place.cold(args.iter().chain(more).chain(&["--"]).chain(command)).run().finished().json()
    }

    /// The time of a group of reasons in the recorded cold start, ns.
    fn time(told: &Value, kinds: &[&str]) -> u64 {
        let rows = told["reasons"].as_array().unwrap_or_else(|| panic!("{told}"));
        let of = rows.iter().filter(|r| r["kind"].as_str().is_some_and(|kind| kinds.contains(&kind)));
        of.filter_map(|r| r["cold"].as_u64()).sum()
    }

    const DISK: [&str; 7] =
        ["disk_fault", "disk_read", "disk_lookup", "disk_exec", "disk_write", "disk_other", "reading"];

    #[test]
    fn a_file_that_is_read_from_a_slow_disk_is_the_reason_and_a_plan_the_remedy() {
        if !need_root() {
            return;
        }
        let _machine = together();
        let place = Sandbox::new();
        // So far apart and in such an order that each page is a request of its own.
        place.file("data", 48 * MIB);
        let pages: Vec<String> = (0..300).map(|i| (i * 7919 % 12_000).to_string()).collect();
        attempts(|| {
            let told = diagnosed(
                &place,
                &[],
                &[&place.subject(), "touch-mapped", &place.text("data"), &pages.join(",")],
            );
            sums(&told);
            let (disk, all) = (time(&told, &DISK), told["recorded_cold"].as_u64().unwrap());
            // Beside a program that computes it waits for a CPU instead, and others may empty the cache before the warm one.
            check(disk * 2 > all, || format!("{disk} of {all}: {told}"))?;
            let rows = told["reasons"].as_array().unwrap();
            let faults = rows.iter().find(|r| r["kind"] == "disk_fault").unwrap_or_else(|| panic!("{told}"));
            assert!(faults["files"][0][0].as_str().is_some_and(|p| p.ends_with("/data")), "{faults}");
            check(faults["warm"].as_u64().is_some_and(|warm| warm * 10 < disk), || faults.to_string())?;
            let plan = told["remedies"].as_array().unwrap().iter().find(|r| r["id"] == "prefetch_plan");
            let plan = plan.unwrap_or_else(|| panic!("{told}"));
            assert!(plan["predicted"].as_u64().is_some_and(|t| t > 0), "{plan}");
            // The service is offered where its plan brings what is felt, and promises no more than that brought.
            let saved = plan["measured"]["saves"].as_i64().unwrap_or(0).max(0);
            let service = told["remedies"].as_array().unwrap().iter().find(|r| r["id"] == "service");
            check(service.is_some() && service.and_then(|r| r["predicted"].as_i64()) == Some(saved), || {
                format!("{service:?} for {saved}: {told}")
            })?;
            // In a busy moment a plan that is tried may seem to harm.
            check(told["outcome"] != "nothing_worth_doing", || told.to_string())
        });
        assert!(place.temporary().is_empty(), "{:?}", place.temporary());
    }

    #[test]
    fn what_only_the_first_answer_needs_is_told_apart_and_in_the_plan() {
        if !need_root() {
            return;
        }
        let _machine = together();
        let place = Sandbox::new();
        place.file("data", 24 * MIB);
        // Ready at once; only the answer reads the file, piece by piece from its end, so that no read-ahead hides the
        // waits: read from its beginning it is waited for 0.7 to 3 ms, and one page of another file was once 1.4 ms.
        let server = "
import http.server, os, sys
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        data = os.open(sys.argv[2], os.O_RDONLY)
        os.posix_fadvise(data, 0, 0, os.POSIX_FADV_RANDOM)
        pieces = range(os.fstat(data).st_size - 65536, -1, -65536)
        size = sum(len(os.pread(data, 65536, at)) for at in pieces)
        os.close(data)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'%d' % size)
    def log_message(self, *_): pass
http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Page).serve_forever()
";
        let data = place.text("data");
        attempts(|| {
            let port = free_port();
            let url = format!("http://127.0.0.1:{port}/");
            let command = ["/usr/bin/python3", "-S", "-c", server, &port, &data];
            let told = diagnosed(&place, &["--first-request", &url], &command);
            sums(&told);
            let parts = &told["first_request"];
            for part in ["serving", "answer"] {
                let warm = &parts[part]["warm"];
                // On a busy machine none may count.
                let why = warm["unknown"].as_str().is_some_and(|why| why.contains("no warm start counts"));
                assert!(why || warm["median"].as_u64().is_some_and(|t| t > 0), "{told}");
            }
            let rows = told["reasons"].as_array().unwrap();
            let reads = rows.iter().find(|r| r["kind"] == "disk_read").unwrap_or_else(|| panic!("{told}"));
            let (all, answering) = (reads["cold"].as_u64().unwrap(), reads["answering"].as_u64().unwrap());
            assert!(reads["files"][0][0].as_str().is_some_and(|p| p.ends_with("/data")), "{reads}");
            // Nothing reads it before; what the interpreter reads to get ready is no part of the answer.
            let of_file = reads["files"][0][1].as_u64().unwrap();
            assert!(of_file > 0 && (of_file..all).contains(&answering), "for the answer: {reads}");
            let plan = told["remedies"].as_array().unwrap().iter().find(|r| r["id"] == "prefetch_plan");
            let why = plan.and_then(|p| p["why"].as_str()).unwrap_or_else(|| panic!("{told}"));
            let read =
                why.split("The plan reads ").nth(1).and_then(|t| t.split(' ').next()?.parse::<f64>().ok());
            check(read.is_some_and(|mib| mib >= 24.0), || why.to_owned())
        });
        assert_eq!(place.processes(), [] as [String; 0]);
    }

    #[test]
    fn a_wait_for_another_program_is_the_reason_and_no_plan_its_remedy() {
        if !need_root() {
            return;
        }
        let _machine = together();
        let place = Sandbox::new();
        // Somebody else answers after 300 ms.
        let socket = place.text("socket");
        let server = "
import socket, sys, time
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(64); print('serves', flush=True)
while True:
    c, _ = s.accept(); time.sleep(0.3); c.close()";
        let _server = Other::start("/usr/bin/python3", &["-c", server, &socket], "serves");
        let client =
            "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.recv(1)";
        // Where others have the processors, part of the 300 ms is over before the client gets to wait.
        attempts(|| {
            let told = diagnosed(&place, &[], &["/usr/bin/python3", "-S", "-c", client, &socket]);
            sums(&told);
            let (waits, all) =
                (time(&told, &["outside", "lock", "sleep"]), told["recorded_cold"].as_u64().unwrap());
            check(waits >= 290_000_000 && waits < all, || format!("{waits} of {all}: {told}"))?;
            assert_eq!(told["remedies"][0]["id"], "waits_for_others", "{told}");
            assert!(told["remedies"][0]["why"].as_str().is_some_and(|w| w.contains("recv")), "{told}");
            Ok(())
        });
    }

    #[test]
    fn of_a_program_that_only_computes_nothing_is_worth_doing() {
        if !need_root() {
            return;
        }
        let _machine = together();
        let place = Sandbox::new();
        let script = place.script("computes", "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done");
        // On a busy machine a cold start waits for a CPU now and then, which another start does not.
        attempts(|| {
            let told = diagnosed(&place, &[], &[&script]);
            sums(&told);
            let (own, all) = (time(&told, &["program", "runnable"]), told["recorded_cold"].as_u64().unwrap());
            assert!(own * 2 > all, "{own} of {all}: {told}");
            check(told["outcome"] == "nothing_worth_doing", || told.to_string())
        });
    }

    /// Place of a remedy in the list.
    fn rank(told: &Value, ids: &[&str]) -> Option<usize> {
        let remedies = told["remedies"].as_array().unwrap_or_else(|| panic!("{told}"));
        remedies.iter().position(|r| ids.iter().any(|id| r["id"] == *id))
    }

    fn compile(place: &Sandbox, source: &str, name: &str, more: &[&str]) {
        let file = place.path("source.c");
        fs::write(&file, source).unwrap();
        let output = place.text(name);
        run("cc", &[&["-O0", "-o", &output, file.to_str().unwrap()], more].concat());
    }

    #[test]
    fn libraries_that_are_searched_in_120_directories_are_the_reason_and_fewer_the_remedy() {
        if !need_root() {
            return;
        }
        let _machine = together();
        let place = Sandbox::new();
        let directories: Vec<String> = (0..120).map(|n| place.text(&format!("d{n}"))).collect();
        for d in &directories {
            fs::create_dir(d).unwrap();
        }
        let mut main = "int main(void) { return 0".to_owned();
        let mut flags = vec!["-Wl,--no-as-needed".to_owned(), format!("-L{}", directories[119])];
        for n in 0..20 {
            compile(
                &place,
                &format!("int f{n}(void) {{ return 0; }}"),
                &format!("d119/libseed{n}.so"),
                &["-shared", "-fPIC"],
            );
            main = format!("int f{n}(void); {main} + f{n}()");
            flags.push(format!("-lseed{n}"));
        }
        compile(&place, &(main + "; }"), "searcher", &flags.iter().map(String::as_str).collect::<Vec<_>>());
        // On a busy machine a cold start also waits for a CPU, and a plan seems to be worth more than the search.
        attempts(|| {
            let args =
                ["diagnose", "--evict", "files", "--for", "4s", "--json", "--", &place.text("searcher")];
            let told = place.cold(args).env("LD_LIBRARY_PATH", directories.join(":")).run().finished().json();
            sums(&told);
            // 20 libraries are missed in 119 directories, and the first in the subdirectories of each as well: 5 ms. (In
            // 39 it was 1.8 ms on a fast machine: what is shorter than 2 nobody feels.)
            let rows = told["reasons"].as_array().unwrap();
            let missed =
                rows.iter().find(|r| r["kind"] == "lookup_missed").unwrap_or_else(|| panic!("{told}"));
            let by_time = |kind: &str| time(&told, &[kind]);
            let found = by_time("lookup_missed");
            assert!(found > by_time("program") && found > by_time("lookup_found"), "{missed}: {told}");
            assert_ne!(told["outcome"], "nothing_worth_doing", "{told}");
            let fewer = rank(&told, &["too_many_lookups", "lookups_by_pattern"]);
            check(fewer.is_some_and(|at| at < 2), || format!("{fewer:?}: {told}"))
        });
    }

    #[test]
    fn relocations_are_the_loaders_work_and_packed_ones_the_remedy() {
        if !need_root() {
            return;
        }
        let _machine = together();
        let place = Sandbox::new();
        let entries: Vec<String> = (0..300_000).map(|n| format!("a+{}", n % 4096)).collect();
        let source = format!(
            "static char a[4096]; char *t[] = {{{}}}; int main(int c, char **v) {{ return t[c] == 0; }}",
            entries.join(",")
        );
        compile(&place, &source, "relocated", &["-pie", "-fPIE", "-Wl,-z,nopack-relative-relocs"]);
        // Times of one recorded start: on a busy machine the loader may be held up for milliseconds.
        attempts(|| {
            let told = diagnosed(&place, &[], &[&place.text("relocated")]);
            sums(&told);
            let (loader, program) = (time(&told, &["loader"]), time(&told, &["program"]));
            check(loader > 4 * program && loader > 1_000_000, || format!("{loader} and {program}: {told}"))?;
            let relr = rank(&told, &["relr"]).unwrap_or_else(|| panic!("{told}"));
            let saves = told["remedies"][relr]["predicted"].as_u64().unwrap();
            // Three quarters of what is read are relocations: the most of the waits for the disk, and no more than these
            // (each with its wait for a CPU behind it). Of the loader's CPU time it says nothing.
            let (disk, runnable) = (time(&told, &DISK), time(&told, &["runnable"]));
            check(saves * 4 > disk && saves <= disk + runnable, || {
                format!("{saves} of {disk} and {runnable}: {told}")
            })
        });
    }

    #[test]
    fn who_keeps_a_program_warm_is_named() {
        if !need_root() {
            return;
        }
        let _machine = together();
        let place = Sandbox::new();
        // The same program runs on, and maps what a start would have to read.
        let data = place.file("data", 4 * MIB);
        let words = ["hold", data.to_str().unwrap()];
        let _holder = Other::start(&place.subject(), &words, "holding");
        let told =
            diagnosed(&place, &[], &[&place.subject(), "touch-mapped", data.to_str().unwrap(), "0-1023"]);
        let cold = told["cold"]["unknown"].as_str().unwrap_or_else(|| panic!("{told}"));
        assert!(cold.contains("stayed cached (held by cold-subject["), "{cold}");
        let disturbing = told["disturbing"].to_string();
        assert!(disturbing.contains("runs already: pid"), "{disturbing}");
    }
}
