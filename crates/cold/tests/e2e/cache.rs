//! `cold cache` against what is known of the files, and against mincore(2) asked by others.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::support::*;

/// Evicts the file and touches exactly these pages.
fn touch(place: &Sandbox, path: &str, pages: &str) -> Result<(), String> {
    let ran = place.cold(["cache", "evict", path]).run();
    check(ran.code() == 0, || ran.stdout.clone())?;
    let mut command = Command::new(place.path("cold-subject"));
    assert!(command.args(["touch-mapped", path, pages, "--random"]).status().unwrap().success());
    Ok(())
}

#[test]
fn show_tells_exactly_the_pages_that_were_touched() {
    let _machine = together();
    let place = Sandbox::new();
    let file = place.file("data", 4 * MIB + 100);
    let path = file.to_str().unwrap();
    attempts(|| {
        touch(&place, path, "0,5-7,1024")?;
        let document = place.cold(["cache", "show", "--json", "--map", path]).run().expect(0).json();
        let truth = resident(&file);
        check(truth == BTreeSet::from([0, 5, 6, 7, 1024]), || format!("others read it: {truth:?}"))?;
        assert_eq!(document["totals"]["resident_bytes"], 5 * PAGE);
        assert_eq!(document["totals"]["size_bytes"], 4 * MIB + 100);
        assert_eq!(document["totals"]["unknown_files"], 0);
        assert_eq!(document["files"][0]["runs"], serde_json::json!([[0, 1], [5, 3], [1024, 1]]));
        let text = place.cold(["cache", "show", "--map", path]).run().expect(0).stdout;
        assert!(text.contains("20.0 KiB") && text.contains('·'), "{text}");
        Ok(())
    });
    if fs::exists("/usr/bin/vmtouch").unwrap() {
        attempts(|| {
            touch(&place, path, "3-90")?;
            let out = Command::new("vmtouch").args(["-f", path]).output().unwrap();
            let said = String::from_utf8(out.stdout).unwrap();
            let document = place.cold(["cache", "show", "--json", path]).run().expect(0).json();
            let pages = document["totals"]["resident_bytes"].as_u64().unwrap() / PAGE;
            check(said.contains(&format!("{pages}/1025")), || format!("{pages} pages; vmtouch: {said}"))
        });
    }
}

#[test]
fn a_tree_counts_hard_links_once_and_names_who_holds_a_file() {
    let place = Sandbox::new();
    let dir = place.path("tree");
    fs::create_dir_all(dir.join("below")).unwrap();
    let file = data(dir.join("below/data"), MIB);
    fs::hard_link(&file, dir.join("again")).unwrap();
    std::os::unix::fs::symlink(&file, dir.join("link")).unwrap();
    let other = Other::start(&place.subject(), &["hold", file.to_str().unwrap()], "holding");
    let tree = dir.to_str().unwrap();
    let document = place.cold(["cache", "show", "--json", "--holders", tree]).run().expect(0).json();
    assert_eq!((&document["totals"]["files"], &document["totals"]["size_bytes"]), (&1.into(), &MIB.into()));
    assert_eq!(document["further_links"], 1);
    let holders = document["files"][0]["holders"].to_string();
    assert!(holders.contains(&other.pid().to_string()), "{holders}");
    for command in [["who", tree], ["show", "--holders"]] {
        let ran = place.cold(["cache"].iter().chain(&command).chain(&[tree])).run().expect(0);
        assert!(ran.stdout.contains(&format!("{}", other.pid())), "{}", ran.stdout);
    }
    let ran = place.cold(["cache", "show", &place.text("absent")]).run().expect(1);
    assert!(ran.error().contains("absent"));
}

#[test]
fn evict_proves_that_no_page_is_left_or_says_who_holds_them() {
    let _machine = together();
    let place = Sandbox::new();
    let file = place.file("data", 2 * MIB);
    let path = file.to_str().unwrap();
    fs::write(&file, vec![1; 2 * MIB]).unwrap(); // dirty, too
    attempts(|| {
        let ran = place.cold(["cache", "evict", "--json", path]).run();
        check(ran.code() == 0, || ran.stdout.clone())?;
        assert_eq!(ran.json()["proved"], true);
        check(resident(&file).is_empty(), || "others read it".into())
    });
    for (other, why) in
        [(Other::start(&place.subject(), &["hold", path], "holding"), "mapped"), (locker(&file), "locked")]
    {
        let document = place.cold(["cache", "evict", "--json", path]).run().expect(5).json();
        assert_eq!(document["stayed_bytes"], 2 * MIB);
        let text = place.cold(["cache", "evict", path]).run().expect(5).stdout;
        assert!(text.contains(&other.pid().to_string()), "{text}");
        assert!(text.to_lowercase().contains(why), "{text}");
    }
    place.cold(["cache", "evict", &place.text("absent")]).run().expect(1).error();
    assert_ne!(place.cold(["cache", "evict"]).run().code(), 0);
}

#[test]
fn restore_brings_back_the_residency_map_page_for_page() {
    let _machine = together();
    let place = Sandbox::new();
    let (a, b, snapshot) = (place.file("a", 3 * MIB), place.file("b", MIB), place.text("state.snap"));
    let (path_a, path_b) = (a.to_str().unwrap(), b.to_str().unwrap());
    attempts(|| {
        touch(&place, path_a, "2,4,6,100-200,767")?;
        place.cold(["cache", "evict", path_b]).run().expect(0);
        let before = resident(&a);
        place.cold(["cache", "save", &snapshot, path_a, path_b]).run().expect(0);
        place.cold(["cache", "evict", path_a]).run().expect(0);
        fs::read(&b).unwrap();
        let ran = place.cold(["cache", "restore", "--json", &snapshot]).run();
        check(ran.code() == 0, || ran.stdout.clone())?;
        assert_eq!(ran.json()["wanted_bytes"], before.len() as u64 * PAGE);
        check(resident(&a) == before && resident(&b).is_empty(), || "others read them".into())
    });
    // What cannot be as it was is named.
    fs::write(&b, vec![3; MIB + 5]).unwrap();
    let ran = place.cold(["cache", "restore", &snapshot]).run().expect(5);
    assert!(ran.stdout.contains(path_b), "{}", ran.stdout);
    let ran = place.cold(["cache", "restore", &place.text("absent")]).run().expect(1);
    assert!(ran.error().contains("absent"));
    let ran = place.cold(["cache", "save", "/no/such/dir/x.snap", path_a]).run().expect(1);
    assert!(ran.error().contains("/no/such/dir"), "{}", ran.stderr);
}

#[test]
fn the_overview_sums_to_the_machines_memory() {
    let place = Sandbox::new();
    let document = place.cold(["cache", "overview", "--json"]).run().expect(0).json();
    let uses = document["uses"].as_array().unwrap();
    let sum: i64 = uses.iter().filter_map(|u| u["bytes"].as_i64()).sum();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
    let total = meminfo.lines().next().unwrap().split_whitespace().nth(1).unwrap();
    assert_eq!(sum, total.parse::<i64>().unwrap() * 1024);
    assert_eq!(document["total"], sum);
    let text = place.cold(["cache", "overview"]).run().expect(0).stdout;
    assert!(text.contains("100%"), "{text}");
}
