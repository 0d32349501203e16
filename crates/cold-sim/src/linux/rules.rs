//! What differs between versions of Linux, as data. Sources: mm/readahead.c, mm/filemap.c and mm/memory.c of 5.10,
//! 6.1, 6.12 and 7.3; of 6.18 what its page cache was seen to do.

use cold_model::file_system::large_folios_since;
use cold_model::kernel::since;

/// How large folios are chosen for a window, on file systems that have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Folios {
    /// Single pages only (before 5.18).
    Single,
    /// Each window four times that of the page that started it; no folios of two pages (6.1).
    GrowNoPairs,
    /// Each window four times that of the folio that started it (6.12).
    Grow,
    /// The size is kept with the open file and grows by four with each read-ahead (6.17).
    Kept,
}

/// How often a fault may miss before read-around is given up, and what takes a miss back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forgives {
    /// Each page that is newly mapped around a fault (to 6.1).
    MappedPage,
    /// Each page around a fault that is mapped or was before (6.12).
    PageAround,
    /// A fault whose page is there (7.x).
    Fault,
}

/// Which place is remembered of a read, to tell whether the next goes on there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remembers {
    /// That of its last page (5.10).
    LastPage,
    /// That behind what was copied until now, also while the read goes on (6.1).
    Copied,
    /// That behind its last byte, at its end (6.12).
    End,
}

/// The rules of one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Code is read forward from the fault, inside its mapping, and no further, even where `MADV_RANDOM` was told
    /// (6.17).
    pub(crate) code_forward: bool,
    /// Code and sequential mappings do not count misses (7.x).
    pub(crate) code_never_misses: bool,
    /// A fault maps the whole of a large folio (6.18).
    pub(crate) maps_whole_folios: bool,
    /// Fault-around does not map the folio with the last page of the file as a whole, and maps nothing where it is the
    /// first one found and there is no page table yet: what maps a folio in one piece makes the table (6.18.44).
    pub(crate) stops_at_end: bool,
    /// `MADV_HUGEPAGE` reads aligned blocks of 2 MiB, on any file system (5.18).
    pub(crate) huge: bool,
    /// How large folios are.
    pub(crate) folios: Folios,
    /// What takes a miss back.
    pub(crate) forgives: Forgives,
    /// A window that reaches the end of the file has no marker (7.x).
    pub(crate) no_marker_at_end: bool,
    /// Windows may be pushed on by a miss at their end, and merge with the next (to 6.1).
    pub(crate) on_demand: bool,
    /// A window is never smaller than the one before (6.1).
    pub(crate) never_shrinks: bool,
    /// What is remembered of a read.
    pub(crate) remembers: Remembers,
    /// Where a window meets a page that is there, what is left of it comes in single pages; else as many as in all of
    /// it, from there on (to 6.12).
    pub(crate) rest_only: bool,
}

/// Linux before large folios.
const V5_10: Rules = Rules {
    code_forward: false,
    code_never_misses: false,
    maps_whole_folios: false,
    stops_at_end: false,
    huge: false,
    folios: Folios::Single,
    forgives: Forgives::MappedPage,
    no_marker_at_end: false,
    on_demand: true,
    never_shrinks: false,
    remembers: Remembers::LastPage,
    rest_only: false,
};
const V6_1: Rules = Rules {
    huge: true,
    never_shrinks: true,
    folios: Folios::GrowNoPairs,
    remembers: Remembers::Copied,
    ..V5_10
};
const V6_12: Rules = Rules {
    folios: Folios::Grow,
    forgives: Forgives::PageAround,
    on_demand: false,
    remembers: Remembers::End,
    ..V6_1
};
const V6_16: Rules = Rules { rest_only: true, ..V6_12 };
const V6_17: Rules = Rules { code_forward: true, folios: Folios::Kept, ..V6_16 };
const V6_18: Rules = Rules { maps_whole_folios: true, stops_at_end: true, ..V6_17 };
const V7: Rules =
    Rules { code_never_misses: true, no_marker_at_end: true, forgives: Forgives::Fault, ..V6_18 };

/// A version of Linux whose page cache is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinuxVersion {
    /// 5.10: single pages.
    V5_10,
    /// 6.1: large folios on XFS.
    V6_1,
    /// 6.12: one rule for what begins a window.
    V6_12,
    /// 6.16: large folios on ext4; what is left of a window is read and no more.
    V6_16,
    /// 6.17: code is read forward, folios keep their size.
    V6_17,
    /// 6.18: faults map whole folios.
    V6_18,
    /// 7.x: misses count otherwise.
    V7,
}

impl LinuxVersion {
    /// All, the oldest first.
    pub const ALL: [Self; 7] =
        [Self::V5_10, Self::V6_1, Self::V6_12, Self::V6_16, Self::V6_17, Self::V6_18, Self::V7];

