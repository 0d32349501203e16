//! The directories in which a command runs: a state that is put back before each run, and what must not change.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cold_testbed::faults::{Names, Ran, Target};

/// No command here takes longer than some seconds; machines that test are busy.
const DEADLINE: Duration = Duration::from_secs(90);

/// A file, directory or link by what can be lost of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Thing {
    Directory(u32),
    Link(PathBuf),
    File(u32, Vec<u8>),
    Other,
}

/// Everything below a directory, by its path from there.
pub(crate) type Things = BTreeMap<PathBuf, Thing>;

/// `W` in keys and messages.
pub(crate) struct World {
    dir: tempfile::TempDir,
    /// What [`World::reset`] puts back.
    kept: Things,
    /// Mounts of this thread, and settings.
    machine: BTreeMap<String, String>,
}

impl World {
    pub(crate) fn new() -> Self {
        // Not below /tmp, which is no disk on many machines: pages of a tmpfs cannot be evicted.
        let dir = tempfile::Builder::new().prefix("cold-faults-").tempdir_in("/var/tmp").unwrap();
        let mut me = Self { dir, kept: Things::new(), machine: BTreeMap::new() };
        for name in ["w", "w/tmp", "w/state", "w/state/coldstart", "w/d", "w/trial-1-x", "w/home", "w/bin"] {
            fs::create_dir(me.dir.path().join(name)).unwrap();
        }
        fs::set_permissions(me.path("state/coldstart"), PermissionsExt::from_mode(0o755)).unwrap();
        if rustix::process::geteuid().is_root() {
            // Root's state is one directory of the machine: a thread with mounts of its own sees ours there.
            fs::create_dir_all("/var/lib/coldstart").unwrap();
            cold_testbed::faults::own_mounts(&me.path("state/coldstart"), Path::new("/var/lib/coldstart"))
                .unwrap();
        }
        fs::copy(cold_testbed::subject(), me.subject()).unwrap();
        for (name, bytes) in [("d/f1", 40_000), ("d/f2", 9_000), ("d/f3", 1)] {
            fs::write(me.path(name), (0..bytes).map(|i| (i % 251) as u8).collect::<Vec<_>>()).unwrap();
        }
        // What is not ours, beside all that is.
        for place in ["", "tmp/", "d/", "state/coldstart/"] {
            for name in ["foreign.log", "notes.plan", ".tmp-foreign"] {
                fs::write(me.path(&format!("{place}{name}")), format!("{place}{name} is not cold's"))
                    .unwrap();
            }
        }
        fs::write(me.path("trial-1-x/letter"), "not cold's").unwrap();
        me.keep();
        me
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("w").join(name)
    }
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).into_os_string().into_string().unwrap()
    }
    /// The program that is measured; beside the world, so that it keeps its inode.
    pub(crate) fn subject(&self) -> String {
        self.dir.path().join("subject").into_os_string().into_string().unwrap()
    }
    /// A place beside the world, for what need not be put back.
    pub(crate) fn fixed(&self, name: &str) -> String {
        self.dir.path().join(name).into_os_string().into_string().unwrap()
    }

    pub(crate) fn target(&self, args: &[String]) -> Target {
        let text = |(name, value): (&str, String)| (OsString::from(name), OsString::from(value));
        let env = [
            ("TMPDIR", self.text("tmp")),
            ("HOME", self.text("home")),
            ("XDG_STATE_HOME", self.text("state")),
            ("XDG_DATA_HOME", self.text("home")),
            ("XDG_CONFIG_HOME", self.text("home")),
            ("COLUMNS", "100".into()),
            ("RUST_BACKTRACE", "0".into()),
        ];
        Target {
            program: env!("CARGO_BIN_EXE_cold").into(),
            args: args.iter().map(OsString::from).collect(),
            env: env.map(text).to_vec(),
            cwd: self.path(""),
            names: Names(vec![
                (self.path("state/coldstart"), "STATE".into()),
                ("/var/lib/coldstart".into(), "STATE".into()),
                (self.path(""), "W/".into()),
                (self.dir.path().to_owned(), "F".into()),
            ]),
            deadline: DEADLINE,
        }
    }

    /// `cold` without a fault, which must do it.
    #[track_caller]
    pub(crate) fn cold(&self, args: &[&str]) -> Ran {
        let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
        let ran = self.target(&args).run(None).unwrap();
        assert_eq!(ran.code(), 0, "cold {args:?}: {}", ran.stderr);
        ran
    }

    /// What lies here now is what [`World::reset`] puts back.
    pub(crate) fn keep(&mut self) {
        self.machine = machine();
        self.kept = self.things();
    }
    pub(crate) fn kept(&self) -> &Things {
        &self.kept
    }
    pub(crate) fn things(&self) -> Things {
        let mut things = Things::new();
        list(&self.path(""), Path::new(""), &mut things).unwrap();
        things
    }
    /// What is mounted or set otherwise than before.
    pub(crate) fn changed_machine(&self) -> Option<String> {
        let now = machine();
        // What is gone is somebody else's: a mount goes everywhere when the directory below it is removed.
        let differs = |(name, value): &(&String, &String)| self.machine.get(*name) != Some(*value);
        now.iter().find(differs).map(|(name, value)| format!("{name} is {}", value.trim_end()))
    }

    /// Puts everything back.
    pub(crate) fn reset(&self) {
        let now = self.things();
        for path in now.keys().rev().filter(|p| now.get(*p) != self.kept.get(*p)) {
            let full = self.path("").join(path);
            match &now[path] {
                Thing::Directory(_) if matches!(self.kept.get(path), Some(Thing::Directory(_))) => {}
                Thing::Directory(_) => fs::remove_dir(full).unwrap(),
                _ => fs::remove_file(full).unwrap(),
            }
        }
        for (path, thing) in &self.kept {
            if now.get(path) == Some(thing) {
                continue;
            }
            let full = self.path("").join(path);
            match thing {
                Thing::Directory(mode) => {
                    let _ = fs::create_dir(&full);
                    fs::set_permissions(&full, PermissionsExt::from_mode(*mode)).unwrap();
                }
                Thing::File(mode, content) => {
                    fs::write(&full, content).unwrap();
                    fs::set_permissions(&full, PermissionsExt::from_mode(*mode)).unwrap();
                }
                Thing::Link(to) => std::os::unix::fs::symlink(to, &full).unwrap(),
                Thing::Other => panic!("{} cannot be put back", full.display()),
            }
        }
    }
}

