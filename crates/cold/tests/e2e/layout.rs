//! `cold layout`: traces, what is refused, and orders that linkers follow.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::support::*;
use crate::user::root::as_nobody;

/// A program whose functions lie in the reverse of the order in which it enters them.
const SOURCE: &str = r#"
#include <unistd.h>
#define FN(name) __attribute__((noinline)) void name(void) { __asm__ volatile("" ::: "memory"); }
FN(fifth) FN(fourth) FN(never) FN(third) FN(second) FN(first)
int main(int argc, char **argv) {
    first(); second(); third();
    if (argc > 1) fourth(); else fifth();
    if (argc > 2) never();
    return write(1, "done\n", 5) == 5 ? 0 : 1;
}
"#;

fn compile(place: &Sandbox, name: &str, flags: &[&str]) -> Option<PathBuf> {
    let (source, out) = (place.path("it.c"), place.path(name));
    fs::write(&source, SOURCE).unwrap();
    let mut cc = Command::new("gcc");
    cc.args(["-O1", "-ffunction-sections"])
        .arg("-o")
        .arg(&out)
        .arg(&source)
        .args(flags)
        .stderr(Stdio::null());
    cold_testbed::need(cc.status().is_ok_and(|s| s.success()), "gcc").then_some(out)
}

/// The program's own functions in the order of their addresses, as nm has it.
fn by_address(program: &Path) -> Vec<String> {
    let out = Command::new("nm").arg("-n").arg(program).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let own = ["first", "second", "third", "fourth", "fifth", "never", "main"];
    text.lines().filter_map(|l| l.split(' ').nth(2)).filter(|n| own.contains(n)).map(str::to_owned).collect()
}

#[test]
fn a_traced_order_is_what_the_linker_makes_of_it() {
    let place = Sandbox::new();
    let Some(program) = compile(&place, "it", &["-fuse-ld=gold"]) else { return };
    let (program, out) = (program.to_str().unwrap(), place.text("order"));
    assert_eq!(by_address(Path::new(program))[..3], ["fifth", "fourth", "never"]);
    let trace = |scenario: &str, args: &[&str]| {
        let dir = format!("{scenario}.order");
        let own = ["layout", "trace", "--scenario", scenario, "-r", "2", "-o", &dir, "--", program];
        let ran = place.cold(own.iter().chain(args)).run().expect(0);
        assert_eq!(ran.stdout, "done\ndone\n", "the program's own output, and nothing else");
        assert!(
            ran.stderr.contains("functions entered by 1 process") && ran.stderr.contains("at most"),
            "{}",
            ran.stderr
        );
    };
    trace("short", &[]);
    trace("long", &["x"]);
    let args = ["layout", "order", "short.order", "long.order", "--format", "gold", "-o", &out, "--json"];
    let told = place.cold(args).run().expect(0).json();
    assert_eq!(told["schema"], "coldstart.layout-order/1");
    assert_eq!(told["scenarios"][1]["functions"], told["scenarios"][1]["in_order"]);
    assert_eq!(told["scenarios"][0]["missing"], 0);
    let link = format!("-Wl,--section-ordering-file={out}");
    let linked = compile(&place, "ordered", &["-fuse-ld=gold", &link]).unwrap();
    let mut placed = by_address(&linked);
    // gold places what the file does not name first.
    placed.retain(|name| name != "never");
    assert_eq!(placed, ["main", "first", "second", "third", "fifth", "fourth"], "{placed:?}");
    // The same for a build whose addresses are others, found by name; and a start that the order has not seen.
    let linked = linked.to_str().unwrap();
    let args =
        ["layout", "order", "short.order", "long.order", "--hold-out", "long", "--binary", linked, "--json"];
    let told = place.cold(args).run().expect(0).json();
    let held = &told["held_out"];
    assert!(held["by_name"].as_u64() > Some(5) && held["missing"] == 0, "{told}");
    assert_eq!(held["functions"].as_u64().unwrap() - held["in_order"].as_u64().unwrap(), 1, "fourth: {told}");
    let refused = |args: &[&str], why: &[&str]| {
        let said = place.cold(["layout", "order", "short.order"].iter().chain(args)).run().expect(2).stderr;
        assert!(why.iter().all(|part| said.contains(part)), "{said}");
    };
    refused(&["--hold-out", "short"], &["the only scenario is held out"]);
    refused(&["--file", "libnone.so"], &["no such file", program, "libc.so.6"]);
}