    /// The version whose rules a kernel follows best, by its release (`uname -r`). An unknown one counts as new.
    pub fn of_release(release: &str) -> Self {
        let firsts = [
            ((5, 18), Self::V5_10),
            ((6, 11), Self::V6_1),
            ((6, 16), Self::V6_12),
            ((6, 17), Self::V6_16),
            ((6, 18), Self::V6_17),
        ];
        for (first_of_next, version) in firsts {
            if since(release, first_of_next) == Some(false) {
                return version;
            }
        }
        if since(release, (7, 0)) == Some(false) { Self::V6_18 } else { Self::V7 }
    }

    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::V5_10 => "linux-5.10",
            Self::V6_1 => "linux-6.1",
            Self::V6_12 => "linux-6.12",
            Self::V6_16 => "linux-6.16",
            Self::V6_17 => "linux-6.17",
            Self::V6_18 => "linux-6.18",
            Self::V7 => "linux-7",
        }
    }

    /// Major and minor.
    fn number(self) -> (u32, u32) {
        match self {
            Self::V5_10 => (5, 10),
            Self::V6_1 => (6, 1),
            Self::V6_12 => (6, 12),
            Self::V6_16 => (6, 16),
            Self::V6_17 => (6, 17),
            Self::V6_18 => (6, 18),
            Self::V7 => (7, 0),
        }
    }

    /// Whether files of a file system (as `/proc/mounts` names it) are kept in large folios; those of an ext4 whose data
    /// are journalled are not, which its name does not tell.
    pub fn has_large_folios(self, file_system: &str) -> bool {
        large_folios_since(file_system).is_some_and(|since| self.number() >= since)
    }

    /// The folios that the kernel asks for when a fault in code reads ahead, in bytes: on arm64 64 KiB since 6.17
    /// (`exec_folio_order` in arch/arm64/include/asm/pgtable.h), which its page table can map as one piece; other
    /// architectures ask for none. `architecture` is Rust's word (`aarch64`), `page` the bytes of a page.
    pub fn code_folio(self, architecture: &str, page: u64) -> Option<u64> {
        (architecture == "aarch64" && self.rules().code_forward).then(|| page.max(64 << 10))
    }

    pub(crate) fn rules(self) -> &'static Rules {
        match self {
            Self::V5_10 => &V5_10,
            Self::V6_1 => &V6_1,
            Self::V6_12 => &V6_12,
            Self::V6_16 => &V6_16,
            Self::V6_17 => &V6_17,
            Self::V6_18 => &V6_18,
            Self::V7 => &V7,
        }
    }
}

#[cfg(test)]
mod tests {
    use cold_model::kernel::faults_map_whole_folios;

    use super::*;

    #[test]
    fn a_release_has_the_rules_of_the_newest_version_that_is_not_newer() {
        let of = |release: &str| LinuxVersion::of_release(release).name();
        assert_eq!(
            (of("5.10.0-30-amd64"), of("5.18"), of("6.1.0-50")),
            ("linux-5.10", "linux-6.1", "linux-6.1")
        );
        assert_eq!(
            (of("6.12.107+deb13"), of("6.15.9"), of("6.16.1")),
            ("linux-6.12", "linux-6.12", "linux-6.16")
        );
        assert_eq!(
            (of("6.18.44-x"), of("6.19"), of("7.3.4"), of("strange")),
            ("linux-6.18", "linux-6.18", "linux-7", "linux-7")
        );
    }

    #[test]
    fn only_arm64_asks_for_folios_for_code() {
        let first = |architecture, page| {
            let mut all = LinuxVersion::ALL.into_iter().map(|v| (v, v.code_folio(architecture, page)));
            all.find(|(_, folio)| folio.is_some())
        };
        assert_eq!(first("aarch64", 4096), Some((LinuxVersion::V6_17, Some(64 << 10))));
        assert_eq!(first("aarch64", 64 << 10), Some((LinuxVersion::V6_17, Some(64 << 10))));
        assert_eq!(first("x86_64", 4096), None);
    }

    #[test]
    fn file_systems_got_large_folios_at_different_times() {
        let first = |name| LinuxVersion::ALL.into_iter().find(|v| v.has_large_folios(name));
        assert_eq!(first("xfs"), Some(LinuxVersion::V6_1));
        assert_eq!(first("ext4"), Some(LinuxVersion::V6_16));
        assert_eq!(
            (first("erofs"), first("bcachefs")),
            (Some(LinuxVersion::V6_12), Some(LinuxVersion::V6_12))
        );
        assert_eq!((first("btrfs"), first("vfat")), (None, None), "btrfs: by default since 7.2");
    }

    #[test]
    fn recordings_and_the_model_agree_on_which_faults_map_whole_folios() {
        for release in ["5.10.0-30", "6.1.0-50", "6.16.12", "6.17.13", "6.18.44-x", "7.0", "strange"] {
            let model = LinuxVersion::of_release(release).rules().maps_whole_folios;
            assert_eq!(model, faults_map_whole_folios(release), "{release}");
        }
    }
}
