//! What a plan names is read ahead, and no more.

use cold_plan::history::Kind;
use cold_plan::plan::{FileKind, Gate, Identity, Op, PlanFile, Standing, Step};

use crate::world::{MIB, add, add_whole, cached, directory, evict, file, gone, launch, plan, save, text};

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

#[test]
fn directories_and_names_are_looked_up_beside_the_reads() {
    let dir = directory();
    let at = dir.path().join("plan");
    let mut p = plan();
    p.knobs.gate = Gate::Arrived;
    let files: Vec<_> = (0..100).map(|i| file(&dir.path().join(format!("f{i}")), 4096)).collect();
    for f in &files {
        add(&mut p, f, Identity::of(&std::fs::metadata(f).expect("stat"), [0; 20]), &[(0, 4096)], true);
    }
    let step =
        |op, file: usize| Step { op, critical: true, file: file as u32, offset: 0, bytes: 0, need_ns: 0 };
    let lookups: Vec<Step> = (0..files.len()).map(|i| step(Op::Open, i)).collect();
    p.steps.splice(0..0, lookups);
    for (op, kind, path) in [
        (Op::List, FileKind::Directory, dir.path().to_owned()),
        (Op::Stat, FileKind::Name, dir.path().join("f1")),
        (Op::Stat, FileKind::Name, dir.path().join("no-such-name")),
        (Op::List, FileKind::Directory, dir.path().join("no-such-directory")),
    ] {
        p.files.push(PlanFile { path, kind, identity: Identity::default(), need_ns: 0, uses: 1 });
        p.steps.insert(0, step(op, p.files.len() - 1));
    }
    save(&p, &at);
    let absent = files.iter().filter(|f| evict(f)).count();
    assert!(absent > 50, "somebody else reads them");
    let out = launch(&at, &[], &["true"]);
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
    // The program began when all had arrived.
    assert_eq!(files.iter().filter(|f| cached(f) == 1).count(), 100);
    gone(dir.path());
}

#[test]
fn starts_from_a_store_are_entered_in_its_history_and_every_second_cold_one_is_a_control() {
    let dir = directory();
    let store = cold_plan::Store::at(dir.path().join("store"));
    std::fs::create_dir_all(store.directory()).expect("made");
    let data = file(&dir.path().join("data"), MIB);
    let argv: Vec<std::ffi::OsString> =
        ["sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"].map(Into::into).into();
    let path = std::env::var_os("PATH");
    let command = cold_plan::scenario::Command { argv: &argv, cwd: "/".as_ref(), path: path.as_deref() };
    let key = cold_plan::scenario::find(&command, Some("own")).expect("a key");
    let mut p = plan();
    p.key = key.clone();
    p.learnt.own_cpu_ns = 1_000_000;
    add_whole(&mut p, &data, true);
    save(&p, &store.path_of(&key));
    let run = || {
        let dir = store.directory().display().to_string();
        let mut launcher = std::process::Command::new(crate::world::LAUNCHER);
        launcher.args(["--store", &dir, "--scenario", "own", "--control-every", "2", "--"]).args(&argv);
        assert!(launcher.status().expect("runs").success());
        gone(store.directory());
    };
    for _ in 0..4 {
        assert!(evict(&data), "nobody else knows the file");
        run();
    }
    std::fs::read(&data).expect("read");
    run();
    let records = cold_plan::history::read(&store.history_of(&key)).expect("a history");
    let kinds: Vec<Kind> = records.iter().map(|r| r.kind).collect();
    assert_eq!(kinds.len(), 5, "{records:?}");
    assert_eq!(kinds.iter().filter(|k| **k == Kind::Control).count(), 2, "{kinds:?}");
    assert!(kinds[0] != kinds[1] && kinds[0] == kinds[2] && kinds[1] == kinds[3], "{kinds:?}");
    assert_eq!(kinds[4], Kind::Skipped(cold_plan::history::Skip::Warm));
    for r in records.iter().take(4) {
        let mark = r.mark.expect("watched");
        // Reached or not, it took at least the CPU time it stands for.
        assert!(mark.exited || mark.wall_ns >= mark.cpu_ns, "{r:?}");
        assert_eq!(r.bytes, if r.kind == Kind::Prefetched { MIB } else { 0 }, "{r:?}");
    }
}
