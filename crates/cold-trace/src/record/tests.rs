use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use cold_model::Nanos;
use cold_model::recording::TouchKind;
use cold_model::recording::tables::Began;

use super::*;
use crate::unwind::InnermostOnly;

type Log = Vec<(u16, Vec<u8>)>;

/// Records one command with what this process may do. `None`: perf events are refused.
fn record(options: &RecordOptions, argv: &[&OsStr]) -> Option<(Recording, Log)> {
    let log: Arc<Mutex<Log>> = Arc::default();
    let mut session = Session::start(options, Manifest::default(), log.clone()).expect("starts");
    if session.plan.is_none() && session.tier() > Tier::B {
        eprintln!("SKIPPED (needs perf events): {:?}", session.manifest.notes);
        return None;
    }
    // A shell that waits, as the supervisor does; `exit` keeps it from becoming the command.
    let mut shell = Command::new("sh")
        .args(["-c", "read go; \"$@\"; exit $?", "sh"])
        .args(argv)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("a shell");
    session.follow(shell.id(), false).expect("follows");
    shell.stdin.take().expect("piped").write_all(b"go\n").expect("waits");
    assert!(shell.wait().expect("ends").success());
    let ended = session.finish(|m| m.ready_means = "exit of the tree".to_owned()).expect("ends");
    let manifest = ended.manifest;
    assert!(manifest.complete);
    let log = log.lock().expect("not poisoned").clone();
    Some((crate::assemble(log.clone(), &mut InnermostOnly, &mut Here), log))
}

/// A file of 128 pages, and pages of it that lie in different windows of fault-around (16 pages each), so
/// that each is a fault of its own whatever is cached.
fn file_with_pattern(dir: &Path) -> (PathBuf, &'static str, BTreeSet<u64>) {
    let path = dir.join("touched file");
    // Page by page, for folios of one page: Linux 6.18 maps a large folio whole at its first fault.
    let mut file = std::fs::File::create(&path).expect("writable");
    let page = vec![7; cold_sys::page::page_size() as usize];
    (0..128).for_each(|_| file.write_all(&page).expect("writable"));
    (path, "0,16,33,50,70,99", BTreeSet::from([0, 16, 33, 50, 70, 99]))
}

/// Pages of the file in rows of a kind.
fn touched_of(recording: &Recording, path: &Path, kind: TouchKind) -> BTreeSet<u64> {
    let file = recording.files.iter().position(|f| f.path.as_deref() == path.to_str());
    let rows = recording.touches.iter().flatten().filter(|t| Some(t.file as usize) == file && t.kind == kind);
    rows.flat_map(|t| t.first_page..t.first_page + u64::from(t.pages)).collect()
}

fn touched(recording: &Recording, path: &Path) -> BTreeSet<u64> {
    let file = recording.files.iter().position(|f| f.path.as_deref() == path.to_str());
    let file = file.unwrap_or_else(|| panic!("{} is not among {:?}", path.display(), recording.files));
    let touches = recording.touches.as_ref().expect("perf events give touches");
    let exact = touches.iter().filter(|t| t.kind != TouchKind::FaultAround);
    exact.filter(|t| t.file as usize == file).map(|t| t.first_page).collect()
}

/// The pattern of a known program, its mapping, its process: what tiers C and D promise.
fn pattern_is_recorded(options: &RecordOptions, program: &Path) {
    let dir = tempfile::tempdir().expect("a directory");
    let (path, pages, expected) = file_with_pattern(dir.path());
    let argv = [program.as_os_str(), "touch-mapped".as_ref(), path.as_os_str(), pages.as_ref()];
    let Some((r, _)) = record(options, &argv) else { return };
    assert_eq!(r.manifest.lost_events(), 0, "{:?}", r.manifest.lost);
    assert_eq!(touched(&r, &path), expected, "{:?}", r.mappings);
    let mut exact = r.touches.iter().flatten().filter(|t| t.kind != TouchKind::FaultAround);
    assert!(exact.all(|t| t.kind == TouchKind::Fault && t.major.is_some()));
    // What else the windows (of 16 pages) held may have been mapped, too. Folios have one page here, which only root
    // is told.
    let around = touched_of(&r, &path, TouchKind::FaultAround);
    let near = |page: &u64| expected.iter().any(|own| own.abs_diff(*page) < 16);
    let known = cold_sys::caps::is_root();
    assert!(
        around.len() >= 15 && around.iter().all(|page| *page < 128 && (near(page) || !known)),
        "{around:?}"
    );

    // Its mapping, by path and offset, and the program itself.
    let file = |p: &Path| r.files.iter().position(|f| f.path.as_deref() == p.to_str()).expect("named") as u32;
    let mapping = r.mappings.iter().flatten().find(|m| m.file == file(&path)).expect("mapped");
    assert_eq!((mapping.offset, mapping.bytes), (0, 128 * cold_sys::page::page_size()));
    let image = r.processes.iter().find(|p| p.how == Began::Exec).expect("an exec");
    assert_eq!(image.executable, Some(file(&program.canonicalize().expect("exists"))));
    assert!(image.in_tree && image.ended.is_some());
    // The child forked from the shell, then called exec: two images of one process, no other.
    let pids: BTreeSet<u32> = r.processes.iter().map(|p| p.pid).collect();
    assert_eq!((pids.len(), r.processes.len()), (1, 2), "{:?}", r.processes);
    let meta = std::fs::metadata(&path).expect("exists");
    let row = &r.files[file(&path) as usize];
    assert_eq!((row.inode, row.size), (std::os::unix::fs::MetadataExt::ino(&meta), Some(meta.len())));
    assert_eq!((row.kind, row.deleted), (FileKind::Regular, false));
    // The program ran from a page of its own text, seen by its instruction pointers.
    assert!(r.touches.iter().flatten().any(|t| t.ip.is_some()));
}

