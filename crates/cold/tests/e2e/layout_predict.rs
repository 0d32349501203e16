//! `cold layout predict`: pages of code under an order, against the program linked with it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::*;

/// Functions of the program; every fifth is entered, in another order than they lie.
const FUNCTIONS: usize = 1200;
const EVERY: usize = 5;

fn source() -> String {
    let mut text = String::from("#include <unistd.h>\nvolatile int kept;\n");
    for n in 0..FUNCTIONS {
        let _ = write!(text, "__attribute__((noinline)) int f{n}(int x) {{ ");
        // About 600 bytes of code each: the order fills some forty pages.
        for i in 1..40 {
            let _ = write!(text, "x = x * {} + {n}; if (x == {i}) kept = x; ", 2 * i + n);
        }
        text.push_str("return x; }\n");
    }
    text.push_str("int main(int argc, char **argv) { int x = argc; ");
    for n in 0..FUNCTIONS / EVERY {
        let _ = write!(text, "x = f{}(x); ", n * EVERY * 31 % FUNCTIONS);
    }
    text.push_str("return write(1, \"done\\n\", 5) != 5; }\n");
    text
}

fn link(source: &Path, out: &Path, flags: &[&str]) -> bool {
    let mut cc = Command::new("gcc");
    cc.args(["-O1", "-ffunction-sections", "-fuse-ld=gold", "-o"]).arg(out).arg(source).args(flags);
    cold_testbed::need(cc.stderr(Stdio::null()).status().is_ok_and(|s| s.success()), "gcc and gold")
}

#[test]
fn a_predicted_order_is_told_with_what_the_link_costs() {
    let place = Sandbox::new();
    let (source_file, program) = (place.path("p.c"), place.path("p"));
    fs::write(&source_file, source()).unwrap();
    if !link(&source_file, &program, &["-Wl,-z,now"]) {
        return;
    }
    let trace = ["layout", "trace", "-r", "1", "-o", "p.order", "--", program.to_str().unwrap()];
    place.cold(trace).run().expect(0);
    let said = place.cold(["layout", "predict", "p.order", "--read-ahead-kb", "128"]).run().expect(0);
    for part in
        ["with a window of 128 KiB", "as it is linked", "in random order", "relocations: ", "at the start"]
    {
        assert!(said.stdout.contains(part), "{part}: {}", said.stdout);
    }
    let words = ["layout", "predict", "p.order", "--json", "--read-ahead-kb", "128"];
    let predicted: serde_json::Value =
        serde_json::from_str(&place.cold(words).run().expect(0).stdout).unwrap();
    let pages = |layout: &str| predicted["scenarios"][0][layout]["pages"].as_u64().unwrap();
    assert!(pages("ordered") == pages("alone") && pages("ordered") * 3 < pages("today"), "{predicted}");
    assert_eq!(predicted["link"]["bind_now"], true);
}

