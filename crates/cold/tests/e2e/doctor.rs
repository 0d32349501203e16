//! `cold doctor` on this machine, whatever it is.

use crate::support::*;

#[test]
fn doctor_examines_this_machine() {
    let place = Sandbox::new();
    let document = place.cold(["doctor", "--json"]).run().expect(0).json();
    let findings = document["findings"].as_array().unwrap();
    assert!(findings.len() > 15, "{}", findings.len());
    let known = ["ok", "note", "unknown", "missing", "disturbs"];
    for finding in findings {
        assert!(known.iter().any(|k| finding["status"] == *k), "{finding}");
        assert!(!finding["fact"].as_str().unwrap().is_empty(), "{finding}");
    }
    let text = place.cold(["doctor"]).run().expect(0).stdout;
    assert!(text.lines().count() > 15 && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn doctor_names_who_holds_the_files_of_a_command() {
    let place = Sandbox::new();
    let other = Other::start(&place.subject(), &["hold", &place.subject()], "holding");
    let ran = place.cold(["doctor", "--json", "--", &place.subject()]).run().expect(0);
    assert!(ran.stdout.contains(&other.pid().to_string()), "{}", ran.stdout);
    let ran = place.cold(["doctor", "--", "no-such-command-at-all"]).run().expect(2);
    assert!(ran.error().contains("no-such-command-at-all"));
    let ran = place.cold(["doctor", &place.text("absent")]).run().expect(2);
    assert!(ran.error().contains("absent"));
}
