//! What a start needs, in the forms that builders of images and restorers of snapshots read.
//!
//! Pure: a [`PagesWanted`] comes from a plan ([`PagesWanted::of_plan`]) or a recording ([`PagesWanted::of_recording`]), [`PagesWanted::below`]
//! takes it into an image, [`Format::write`] writes it. Each form is a module of its own that names its source and the
//! traps of its reader.

mod image;
mod pages;
mod wanted;

pub use wanted::{PagesWanted, Piece, WantedFile};

/// A form in which another program wants to know what a start needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `nydus-image optimize --prefetch-files` (2.3.7 and later): ranges of files, as JSON.
    Nydus,
    /// `ctr-remote image convert --estargz-record-in`, `nerdctl image convert --estargz-record-in`: files in order.
    Estargz,
    /// `soci create --prefetch-files-json` (0.13 and later): files, as JSON.
    Soci,
    /// `ctr record-trace --priority_list` of overlaybd: files, a line each.
    OverlaybdList,
    /// `mksquashfs -sort`: files with priorities.
    SquashfsSort,
    /// The `trace` file of REAP (vHive): page offsets of one memory file, in order.
    Reap,
    /// Ranges in order of need, as JSON.
    RangesJson,
    /// The same as CSV.
    RangesCsv,
}

/// A written document, and what could not be in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The document, ready to be written.
    pub text: String,
    /// Files that are in it.
    pub files: u64,
    /// Why files are not in it, with their number and one of them.
    pub left_out: Vec<FilesLeftOut>,
}

/// Files that a form cannot hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesLeftOut {
    /// Why, in words.
    pub why: &'static str,
    /// Files that are left out for this reason.
    pub files: u64,
    /// The first of them.
    pub example: String,
}

/// Why nothing can be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// Offsets without names are about one file.
    #[error("this format is about one file, and the start needs {count}: {names}; choose one")]
    NotOne {
        /// How many there are.
        count: usize,
        /// Some of them.
        names: String,
    },
    /// A recording made to harm tells of more pages than any memory holds.
    #[error("the start needs {pages} pages: no memory file has so many")]
    TooMany {
        /// How many it tells of.
        pages: u64,
    },
    /// There is nothing to write.
    #[error("no page of any regular file is needed")]
    Nothing,
}

impl Format {
    /// Writes the document.
    pub fn write(self, wanted: &PagesWanted) -> Result<Written, ExportError> {
        if wanted.pieces.is_empty() {
            return Err(ExportError::Nothing);
        }
        Ok(match self {
            Self::Nydus => image::nydus(wanted),
            Self::Estargz => image::estargz(wanted),
            Self::Soci => image::soci(wanted),
            Self::OverlaybdList => image::overlaybd_list(wanted),
            Self::SquashfsSort => image::squashfs_sort(wanted),
            Self::Reap => pages::reap(wanted)?,
            Self::RangesJson => pages::ranges_json(wanted),
            Self::RangesCsv => pages::ranges_csv(wanted),
        })
    }
}

/// Collects what is left out.
#[derive(Debug, Default)]
struct Sieve(Vec<FilesLeftOut>);

impl Sieve {
    fn drop(&mut self, why: &'static str, path: &str) {
        match self.0.iter_mut().find(|l| l.why == why) {
            Some(l) => l.files += 1,
            None => self.0.push(FilesLeftOut { why, files: 1, example: path.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests;
