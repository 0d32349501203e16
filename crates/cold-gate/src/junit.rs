//! Answers as JUnit XML, which most CI systems show: one test case per gate. A failed gate is a `failure`, one that
//! cannot be decided an `error`. Elements and attributes are those of the schema that Jenkins' xunit plug-in
//! publishes (`junit-10.xsd`), which GitLab and others read too.

use std::fmt::Write as _;

use cold_model::text::markup;

use crate::answer::{GateResult, Outcome};
use crate::markdown::{details, line};

/// The document. `suite` names what was judged.
pub fn xml(suite: &str, results: &[GateResult]) -> String {
    let count = |f: fn(&Outcome) -> bool| results.iter().filter(|r| f(&r.outcome)).count();
    let failed = count(|o| *o == Outcome::Fail);
    let errors = count(|o| matches!(o, Outcome::Inconclusive { .. }));
    let numbers = format!("tests=\"{}\" failures=\"{failed}\" errors=\"{errors}\"", results.len());
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a String cannot fail.
    let _ = writeln!(out, "<testsuites {numbers}>\n  <testsuite name=\"{}\" {numbers}>", markup(suite));
    for r in results {
        let _ =
            write!(out, "    <testcase classname=\"{}\" name=\"{}\"", markup(&r.command), markup(&r.gate));
        let element = match r.outcome {
            Outcome::Pass => {
                out.push_str("/>\n");
                continue;
            }
            Outcome::Fail => "failure",
            Outcome::Inconclusive { .. } => "error",
        };
        let mut text = line(r);
        for detail in details(r) {
            text.push('\n');
            text.push_str(&detail);
        }
        let message = markup(&line(r));
        let _ = writeln!(
            out,
            ">\n      <{element} message=\"{message}\" type=\"{}\">{}</{element}>\n    </testcase>",
            if element == "failure" { "gate" } else { "inconclusive" },
            markup(&text)
        );
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_stays_text() {
        let name = "a\"<b>&\u{1b}\u{202e}]]>";
        let pass = GateResult::new("files > 1", name, "1".into(), Outcome::Pass);
        let fail = GateResult::new("files > 0", name, "1".into(), Outcome::Fail);
        let unknown = Outcome::Inconclusive { reason: "no <table>".into(), runs_needed: None };
        let unknown = GateResult::new("read > 0", name, String::new(), unknown);
        let xml = xml("s", &[pass, fail, unknown]);
        assert!(xml.contains("tests=\"3\" failures=\"1\" errors=\"1\""), "{xml}");
        assert_eq!(xml.matches("a&quot;&lt;b&gt;&amp;\u{fffd}\u{fffd}]]&gt;").count(), 3 + 4, "{xml}");
        assert!(xml.contains("no &lt;table&gt;") && !xml.contains('\u{1b}'), "{xml}");
    }
}
