//! Prefetch files (`.pf`): what Windows keeps about the starts of a program. Versions 17 (XP, 2003), 23 (Vista, 7),
//! 26 (8), 30 in two variants (10, 11) and 31 (11 24H2).
//!
//! Layouts: libyal's "Windows Prefetch File (PF) format". The page records are told by nobody: each is one page of
//! 4 KiB of one file, with the launches that used it.

mod hash;
mod layout;
mod needs;
mod read;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
#[cfg(test)]
mod tests;

pub use hash::{HashCheck, later, xp};
pub use needs::{Needs, WINDOWS};
pub use read::{image, is_prefetch};

use crate::Result;

/// Bytes of the pages of all Windows systems that write these files.
pub const PAGE: u64 = 4096;
/// Between the parts of a path.
const BACKSLASH: u16 = b'\\' as u16;
/// Characters of an executable's name that are kept.
const CUT: usize = 29;
/// Launches that a page's history reaches back.
pub const LAUNCHES: u32 = 8;

/// Version of the format, with the variants of version 30.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// 17: XP and Server 2003.
    V17,
    /// 23: Vista, 7, Server 2008.
    V23,
    /// 26: 8, 8.1, Server 2012.
    V26,
    /// 30 as the first builds of Windows 10 wrote it.
    V30First,
    /// 30 with the hashed string: Windows 10 and 11.
    V30,
    /// 31: Windows 11 24H2 and later, laid out as the second variant of 30.
    V31,
}

impl Version {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::V17, Self::V23, Self::V26, Self::V30First, Self::V30, Self::V31];

    /// The number in the file.
    pub const fn number(self) -> u32 {
        match self {
            Self::V17 => 17,
            Self::V23 => 23,
            Self::V26 => 26,
            Self::V30First | Self::V30 => 30,
            Self::V31 => 31,
        }
    }
}

/// UTF-16 as Windows keeps it, which may hold unpaired surrogates.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Name(pub Vec<u16>);

impl Name {
    /// As text; an unpaired surrogate is `\xNN` for each of the three bytes that WTF-8 gives it, as
    /// [`cold_model::path_text`] writes bytes that are not UTF-8.
    pub fn text(&self) -> String {
        let mut bytes = Vec::with_capacity(self.0.len());
        for unit in char::decode_utf16(self.0.iter().copied()) {
            match unit {
                Ok(c) => bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
                Err(e) => {
                    let u = e.unpaired_surrogate();
                    bytes.extend([0xe0 | (u >> 12) as u8, 0x80 | (u >> 6 & 63) as u8, 0x80 | (u & 63) as u8]);
                }
            }
        }
        cold_model::path_text::encode_bytes(&bytes).into_owned()
    }

    /// The same with `/` between its parts.
    pub fn path(&self) -> String {
        let slashed = self.0.iter().map(|u| if *u == BACKSLASH { u16::from(b'/') } else { *u });
        Self(slashed.collect()).text()
    }

    /// What stands behind `head`, part by part; `None` where it does not begin so.
    pub fn parts_behind(&self, head: &Self) -> Option<impl Iterator<Item = Self>> {
        let rest = self.0.strip_prefix(head.0.as_slice())?;
        (rest.first() == Some(&BACKSLASH))
            .then(|| rest.split(|u| *u == BACKSLASH).filter(|p| !p.is_empty()).map(|p| Self(p.to_vec())))
    }

    /// Little-endian bytes, without a NUL.
    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|u| u.to_le_bytes()).collect()
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self(text.encode_utf16().collect())
    }
}

/// One page of a file, and which of the last launches used it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Its first byte in the file. Pages of an image begin where its sections do, in steps of 512 bytes.
    pub offset: u64,
    /// As they stand in the file; see the functions.
    pub flags: u8,
    /// The last eight launches, bit 0 the latest: set where it was used.
    pub used: u8,
    /// Launches at which it was prefetched, likewise. `None`: not told, since version 30.
    pub prefetched: Option<u8>,
    /// When in each launch it was used, three bits each, the lowest the latest launch: 0 first, 1 to 6 later, 7 not
    /// used. `None`: not told, before version 30.
    pub phases: Option<u32>,
}

impl Page {
    /// Windows would not prefetch it at the next start.
    pub const fn ignored(&self) -> bool {
        self.flags & 1 != 0
    }
    /// It was used as part of a program or library.
    pub const fn image(&self) -> bool {
        self.flags & 2 != 0
    }
    /// It was used as data.
    pub const fn data(&self) -> bool {
        self.flags & 4 != 0
    }
    /// It is prefetched however seldom it was used.
    pub const fn always(&self) -> bool {
        self.flags & 8 != 0
    }
}

