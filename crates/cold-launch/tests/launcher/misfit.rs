//! Plans that fit in part, or not: half of the files replaced by an upgrade, the plan of another scenario.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cold_plan::Store;
use cold_plan::history::{LaunchKind, Skip};
use cold_plan::plan::{Identity, Key};
use cold_testbed::attempts;

use crate::world::{
    LAUNCHER, MIB, WAITS, add, add_whole, cached, calm, came, directory, evict, file, followed, plan, save,
    text,
};

/// Puts another file there, of the same size, as an upgrade does.
fn replace(path: &Path, bytes: u64) {
    use std::os::unix::fs::MetadataExt;
    let time = |p: &Path| std::fs::metadata(p).map(|m| (m.mtime(), m.mtime_nsec())).expect("stat");
    let (old, new) = (time(path), path.with_extension("new"));
    // An upgrade comes later. Files that are written in one tick of the clock (4 ms at 250 Hz) have one time, and a plan
    // knows its files by size and time: 19 of 320 runs wrote both in one.
    let written = cold_testbed::until("a file of a later time", || {
        let written = file(&new, bytes);
        (time(&written) != old).then_some(written)
    });
    std::fs::rename(written, path).expect("replaced");
}

/// A store with a plan of `argv` under the scenario `name`.
pub(crate) fn stored(dir: &Path, argv: &[OsString], name: Option<&str>) -> (Store, Key) {
    let store = Store::at(dir.join("store"));
    std::fs::create_dir_all(store.directory()).expect("made");
    let path = std::env::var_os("PATH");
    let command = cold_plan::scenario::Command { argv, cwd: "/".as_ref(), path: path.as_deref() };
    let key = cold_plan::scenario::find(&command, name).expect("a key");
    (store, key)
}

/// `cold-launch` by the store, for a program that outlives its helper.
fn from_store(store: &Store, options: &[&str], argv: &[OsString]) -> Output {
    let mut command = Command::new(LAUNCHER);
    command.arg("--store").arg(store.directory()).args(["--verbose"]).args(options).arg("--").args(argv);
    followed(&mut command, store.directory())
}

fn argv(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

#[test]
fn of_a_half_stale_plan_the_rest_is_used_and_of_a_stale_one_nothing() {
    const BYTES: u64 = 256 << 10;
    let dir = directory();
    let argv = argv(&WAITS);
    let (store, key) = stored(dir.path(), &argv, None);
    let mut p = plan();
    p.key = key.clone();
    let files: Vec<PathBuf> = (0..8).map(|n| file(&dir.path().join(format!("f{n}")), BYTES)).collect();
    for f in &files {
        add_whole(&mut p, f, false);
    }
    save(&p, &store.path_of(&key));
    // How many pages of each come.
    let upgraded = |n: usize, pages: [u64; 8]| {
        for f in &files[..n] {
            replace(f, BYTES);
        }
        attempts(|| {
            for f in &files {
                evict(f);
            }
            calm(&from_store(&store, &[], &argv))?;
            files.iter().zip(pages).try_for_each(|(f, pages)| came(f, pages))
        });
    };
    // Half of the bytes: what is left of it is worth following.
    upgraded(4, [0, 0, 0, 0, 64, 64, 64, 64]);
    // More: it is given up as soon as that is known, before anything else is read.
    upgraded(5, [0; 8]);
    let records = cold_plan::history::read(&store.history_of(&key)).expect("a history");
    let others_need = [LaunchKind::Skipped(Skip::DiskBusy), LaunchKind::Skipped(Skip::Memory)];
    let mut kinds: Vec<LaunchKind> =
        records.iter().map(|r| r.kind).filter(|k| !others_need.contains(k)).collect();
    kinds.dedup(); // of repeated attempts
    assert_eq!(kinds, [LaunchKind::Prefetched, LaunchKind::Skipped(Skip::Stale)]);
}

#[test]
fn a_plan_of_another_scenario_is_not_taken_and_by_name_reads_what_it_names_and_no_more() {
    let dir = directory();
    let argv = argv(&[&WAITS[..], &["--page"]].concat());
    let (store, other) = stored(dir.path(), &argv, Some("convert"));
    let data = file(&dir.path().join("data"), 4 * MIB);
    let mut p = plan();
    p.key = other.clone();
    let meta = std::fs::metadata(&data).expect("stat");
    let ranges: Vec<(u64, u32)> = (0..4).map(|i| (i * MIB, 64 << 10)).collect();
    add(&mut p, &data, Identity::of(&meta, [0; 20]), &ranges, false);
    save(&p, &store.path_of(&other));
    evict(&data);
    // By the shape of its arguments this start has no plan.
    let out = from_store(&store, &[], &argv);
    assert!(text(&out.stderr).contains("there is no plan for this command"), "{}", text(&out.stderr));
    assert_eq!(cached(&data), 0);
    // Put in the place of its own plan, by hand: it says for which scenario it is.
    let (_, own) = stored(dir.path(), &argv, None);
    std::fs::copy(store.path_of(&other), store.path_of(&own)).expect("copied");
    let out = from_store(&store, &[], &argv);
    assert!(text(&out.stderr).contains("holds the plan of another executable"), "{}", text(&out.stderr));
    assert_eq!(cached(&data), 0);
    // By name it is followed, as far as it goes.
    attempts(|| {
        evict(&data);
        let said = calm(&from_store(&store, &["--scenario", "convert"], &argv))?;
        assert!(said.contains("262144 of 262144 bytes"), "{said}");
        came(&data, 64)
    });
}
