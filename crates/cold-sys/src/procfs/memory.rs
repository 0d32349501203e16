//! `/proc/PID/maps` and `/proc/PID/smaps`.

use std::path::PathBuf;

use cold_model::path_text;

use super::ProcFs;
use crate::Result;
use cold_model::Dev;

/// One line of `/proc/PID/maps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapEntry {
    /// First virtual address.
    pub start: u64,
    /// One past the last virtual address.
    pub end: u64,
    /// `rwxp` as printed.
    pub perms: [u8; 4],
    /// Offset into the file in bytes.
    pub offset: u64,
    /// Device as major and minor (as the kernel prints it: `s_dev`, which differs from `st_dev` on
    /// btrfs subvolumes and overlayfs).
    pub dev: Dev,
    /// Inode number, 0 for anonymous memory.
    pub inode: u64,
    /// Path, without the ` (deleted)` mark; `None` for anonymous memory.
    pub path: Option<PathBuf>,
    /// The file was deleted after it was mapped.
    pub deleted: bool,
}

/// Parses the text of `/proc/PID/maps`; lines of another form are skipped. A name is any bytes but a line feed,
/// which the kernel writes as `\012`.
pub fn parse_maps(text: impl AsRef<[u8]>) -> Vec<MapEntry> {
    path_text::encode_bytes(text.as_ref()).lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<MapEntry> {
    // The path may contain blanks: split off the five leading fields by hand.
    let mut rest = line;
    let mut field = || {
        rest = rest.trim_start();
        let end = rest.find(' ').unwrap_or(rest.len());
        let (head, tail) = rest.split_at(end);
        rest = tail;
        head
    };
    let (range, perms, offset, dev, inode) = (field(), field(), field(), field(), field());
    let (start, end) = range.split_once('-')?;
    let (path, deleted) = path_text::without_mark(rest.trim_start());
    Some(MapEntry {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        perms: perms.as_bytes().try_into().ok()?,
        offset: u64::from_str_radix(offset, 16).ok()?,
        dev: Dev::parse_hex(dev)?,
        inode: inode.parse().ok()?,
        path: (!path.is_empty()).then(|| path_text::decode(&path.replace("\\012", "\n"))),
        deleted,
    })
}

/// What `/proc/PID/smaps` says of one mapping; bytes, 0 where the kernel has no such field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MapUse {
    /// First virtual address.
    pub start: u64,
    /// Pages that are mapped (`Rss`).
    pub resident: u64,
    /// Locked by mlock (`Locked`).
    pub locked: u64,
    /// Of the page cache, mapped by huge page table entries (`FilePmdMapped`, Linux 5.4).
    pub huge_file: u64,
    /// In pages of hugetlbfs (`Shared_Hugetlb`, `Private_Hugetlb`), which are in no other figure.
    pub hugetlb: u64,
}

/// Parses the text of `/proc/PID/smaps`; lines of another form are skipped.
pub fn parse_smaps(text: &str) -> Vec<MapUse> {
    let mut parts: Vec<MapUse> = Vec::new();
    for line in text.lines() {
        let Some((key, rest)) = line.split_once([':', '-']) else { continue };
        // Only the head of a mapping starts with a hexadecimal address before a '-'.
        if line.as_bytes().get(key.len()) == Some(&b'-') {
            if let Ok(start) = u64::from_str_radix(key, 16) {
                parts.push(MapUse { start, ..MapUse::default() });
            }
            continue;
        }
        let Some(part) = parts.last_mut() else { continue };
        let bytes = || rest.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024);
        match key {
            "Rss" => part.resident = bytes().unwrap_or(0),
            "Locked" => part.locked = bytes().unwrap_or(0),
            "FilePmdMapped" => part.huge_file = bytes().unwrap_or(0),
            "Shared_Hugetlb" | "Private_Hugetlb" => {
                part.hugetlb = part.hugetlb.saturating_add(bytes().unwrap_or(0));
            }
            _ => {}
        }
    }
    parts
}

impl ProcFs {
    /// What each mapping of a process holds. Costs a walk through its page tables.
    pub fn smaps(&self, pid: i32) -> Result<Vec<MapUse>> {
        Ok(parse_smaps(&self.read(format!("{pid}/smaps"))?))
    }

