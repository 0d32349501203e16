//! Gates, baselines and the files that are written.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::*;

/// `cold bench` of a short program; the counts of its files do not depend on the machine's mood.
fn gated(place: &Sandbox, more: &[&str]) -> Ran {
    gated_runs(place, "2", more)
}

fn gated_runs(place: &Sandbox, runs: &str, more: &[&str]) -> Ran {
    let fixed = ["--states", "cold,warm", "-r", runs];
    place.bench(fixed.iter().chain(more).chain(&["--", &place.subject(), "sleep", "5"])).run()
}

#[test]
fn a_gate_fails_passes_or_cannot_tell() {
    let _machine = alone();
    let place = Sandbox::new();
    attempts(|| gated(&place, &["--fail-if", "files > 100000"]).done_or_disturbed().map(drop));
    let (xml, md) = (place.text("gates.xml"), place.text("gates.md"));
    let files = ["--junit", &xml, "--markdown", &md];
    gated(&place, &files).expect(2);
    let gates = ["--fail-if", "files > 100000", "--fail-if", "files >= 1"];
    let ran = gated(&place, &[&gates[..], &files].concat()).expect(3);
    let written = fs::read_to_string(&xml).unwrap();
    assert!(written.contains("tests=\"2\" failures=\"1\" errors=\"0\""), "{written}");
    assert!(fs::read_to_string(&md).unwrap().contains("files &gt;= 1"));
    let gates = ran.json()["gates"].clone();
    let outcomes: Vec<_> = gates.as_array().unwrap().iter().map(|g| g["outcome"].clone()).collect();
    assert_eq!(outcomes, ["pass", "fail"]);
    // Two runs cannot have a full interval, and 5 ms of sleep lie inside any.
    attempts(|| {
        let plain = gated(&place, &[]).done_or_disturbed()?.json();
        let median = plain["summary"][1]["metrics"]["ready"]["median"].as_f64().unwrap();
        let limit = format!("warm.median > {}ns", median as u64);
        let document = gated(&place, &["--fail-if", &limit]).expect(4).json();
        check(document.get("stopped").is_none(), || format!("{:?}", document["stopped"]))?;
        assert_eq!(document["gates"][0]["outcome"], "inconclusive");
        Ok(())
    });
}

#[test]
fn an_earlier_report_is_a_baseline() {
    let _machine = alone();
    let place = Sandbox::new();
    let base = place.text("base.json");
    let earlier = |runs| {
        let ran = attempts(|| gated_runs(&place, runs, &[]).done_or_disturbed());
        fs::write(&base, ran.stdout).unwrap();
    };
    earlier("2");
    let gate = ["--baseline", &base, "--fail-if", "files > 2x"];
    attempts(|| gated(&place, &gate).done_or_disturbed().map(drop));
    // Six runs are the fewest with a full interval.
    earlier("6");
    let gate = ["--baseline", &base, "--fail-if", "cold.median > 1000x"];
    attempts(|| gated_runs(&place, "6", &gate).done_or_disturbed().map(drop));
    gated(&place, &["--baseline", &base, "--fail-if", "files > 0.5x"]).expect(3);
}

#[test]
fn a_gate_that_fails_names_what_is_new() {
    let place = Sandbox::new();
    let (base, dir) = (place.text("base.json"), place.text("files"));
    fs::create_dir(&dir).unwrap();
    let subject = place.subject();
    let bench = |json: &[&str], n: &str, more: &[&str]| {
        let fixed = ["bench", "--evict", "files", "--states", "warm", "-r", "1", "-n", "it"];
        let command = ["--", &subject, "open-files", &dir, n];
        place.cold(fixed.iter().chain(json).chain(more).chain(&command)).run()
    };
    // Made once, so that no start writes them.
    bench(&[], "30", &[]);
    fs::write(&base, bench(&["--json"], "3", &[]).stdout).unwrap();
    let gates = ["--baseline", &base, "--fail-if", "files > +20", "--fail-if", "files > +27"];
    let ran = bench(&[], "30", &gates).expect(3);
    assert!(ran.stdout.contains("fail: 'files > +20' holds [it: "), "{}", ran.stdout);
    assert!(ran.stdout.contains("pass: 'files > +27' does not hold [it: "), "{}", ran.stdout);
    let named = ran.stdout.lines().find(|l| l.contains("27 files not used before, 27 B in all: ")).unwrap();
    assert!(named.contains(&format!("{dir}/f10 (1 B)")) && named.ends_with(" and 22 more"), "{named}");
    let document = bench(&["--json"], "30", &gates).expect(3).json();
    assert_eq!(document["gates"][0]["news"]["count"], 27);
    // Two or three runs are no proof that there is no difference.
    let few =
        place.cold(["bench", "--evict", "files", "-r", "3", "--", &subject, "sleep", "20"]).run().stdout;
    let verdict = few.lines().find(|l| l.contains("takes") && l.contains("warm [")).unwrap_or_default();
    assert!(!verdict.contains("no difference proved"), "{few}");
    assert!(verdict.is_empty() || verdict.contains("too few runs for a verdict"), "{few}");
}

/// Parses a document with Python's own parser.
fn python(script: &str, file: &str) {
    let out = Command::new("/usr/bin/python3").args(["-c", script, file]).output().unwrap();
    assert!(out.status.success(), "{file}: {}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn every_export_is_written_and_can_be_parsed() {
    let place = Sandbox::new();
    let path = |name: &str| place.text(name);
    let v2 = format!("v2:{}", path("v2.json"));
    let flags = ["--export-json", &path("v1.json"), "--export-json", &v2, "--export-csv", &path("o.csv")];
    let more = ["--export-markdown", &path("o.md"), "--plot", &path("p.svg"), "--plot", &path("p.html")];
    attempts(|| gated(&place, &[flags, more].concat()).done_or_disturbed().map(drop));
    let json = |name| -> Value { serde_json::from_str(&fs::read_to_string(path(name)).unwrap()).unwrap() };
    let v1 = json("v1.json")["results"].as_array().unwrap().clone();
    assert_eq!(v1.len(), 2, "cold and warm");
    for r in v1 {
        let mean = r["mean"].as_f64().unwrap();
        assert!(mean > 0.005 && mean < 60.0, "{mean} s");
        assert!(r["command"].as_str().unwrap().contains("cold-subject"));
    }
    let v2 = json("v2.json");
    assert_eq!(v2["schema_version"], 2);
    assert_eq!(v2["results"][0]["measurements"].as_array().unwrap().len(), 2);
    let csv = "
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
assert len(rows) == 2 and all(float(r['median']) >= 0.005 for r in rows), rows";
    python(csv, &path("o.csv"));
    let markdown = fs::read_to_string(path("o.md")).unwrap();
    assert!(markdown.lines().filter(|l| l.starts_with('|')).count() >= 4, "{markdown}");
    let svg =
        "import sys, xml.etree.ElementTree as e; assert e.parse(sys.argv[1]).getroot().tag.endswith('svg')";
    python(svg, &path("p.svg"));
    let html = "
import sys, html.parser
text = open(sys.argv[1]).read(); tags = []
class P(html.parser.HTMLParser):
    def handle_starttag(self, tag, attrs): tags.append(tag)
P().feed(text); assert {'html', 'body', 'svg', 'table'} <= set(tags), set(tags)
assert 'src=\"http' not in text and 'href=\"http' not in text, 'it stands alone'";
    python(html, &path("p.html"));
}
