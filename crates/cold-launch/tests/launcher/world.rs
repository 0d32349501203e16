//! Plans, files and launchers for the tests.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use cold_plan::Plan;
use cold_plan::plan::{FileKind, Gate, Identity, Key, Knobs, Learnt, Op, Order, PlanFile, Step};

/// The launcher that `scripts/test` has linked with musl.
pub(crate) const WITH_MUSL: Option<&str> = option_env!("COLD_LAUNCHER_WITH_MUSL");

/// The launcher: that one, or this build's.
pub(crate) const LAUNCHER: &str = match WITH_MUSL {
    Some(launcher) => launcher,
    None => env!("CARGO_BIN_EXE_cold-launch"),
};
pub(crate) const MIB: u64 = 1 << 20;

/// A directory on a disk (not in memory) that the tests may fill.
pub(crate) fn directory() -> tempfile::TempDir {
    let dir = tempfile::Builder::new().prefix("cold-launch-").tempdir_in(env!("CARGO_TARGET_TMPDIR"));
    let dir = dir.expect("a directory");
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).expect("readable");
    dir
}

/// An empty plan of `/bin/true`.
pub(crate) fn plan() -> Plan {
    let executable = std::fs::canonicalize("/bin/true").expect("coreutils");
    let key = Key { executable, identity: Identity::default(), script: None, scenario: "test".to_owned() };
    let learnt = Learnt { starts: 1, cold_starts: 1, tier: 'A', exact: true, ..Learnt::default() };
    let knobs = Knobs {
        min_uses: 1,
        gap_bytes: 0,
        chunk_bytes: 128 << 10,
        in_flight_bytes: 1 << 20,
        threads: 1,
        order: Order::Need,
        window_us: 0,
        gate: Gate::Issued,
        critical_us: 0,
        metadata: true,
    };
    Plan::unmade(key, learnt, Vec::new(), Vec::new(), knobs)
}

/// Adds a file of this identity with one step for each of `ranges` (offset, bytes), critical or not.
pub(crate) fn add(plan: &mut Plan, path: &Path, identity: Identity, ranges: &[(u64, u32)], critical: bool) {
    let file = plan.files.len() as u32;
    let path = path.to_owned();
    plan.files.push(PlanFile { path, kind: FileKind::Regular, identity, need_ns: 0, uses: 1, exact: false });
    let steps = ranges.iter().map(|(offset, bytes)| Step {
        op: Op::Read,
        critical,
        file,
        offset: *offset,
        bytes: *bytes,
        need_ns: 0,
    });
    let at = if critical { plan.steps.iter().take_while(|s| s.critical).count() } else { plan.steps.len() };
    plan.steps.splice(at..at, steps);
}

/// Adds a file of this kind, of which nothing must be true; its place.
pub(crate) fn add_file(plan: &mut Plan, kind: FileKind, path: &Path) -> u32 {
    let path = path.to_owned();
    plan.files.push(PlanFile {
        path,
        kind,
        identity: Identity::default(),
        need_ns: 0,
        uses: 1,
        exact: false,
    });
    plan.files.len() as u32 - 1
}

/// Adds something to be looked up, as the first critical step.
pub(crate) fn add_lookup(plan: &mut Plan, op: Op, kind: FileKind, path: &Path) {
    let file = add_file(plan, kind, path);
    plan.steps.insert(0, Step { op, critical: true, file, offset: 0, bytes: 0, need_ns: 0 });
}

/// Adds the whole of an existing file in steps of 128 KiB.
pub(crate) fn add_whole(plan: &mut Plan, path: &Path, critical: bool) {
    let meta = std::fs::metadata(path).expect("exists");
    let step = 128 << 10;
    let ranges: Vec<(u64, u32)> = (0..meta.len().div_ceil(step)).map(|i| (i * step, step as u32)).collect();
    add(plan, path, Identity::of(&meta, [0; 20]), &ranges, critical);
}

/// A file and a plan that reads all of it, in a directory of their own.
pub(crate) struct Whole {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) data: PathBuf,
    /// Where the plan lies.
    pub(crate) at: PathBuf,
}

/// Of a file of `bytes`; its plan as `change` leaves it.
pub(crate) fn whole(bytes: u64, critical: bool, change: impl FnOnce(&mut Plan)) -> Whole {
    let dir = directory();
    let (data, at) = (file(&dir.path().join("data"), bytes), dir.path().join("plan"));
    let mut p = plan();
    add_whole(&mut p, &data, critical);
    change(&mut p);
    save(&p, &at);
    Whole { dir, data, at }
}