    /// The memory mappings of a process.
    pub fn maps(&self, pid: i32) -> Result<Vec<MapEntry>> {
        Ok(parse_maps(self.read_bytes(format!("{pid}/maps"))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaps_is_split_by_mapping() {
        let text = "\
7f00-7f10 r-xp 00001000 fe:00 12                       /lib/a-b: c.so
Size:                 64 kB
Rss:                  12 kB
FilePmdMapped:      2048 kB
Shared_Hugetlb:        8 kB
Private_Hugetlb:       4 kB
Locked:                4 kB
VmFlags: rd ex mr mw me lo
8000-9000 rw-p 00000000 00:00 0
Rss:                   8 kB
Locked: 18446744073709551615 kB
";
        let first = MapUse {
            start: 0x7f00,
            resident: 12 << 10,
            locked: 4 << 10,
            huge_file: 2 << 20,
            hugetlb: 12 << 10,
        };
        let second = MapUse { start: 0x8000, resident: 8 << 10, ..MapUse::default() };
        assert_eq!(parse_smaps(text), [first, second]);
        assert_eq!(parse_smaps("Rss: 4 kB\nnothing\n"), []);
    }

    #[test]
    fn a_line_with_blanks_in_its_path_and_a_deleted_file() {
        let text = "7f00-7f10 r-xp 00001000 fe:00 1234                       /tmp/a b (deleted)\n\
                    8000-9000 rw-p 00000000 00:00 0 \n";
        let maps = parse_maps(text);
        assert_eq!(maps.len(), 2);
        assert_eq!(maps[0].path.as_deref(), Some(std::path::Path::new("/tmp/a b")));
        assert!(maps[0].deleted);
        assert_eq!((maps[0].dev, maps[0].inode, maps[0].offset), (Dev::new(0xfe, 0), 1234, 0x1000));
        assert_eq!(maps[1].path, None);
    }

    #[test]
    fn a_file_is_deleted_where_the_mark_is_the_end_of_its_name() {
        let is = |printed: &str| {
            let maps = parse_maps(format!("7f00-7f10 r-xp 00001000 fe:00 1234 {printed}\n"));
            (maps[0].path.clone().unwrap(), maps[0].deleted)
        };
        assert_eq!(is("/tmp/a (deleted)"), ("/tmp/a".into(), true));
        assert_eq!(is("/tmp/a (deleted) (deleted)"), ("/tmp/a (deleted)".into(), true));
        assert_eq!(is("/tmp/a (deleted)/b"), ("/tmp/a (deleted)/b".into(), false));
        assert_eq!(is("[heap]"), ("[heap]".into(), false));
    }

    #[test]
    fn lines_of_another_form_are_left_out() {
        for line in [
            "",
            "7f00 r-xp 0 fe:00 1 /x",
            "7f00-7fzz r-xp 0 fe:00 1 /x",
            "7f00-7f10 rx 0 fe:00 1 /x",
            "7f00-7f10 r-xp 0 fe00 1 /x",
            "7f00-7f10 r-xp 0 fe:00 -1 /x",
            "7f00-7f10 r-xp 0 fe:00",
            "1ffffffffffffffff-7f10 r-xp 0 fe:00 1 /x",
        ] {
            assert_eq!(parse_maps(line), [], "{line:?}");
        }
        let highest = "ffffffffff600000-ffffffffffffffff --xp 00000000 00:00 0                  [vsyscall]";
        assert_eq!(parse_maps(highest)[0].end, u64::MAX);
    }

    /// A mapping of our own, of which we know everything.
    #[test]
    fn the_kernel_writes_it_so() {
        use std::os::unix::fs::MetadataExt;
        let file = tempfile::tempfile_in("/var/tmp").unwrap();
        let page = crate::page::page_size();
        file.set_len(3 * page).unwrap();
        let map =
            memmap2::MmapOptions::new().offset(page).len(page as usize).map_raw_read_only(&file).unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        let start = map.as_ptr() as u64;
        let maps = ProcFs::default().maps(own).unwrap();
        let found = maps.iter().find(|m| m.start == start).expect("mapped");
        assert_eq!((found.end, found.offset, &found.perms), (start + page, page, b"r--s"));
        assert_eq!((found.inode, found.deleted), (file.metadata().unwrap().ino(), true));
    }

    #[test]
    fn a_name_is_any_bytes() {
        for (printed, name) in [
            (&b"/tmp/caf\xe9"[..], &b"/tmp/caf\xe9"[..]),
            (b"/tmp/caf\\xe9", b"/tmp/caf\\xe9"),
            (b"/tmp/a\\012b", b"/tmp/a\nb"),
        ] {
            let line = [b"7f00-7f10 r-xp 00001000 fe:00 1234   ", printed, b"\n"].concat();
            let path = parse_maps(line)[0].path.clone().unwrap();
            assert_eq!(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()), name);
        }
    }
}
