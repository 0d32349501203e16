//! By what a file is known again.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use cold_model::Dev;
use cold_model::file::mtime_ns;
use cold_model::hash::of_hexadecimal;

use crate::plan::Identity;

/// What is known of a file that a plan names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// The same content, as far as a `stat` can tell.
    Same,
    /// The same size, and otherwise touched or put there anew; it has a build-id, and reading that
    /// ([`Identity::build_id`]) tells whether it is the same.
    Touched,
    /// Another file: it drops out of the plan.
    Changed,
}

/// Image-based systems (`OSTree`, Nix) give every file the time 0 or 1: it tells nothing.
const NO_TIME_NS: i64 = 1_000_000_000;

/// In place of a time: each start writes the file in place, so that its time says nothing.
pub const WRITTEN_IN_PLACE: i64 = i64::MIN;

impl Identity {
    /// The identity of the file that `meta` describes; `build_id` zero when it has none.
    pub fn of(meta: &Metadata, build_id: [u8; 20]) -> Self {
        Self {
            dev: Dev::of_number(meta.dev()),
            inode: meta.ino(),
            size: meta.size(),
            mtime_ns: mtime_ns(meta),
            build_id,
        }
    }

    /// Whether the file that `meta` describes is still this one.
    pub fn matches(&self, meta: &Metadata) -> Match {
        self.matches_stat(meta.ino(), meta.size(), mtime_ns(meta))
    }

    /// The same from the fields of a `stat`. The inode counts only where the time tells nothing: it
    /// changes when a file is restored or reinstalled, and on some file systems with each mount.
    /// What each start writes in place is the same as long as it is the same inode and no shorter.
    pub fn matches_stat(&self, inode: u64, size: u64, mtime_ns: i64) -> Match {
        if self.mtime_ns == WRITTEN_IN_PLACE {
            let same = inode == self.inode && size >= self.size;
            return if same { Match::Same } else { Match::Changed };
        }
        if size != self.size {
            Match::Changed
        } else if mtime_ns == self.mtime_ns && (inode == self.inode || mtime_ns > NO_TIME_NS) {
            Match::Same
        } else if self.build_id == [0; 20] {
            Match::Changed
        } else {
            Match::Touched
        }
    }
}

/// The first 20 bytes of a build-id in hexadecimal, as `readelf -n` prints it, zeros behind a shorter one; none
/// where it is no such number.
pub fn build_id_of(digits: &str) -> Option<[u8; 20]> {
    let bytes = of_hexadecimal(digits)?;
    let mut build_id = [0; 20];
    for (slot, byte) in build_id.iter_mut().zip(bytes) {
        *slot = byte;
    }
    Some(build_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Identity =
        Identity { dev: Dev::new(8, 1), inode: 7, size: 100, mtime_ns: 5_000_000_000, build_id: [0; 20] };

    #[test]
    fn size_and_time_tell_files_apart_and_a_build_id_knows_better() {
        let built = Identity { build_id: [1; 20], ..OLD };
        let in_place = Identity { mtime_ns: WRITTEN_IN_PLACE, ..OLD };
        let timeless = Identity { mtime_ns: NO_TIME_NS, ..OLD };
        for (identity, inode, size, mtime_ns, expected) in [
            (OLD, 7, 100, OLD.mtime_ns, Match::Same),
            // Restored from a backup, reinstalled.
            (OLD, 8, 100, OLD.mtime_ns, Match::Same),
            (in_place, 7, 120, 99, Match::Same),
            (in_place, 8, 100, 99, Match::Changed),
            (in_place, 7, 99, 99, Match::Changed),
            (OLD, 7, 101, OLD.mtime_ns, Match::Changed),
            (OLD, 7, 100, OLD.mtime_ns + 1, Match::Changed),
            (built, 7, 100, OLD.mtime_ns + 1, Match::Touched),
            (built, 7, 101, OLD.mtime_ns, Match::Changed),
            (timeless, 7, 100, NO_TIME_NS, Match::Same),
            (timeless, 8, 100, NO_TIME_NS, Match::Changed),
        ] {
            assert_eq!(identity.matches_stat(inode, size, mtime_ns), expected, "{identity:?}");
        }
    }

    #[test]
    fn build_ids_are_read_as_readelf_prints_them() {
        let mut start = [0; 20];
        start[..2].copy_from_slice(&[0xab, 0x01]);
        assert_eq!((build_id_of("ab01"), build_id_of("AB01")), (Some(start), Some(start)));
        assert_eq!(build_id_of(&"07".repeat(32)), Some([7; 20]), "what is longer is cut");
        for bad in ["a", "zz", "+1", "ab0"] {
            assert_eq!(build_id_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_file_matches_itself_until_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "one").unwrap();
        let identity = Identity::of(&path.metadata().unwrap(), [0; 20]);
        assert_eq!((identity.size, identity.matches(&path.metadata().unwrap())), (3, Match::Same));
        std::fs::write(&path, "three").unwrap();
        assert_eq!(identity.matches(&path.metadata().unwrap()), Match::Changed);
    }
}
