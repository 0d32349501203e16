//! A store on a disk that is full, or may only be read: no start can be counted.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::controls::Scene;

/// A file system in memory with the content of a directory, in its place, until it is dropped.
struct Small(PathBuf);

impl Small {
    fn over(dir: &Path) -> Self {
        let kept = dir.with_extension("kept");
        std::fs::rename(dir, &kept).expect("renamed");
        std::fs::create_dir(dir).expect("made");
        let small = Self(dir.to_owned());
        small.run("mount", &["-t", "tmpfs", "-o", "size=64k,mode=700", "none"]);
        for entry in std::fs::read_dir(&kept).expect("lists").flatten() {
            std::fs::copy(entry.path(), dir.join(entry.file_name())).expect("copied");
        }
        small
    }

    fn run(&self, program: &str, options: &[&str]) {
        let done = Command::new(program).args(options).arg(&self.0).status().expect("runs");
        assert!(done.success(), "{program} {options:?}");
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn on_a_full_or_read_only_disk_no_start_is_a_control() {
    cold_testbed::needs_root!();
    let scene = Scene::new();
    let small = Small::over(scene.store.directory());
    small.run("mount", &["-o", "remount,ro"]);
    assert_eq!(scene.controls(3, "1", None), [false; 3], "read-only");
    small.run("mount", &["-o", "remount,rw"]);
    // As full as it gets.
    let mut most = std::fs::File::create(small.0.join("most")).expect("made");
    while std::io::Write::write_all(&mut most, &[1; 512]).is_ok() {}
    assert_eq!(scene.controls(3, "1", None), [false; 3], "full");
    drop(small);
}