#[test]
fn a_rust_program_is_linked_in_its_order_by_lld() {
    let place = Sandbox::new();
    let source = place.script(
        "it.rs",
        "#[inline(never)] #[unsafe(no_mangle)] fn zz_first() { std::hint::black_box(1); }\n\
        #[inline(never)] #[unsafe(no_mangle)] fn aa_second() { std::hint::black_box(2); }\n\
        fn main() { zz_first(); aa_second(); }\n",
    );
    let build = |name: &str, extra: &[&str]| {
        let out = place.text(name);
        let mut rustc = Command::new("rustc");
        rustc.args([
            "-O",
            "--edition",
            "2024",
            "-C",
            "codegen-units=1",
            "-C",
            "link-arg=-fuse-ld=lld",
            &source,
            "-o",
            &out,
        ]);
        rustc.args(extra).stderr(Stdio::null());
        cold_testbed::need(rustc.status().is_ok_and(|s| s.success()), "rustc with lld").then_some(out)
    };
    let Some(program) = build("plain", &[]) else { return };
    place.cold(["layout", "trace", "-o", "it.order", "--", &program]).run().expect(0);
    let order = place.text("order.txt");
    place.cold(["layout", "order", "it.order", "-o", &order]).run().expect(0);
    let names: Vec<String> = fs::read_to_string(&order).unwrap().lines().map(str::to_owned).collect();
    let at = |name: &str| names.iter().position(|n| n == name).unwrap();
    assert!(at("_start") < at("zz_first") && at("zz_first") < at("aa_second"), "{names:?}");
    let link = format!("link-arg=-Wl,--symbol-ordering-file={order}");
    let ordered = build("ordered", &["-C", &link, "-C", "link-arg=-Wl,--no-warn-symbol-ordering"]).unwrap();
    let out = Command::new("nm").arg("-n").arg(&ordered).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let address = |name: &str| text.lines().position(|l| l.ends_with(&format!(" {name}"))).unwrap();
    assert!(address("zz_first") < address("aa_second"));
}

/// Of a program that is stripped of some names the other functions can be placed; the figures say so.
#[test]
fn functions_without_a_name_are_in_no_order() {
    let place = Sandbox::new();
    let list = place.text("list");
    fs::write(&list, "{ main; first; third; fifth; };\n").unwrap();
    // Dynamic symbols stay. `second` has none.
    let Some(whole) = compile(&place, "whole", &[&format!("-Wl,--dynamic-list={list}")]) else { return };
    let program = place.text("stripped");
    assert!(Command::new("strip").args(["-s", "-o", &program]).arg(&whole).status().unwrap().success());
    place.cold(["layout", "trace", "-r", "1", "-o", "s.order", "--", &program]).run().expect(0);
    let ran = place.cold(["layout", "order", "s.order", "--json", "-o", "s.txt"]).run().expect(0);
    let made: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let names = fs::read_to_string(place.path("s.txt")).unwrap();
    let lines = names.lines().count() as u64;
    assert!(names.contains("first\nthird\nfifth\n"), "{names}");
    assert!(made["unnamed"].as_u64().unwrap() > 0, "{made}");
    assert_eq!(
        (made["ordered"].as_u64(), made["scenarios"][0]["in_order"].as_u64()),
        (Some(lines), Some(lines))
    );
    let ran = place.cold(["layout", "order", "s.order"]).run().expect(0);
    assert!(ran.stderr.contains("have no name"), "{}", ran.stderr);
}

#[test]
fn what_cannot_be_traced_is_refused_with_the_reason() {
    let place = Sandbox::new();
    let (source, bare) = (place.text("bare.c"), place.text("bare"));
    fs::write(&source, "void _start(void) { __asm__ volatile(\"hlt\"); }\n").unwrap();
    let flags = ["-nostdlib", "-static", "-fno-asynchronous-unwind-tables", "-s", "-o", &bare, &source];
    let made = Command::new("gcc").args(flags).stderr(Stdio::null()).status();
    if !cold_testbed::need(made.is_ok_and(|s| s.success()), "gcc") {
        return;
    }
    let trace = |command: &[&str]| place.cold(["layout", "trace", "--"].iter().chain(command)).run();
    let ran = trace(&[&bare]).expect(1);
    assert!(ran.stderr.contains("neither symbols nor unwind tables"), "{}", ran.stderr);
    // Go's linker has such a section, and no unwind tables.
    fs::write(&source, "__attribute__((section(\".gopclntab\"))) int table = 1;\nvoid _start(void) {}\n")
        .unwrap();
    assert!(Command::new("gcc").args(flags).status().unwrap().success());
    assert!(
        trace(&[&bare]).expect(1).stderr.contains("Go's linker describes functions by a table of its own")
    );
    assert!(trace(&["no-such-program"]).expect(1).stderr.contains("not found in PATH"));
    let ran = trace(&["sh", "-c", "exit 7"]).expect(1);
    assert!(ran.stderr.contains("exit code 7") && ran.stderr.contains("--ignore-failure"), "{}", ran.stderr);
    assert!(!place.path("sh.order").exists());
    place.cold(["layout", "trace", "-i", "-r", "1", "--", "sh", "-c", "exit 7"]).run().expect(0);
    let again = ["layout", "trace", "-r", "1", "-o", "sh.order", "--", "true"];
    assert!(place.cold(again).run().expect(2).stderr.contains("--overwrite"));
    assert!(place.cold(["layout", "order", "bare"]).run().expect(1).stderr.contains("order.json"));
}