mod root {
    use super::*;

    #[cfg(feature = "bpf")]
    mod kernel;

    #[test]
    fn tier_c_sees_exactly_the_pages_that_are_touched() {
        cold_testbed::needs_root!();
        let options = RecordOptions { tier: Some(Tier::C), ..RecordOptions::default() };
        pattern_is_recorded(&options, &cold_testbed::subject());
    }

    #[test]
    fn tier_d_sees_the_same_of_user_code() {
        cold_testbed::needs_root!();
        let options = RecordOptions { tier: Some(Tier::D), ..RecordOptions::default() };
        pattern_is_recorded(&options, &cold_testbed::subject());
    }

    #[test]
    fn an_ordinary_user_gets_tier_d() {
        cold_testbed::needs_root!();
        // This test program again, as nobody, from a place that nobody can reach.
        let dir = tempfile::Builder::new().permissions(mode(0o755)).tempdir().expect("a directory");
        let copy = |from: &Path, name: &str| {
            let to = dir.path().join(name);
            std::fs::copy(from, &to).expect("copies");
            std::fs::set_permissions(&to, mode(0o755)).expect("own file");
            to
        };
        let me = copy(&std::env::current_exe().expect("known"), "tests");
        let subject = copy(&cold_testbed::subject(), "subject");
        let mut command = Command::new(me);
        std::os::unix::process::CommandExt::uid(&mut command, 65534);
        std::os::unix::process::CommandExt::gid(&mut command, 65534);
        let output = command
            .args(["--exact", "--nocapture", "record::tests::as_an_ordinary_user"])
            .env("COLD_TEST_SUBJECT", subject)
            .env("TMPDIR", "/tmp")
            .current_dir("/")
            .output()
            .expect("runs");
        let text =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        let paranoid: i32 = ProcFs::default().sysctl("kernel.perf_event_paranoid").unwrap().parse().unwrap();
        if paranoid <= 2 {
            assert!(!text.contains("SKIPPED"), "{text}");
        }
    }

    fn mode(bits: u32) -> std::fs::Permissions {
        std::os::unix::fs::PermissionsExt::from_mode(bits)
    }
}

/// Run by the test above as another user; by itself only where it is not root.
#[test]
fn as_an_ordinary_user() {
    let Some(subject) = std::env::var_os("COLD_TEST_SUBJECT") else { return };
    let options = RecordOptions::default();
    let log: SharedSink = Arc::<Mutex<Log>>::default();
    let session = Session::start(&options, Manifest::default(), log).expect("starts");
    assert_eq!(session.tier(), Tier::D);
    let refused: Vec<Tier> = session.refused().iter().map(|r| r.0).collect();
    assert_eq!(refused, [Tier::A, Tier::B, Tier::C]);
    assert!(session.refused().iter().any(|(_, why)| why.contains("perf_event_paranoid")));
    pattern_is_recorded(&options, Path::new(&subject));
}

