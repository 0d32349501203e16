//! The unwind tables of one file, read when they are first looked into.

use std::fs::Metadata;
use std::ops::{Deref, Range};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use cold_model::file::{Content, FileId};
use cold_model::layout::Segment;
use framehop::{ExplicitModuleSectionInfo, Module};
use object::{Object as _, ObjectSection as _};

use crate::elf::Image;
use crate::layout::segments;

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
    identity: (FileId, Content),
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

fn identity(meta: &Metadata) -> (FileId, Content) {
    (FileId::of(meta), Content::of(meta))
}

/// The virtual address that the file states for the first byte of an executable mapping of `bytes` from
/// `offset` on: by the executable segment in it. The loader rounds its beginning down to a page, so the first
/// byte itself may belong to another segment: lld lets them share a page of the file, and puts the second one
/// a page higher in memory.
fn stated_address(segments: &[Segment], offset: u64, bytes: u64) -> Option<u64> {
    let end = offset.saturating_add(bytes);
    let overlaps = |s: &&Segment| s.offset < end && s.offset.saturating_add(s.bytes) > offset;
    let executable = segments.iter().filter(|s| s.access.ends_with('x')).find(overlaps);
    let segment = executable.or_else(|| segments.iter().find(overlaps))?;
    match offset.checked_sub(segment.offset) {
        Some(inside) => segment.address.checked_add(inside),
        None => segment.address.checked_sub(segment.offset - offset),
    }
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
        let stated = stated_address(&self.segments, offset, mapped.end.saturating_sub(mapped.start))?;
        let base = mapped.start.checked_sub(stated)?;
        // framehop subtracts the base from addresses inside; a range that wraps would overflow there.
        (mapped.start < mapped.end)
            .then(|| Module::new(self.path.to_string_lossy().into_owned(), mapped, base, info))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(offset: u64, bytes: u64, address: u64, access: &str) -> Segment {
        Segment { offset, bytes, address, access: access.to_owned() }
    }

    #[test]
    fn segments_that_share_a_page_of_the_file() {
        // libxul.so, linked by lld.
        let lld = [
            segment(0, 0x336_30d0, 0, "r--"),
            segment(0x336_30d0, 0x758_43d0, 0x336_40d0, "r-x"),
            segment(0xa8e_74a0, 0x55_cc30, 0xa8e_94a0, "rw-"),
        ];
        assert_eq!(stated_address(&lld, 0x336_3000, 0x758_5000), Some(0x336_4000));
        // A part of it, as mprotect leaves it.
        assert_eq!(stated_address(&lld, 0x400_0000, 0x1000), Some(0x400_1000));
        // GNU ld: each segment begins on a page of its own.
        let gnu = [segment(0, 0x628, 0, "r--"), segment(0x1000, 0x175, 0x1000, "r-x")];
        assert_eq!(stated_address(&gnu, 0x1000, 0x1000), Some(0x1000));
        // Old programs: one segment, at a fixed address.
        let one = [segment(0, 0x7000, 0x40_0000, "r-x")];
        assert_eq!(stated_address(&one, 0, 0x7000), Some(0x40_0000));
        assert_eq!(stated_address(&one, 0x8000, 0x1000), None);
        let wrong = [segment(0x800, 0x100, 0x10, "r-x")];
        assert_eq!(stated_address(&wrong, 0, 0x1000), None, "it would lie below address 0");
    }
}