#[test]
fn a_program_that_checks_its_code_is_told_what_to_exclude() {
    let place = Sandbox::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/entries/order.c");
    let program = place.text("order");
    let made = Command::new("gcc")
        .args(["-O1", "-pthread", "-o", &program])
        .arg(source)
        .stderr(Stdio::null())
        .status();
    if !cold_testbed::need(made.is_ok_and(|s| s.success()), "gcc") {
        return;
    }
    let ran = place.cold(["layout", "trace", "--", &program, "copies"]).run().expect(1);
    assert!(
        ran.stderr.contains("it executed a copy of") && ran.stderr.contains("--exclude 'order:"),
        "{}",
        ran.stderr
    );
    let args = ["layout", "trace", "-r", "1", "--exclude", "order:in_child", "--", &program, "copies"];
    assert_eq!(place.cold(args).run().expect(0).stdout, "ran a copy\n");
}

/// The release of `cold` is linked by an order that is kept in the repository: as the code changes, names in it die.
/// This build has other hashes in its names, and functions that a release inlines.
#[test]
fn the_order_of_colds_own_starts_is_of_functions_that_it_has() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("starts.order");
    let order = cold_layout::read::order(&fs::read_to_string(kept).unwrap());
    let path = Path::new(env!("CARGO_BIN_EXE_cold"));
    let (file, meta) = cold_sys::open::regular(path, true).unwrap();
    let own = cold_symbols::functions(file, meta, path, &cold_symbols::Options::default()).unwrap();
    let own = cold_layout::functions::traced(own, path);
    let resolver = cold_layout::resolve::Resolver::new(&own.functions);
    let mut count = cold_layout::resolve::Resolved::default();
    let functions = order.functions();
    let stale: Vec<&str> = functions
        .iter()
        .filter(|f| resolver.find(f, &mut count).is_empty())
        .map(|f| f.names[0].as_str())
        .collect();
    eprintln!("{} of {} names are stale", count.missing, count.all());
    assert!(count.all() > 1000, "{count:?}");
    assert!(count.missing * 5 < count.all(), "make order: {count:?}, such as {:?}", &stale[..20]);
}

#[test]
fn a_killed_tracer_leaves_no_program_behind() {
    let place = Sandbox::new();
    let pid = place.text("pid");
    let script = format!("echo $$ > {pid}.new; mv {pid}.new {pid}; while :; do sleep 0.05; done");
    let running = place.cold(["layout", "trace", "-o", "x.order", "--", "sh", "-c", &script]).start();
    cold_testbed::until("the program runs", || Path::new(&pid).exists().then_some(()));
    let program = fs::read_to_string(&pid).unwrap().trim().to_owned();
    running.kill(Signal::KILL);
    cold_testbed::until("the program is gone", || {
        (!Path::new("/proc").join(&program).exists()).then_some(())
    });
    assert!(!place.path("x.order").exists());
}

mod root {
    use super::*;

    #[test]
    fn an_ordinary_user_traces_and_set_user_id_is_refused() {
        if !cold_testbed::need_root() {
            return;
        }
        let place = Sandbox::for_all();
        let Some(program) = compile(&place, "it", &[]) else { return };
        fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let (program, dir) = (program.to_str().unwrap(), place.path("home").join("it.order"));
        let dir = dir.to_str().unwrap().to_owned();
        let ran = as_nobody(&place, &["layout", "trace", "-o", &dir, "--", program]).run().expect(0);
        assert_eq!(ran.stdout, "done\ndone\ndone\n");
        let told = as_nobody(&place, &["layout", "order", &dir, "--json"]).run().expect(0).json();
        assert!(told["ordered"].as_u64() > Some(5), "{told}");
        fs::set_permissions(program, PermissionsExt::from_mode(0o4755)).unwrap();
        let ran = as_nobody(&place, &["layout", "trace", "-o", "none.order", "--", program]).run().expect(1);
        assert!(ran.stderr.contains("set-user-ID"), "{}", ran.stderr);
    }
}