/// Mounts that this thread sees, and, where a command changes them, settings: else a stranger's would be told.
fn machine() -> BTreeMap<String, String> {
    let mounts = fs::read_to_string("/proc/thread-self/mountinfo").unwrap();
    let mounts = mounts.lines().filter_map(|l| l.split(' ').nth(4));
    let mut found: BTreeMap<_, _> = mounts.map(|at| (format!("mount {at}"), "there".to_owned())).collect();
    if crate::check::is_full() {
        // Loop devices come and go with the test disks of others.
        let disks = fs::read_dir("/sys/block").into_iter().flatten().flatten().map(|e| e.path());
        let disks = disks.filter(|d| !d.to_string_lossy().contains("/loop"));
        let settings = disks.map(|d| d.join("queue/read_ahead_kb"));
        let settings = settings.chain(["/sys/kernel/debug/fault_around_bytes".into()]);
        found.extend(settings.filter_map(|p| Some((p.to_str()?.to_owned(), fs::read_to_string(&p).ok()?))));
    }
    found
}

fn list(dir: &Path, below: &Path, things: &mut Things) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let (meta, name) = (entry.metadata()?, below.join(entry.file_name()));
        let kind = meta.file_type();
        let thing = if kind.is_dir() {
            list(&entry.path(), &name, things)?;
            Thing::Directory(meta.mode() & 0o7777)
        } else if kind.is_symlink() {
            Thing::Link(fs::read_link(entry.path())?)
        } else if kind.is_file() {
            Thing::File(meta.mode() & 0o7777, fs::read(entry.path())?)
        } else {
            Thing::Other
        };
        things.insert(name, thing);
    }
    Ok(())
}
