//! Names that somebody else chose: of processes, files, directories. No output of `cold` obeys them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::*;

/// A process with a forged line and a colour in its name, which holds a file whose name has them, too.
const HOLDER: &str = "
import ctypes, mmap, sys, time
ctypes.CDLL(None).prctl(15, b'a\\n99\\x1b[31m\\tx', 0, 0, 0)
f = open(sys.argv[1], 'rb'); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
sum(m[i] for i in range(0, len(m), 4096))
print('holds', flush=True); time.sleep(600)";

/// Every line is one of ours: nothing that moves the cursor, and nothing forged.
fn clean(ran: &Ran) {
    for text in [&ran.stdout, &ran.stderr] {
        for line in text.lines() {
            let hostile = line.chars().find(|c| cold_model::text::is_hostile(*c));
            assert_eq!(hostile, None, "{line:?} of {text}");
            assert!(!line.starts_with("99") && !line.starts_with("forged"), "{line:?} of {text}");
        }
    }
}

#[test]
fn names_of_processes_and_files_neither_forge_lines_nor_reach_the_terminal() {
    let _machine = together();
    let place = Sandbox::new();
    let file = place.file("data\nforged \u{1b}[2J\u{9b}8m\u{202e}", 8 * PAGE as usize);
    let path = file.to_str().unwrap();
    let _holder = Other::start("/usr/bin/python3", &["-c", HOLDER, path], "holds");
    let who = place.cold(["cache", "who", path]).run().expect(0);
    clean(&who);
    assert!(who.stdout.contains("a\\n99\\x1b[31m\\tx["), "{}", who.stdout);
    assert!(who.stdout.contains("data\\nforged \\x1b[2J\\x9b8m\\u{202e}"), "{}", who.stdout);
    clean(&place.cold(["cache", "show", "--map", path]).run().expect(0));
    clean(&place.cold(["cache", "show", &place.text("")]).run().expect(0));
    clean(&place.cold(["cache", "evict", path]).run());
    clean(&place.cold(["cache", "show", &format!("{path}\nforged")]).run());
    // A program with such a name, and such an argument.
    let program = place.text("prog\nforged\u{1b}[1m");
    fs::copy(place.subject(), &program).unwrap();
    sync(Path::new(&program));
    let read = [program.as_str(), "touch-mapped", path, "0,2"];
    let doctor = place.cold(["doctor", "--"].into_iter().chain(read)).run().expect(0);
    clean(&doctor);
    let bench =
        ["bench", "--evict", "files", "--idle-gap", "20", "--runs", "2", "--states", "cold,warm", "-n"];
    let line = read.map(|w| format!("'{w}'")).join(" ");
    clean(&place.cold(bench.into_iter().chain(["name\nforged\u{1b}[1m", &line])).run());
    clean(&place.cold(bench.into_iter().take(9).chain([line.as_str()])).run());
    let trace = ["trace", "--evict", "files", "-o", "r.cold", "--"];
    let traced = place.cold(trace.into_iter().chain(read)).run();
    clean(&traced);
    assert!(place.path("r.cold").exists(), "{}", traced.stderr);
    clean(&place.cold(["report", "r.cold"]).run().expect(0));
}

#[test]
fn roots_temporary_files_lie_in_no_directory_of_a_user() {
    cold_testbed::needs_root!();
    let _machine = together();
    let _settings = exactly();
    let place = Sandbox::new();
    let theirs = place.path("tmp");
    assert!(Command::new("chown").arg("65534:65534").arg(&theirs).status().unwrap().success());
    let (script, log) = (place.text("look"), place.text("log"));
    place.script("look", &format!("ls -A {} >> {log}; echo looked >> {log}", theirs.display()));
    let bench = ["--states", "cold,warm", "--runs", "2", &script];
    place.bench(bench).run().finished();
    place.cold(["trace", "--exact-need", "--evict", "files", "-o", "r.cold", "--", &script]).run();
    let seen = place.lines("log");
    assert!(seen.len() > 4 && seen.iter().all(|line| line == "looked"), "{seen:?}");
}
