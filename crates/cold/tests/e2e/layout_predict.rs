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

mod root {
    use cold_testbed::need_root;

    use super::*;

    /// Pages of `.text` that a cold start needs, exact to the page.
    fn measured(place: &Sandbox, program: &Path) -> u64 {
        let name = program.file_name().unwrap().to_str().unwrap();
        let recording = place.text(&format!("{name}.cold"));
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
}
