//! Running `cold`, and the directory, programs and witnesses around it.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use cold_model::Bytes;
use cold_model::bench::{Report, Run, State, Taint};
use cold_testbed::SlowDisk;
use cold_testbed::disk::Preset;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

pub(crate) use cold_testbed::{PATIENCE, attempts, until};
pub(crate) const MIB: usize = 1 << 20;
pub(crate) const PAGE: u64 = 4096;

static MACHINE: RwLock<()> = RwLock::new(());

/// A mount, gone with its value.
pub(crate) struct Mounted(PathBuf);

impl Mounted {
    pub(crate) fn new(at: PathBuf, args: &[&str]) -> Self {
        fs::create_dir_all(&at).unwrap();
        run("mount", &[args, &[at.to_str().unwrap()]].concat());
        Self(at)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Runs a tool that must succeed.
pub(crate) fn run(program: &str, args: &[&str]) {
    let out = Command::new(program).args(args).output().unwrap();
    assert!(out.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
}

/// Held by tests that look at residency, so that [`alone`] does not spoil them.
pub(crate) fn together() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// Held by tests that drop everybody's caches, and by those that need a verdict on times: other tests are
/// the strangers that keep the CPUs busy.
pub(crate) fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// Held by tests that record with `--exact-need`: its settings are the machine's, and one `cold` has them at a time.
pub(crate) fn exactly() -> MutexGuard<'static, ()> {
    static SETTINGS: Mutex<()> = Mutex::new(());
    SETTINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A directory that everybody may enter, with a copy of the program under test. It goes away with its
/// value. As root it lies on a test disk, which nobody else reads; else not below /tmp, which is no disk
/// on many machines.
pub(crate) struct Sandbox {
    dir: tempfile::TempDir,
    _disk: Option<SlowDisk>, // after the directory: it is dropped later
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self::on_test_disk(rustix::process::geteuid().is_root())
    }
    /// One that other users may enter, too: the test disk is root's.
    pub(crate) fn for_all() -> Self {
        Self::on_test_disk(false)
    }
    fn on_test_disk(wanted: bool) -> Self {
        let disk = wanted.then(|| SlowDisk::create(Preset::Fast, Bytes(160 << 20)).unwrap());
        let below = disk.as_ref().map_or(Path::new("/var/tmp"), SlowDisk::mount_point);
        let dir = tempfile::Builder::new().prefix("cold-e2e-").tempdir_in(below).unwrap();
        fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let me = Self { dir, _disk: disk };
        fs::copy(cold_testbed::subject(), me.path("cold-subject")).unwrap();
        fs::create_dir(me.path("tmp")).unwrap();
        fs::set_permissions(me.path("tmp"), PermissionsExt::from_mode(0o1777)).unwrap();
        sync(&me.path("cold-subject"));
        me
    }
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
    /// The same as text, for command lines.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).into_os_string().into_string().unwrap()
    }
    pub(crate) fn subject(&self) -> String {
        self.text("cold-subject")
    }
    /// A file with content, on disk.
    pub(crate) fn file(&self, name: &str, bytes: usize) -> PathBuf {
        data(self.path(name), bytes)
    }
    /// A shell script that can be executed.
    pub(crate) fn script(&self, name: &str, text: &str) -> String {
        cold_testbed::executable(&self.path(name), format!("#!/bin/sh\n{text}\n"));
        self.text(name)
    }
    /// Lines of a log that scripts and hooks append to.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
    /// What is left in the directory that `cold` uses for temporary files.
    pub(crate) fn temporary(&self) -> Vec<PathBuf> {
        fs::read_dir(self.path("tmp")).unwrap().map(|e| e.unwrap().path()).collect()
    }
    /// Processes with this directory in their command line.
    pub(crate) fn processes(&self) -> Vec<String> {
        let marker = self.dir.path().to_str().unwrap();
        let pids = fs::read_dir("/proc").unwrap().flatten();
        pids.filter_map(|e| Some((e.file_name(), fs::read(e.path().join("cmdline")).ok()?)))
            .map(|(pid, line)| {
                format!("{} {}", pid.display(), String::from_utf8_lossy(&line).replace('\0', " "))
            })
            .filter(|line| line.contains(marker))
            .collect()
    }
    /// `cold` with its temporary files in here.
    pub(crate) fn cold<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Cold {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cold"));
        command.args(args).env("TMPDIR", self.path("tmp")).env("COLUMNS", "100");
        command.env_remove("RUST_BACKTRACE").current_dir(self.dir.path());
        Cold { command }
    }
    /// `cold bench --json` on files, with short gaps.
    pub(crate) fn bench<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Cold {
        let fixed = ["bench", "--json", "--evict", "files", "--idle-gap", "20"].map(OsString::from);
        let args = args.into_iter().map(|a| a.as_ref().to_owned());
        self.cold(fixed.into_iter().chain(args))
    }
}

pub(crate) fn data(path: PathBuf, bytes: usize) -> PathBuf {
    // Byte i is (i / 4096 + i) modulo 256: each page is the same cycle, begun at its own number. Copied, because an
    // unoptimised loop over the bytes took a tenth of the CPU time where tests make many files.
    let cycle: Vec<u8> = (0..=u8::MAX).cycle().take(4096 + 256).collect();
    let pages = (0..bytes.div_ceil(4096)).map(|page| &cycle[page % 256..][..4096.min(bytes - page * 4096)]);
    fs::write(&path, pages.collect::<Vec<_>>().concat()).unwrap();
    sync(&path);
    path
}

pub(crate) fn sync(path: &Path) {
    File::open(path).unwrap().sync_all().unwrap();
}

/// Runs its arguments with `perf_event_open`(2) and bpf(2) refused (EPERM) by a seccomp filter.
const REFUSE: &str = "
import ctypes, os, platform, struct, sys
calls = {'x86_64': (298, 321), 'aarch64': (241, 280)}[platform.machine()]
load, equal, answer = 0x20, 0x15, 0x06
code = [(load, 0, 0, 0), (equal, 1, 0, calls[0]), (equal, 0, 1, calls[1]), (answer, 0, 0, 0x50001), (answer, 0, 0, 0x7fff0000)]
code = b''.join(struct.pack('HBBI', *line) for line in code)
buffer = ctypes.create_string_buffer(code, len(code))
program = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', len(code) // 8, ctypes.addressof(buffer)), 16)
prctl = ctypes.CDLL(None, use_errno=True).prctl
assert prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()
os.execvp(sys.argv[1], sys.argv[1:])";

/// `cold`, about to run.
pub(crate) struct Cold {
    command: Command,
}

impl Cold {
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }
    /// Another copy of `cold`, for users who may not enter the directory of this one.
    pub(crate) fn use_program(&mut self, program: &Path) {
        self.rebuild(Command::new(program));
    }
    fn rebuild(&mut self, mut command: Command) {
        command.args(self.command.get_args());
        for (name, value) in self.command.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(dir) = self.command.get_current_dir() {
            command.current_dir(dir);
        }
        self.command = command;
    }
    /// Started by another program, which gets it as its last arguments.
    pub(crate) fn by(mut self, program: &str, args: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(args).arg(self.command.get_program());
        self.rebuild(command);
        self
    }
    /// As an ordinary user, by setpriv; needs root.
    pub(crate) fn by_nobody(self) -> Self {
        self.by("setpriv", &["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
    }
    /// From a shell that did this before.
    pub(crate) fn after(self, done: &str) -> Self {
        self.by("/bin/sh", &["-c", &format!("{done}; exec \"$@\""), "sh"])
    }
    /// Where the kernel refuses perf events and BPF, as a container's filter does.
    pub(crate) fn without_perf_events(self) -> Self {
        self.by("/usr/bin/python3", &["-c", REFUSE])
    }
    pub(crate) fn start(mut self) -> Started {
        let (out, err) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let streams = (out.try_clone().unwrap(), err.try_clone().unwrap());
        self.command.stdin(Stdio::null()).stdout(streams.0).stderr(streams.1);
        let line = format!("{:?}", self.command);
        let child = self.command.spawn().unwrap();
        Started { child, out, err, line }
    }
    /// A process group of its own, as a shell gives to what is typed at a terminal.
    pub(crate) fn start_as_job(mut self) -> Started {
        std::os::unix::process::CommandExt::process_group(&mut self.command, 0);
        self.start()
    }
    pub(crate) fn run(self) -> Ran {
        self.start().end()
    }
    /// With somebody else's standard output.
    pub(crate) fn run_into(mut self, out: impl Into<Stdio>) -> Ran {
        let (none, err) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        self.command.stdin(Stdio::null()).stdout(out).stderr(err.try_clone().unwrap());
        let line = format!("{:?}", self.command);
        let child = self.command.spawn().unwrap();
        Started { child, out: none, err, line }.end()
    }
}

/// `cold`, running. Killed if the test fails.
pub(crate) struct Started {
    child: Child,
    out: File,
    err: File,
    line: String,
}

impl Started {
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
    pub(crate) fn kill(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }
    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ran {
        let end = Instant::now() + PATIENCE * 2;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < end, "{} does not end; it says {}", self.line, text(&mut self.err));
            std::thread::sleep(Duration::from_millis(5));
        };
        let (stdout, stderr) = (text(&mut self.out), text(&mut self.err));
        Ran { line: self.line.clone(), status, stdout, stderr }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_end(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// What a run of `cold` came to.
#[derive(Debug)]
pub(crate) struct Ran {
    line: String,
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// The exit code; 128 + n for signal n, as shells say it.
    pub(crate) fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code(), code, "{}\nstdout: {}\nstderr: {}", self.line, self.stdout, self.stderr);
        self
    }
    /// Done, or disturbed by a stranger (inconclusive), which is a reason to repeat.
    #[track_caller]
    pub(crate) fn done_or_disturbed(self) -> Result<Self, String> {
        if self.code() == 4 {
            let said = self.report().stopped;
            return Err(format!("inconclusive: {}", said.as_deref().unwrap_or(&self.line)));
        }
        Ok(self.expect(0))
    }
    /// Ended as it should, whether or not strangers spoiled the figures.
    #[track_caller]
    pub(crate) fn finished(self) -> Self {
        if self.code() == 4 { self } else { self.expect(0) }
    }
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let parsed = serde_json::from_str(&self.stdout);
        parsed.unwrap_or_else(|e| {
            panic!("{e}: {}\nstdout: {}\nstderr: {}", self.line, self.stdout, self.stderr)
        })
    }
    #[track_caller]
    pub(crate) fn report(&self) -> Report {
        serde_json::from_value(self.json()).unwrap_or_else(|e| panic!("{e}: {}", self.stdout))
    }
    /// The one clear line of a failure, without a hint that may follow it.
    #[track_caller]
    pub(crate) fn error(&self) -> &str {
        // What strangers can add at any time: leftovers, disturbed runs.
        let note = |l: &str| {
            l.starts_with("warning: ") || l.starts_with("left by ") || l.contains(" s does not count: ")
        };
        let mut lines = self.stderr.lines().filter(|l| !note(l));
        let first = lines.next().unwrap_or_default();
        assert!(first.starts_with("error: "), "{}: {}", self.line, self.stderr);
        for rest in lines {
            assert!(rest.starts_with("  try: "), "more than one line: {}", self.stderr);
        }
        first
    }
}

