//! What a plan names is read ahead, and no more.

use cold_plan::history::LaunchKind;
use cold_plan::plan::{FileKind, Gate, Identity, Op, Standing, Step};

use cold_testbed::attempts;

use crate::world::{
    LAUNCHER, MIB, WAITS, Whole, add, add_lookup, add_whole, cached, calm, came, directory, evict, file,
    followed, gone, launch, launcher, plan, save, text, whole,
};

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
        attempts(|| {
            evict(&data);
            let said = calm(&followed(&mut launcher(&at, &["--verbose"], &WAITS), dir.path()))?;
            assert!(said.contains("262144 of 262144 bytes"), "{said}");
            came(&data, 64).map_err(|why| format!("{gate:?}, {threads} threads: {why}"))
        });
    }
}

#[test]
fn what_is_cached_is_left_alone() {
    let Whole { dir: _dir, data, at } = whole(2 * MIB, true, |_| {});
    attempts(|| {
        std::fs::read(&data).expect("read");
        let said = text(&launch(&at, &["--verbose"], &["true"]).stderr);
        if !said.contains("cached already") {
            came(&data, 512)?;
            panic!("{said}");
        }
        Ok(())
    });
}

#[test]
fn a_plan_that_is_switched_off_is_not_followed() {
    let Whole { dir: _dir, data, at } =
        whole(2 * MIB, true, |p| p.standing = Standing::Off("it was slower".to_owned()));
    evict(&data);
    let out = launch(&at, &["--verbose"], &["true"]);
    assert!(text(&out.stderr).contains("switched off: it was slower"), "{}", text(&out.stderr));
    assert_eq!(cached(&data), 0);
}

#[test]
fn a_budget_ends_the_replay() {
    let Whole { dir, data, at } = whole(4 * MIB, false, |_| {});
    attempts(|| {
        evict(&data);
        let mut launcher = launcher(&at, &["--verbose", "--budget", "1048576"], &WAITS);
        calm(&followed(&mut launcher, dir.path()))?;
        came(&data, 256)
    });
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
    let script = format!("ulimit -n 40; exec {LAUNCHER} --verbose --plan {} -- sh -c \"$0\"", at.display());
    attempts(|| {
        for f in &files {
            evict(f);
        }
        let out = followed(std::process::Command::new("sh").args(["-c", &script, WAITS[2]]), dir.path());
        calm(&out)?;
        files.iter().try_for_each(|f| came(f, 1))
    });
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
    let open = |file| Step { op: Op::Open, critical: true, file, offset: 0, bytes: 0, need_ns: 0 };
    p.steps.splice(0..0, (0..files.len() as u32).map(open));
    for (op, kind, path) in [
        (Op::List, FileKind::Directory, dir.path()),
        (Op::Stat, FileKind::Name, &dir.path().join("f1")),
        (Op::Stat, FileKind::Name, &dir.path().join("no-such-name")),
        (Op::List, FileKind::Directory, &dir.path().join("no-such-directory")),
    ] {
        add_lookup(&mut p, op, kind, path);
    }
    save(&p, &at);
    attempts(|| {
        for f in &files {
            evict(f);
        }
        let out = launch(&at, &["--verbose"], &["true"]);
        gone(dir.path());
        let said = calm(&out)?;
        assert!(out.status.success() && said.contains("409600 of 409600 bytes"), "{out:?}");
        // The program began when all had arrived, unless the disk did nothing for others' sake.
        files.iter().try_for_each(|f| came(f, 1))
    });
}

#[test]
fn starts_from_a_store_are_entered_in_its_history_and_every_second_cold_one_is_a_control() {
    attempts(five_starts);
}

fn five_starts() -> Result<(), String> {
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
        let mut launcher = std::process::Command::new(LAUNCHER);
        launcher.arg("--store").arg(store.directory()).args(["--scenario", "own", "--control-every", "2"]);
        let out = launcher.args(["--verbose", "--"]).args(&argv).output().expect("runs");
        assert!(out.status.success());
        gone(store.directory());
        calm(&out)
    };
    for _ in 0..4 {
        evict(&data);
        run()?;
    }
    std::fs::read(&data).expect("read");
    run()?;
    came(&data, 256)?;
    let records = cold_plan::history::read(&store.history_of(&key)).expect("a history");
    let kinds: Vec<LaunchKind> = records.iter().map(|r| r.kind).collect();
    assert_eq!(kinds.len(), 5, "{records:?}");
    assert_eq!(kinds.iter().filter(|k| **k == LaunchKind::Control).count(), 2, "{kinds:?}");
    assert!(kinds[0] != kinds[1] && kinds[0] == kinds[2] && kinds[1] == kinds[3], "{kinds:?}");
    assert_eq!(kinds[4], LaunchKind::Skipped(cold_plan::history::Skip::Warm));
    for r in records.iter().take(4) {
        let mark = r.mark.expect("watched");
        // Reached or not, it took at least the CPU time it stands for.
        assert!(mark.exited || mark.wall_ns >= mark.cpu_ns, "{r:?}");
        let bytes = if r.kind == LaunchKind::Prefetched { MIB } else { 0 };
        assert!(r.bytes <= bytes, "{r:?}");
        if r.bytes < bytes {
            return Err(format!("the program was done before the replay: {r:?}"));
        }
    }
    Ok(())
}
