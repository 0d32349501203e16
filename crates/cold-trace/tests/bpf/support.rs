//! An actor whose touches are known, and what was recorded of it.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{OnceLock, PoisonError, RwLock};

use cold_trace::bpf::{BpfCosts, BpfOptions, BpfRecorder, Follow};
use cold_trace::raw::{Event, FileEvent, Id, RawRecord, records};
use tempfile::TempDir;

/// Root, BPF and a C compiler; skips loudly where one is missing.
pub(crate) fn ready() -> bool {
    let can = |what: &str| Command::new("sh").args(["-c", &format!("command -v {what}")]).output();
    cold_testbed::need_root()
        && cold_testbed::need(cold_trace::bpf::available().is_ok(), "BPF with BTF tracepoints")
        && cold_testbed::need(can("cc").is_ok_and(|out| out.status.success()), "a C compiler")
}

/// A program of `tests/bpf`, compiled where Cargo keeps what tests make.
fn compile(name: &str, flags: &[&str]) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (path, fresh) = (dir.join(name), dir.join(format!("{name}.{}", std::process::id())));
    let source = format!("{}/tests/bpf/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let _beside_others = RUNS.read().unwrap_or_else(PoisonError::into_inner);
    let status = Command::new("cc").args(flags).arg("-o").arg(&fresh).arg(&source).status();
    assert!(status.unwrap().success(), "cc {source}");
    fs::rename(&fresh, &path).unwrap();
    path
}

/// Held by tests that run programs, which a recorder of this process's children follows, too.
static RUNS: RwLock<()> = RwLock::new(());

/// The actor, compiled once.
pub(crate) fn actor() -> &'static Path {
    static ACTOR: OnceLock<PathBuf> = OnceLock::new();
    ACTOR.get_or_init(|| compile("actor", &["-O1", "-static"]))
}

/// A program of 32 bits, which needs no library of 32 bits.
#[cfg(target_arch = "x86_64")]
pub(crate) fn maps32() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    let flags = ["-m32", "-nostdlib", "-static", "-fno-pie", "-no-pie", "-fno-stack-protector"];
    PATH.get_or_init(|| compile("maps32", &flags))
}

/// A directory on a file system with a disk.
pub(crate) fn scratch() -> TempDir {
    tempfile::Builder::new().prefix("cold-bpf-").tempdir_in("/var/tmp").unwrap()
}

/// A file of so many pages, on the disk and not in the cache.
pub(crate) fn cold_file(dir: &Path, name: &str, pages: usize) -> PathBuf {
    let path = dir.join(name);
    let mut file = File::create(&path).unwrap();
    let bytes: Vec<u8> = (0..pages * 4096).map(|i| ((i * 31) >> 3) as u8).collect();
    file.write_all(&bytes).unwrap();
    file.sync_all().unwrap();
    drop(file);
    evict(&path);
    path
}

pub(crate) fn evict(path: &Path) {
    let file = File::open(path).unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
}

/// What a run of the actor left.
pub(crate) struct Seen {
    pub(crate) stream: Vec<u8>,
    pub(crate) finished: BpfCosts,
    pub(crate) tells_areas: bool,
    /// Its process.
    actor: u32,
}

/// Records the actor doing `args`.
pub(crate) fn record(options: &BpfOptions, args: &[&str]) -> Seen {
    record_of(actor(), options, args)
}

/// The same of any program.
pub(crate) fn record_of(program: &Path, options: &BpfOptions, args: &[&str]) -> Seen {
    let _beside_others = RUNS.read().unwrap_or_else(PoisonError::into_inner);
    recorded(program, options, args)
}

/// The actor's, while no other test of this process records or compiles: what such programs lose counts as well.
pub(crate) fn record_alone(options: &BpfOptions, args: &[&str]) -> Seen {
    let program = actor();
    let _alone = RUNS.write().unwrap_or_else(PoisonError::into_inner);
    recorded(program, options, args)
}

fn recorded(program: &Path, options: &BpfOptions, args: &[&str]) -> Seen {
    let mut recorder = BpfRecorder::attach(options, Vec::new()).unwrap();
    recorder.follow(Follow::ChildrenOf(std::process::id())).unwrap();
    let actor =
        Command::new(program).args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = actor.id();
    let run = actor.wait_with_output().unwrap();
    assert!(run.status.success(), "{args:?}: {run:?}");
    let tells_areas = recorder.tells_areas();
    let (finished, stream) = recorder.finish().unwrap();
    Seen { stream, finished, tells_areas, actor: pid }
}

impl Seen {
    pub(crate) fn events(&self) -> impl Iterator<Item = RawRecord<'_>> {
        records(&self.stream).map(Result::unwrap)
    }

    /// Only what the actor itself and its children did: other tests of this process run programs too, actors
    /// among them.
    pub(crate) fn of_actor(&self) -> Vec<RawRecord<'_>> {
        let mut pids = vec![self.actor];
        for record in self.events() {
            match record.event {
                Event::Fork(task) if pids.contains(&record.head.pid) => pids.push(task.pid),
                _ => {}
            }
        }
        self.events().filter(|record| pids.contains(&record.head.pid)).collect()
    }

    pub(crate) fn files_of(&self, id: Id) -> Vec<FileEvent<'_>> {
        self.events()
            .filter_map(|record| match record.event {
                Event::File(file) if file.file == id => Some(file),
                _ => None,
            })
            .collect()
    }

    /// The best path that was recorded of a file.
    pub(crate) fn path_of(&self, id: Id) -> Option<(String, u32)> {
        let files = self.files_of(id);
        let best = files.iter().max_by_key(|file| file.state & cold_trace::raw::FILE_FULL)?;
        Some((String::from_utf8_lossy(&best.path()).into_owned(), best.state))
    }
}

/// The inode that stat tells, on file systems where the kernel's own number is the same.
pub(crate) fn is(id: Id, path: &Path) -> bool {
    let stat = fs::metadata(path).unwrap();
    let dev = stat.dev();
    id.inode == stat.ino()
        && u64::from(id.dev.major) == u64::from(rustix::fs::major(dev))
        && u64::from(id.dev.minor) == u64::from(rustix::fs::minor(dev))
}