/// Writes the plan where only its owner may write.
pub(crate) fn save(plan: &Plan, path: &Path) {
    put(path, &cold_plan::format::encode(plan).expect("a plan"));
}

pub(crate) fn put(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("written");
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o644)).expect("readable");
}

/// A file of `bytes`, on the disk.
pub(crate) fn file(path: &Path, bytes: u64) -> PathBuf {
    std::fs::write(path, vec![7_u8; bytes as usize]).expect("written");
    File::open(path).and_then(|f| f.sync_all()).expect("synced");
    path.to_owned()
}

/// Takes a file that nobody else knows out of the cache.
#[track_caller]
pub(crate) fn evict(path: &Path) {
    let (file, meta) = cold_sys::open::regular(path, true).expect("open");
    let gone = || cold_sys::evict::evict_file(&file, &meta, &[]).expect("evicted").after == Some(0);
    cold_testbed::until("a file of the test's own is out of the cache", || gone().then_some(()));
}

/// Pages of a file that are in the cache.
pub(crate) fn cached(path: &Path) -> u64 {
    let file = File::open(path).expect("open");
    cold_sys::residency::cachestat(&file, 0, 0).expect("asked").map_or(0, |s| s.cached)
}

/// Exactly so many pages of a file that was evicted have come. `Err`: fewer, which a stranger's hunger for
/// memory does, too: the replay gives way to it, and the kernel takes pages away again.
#[track_caller]
pub(crate) fn came(path: &Path, pages: u64) -> Result<(), String> {
    let now = cached(path);
    assert!(now <= pages, "{now} pages of {} came instead of {pages}", path.display());
    if now == pages { Ok(()) } else { Err(format!("{now} pages of {} instead of {pages}", path.display())) }
}

/// What a verbose launcher said. `Err`: strangers wait for memory or keep a disk busy, so it does not follow
/// its plan now.
pub(crate) fn calm(out: &Output) -> Result<String, String> {
    let said = text(&out.stderr);
    let guards = ["memory is under pressure", "the disk is busy", "too little free memory"];
    if guards.iter().any(|why| said.contains(why)) { Err(said) } else { Ok(said) }
}

/// A program that repeats its input, and ends with it.
pub(crate) const WAITS: [&str; 3] = ["sh", "-c", "cat; exit 7"];

/// Starts a launcher and waits until it is its program, which repeats its input: until then it counts as a
/// helper.
pub(crate) fn begun(launcher: &mut Command) -> Child {
    launcher.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut program = launcher.spawn().expect("the launcher runs");
    program.stdin.as_mut().expect("piped").write_all(b"ran\n").expect("the pipe holds it");
    let mut said = [0; 4];
    program.stdout.as_mut().expect("piped").read_exact(&mut said).expect("the program runs");
    assert_eq!(&said, b"ran\n");
    program
}

/// A start of [`WAITS`] that lives until its helper has done everything. `dir` is a part of the launcher's
/// command line that no other test uses.
pub(crate) fn followed(launcher: &mut Command, dir: &Path) -> Output {
    let program = begun(launcher);
    gone(dir);
    let out = program.wait_with_output().expect("ended");
    assert_eq!((out.status.code(), text(&out.stdout)), (Some(7), String::new()), "{out:?}");
    out
}

/// `cold-launch OPTIONS -- COMMAND`, not yet started.
pub(crate) fn launcher(plan: &Path, options: &[&str], command: &[&str]) -> Command {
    let mut launcher = Command::new(LAUNCHER);
    launcher.arg("--plan").arg(plan).args(options).arg("--").args(command);
    launcher
}

/// Runs it to its end.
pub(crate) fn launch(plan: &Path, options: &[&str], command: &[&str]) -> Output {
    launcher(plan, options, command).output().expect("the launcher runs")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Helpers whose command line mentions `mark` (a part of the plan's path that no other test uses).
pub(crate) fn helpers(mark: &str) -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            comm.trim() == "cold-launch" && text(&line).contains(mark)
        })
        .collect()
}

/// Waits until no helper of this directory is left.
pub(crate) fn gone(dir: &Path) {
    let mark = dir.display().to_string();
    cold_testbed::until("the helper is gone", || helpers(&mark).is_empty().then_some(()));
}