/// As after `kill -9`: the log has no end, the last block is cut, nothing else was written.
#[test]
fn a_broken_off_recording_is_recovered_up_to_where_it_was() {
    let dir = tempfile::tempdir().expect("a directory");
    let (path, pages, expected) = file_with_pattern(dir.path());
    let subject = cold_testbed::subject();
    let argv = [subject.as_os_str(), "touch-mapped".as_ref(), path.as_os_str(), pages.as_ref()];
    let options = RecordOptions { tier: Some(Tier::D), ..RecordOptions::default() };
    let Some((_, log)) = record(&options, &argv) else { return };
    let mut writer = cold_recording::log::Writer::create(dir.path(), 4096, Nanos(1)).expect("creates");
    // The last fact is the final manifest: the recorder was killed before it.
    for (kind, bytes) in log.iter().take(log.len() - 1) {
        Sink::append(&mut writer, *kind, bytes).expect("writes");
    }
    drop(writer);
    let file = dir.path().join(cold_recording::log::NAME);
    let whole = std::fs::read(&file).expect("there");
    let r = recover(dir.path(), &mut InnermostOnly).expect("recovers");
    assert!(!r.manifest.complete && r.manifest.tier == Tier::D);
    assert!(r.manifest.notes.iter().any(|n| n.contains("not whole")), "{:?}", r.manifest.notes);
    assert_eq!(touched(&r, &path), expected);
    assert!(r.manifest.end >= r.touches.as_ref().expect("a table").last().expect("touches").at);
    // Cut off in the middle of a block, or damaged there: what was before is left.
    std::fs::write(&file, &whole[..whole.len() * 2 / 3]).expect("writable");
    let less = recover(dir.path(), &mut InnermostOnly).expect("recovers");
    assert!(less.manifest.cost.events <= r.manifest.cost.events);
    std::fs::write(&file, &whole[..20]).expect("writable");
    assert!(matches!(recover(dir.path(), &mut InnermostOnly), Err(Error::Recording(_))));
}

/// Pages that came while nobody saw when: cached after, not before.
#[test]
fn without_fills_the_cache_is_looked_at_before_and_after() {
    let dir = tempfile::tempdir().expect("a directory");
    let (path, pages, expected) = file_with_pattern(dir.path());
    let file = std::fs::File::open(&path).expect("exists");
    file.sync_all().expect("synced");
    let subject = cold_testbed::subject();
    let argv =
        [subject.as_os_str(), "touch-mapped".as_ref(), path.as_os_str(), pages.as_ref(), "--random".as_ref()];
    let options =
        RecordOptions { tier: Some(Tier::D), files: vec![path.clone()], ..RecordOptions::default() };
    for attempt in 0.. {
        let _ = cold_sys::evict::advise_dontneed(&file);
        let Some((r, _)) = record(&options, &argv) else { return };
        let fills = r.fills.as_ref().expect("by looking");
        assert!(
            fills
                .iter()
                .all(|f| f.at == r.manifest.end && f.cause == cold_model::recording::FillCause::Other)
        );
        let came = fills.iter().flat_map(|f| f.first_page..f.first_page + u64::from(f.pages));
        if came.collect::<BTreeSet<u64>>() == expected {
            break;
        }
        assert!(attempt < 20, "{fills:?}");
    }
}

#[test]
fn copied_stacks_and_call_chains_come_with_faults() {
    for stacks in [StackMethod::FramePointers, StackMethod::UnwindTables] {
        let dir = tempfile::tempdir().expect("a directory");
        let (path, pages, expected) = file_with_pattern(dir.path());
        let file = std::fs::File::open(&path).expect("exists");
        file.sync_all().expect("synced");
        let options = RecordOptions { tier: Some(Tier::D), stacks: Some(stacks), ..RecordOptions::default() };
        let subject = cold_testbed::subject();
        let argv = [subject.as_os_str(), "touch-mapped".as_ref(), path.as_os_str(), pages.as_ref()];
        // Others may bring the file back into the cache meanwhile: copies are taken of major faults only.
        for attempt in 0.. {
            let _ = cold_sys::evict::advise_dontneed(&file);
            let Some((r, _)) = record(&options, &argv) else { return };
            assert_eq!(touched(&r, &path), expected);
            let file = r.files.iter().position(|f| f.path.as_deref() == path.to_str());
            let mut of_file = r.touches.iter().flatten().filter(|t| Some(t.file as usize) == file);
            let stack = of_file.find_map(|t| Some((t.ip?, t.stack?)));
            if let Some((ip, stack)) = stack {
                let frame = r.stacks.as_ref().expect("asked for")[stack as usize].frames[0];
                assert_eq!(frame.address, ip);
                let code = r.files[frame.file.expect("mapped") as usize].path.clone().expect("named");
                assert!(code.ends_with("cold-subject"), "{code}");
                break;
            }
            assert!(attempt < 20, "no fault of the file came with a stack ({stacks:?})");
        }
    }
}
