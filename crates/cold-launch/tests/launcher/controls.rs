//! Control starts, which are counted in the history: where nothing can be counted, there is none.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use cold_testbed::attempts;

use crate::misfit::stored;
use crate::subject::{before, limit};
use crate::world::{LAUNCHER, WAITS, add_whole, calm, directory, evict, file, followed, plan, save};

/// A store with a plan, and where the history of its starts is going to lie.
pub(crate) struct Scene {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) store: cold_plan::Store,
    pub(crate) history: PathBuf,
    argv: Vec<OsString>,
    data: PathBuf,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let dir = directory();
        let argv: Vec<OsString> = WAITS.iter().map(OsString::from).collect();
        let (store, key) = stored(dir.path(), &argv, None);
        let data = file(&dir.path().join("data"), 256 << 10);
        let history = store.history_of(&key);
        let scene = Self { dir, store, history, argv, data };
        scene.save(key);
        scene
    }

    fn save(&self, key: cold_plan::plan::Key) {
        let mut p = plan();
        add_whole(&mut p, &self.data, true);
        let at = self.store.path_of(&key);
        p.key = key;
        save(&p, &at);
    }

    /// Says of so many cold starts which were controls.
    pub(crate) fn controls(&self, starts: usize, every: &str, file_size: Option<u64>) -> Vec<bool> {
        let run = || {
            let mut said = String::new();
            attempts(|| {
                evict(&self.data);
                let mut launcher = Command::new(LAUNCHER);
                launcher.arg("--store").arg(self.store.directory());
                launcher.args(["--control-every", every, "--verbose", "--"]).args(&self.argv);
                if let Some(bytes) = file_size {
                    before(&mut launcher, move || limit(libc::RLIMIT_FSIZE, bytes));
                }
                said = calm(&followed(&mut launcher, self.dir.path()))?;
                Ok(())
            });
            assert!(said.contains("a control start") || said.contains("are read ahead"), "{said}");
            said.contains("a control start")
        };
        (0..starts).map(|_| run()).collect()
    }
}

#[test]
fn every_second_start_is_a_control_where_they_can_be_counted() {
    let controls = Scene::new().controls(8, "2", None);
    assert_eq!(controls.iter().filter(|c| **c).count(), 4, "{controls:?}");
}

#[test]
fn without_a_history_that_can_be_written_no_start_is_a_control() {
    type Spoil<'a> = &'a dyn Fn(&Path);
    let impossible: [(&str, Spoil<'_>, Option<u64>); 4] = [
        ("a directory in its place", &|at| std::fs::create_dir(at).expect("made"), None),
        (
            "others may write it",
            &|at| {
                std::fs::write(at, b"").expect("written");
                std::fs::set_permissions(at, PermissionsExt::from_mode(0o666)).expect("set");
            },
            None,
        ),
        ("a link", &|at| std::os::unix::fs::symlink("/nonexistent/history", at).expect("linked"), None),
        ("a limit", &|_| {}, Some(32)),
    ];
    for (what, spoil, limit) in impossible {
        let scene = Scene::new();
        spoil(&scene.history);
        assert_eq!(scene.controls(3, "1", limit), [false; 3], "{what}");
    }
}
