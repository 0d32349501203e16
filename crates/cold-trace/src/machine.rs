//! What assembling asks of the machine about files, after the start.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use cold_model::file::Content;
use cold_model::recording::{File, FileKind};
use cold_sys::residency::PageMap;

/// Answers about files as they are now. Only called once the start is over.
pub trait FilesNow {
    /// Cached pages as sorted (first page, pages); `None`: not told, or the file is not that one any more.
    fn resident(&mut self, file: &File) -> Option<Vec<(u64, u64)>>;
    /// The folios of these pages (sorted) as sorted (first page, pages), where the pages are cached; `None`: not
    /// told. Reads nothing.
    fn folios(&mut self, file: &File, pages: &[u64]) -> Option<Vec<(u64, u64)>>;
    /// Size in bytes and time of last change in nanoseconds since 1970; `None`: not told, or its path leads to
    /// another inode now.
    fn content(&mut self, file: &File) -> Option<Content>;
}

/// Another machine, or another boot: knows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Elsewhere;

impl FilesNow for Elsewhere {
    fn resident(&mut self, _: &File) -> Option<Vec<(u64, u64)>> {
        None
    }
    fn folios(&mut self, _: &File, _: &[u64]) -> Option<Vec<(u64, u64)>> {
        None
    }
    fn content(&mut self, _: &File) -> Option<Content> {
        None
    }
}

/// The machine this runs on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Here;

impl FilesNow for Here {
    fn resident(&mut self, file: &File) -> Option<Vec<(u64, u64)>> {
        let (open, meta) = opened(file)?;
        let map = PageMap::of(&open, &meta).ok()??;
        Some(map.runs().map(|run| (run.first, run.pages)).collect())
    }
    fn folios(&mut self, file: &File, pages: &[u64]) -> Option<Vec<(u64, u64)>> {
        let (open, meta) = opened(file)?;
        let folios = cold_sys::folio::folios(&open, &meta, pages).ok()??;
        Some(folios.into_iter().map(|run| (run.first, run.pages)).collect())
    }
    fn content(&mut self, file: &File) -> Option<Content> {
        let meta = std::fs::symlink_metadata(file.place()?).ok()?;
        (meta.is_file() && meta.ino() == file.inode).then(|| Content::of(&meta))
    }
}

fn opened(file: &File) -> Option<(std::fs::File, Metadata)> {
    if file.kind != FileKind::Regular || file.deleted {
        return None;
    }
    let (open, meta) = cold_sys::open::regular(&file.place()?, false).ok()?;
    file.is_still(&meta).then_some((open, meta))
}
