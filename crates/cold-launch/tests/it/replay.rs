//! What a plan names is read ahead, and no more.

use cold_plan::plan::{Gate, Standing};

use crate::world::{MIB, add, add_whole, cached, directory, evict, file, gone, launch, plan, save, text};
use cold_plan::plan::Identity;

#[test]
fn exactly_the_ranges_of_the_plan_come_in() {
    let dir = directory();
    let at = dir.path().join("plan");
    let data = file(&dir.path().join("data"), 8 * MIB);
    let meta = std::fs::metadata(&data).expect("stat");
    for (gate, threads) in [(Gate::None, 1), (Gate::Issued, 1), (Gate::Arrived, 1), (Gate::Arrived, 4)] {
        let mut p = plan();
        (p.knobs.gate, p.knobs.threads) = (gate, threads);
        let ranges: Vec<(u64, u32)> = (0..32).map(|i| (i * 256 * 1024, 8192)).collect();
        let (critical, tail) = ranges.split_at(16);
        add(&mut p, &data, Identity::of(&meta, [0; 20]), critical, true);
        add(&mut p, &data, Identity::of(&meta, [0; 20]), tail, false);
        save(&p, &at);
        if !evict(&data) {
            continue; // somebody else reads it
        }
        let out = launch(&at, &["--verbose"], &["sh", "-c", "sleep 0.3"]);
        assert!(text(&out.stderr).contains("262144 of 262144 bytes"), "{}", text(&out.stderr));
        cold_testbed::until("all pages came", || (cached(&data) >= 64).then_some(()));
        assert_eq!(cached(&data), 64, "{gate:?} {threads}");
        gone(dir.path());
    }
}

#[test]
fn what_is_cached_is_left_alone() {
    let dir = directory();
    let at = dir.path().join("plan");
    let data = file(&dir.path().join("data"), 2 * MIB);
    let mut p = plan();
    add_whole(&mut p, &data, true);
    save(&p, &at);
    std::fs::read(&data).expect("read");
    let out = launch(&at, &["--verbose"], &["true"]);
    assert!(text(&out.stderr).contains("cached already"), "{}", text(&out.stderr));
}

#[test]
fn a_plan_that_is_switched_off_is_not_followed() {
    let dir = directory();
    let at = dir.path().join("plan");
    let data = file(&dir.path().join("data"), 2 * MIB);
    let mut p = plan();
    add_whole(&mut p, &data, true);
    p.standing = Standing::Off("it was slower".to_owned());
    save(&p, &at);
    let absent = evict(&data);
    let out = launch(&at, &["--verbose"], &["true"]);
    assert!(text(&out.stderr).contains("switched off: it was slower"), "{}", text(&out.stderr));
    assert!(!absent || cached(&data) == 0);
}

#[test]
fn a_budget_ends_the_replay() {
    let dir = directory();
    let at = dir.path().join("plan");
    let data = file(&dir.path().join("data"), 4 * MIB);
    let mut p = plan();
    add_whole(&mut p, &data, false);
    save(&p, &at);
    if !evict(&data) {
        return;
    }
    launch(&at, &["--budget", "1048576"], &["sleep", "0.3"]);
    gone(dir.path());
    assert_eq!(cached(&data), 256);
}

#[test]
fn more_files_than_may_be_open_are_read_all() {
    let dir = directory();
    let at = dir.path().join("plan");
    let mut p = plan();
    let files: Vec<_> = (0..300).map(|i| file(&dir.path().join(format!("f{i}")), 4096)).collect();
    for f in &files {
        add(&mut p, f, Identity::of(&std::fs::metadata(f).expect("stat"), [0; 20]), &[(0, 4096)], false);
    }
    save(&p, &at);
    let absent: Vec<bool> = files.iter().map(|f| evict(f)).collect();
    let script = format!("ulimit -n 40; exec {} --plan {} -- sleep 1", crate::world::LAUNCHER, at.display());
    let done = std::process::Command::new("sh").args(["-c", &script]).status().expect("sh");
    assert!(done.success());
    gone(dir.path());
    assert!(absent.iter().any(|a| *a));
    for f in &files {
        cold_testbed::until("each file came", || (cached(f) == 1).then_some(()));
    }
}