#[test]
fn what_has_no_name_is_told_with_where_its_debug_file_was_looked_for() {
    let place = Sandbox::new();
    let (source_file, whole) = (place.path("p.c"), place.path("whole"));
    let (list, program) = (place.text("list"), place.text("p"));
    fs::write(&source_file, source()).unwrap();
    // Of the functions that are entered these stay among the dynamic symbols.
    fs::write(&list, "{ main; f1*; };\n").unwrap();
    let flags = ["-Wl,--build-id=0xab12cd34", &format!("-Wl,--dynamic-list={list}")];
    let object = place.path("p.o");
    if !link(&source_file, &object, &["-c"]) {
        return;
    }
    assert!(link(&object, &whole, &flags) && link(&object, &place.path("other"), &[]));
    let copied = |from: &Path, args: &[&str], to: &str| {
        let status = Command::new("objcopy").args(args).arg(from).arg(place.path(to)).status();
        assert!(status.unwrap().success(), "{args:?}");
    };
    let debug = place.text("p.debug");
    copied(&whole, &["--only-keep-debug"], "p.debug");
    copied(&whole, &["--strip-all", &format!("--add-gnu-debuglink={debug}")], "p");
    fs::rename(&debug, place.path("kept")).unwrap();
    place.cold(["layout", "trace", "-r", "1", "-o", "p.order", "--", &program]).run().expect(0);
    let json = |more: &[&str]| {
        let words = ["layout", "predict", "p.order", "--json", "--read-ahead-kb", "128"];
        place.cold(words.iter().chain(more)).run().expect(0).json()
    };
    let text =
        || place.cold(["layout", "predict", "p.order", "--read-ahead-kb", "128"]).run().expect(0).stdout;
    let (said, told) = (text(), json(&[]));
    let names = &told["names"];
    let (missing, saved) = (names["unnamed_entered"].as_u64().unwrap(), names["pages"].as_u64().unwrap());
    assert!(missing > 100 && saved > 5 && names["debug_file"] == 0, "{names}");
    for part in [
        &format!("{missing} that are entered have none"),
        &format!("up to {saved} pages less"),
        "/usr/lib/debug/.build-id/ab/12cd34.debug, which is not there",
        &format!("{debug}, which is not there"),
        "build-id ab12cd34; Debian",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // That of another build is none of this one.
    fs::copy(place.path("other"), &debug).unwrap();
    assert!(text().contains(&format!("{debug}, which ")) && !text().contains("is there now"), "{}", text());
    assert_eq!(json(&[])["names"]["found"], serde_json::Value::Null);
    // With its own everything has a name, and what was said to be saved is.
    fs::rename(place.path("kept"), &debug).unwrap();
    assert!(text().contains("is there now, and was not for the trace"), "{}", text());
    let with = json(&["--binary", "p"]);
    assert_eq!((&with["names"]["unnamed_entered"], &with["names"]["found"]), (&0.into(), &debug.into()));
    let pages = |told: &serde_json::Value| told["scenarios"][0]["ordered"]["pages"].as_u64().unwrap();
    assert_eq!(pages(&told) - pages(&with), saved, "{with}");
    // Nothing has a name, and nothing leads to any.
    copied(&place.path("other"), &["--strip-all", "--remove-section=.note.gnu.build-id"], "bare");
    place.cold(["layout", "trace", "-r", "1", "-o", "b.order", "--", &place.text("bare")]).run().expect(0);
    let ran = place.cold(["layout", "predict", "b.order"]).run().expect(1);
    assert!(ran.stderr.contains("an order file needs names"), "{}", ran.stderr);
    assert!(ran.stderr.contains("neither a build-id (-Wl,--build-id)"), "{}", ran.stderr);
}

mod root {
    use cold_testbed::need_root;

    use super::*;

    /// Pages of `.text` that a cold start needs, exact to the page.
    fn measured(place: &Sandbox, program: &Path) -> u64 {
        let name = program.file_name().unwrap().to_str().unwrap();
        let recording = place.text(&format!("{name}.cold"));
        let _settings = exactly();
        let trace =
            ["trace", "--exact-need", "--evict", "files", "-o", &recording, "--", program.to_str().unwrap()];
        place.cold(trace).run().expect(0);
        let said = place.cold(["report", &recording, "--json"]).run().expect(0);
        let report: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
        let rows = |part: &str| report[part].as_array().unwrap().clone();
        let file = rows("files").into_iter().find(|f| f["path"] == program.to_str().unwrap()).unwrap();
        let sections = rows("sections").into_iter();
        let text = sections.filter(|s| s["file"] == file["file"]).find(|s| s["section"] == ".text").unwrap();
        text["needed"].as_u64().unwrap() / 4096
    }

    #[test]
    fn the_predicted_pages_are_those_of_the_program_linked_in_the_order() {
        if !need_root() {
            return;
        }
        let place = Sandbox::new();
        let source_file = place.path("p.c");
        let (program, ordered) = (place.path("p"), place.path("ordered"));
        fs::write(&source_file, source()).unwrap();
        if !link(&source_file, &program, &[]) {
            return;
        }
        let trace = ["layout", "trace", "-r", "1", "-o", "p.order", "--", program.to_str().unwrap()];
        place.cold(trace).run().expect(0);
        let sections = place.text("p.sections");
        place.cold(["layout", "order", "p.order", "--format", "gold", "-o", &sections]).run().expect(0);
        assert!(link(&source_file, &ordered, &[&format!("-Wl,--section-ordering-file={sections}")]));
        let said = place.cold(["layout", "predict", "p.order", "--json"]).run().expect(0);
        let said: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
        for (layout, program) in [("today", &program), ("ordered", &ordered)] {
            let predicted = said["scenarios"][0][layout]["pages"].as_u64().unwrap();
            let is = measured(&place, program);
            // The order begins somewhere within a page: that may make one more.
            assert!(
                predicted.abs_diff(is) <= (is / 10).max(1),
                "{layout}: {predicted} predicted, {is} measured"
            );
        }
    }

    /// A report knows the trace that lies beside the recording, and says what `cold layout predict` says.
    #[test]
    fn a_report_shows_functions_by_first_entry_and_the_predicted_gain() {
        if !need_root() {
            return;
        }
        let place = Sandbox::new();
        let source_file = place.path("p.c");
        let (program, other) = (place.path("p"), place.path("other"));
        fs::write(&source_file, source()).unwrap();
        if !link(&source_file, &program, &["-Wl,--build-id"])
            || !link(&source_file, &other, &["-Wl,--build-id", "-Wl,-z,now"])
        {
            return;
        }
        let program = program.to_str().unwrap();
        let trace = |out: &str, program: &str| {
            let args = ["layout", "trace", "-r", "1", "-o", out, "--scenario", out, "--", program];
            place.cold(args).run().expect(0);
        };
        trace("p.order", program);
        trace("other.order", other.to_str().unwrap());
        let record = ["trace", "--evict", "files", "-o", "p.cold", "--", program];
        place.cold(record).run().expect(0);
        let report: serde_json::Value =
            serde_json::from_str(&place.cold(["report", "p.cold", "--json"]).run().expect(0).stdout).unwrap();
        let files = report["files"].as_array().unwrap();
        let row = &files.iter().find(|f| f["path"] == program).unwrap()["file"];
        let of = report["first_entries"].as_array().unwrap().iter().find(|e| e["file"] == *row).unwrap();
        assert_eq!((&of["scenarios"], &of["same_command"]), (&serde_json::json!(["p.order"]), &true.into()));
        let said = place.cold(["layout", "predict", "p.order", "--json"]).run().expect(0).json();
        for layout in ["today", "ordered"] {
            let (here, there) = (&of["predicted"][layout], &said["scenarios"][0][layout]);
            for (mine, theirs) in [("pages", "pages"), ("requests", "requests"), ("read", "read_bytes")] {
                assert_eq!(here[mine], there[theirs], "{layout} {mine}: {of} {said}");
            }
        }
        // main, then f0, f31 * 5 and so on: as the program calls them.
        let names: Vec<&str> =
            of["functions"].as_array().unwrap().iter().filter_map(|f| f["name"].as_str()).collect();
        let at = |name: &str| names.iter().position(|n| *n == name).unwrap();
        assert!(at("main") < at("f0") && at("f0") < at("f155") && at("f155") < at("f310"), "{names:?}");
        let text = place.cold(["report", "p.cold", "--details"]).run().expect(0).stdout;
        assert!(text.contains("Functions entered, by traces of the same build"), "{text}");
        assert!(text.contains("Functions by first entry") && text.contains("`main"), "{text}");
        let of_file = place.cold(["report", "p.cold", "--file", program]).run().expect(0).stdout;
        assert!(of_file.contains("Functions by first entry"), "{of_file}");
        // Of another build nothing is told, which is said where that trace was asked for.
        let libraries = "no trace of --order";
        let ran =
            place.cold(["report", "p.cold", "--order", "other.order", "--file", program]).run().expect(0);
        assert!(!ran.stdout.contains("first entry"), "{}", ran.stdout);
        fs::remove_dir_all(place.path("p.order")).unwrap();
        fs::remove_dir_all(place.path("other.order")).unwrap();
        let ran = place.cold(["report", "p.cold"]).run().expect(0);
        assert!(
            !ran.stdout.contains("Functions entered") && !ran.stderr.contains(libraries),
            "{}",
            ran.stderr
        );
        assert_eq!(place.cold(["report", "p.cold", "--order", "p.order"]).run().code(), 1);
    }

    /// A program that reads two pages of constants and writes to one of its variables.
    const DATA: &str = r#"
#include <unistd.h>
#define PAGE __attribute__((aligned(4096)))
PAGE const char constants[64 * 4096] = {1};
PAGE char variables[64 * 4096] = {1};
PAGE char untouched[64 * 4096] = {1};
PAGE const char *const relocated[1024] = {constants, variables};
int main(void) {
    volatile const char *c = constants;
    volatile char *v = variables;
    int sum = c[40 * 4096] + c[9 * 4096] + v[30 * 4096];
    v[12 * 4096] = 1;
    return write(1, "done\n", 5) != 5 || sum != 0;
}
"#;

    #[test]
    fn data_is_told_by_pages_touched_and_written_with_the_symbols_on_them() {
        if !need_root() {
            return;
        }
        let place = Sandbox::new();
        let (source_file, program) = (place.path("d.c"), place.path("d"));
        fs::write(&source_file, DATA).unwrap();
        if !link(&source_file, &program, &["-Wl,--build-id"]) {
            return;
        }
        let program = program.to_str().unwrap();
        place.cold(["layout", "trace", "-r", "1", "-o", "d.order", "--", program]).run().expect(0);
        let record = ["trace", "--exact-need", "--evict", "files", "-o", "d.cold", "--", program];
        let recorded = {
            let _settings = exactly();
            place.cold(record).run()
        };
        recorded.expect(0);
        let args = ["layout", "predict", "d.order", "--recording", "d.cold"];
        let said = place.cold(args.iter().chain(&["--json"])).run().expect(0).json();
        let section = |name: &str| {
            let all = said["data"].as_array().unwrap();
            all.iter()
                .find(|d| d["section"].as_str().unwrap().trim_end_matches(".local") == name)
                .unwrap_or_else(|| panic!("{name}: {said}"))
                .clone()
        };
        let symbol = |section: &serde_json::Value, name: &str| {
            let all = section["symbols"].as_array().unwrap();
            all.iter().find(|s| s["name"] == name).cloned()
        };
        let rodata = section(".rodata");
        let of = symbol(&rodata, "constants").unwrap();
        assert_eq!((&of["pages"], &of["alone"], &of["written"]), (&2.into(), &2.into(), &0.into()), "{said}");
        let data = section(".data");
        let of = symbol(&data, "variables").unwrap();
        assert_eq!((&of["pages"], &of["written"]), (&2.into(), &1.into()), "{said}");
        assert!(symbol(&data, "untouched").is_none(), "{said}");
        // The loader writes the addresses of a program that may lie anywhere, before they are constant.
        let of = symbol(&section(".data.rel.ro"), "relocated").unwrap();
        assert_eq!(of["written"], 1, "{said}");
        let text = place.cold(args).run().expect(0).stdout;
        assert!(
            text.contains("constants (2 pages)") && text.contains("variables (2 pages, 1 page written)"),
            "{text}"
        );
        let text = place.cold(["report", "d.cold", "--file", program]).run().expect(0).stdout;
        assert!(text.contains("SECTION, AND SYMBOLS") && text.contains("constants (2 pages)"), "{text}");
        let other = place.cold(["layout", "trace", "-r", "1", "-o", "true.order", "--", "true"]).run();
        other.expect(0);
        let args = ["layout", "predict", "true.order", "--recording", "d.cold", "--file", "true"];
        let ran = place.cold(args).run();
        assert!(ran.code() != 0, "{}", ran.stdout);
    }
}
