//! Fake `/proc` and `/sys` trees in a temporary directory.

mod ready;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A tree under construction. Paths are relative to its root, `proc/meminfo`, `sys/block/vda/size`.
///
/// ```
/// let tree = cold_testbed::FakeTree::new().file("proc/meminfo", "MemTotal: 4 kB\n").link("proc/7/exe", "/bin/x");
/// assert_eq!(std::fs::read_link(tree.proc().join("7/exe")).ok(), Some("/bin/x".into()));
/// ```
#[derive(Debug)]
pub struct FakeTree {
    root: tempfile::TempDir,
}

impl Default for FakeTree {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeTree {
    /// An empty tree with `proc` and `sys`.
    ///
    /// # Panics
    /// If the temporary directory cannot be written, as the other functions do.
    pub fn new() -> Self {
        let root = must(tempfile::tempdir(), Path::new("a temporary directory"));
        for name in ["proc", "sys"] {
            must(fs::create_dir(root.path().join(name)), Path::new(name));
        }
        Self { root }
    }

    /// Adds a file, or replaces it.
    #[must_use]
    pub fn file(self, path: &str, text: impl AsRef<[u8]>) -> Self {
        must(fs::write(self.place(path), text), Path::new(path));
        self
    }

    /// Adds a directory.
    #[must_use]
    pub fn dir(self, path: &str) -> Self {
        must(fs::create_dir_all(self.place(path)), Path::new(path));
        self
    }

    /// Adds a symbolic link to `target`, which need not exist.
    #[must_use]
    pub fn link(self, path: &str, target: &str) -> Self {
        let place = self.place(path);
        let _ = fs::remove_file(&place);
        must(symlink(target, place), Path::new(path));
        self
    }

    /// Removes a file or directory that a ready-made tree has.
    #[must_use]
    pub fn without(self, path: &str) -> Self {
        let place = self.place(path);
        let gone = if place.is_dir() { fs::remove_dir_all(&place) } else { fs::remove_file(&place) };
        must(gone, Path::new(path));
        self
    }

    /// Directory that stands for `/`.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// Its `/proc`, for `ProcFs::new`.
    pub fn proc(&self) -> PathBuf {
        self.root().join("proc")
    }

    /// Root of what stands for `/sys`.
    pub fn sys(&self) -> PathBuf {
        self.root().join("sys")
    }

    fn place(&self, path: &str) -> PathBuf {
        let path = Path::new(path);
        assert!(
            path.components().all(|c| matches!(c, std::path::Component::Normal(_))),
            "{} leads out of the fake tree",
            path.display()
        );
        let place = self.root().join(path);
        if let Some(parent) = place.parent() {
            must(fs::create_dir_all(parent), parent);
        }
        place
    }
}

#[allow(clippy::panic)] // for tests only: a tree that cannot be built has to fail the test
#[track_caller]
fn must<T>(result: std::io::Result<T>, path: &Path) -> T {
    result.unwrap_or_else(|e| panic!("cannot build the fake tree: {}: {e}", path.display()))
}
