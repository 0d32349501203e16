//! `cold service replay`: rules of what is read before a start, on logs of starts.

use crate::support::Sandbox;

/// A log by hand: what a policy holds after the cache was emptied finds its next start.
#[test]
fn rules_of_keeping_are_compared_on_a_log() {
    let place = Sandbox::new();
    let log = place.text("log.csv");
    let text = "seconds,event,times,bytes,program\n0,start,3,1000,/bin/a\n5,start,1,2000,\"/bin/b,c\"\n\
                100,emptied,,,\n120,start,1,500,/bin/a\n130,start,1,2000,\"/bin/b,c\"\n";
    std::fs::write(&log, text).unwrap();
    let run = |words: &[&str]| place.cold([&["service", "replay"], words].concat()).run();
    let said = run(&[&log, "--room", "2500", "--json"]).expect(0).json();
    let of = |policy: &str| {
        let rows = said["policies"].as_array().unwrap();
        let row = rows.iter().find(|row| row["policy"] == policy).unwrap().clone();
        let n = |name: &str| row[name].as_u64().unwrap();
        (n("hits"), n("read_bytes"), n("used_bytes"))
    };
    assert_eq!(
        (said["policies"][0]["starts"].as_u64(), said["policies"][0]["first"].as_u64()),
        (Some(6), Some(4))
    );
    assert_eq!(of("nothing"), (0, 0, 0));
    assert_eq!(of("service"), (1, 1000, 1000), "three starts before one; then there is no room");
    assert_eq!(of("recency"), (1, 2000, 2000));
    assert_eq!(of("all"), (2, 3000, 3000));
    let shown = run(&[&log, "--room", "2500"]).expect(0).stdout;
    assert!(shown.contains("foreseen") && shown.contains("1 log of 2 programs"), "{shown}");
    let again = place.text("again.csv");
    run(&[&log, "--write-log", &again]).expect(0);
    assert_eq!(std::fs::read_to_string(&again).unwrap().lines().count(), 6);
    let ran = run(&[&again, "--room", "2500", "--json"]).expect(0).json();
    assert_eq!(ran["policies"], said["policies"], "the written log says the same");

    std::fs::write(&log, "seconds,event,times,bytes,program\n0,stop,1,1,a\n").unwrap();
    assert!(run(&[&log]).expect(1).error().contains("line 2: the event is neither"));
    assert!(run(&[&place.text("none")]).expect(1).error().contains("none"));
    let state = place.text("state");
    assert!(run(&["--state", &state]).expect(1).error().contains("history.db"));
}

#[test]
fn made_up_logs_are_the_same_for_the_same_seed() {
    let place = Sandbox::new();
    let run = |words: &[&str]| {
        place.cold([&["service", "replay", "--json", "--room", "64Mi"], words].concat()).run()
    };
    let made = run(&["--made", "8"]).expect(0).json();
    assert_eq!(made, run(&["--made", "8"]).expect(0).json());
    assert_ne!(made, run(&["--made", "8", "--seed", "9"]).expect(0).json());
    let against = &made["policies"][1]["against_service"];
    assert!(against.is_null() && made["policies"][1]["policy"] == "nothing", "no hits, no ratio: {made}");
    assert!(made["policies"][2]["against_service"]["interval"]["low"].is_f64(), "eight pairs: {made}");
    assert!(run(&["--made", "0"]).expect(2).stderr.contains("--made"));
    assert!(run(&["--made", "1", "--zipf", "9"]).expect(2).error().contains("--zipf"));
}