fn series(report: &Report, state: &State) -> usize {
    report.series.iter().position(|s| s.command == 0 && s.state == *state).unwrap()
}

/// The counted runs of a state (of the first command).
pub(crate) fn counted(report: &Report, state: &State) -> Vec<Run> {
    report.counted(series(report, state)).cloned().collect()
}

/// The runs of a state (of the first command) that nothing but the CPUs' load disturbed: good for everything
/// but times.
pub(crate) fn undisturbed(report: &Report, state: &State, least: usize) -> Result<Vec<Run>, String> {
    let of_state = |r: &&Run| r.series == series(report, state);
    let runs: Vec<Run> = report.runs.iter().filter(of_state).filter(|r| only_busy(r)).cloned().collect();
    check(runs.len() >= least, || format!("{state:?}: {:?}", kinds(&report.runs)))?;
    Ok(runs)
}

/// Whether a run has a taint of this kind.
pub(crate) fn tainted(run: &Run, kind: &str) -> bool {
    run.taints.iter().any(|t| t.kind() == kind)
}

/// Whether nothing but the CPUs' load disturbed the run.
pub(crate) fn only_busy(run: &Run) -> bool {
    run.taints.iter().all(|t| matches!(t.kind(), "busy_machine" | "steal"))
}

/// Kinds of taints, for messages.
pub(crate) fn kinds(runs: &[Run]) -> Vec<Vec<&'static str>> {
    runs.iter().map(|r| r.taints.iter().map(Taint::kind).collect()).collect()
}

