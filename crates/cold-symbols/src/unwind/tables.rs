//! The unwind tables of one file, read when they are first looked into.

use std::fs::Metadata;
use std::ops::{Deref, Range};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use cold_model::layout::Segment;
use framehop::{ExplicitModuleSectionInfo, Module};
use object::{Object as _, ObjectSection as _};

use crate::elf::Image;
use crate::layout::{address_of, segments};

/// Longest table that is read; chromium's `.eh_frame` has 30 MiB.
const MAX_BYTES: u64 = 256 << 20;

/// Where a file's tables are, and what of them has been read.
pub(super) struct Tables {
    path: PathBuf,
    segments: Vec<Segment>,
    text: Option<Range<u64>>,
    got: Option<Range<u64>>,
    eh_frame: Option<(Range<u64>, Part)>,
    eh_frame_hdr: Option<(Range<u64>, Part)>,
    debug_frame: Option<Part>,
}

/// Bytes of a file, read on first use; empty where that fails.
#[derive(Clone)]
pub(super) struct Part(Arc<Lazy>);

struct Lazy {
    path: PathBuf,
    identity: (u64, u64, u64),
    offset: u64,
    bytes: u64,
    read: OnceLock<Vec<u8>>,
}

impl Deref for Part {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.read.get_or_init(|| self.0.load().unwrap_or_default())
    }
}

impl Lazy {
    fn load(&self) -> Option<Vec<u8>> {
        let (file, meta) = cold_sys::open::regular(&self.path, true).ok()?;
        let mut bytes = vec![0; usize::try_from(self.bytes).ok()?];
        file.read_exact_at(&mut bytes, self.offset).ok()?;
        (identity(&meta) == self.identity).then_some(bytes)
    }
}

fn identity(meta: &Metadata) -> (u64, u64, u64) {
    (meta.dev(), meta.ino(), meta.len())
}

impl Tables {
    /// Looks where the tables are; `None` when the file cannot be read as ELF.
    pub(super) fn open(path: &Path) -> Option<Self> {
        let image = Image::open(path).ok()?;
        let object = image.parse().ok()?;
        let range = |name: &str| {
            let section = object.section_by_name(name)?;
            Some(section.address()..section.address().checked_add(section.size())?)
        };
        let part = |name: &str| {
            let section = object.section_by_name(name)?;
            // Compressed (only `.debug_frame` ever is) is as good as absent.
            let file = section.compressed_file_range().ok()?;
            let plain = file.format == object::CompressionFormat::None;
            let fits = file.offset.checked_add(file.compressed_size)? <= image.meta.len();
            (plain && fits && (1..=MAX_BYTES).contains(&file.compressed_size)).then(|| {
                Part(Arc::new(Lazy {
                    path: path.to_owned(),
                    identity: identity(&image.meta),
                    offset: file.offset,
                    bytes: file.compressed_size,
                    read: OnceLock::new(),
                }))
            })
        };
        Some(Self {
            path: path.to_owned(),
            segments: segments(&object),
            text: range(".text"),
            got: range(".got"),
            eh_frame: range(".eh_frame").zip(part(".eh_frame")),
            eh_frame_hdr: range(".eh_frame_hdr").zip(part(".eh_frame_hdr")),
            debug_frame: part(".debug_frame"),
        })
    }

    /// Whether there are any tables.
    pub(super) fn any(&self) -> bool {
        self.eh_frame.is_some() || self.debug_frame.is_some()
    }

    /// The module that lies at `mapped`, which begins with the byte at `offset` of the file.
    pub(super) fn module(&self, mapped: Range<u64>, offset: u64) -> Option<Module<Part>> {
        let (eh_frame_svma, eh_frame) = self.eh_frame.clone().unzip();
        let (eh_frame_hdr_svma, eh_frame_hdr) = self.eh_frame_hdr.clone().unzip();
        let info = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: self.text.clone(),
            got_svma: self.got.clone(),
            eh_frame_svma,
            eh_frame,
            eh_frame_hdr_svma,
            eh_frame_hdr,
            debug_frame: self.debug_frame.clone(),
            text: None,
            stubs_svma: None,
            stub_helper_svma: None,
            unwind_info: None,
            text_segment_svma: None,
            text_segment: None,
        };
        // The first mapped byte may lie before the segment, whose beginning the loader rounds down to a page.
        let stated = address_of(&self.segments, offset).or_else(|| {
            let next = self.segments.iter().find(|s| s.offset >= offset && s.access.ends_with('x'))?;
            next.address.checked_sub(next.offset - offset)
        })?;
        let base = mapped.start.checked_sub(stated)?;
        // framehop subtracts the base from addresses inside; a range that wraps would overflow there.
        (mapped.start < mapped.end).then(|| Module::new(self.path.display().to_string(), mapped, base, info))
    }
}
