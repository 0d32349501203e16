//! Huge pages: what this kernel has of them, and memory in them.

use std::fs::File;

use rustix::fs::MemfdFlags;

use crate::mapped::{MapKind, MappedFile};
use crate::page::page_size;
use crate::procfs::ProcFs;
use crate::sysfs::SysFs;
use crate::{Error, Result};

/// What this kernel has of huge pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HugePages {
    /// Bytes that one entry of the second level of the page table maps (a PMD): as many small pages as a page holds
    /// entries of eight bytes.
    pub bytes: u64,
    /// The setting for memory of programs (`transparent_hugepage/enabled`: `always`, `madvise`, `never`); `None` where
    /// the kernel has no transparent huge pages.
    pub transparent: Option<String>,
    /// Bytes of a page of hugetlbfs; `None` where the kernel has none.
    pub hugetlb_bytes: Option<u64>,
    /// How many of these are reserved and free.
    pub hugetlb_free: Option<u64>,
}

impl HugePages {
    /// Asks the kernel; what cannot be read is unknown.
    pub fn of_kernel(proc: &ProcFs, sys: &SysFs) -> Self {
        let setting = sys.read_opt("kernel/mm/transparent_hugepage/enabled").ok().flatten();
        let memory = proc.meminfo().unwrap_or_default();
        Self {
            bytes: page_size() * (page_size() / 8),
            transparent: setting.as_deref().and_then(SysFs::chosen).map(str::to_owned),
            hugetlb_bytes: memory.get("Hugepagesize").copied(),
            hugetlb_free: memory.get("HugePages_Free").copied(),
        }
    }
}

/// Memory of at least so many bytes, in reserved pages of hugetlbfs of `page` bytes, for a copy of a file. The pages go
/// back when it is dropped.
///
/// # Errors
/// `ENOMEM` where too few are reserved (`vm.nr_hugepages`), `EINVAL` or `ENOSYS` without hugetlbfs.
pub fn memory(bytes: u64, page: u64, exec: bool) -> Result<MappedFile> {
    let failed = |e: std::io::Error| Error::io("make memory of huge pages for", "a copy", e);
    let fd = rustix::fs::memfd_create("cold-huge", MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB);
    let file = File::from(fd.map_err(|e| failed(e.into()))?);
    let len = bytes.next_multiple_of(page.max(1));
    file.set_len(len).map_err(failed)?;
    MappedFile::new(&file, len, MapKind { exec, write: true, shared: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fake(setting: Option<&str>, memory: &str) -> HugePages {
        let dir = tempfile::tempdir().expect("a directory");
        let at = dir.path().join("kernel/mm/transparent_hugepage");
        std::fs::create_dir_all(&at).expect("made");
        if let Some(setting) = setting {
            std::fs::write(at.join("enabled"), setting).expect("written");
        }
        std::fs::write(dir.path().join("meminfo"), memory).expect("written");
        HugePages::of_kernel(&ProcFs::new(dir.path()), &SysFs::new(dir.path()))
    }

    #[test]
    fn what_is_not_told_is_unknown() {
        let all =
            fake(Some("always [madvise] never\n"), "HugePages_Free:       3\nHugepagesize:       2048 kB\n");
        assert_eq!(all.transparent.as_deref(), Some("madvise"));
        assert_eq!((all.hugetlb_bytes, all.hugetlb_free), (Some(2 << 20), Some(3)));
        let none = fake(None, "MemTotal: 1 kB\n");
        assert_eq!((none.transparent, none.hugetlb_bytes, none.hugetlb_free), (None, None, None));
    }

    #[test]
    fn a_copy_takes_reserved_pages_and_gives_them_back_or_is_refused() {
        let of_kernel = || HugePages::of_kernel(&ProcFs::default(), &SysFs::default());
        let before = of_kernel();
        let Some(page) = before.hugetlb_bytes else { return };
        match memory(page + 1, page, false) {
            Ok(mut map) => {
                assert_eq!(map.len(), 2 * page);
                assert!(map.poke(page, 1) && map.touch(page) == Some(1));
            }
            Err(e) => assert!(e.errno().is_some(), "{e}"),
        }
        assert_eq!(of_kernel().hugetlb_free, before.hugetlb_free);
    }
}
