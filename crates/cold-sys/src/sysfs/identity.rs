//! Which device it is: numbers and names of devices are given to others.

use super::SysFs;

/// What names a device wherever and whenever it is plugged in.
const LASTING: [&str; 7] =
    ["wwid", "device/wwid", "serial", "device/serial", "device/cid", "dm/uuid", "md/uuid"];

impl SysFs {
    /// What tells the whole disk of this kernel name from any other that had or will have the name: its size
    /// with its serial number or identifier. Where it has none (loop devices, some virtual disks), with its
    /// backing file and its place in the sequence of disks since boot (`diskseq`, Linux 5.15+), so that it is
    /// another one after the next boot or attachment. What the kernel keeps to itself is left out.
    pub fn block_identity(&self, disk: &str) -> String {
        let attr = |rel: &str| self.read_opt(format!("class/block/{disk}/{rel}")).ok().flatten();
        let mut parts = Vec::new();
        let mut add = |name: &str, value: Option<String>| {
            let value = value.filter(|v| !v.is_empty());
            let known = value.is_some();
            parts.extend(value.map(|v| format!("{name}={v}")));
            known
        };
        let mut lasts = false;
        for name in LASTING {
            lasts |= add(name, attr(name));
        }
        if !lasts {
            add("backing", attr("loop/backing_file"));
            add("diskseq", attr("diskseq"));
        }
        add("size", attr("size"));
        parts.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a directory");
        for (path, text) in files {
            let path = dir.path().join("class/block").join(path);
            std::fs::create_dir_all(path.parent().expect("below")).expect("made");
            std::fs::write(path, format!("{text}\n")).expect("written");
        }
        dir
    }

    #[test]
    fn a_serial_number_lasts_and_without_one_the_sequence_of_disks_tells() {
        let tree = tree(&[
            ("sda/size", "1000"),
            ("sda/device/wwid", "naa.5000"),
            ("sda/diskseq", "3"),
            ("loop0/size", "2000"),
            ("loop0/loop/backing_file", "/tmp/a/disk"),
            ("loop0/diskseq", "17"),
        ]);
        let sys = SysFs::new(tree.path());
        let is = |disk: &str| sys.block_identity(disk);
        assert_eq!(is("sda"), "device/wwid=naa.5000 size=1000");
        assert_eq!(is("loop0"), "backing=/tmp/a/disk diskseq=17 size=2000");
        assert_eq!(is("none"), "");
    }
}