/// A condition of a scenario that strangers can spoil.
pub(crate) fn check(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

/// Another process beside `cold`, killed with its value.
pub(crate) struct Other {
    child: Child,
}

impl Other {
    /// Starts it and waits for the line that says that it does its work.
    pub(crate) fn start(program: &str, args: &[&str], says: &str) -> Self {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = vec![0; says.len()];
        child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
        assert_eq!(line, says.as_bytes());
        Self { child }
    }
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process that locks a file's pages into memory.
pub(crate) fn locker(file: &Path) -> Other {
    let script = "
import ctypes, mmap, sys, time
f = open(sys.argv[1], 'r+b'); m = mmap.mmap(f.fileno(), 0)
at = ctypes.addressof(ctypes.c_char.from_buffer(m))
assert ctypes.CDLL(None).mlock(ctypes.c_void_p(at), ctypes.c_size_t(len(m))) == 0
print('locked', flush=True); time.sleep(600)";
    Other::start("/usr/bin/python3", &["-c", script, file.to_str().unwrap()], "locked")
}

/// Pages of a file that mincore(2) calls resident: a witness that shares no code with `cold`.
pub(crate) fn resident(file: &Path) -> BTreeSet<u64> {
    let script = "
import ctypes, mmap, os, sys
f = os.open(sys.argv[1], os.O_RDONLY); n = os.fstat(f).st_size
libc = ctypes.CDLL(None, use_errno=True); libc.mmap.restype = ctypes.c_void_p
at = libc.mmap(None, ctypes.c_size_t(n), 1, 1, f, ctypes.c_long(0))
v = (ctypes.c_ubyte * ((n + 4095) // 4096))()
assert libc.mincore(ctypes.c_void_p(at), ctypes.c_size_t(n), v) == 0
print(*(i for i, b in enumerate(v) if b & 1))";
    let out = Command::new("/usr/bin/python3").args(["-c", script]).arg(file).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    text.split_whitespace().map(|n| n.parse().unwrap()).collect()
}

/// Control groups that a `cold` with this pid made.
pub(crate) fn cgroups(pid: Pid) -> Vec<PathBuf> {
    [format!("cold-{pid}"), format!("cold-{pid}-limit")].iter().flat_map(|n| cgroups_named(n)).collect()
}

/// Control groups of that name.
pub(crate) fn cgroups_named(name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                if entry.file_name() == name {
                    found.push(entry.path());
                }
                open.push(entry.path());
            }
        }
    }
    found
}
