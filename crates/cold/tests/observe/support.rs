//! Programs to observe, and the observing of them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cold_model::observed::{ObservedFile, ObservedStart};
use cold_sys::observe::{Client, ObserveError, ObserveSpec, Streams};

pub(crate) use cold_testbed::{PATIENCE, until};

/// A directory that goes away with its value. Everybody may enter it.
pub(crate) struct Dir(PathBuf);

impl Dir {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("cold-observe-{}-{n}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        let dir = Self(path.canonicalize().unwrap());
        Command::new("chmod").arg("0755").arg(&dir.0).status().unwrap();
        dir
    }
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
    /// A file with some text in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        std::fs::write(self.path(name), "some text\n").unwrap();
        self.path(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn compile(name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/observe").join(source);
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // Renamed into place: another test run may be executing the one that is there.
    let new = out.with_extension(std::process::id().to_string());
    let status = Command::new("cc").args(["-O1", "-Wall", "-o"]).arg(&new).arg(source).args(flags).status();
    assert!(status.expect("a C compiler is installed").success());
    std::fs::rename(&new, &out).unwrap();
    out
}

pub(crate) fn actor() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| compile("actor", "actor.c", &["-pthread"]))
}
pub(crate) fn static_actor() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| compile("actor-static", "actor.c", &["-pthread", "-static"]))
}
#[cfg(target_arch = "x86_64")]
pub(crate) fn actor32() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    let flags = ["-m32", "-nostdlib", "-static", "-fno-pie", "-no-pie", "-fno-stack-protector"];
    PATH.get_or_init(|| compile("actor32", "actor32.c", &flags))
}

pub(crate) fn spec<S: Into<OsString>>(argv: impl IntoIterator<Item = S>) -> ObserveSpec {
    ObserveSpec {
        argv: argv.into_iter().map(Into::into).collect(),
        env: None,
        cwd: None,
        deadline: Some(PATIENCE),
        grace: Duration::from_millis(300),
    }
}

/// `actor ROLE ARG…`.
pub(crate) fn role(actor: &Path, role: &str, args: &[&Path]) -> ObserveSpec {
    let tail = args.iter().map(|p| p.as_os_str().to_owned());
    spec([actor.as_os_str().to_owned(), role.into()].into_iter().chain(tail))
}

pub(crate) fn start(spec: &ObserveSpec) -> Result<Client, ObserveError> {
    let mut streams = Streams::null();
    streams.stderr = std::process::Stdio::inherit();
    Client::start(env!("CARGO_BIN_EXE_cold").as_ref(), spec, streams)
}

#[track_caller]
pub(crate) fn observe(spec: &ObserveSpec) -> ObservedStart {
    start(spec).unwrap().wait().unwrap()
}

#[track_caller]
pub(crate) fn file<'a>(seen: &'a ObservedStart, path: &Path) -> &'a ObservedFile {
    let found = seen.files.iter().find(|f| f.path == path);
    found.unwrap_or_else(|| panic!("{} is missing from {:#?}", path.display(), seen.files))
}

pub(crate) fn is_alive(pid: &str) -> bool {
    Path::new("/proc").join(pid).exists()
}
