//! Files of the kernel that take a value: settings, and what orders something of a cgroup.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

/// Writes `value` in one piece to a file that is there. Never creates one: a path that is no kernel's any more (an
/// unmounted hierarchy) is an error and not a new file on a disk.
pub fn write(path: &Path, value: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
    file.write_all(value.as_bytes())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_knob_is_turned_and_never_made() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("knob");
        assert_eq!(super::write(&path, "1").expect_err("absent").kind(), std::io::ErrorKind::NotFound);
        assert!(!path.exists());
        std::fs::write(&path, "old value").expect("written");
        super::write(&path, "1\n").expect("written");
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "1\n");
    }
}