/// One file that a start used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Path, upper case.
    pub name: Name,
    /// Flags of the file, whose meaning is not known.
    pub flags: u32,
    /// Pages of it that Windows would prefetch at the next start. `None`: not told, in version 17.
    pub to_prefetch: Option<u32>,
    /// Its NTFS file reference. `None`: not told, in version 17.
    pub reference: Option<u64>,
    /// Its pages, sorted by offset.
    pub pages: Vec<Page>,
}

/// Whole pages of a file, one behind the other, that the same launches used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRun {
    /// In which part of the latest launch, as [`Page::phases`] tells it; 0 where that is not told.
    pub phase: u32,
    /// Number of the first page, of [`PAGE`] bytes.
    pub first: u64,
    /// How many.
    pub pages: u32,
    /// The last eight launches, as [`Page::used`] has them.
    pub used: u8,
}

impl PageRun {
    fn end(&self) -> u64 {
        self.first + u64::from(self.pages)
    }
}

impl File {
    /// What Windows would prefetch of it at the next start, in whole pages each of which comes once, by their place; of a
    /// file that has `size` bytes here.
    pub fn runs(&self, size: u64) -> Vec<PageRun> {
        let mut out: Vec<PageRun> = Vec::new();
        let end = size.div_ceil(PAGE);
        let mut pages: Vec<&Page> = self.pages.iter().filter(|p| !p.ignored() && p.offset < size).collect();
        // As every real file has them; a damaged one may not.
        pages.sort_by_key(|page| page.offset);
        for page in pages {
            let phase = page.phases.map_or(0, |phases| phases & 7);
            // A page of an image may begin within a page of the file.
            let first = page.offset / PAGE;
            let behind = (page.offset + PAGE).div_ceil(PAGE).min(end);
            if let Some(last) = out.last_mut()
                && last.end() >= first
                && (last.phase, last.used) == (phase, page.used)
            {
                last.pages = (behind - last.first) as u32;
                continue;
            }
            let first = first.max(out.last().map_or(0, PageRun::end));
            if first < behind {
                out.push(PageRun { phase, first, pages: (behind - first) as u32, used: page.used });
            }
        }
        out
    }
}

/// A volume with what was used of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// Path: `\DEVICE\HARDDISKVOLUME2`, since version 30 `\VOLUME{creation-serial}`.
    pub device: Name,
    /// When it was made, `FILETIME`.
    pub created: u64,
    /// Its serial number.
    pub serial: u32,
    /// Version of the list of references: 1 or 3.
    pub references_version: u32,
    /// NTFS file references; 0 in many recent files.
    pub references: Vec<u64>,
    /// Directories on it.
    pub directories: Vec<Name>,
}

/// A prefetch file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefetch {
    /// Version and variant.
    pub version: Version,
    /// Bytes that the header gives: of the file, expanded.
    pub size: u32,
    /// Name of the executable, at most 29 characters.
    pub executable: Name,
    /// Hash of what was started, as in the file's name.
    pub hash: u32,
    /// It tells of the boot, not of a program.
    pub boot: bool,
    /// When it ran, `FILETIME`, the latest first: one slot until version 23, eight since. `None`: an empty slot.
    pub run_times: Vec<Option<u64>>,
    /// How often it ran.
    pub run_count: u32,
    /// Of the last eight launches, how many must have used a page for Windows to prefetch it: 1 to 8.
    pub threshold: u32,
    /// Directories on all volumes. `None`: not told, in version 17.
    pub directories: Option<u32>,
    /// What was hashed: the path, or a package's full name. `None`: not told.
    pub hash_string: Option<Name>,
    /// In the order of the file.
    pub files: Vec<File>,
    /// Volumes of these files.
    pub volumes: Vec<Volume>,
}

impl Prefetch {
    /// Reads a prefetch file, compressed or not.
    ///
    /// # Errors
    /// [`crate::Error`] where it is none, or damaged.
    pub fn read(file: &[u8]) -> Result<Self> {
        read::prefetch(&image(file)?)
    }

    /// The pages of all its files.
    pub fn pages(&self) -> impl Iterator<Item = &Page> {
        self.files.iter().flat_map(|f| &f.pages)
    }

    /// Rows of the files that may be the program: those of its name, which is cut after 29 characters.
    pub fn programs(&self) -> impl Iterator<Item = usize> {
        let wanted = &self.executable.0;
        let is = move |name: &Name| {
            let base = name.0.rsplit(|u| *u == BACKSLASH).next().unwrap_or_default();
            base == wanted || wanted.len() >= CUT && base.starts_with(wanted)
        };
        self.files.iter().enumerate().filter(move |(_, f)| is(&f.name)).map(|(row, _)| row)
    }

    /// How the hash came about.
    pub fn hash_check(&self) -> HashCheck {
        hash::check(self)
    }

    /// What its starts need, and what reading that would take.
    pub fn needs(&self) -> Needs {
        Needs::of(self)
    }
}
