//! The bytes of a snapshot file, version 1 (docs/formats/cache-snapshot.md). Pure.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use cold_model::FileId;
use cold_model::hash::fnv1a64;
use cold_model::varint;
use cold_sys::residency::PageRun;

use super::{Snapshot, SnapshotFile};

/// First bytes of every snapshot.
const MAGIC: &[u8; 8] = b"COLDSNAP";

/// Version written; every earlier one can be read (there is none yet).
pub const VERSION: u32 = 1;

/// Largest file that is read: 10 million files at 100 bytes each.
pub const MAX_BYTES: u64 = 1 << 30;

/// Longest path of Linux (`PATH_MAX`).
const MAX_PATH: usize = 4096;

/// The least bytes of one file's entry: bounds the count of files by the bytes there are.
const MIN_FILE: usize = 4 + 1 + 3 * 8 + 8 + 4 + 1;

/// Why bytes are no snapshot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// Another kind of file.
    #[error("not a cache snapshot (its first bytes are not {:?})", String::from_utf8_lossy(MAGIC))]
    Magic,
    /// Written by a later version.
    #[error("snapshot format {0} is newer than this program (it reads up to {VERSION})")]
    Version(u32),
    /// Cut short or changed.
    #[error("damaged: the checksum does not fit (cut short, or changed after it was saved)")]
    Checksum,
    /// The checksum fits, and the content contradicts itself or the format.
    #[error("damaged: {0}")]
    Invalid(&'static str),
    /// Longer than [`MAX_BYTES`].
    #[error("larger than {} GiB: no snapshot of this program", MAX_BYTES >> 30)]
    TooLarge,
    /// Saved with other pages.
    #[error("saved on a machine with pages of {0} bytes: page numbers do not fit here")]
    PageSize(u32),
}

type Decoded<T> = Result<T, CodecError>;

/// Tells damage by accident; bounds do the rest.
fn checksum(bytes: &[u8]) -> u64 {
    fnv1a64(&[bytes])
}

/// `bytes` with their last eight replaced by the checksum of the others.
#[cfg(feature = "fuzzing")]
pub(crate) fn seal(bytes: &[u8]) -> Vec<u8> {
    let covered = bytes.get(..bytes.len().saturating_sub(8)).unwrap_or_default();
    [covered, &checksum(covered).to_le_bytes()].concat()
}

struct SnapshotReader<'a>(&'a [u8]);

impl<'a> SnapshotReader<'a> {
    fn take(&mut self, n: usize) -> Decoded<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n).ok_or(CodecError::Invalid("an entry is cut short"))?;
        self.0 = tail;
        Ok(head)
    }
    fn array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| CodecError::Invalid("an entry is cut short"))
    }
    fn u32(&mut self) -> Decoded<u32> {
        self.array().map(u32::from_le_bytes)
    }
    fn u64(&mut self) -> Decoded<u64> {
        self.array().map(u64::from_le_bytes)
    }
    fn varint(&mut self) -> Decoded<u64> {
        varint::take(&mut self.0)
            .ok_or(CodecError::Invalid("a number that is cut short, or of more than 64 bits"))
    }
}

impl Snapshot {
    /// The file's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.page_size.to_le_bytes());
        out.extend_from_slice(&self.created.to_le_bytes());
        out.extend_from_slice(&(self.files.len() as u64).to_le_bytes());
        for file in &self.files {
            let path = file.path.as_os_str().as_bytes();
            out.extend_from_slice(&(path.len() as u32).to_le_bytes());
            out.extend_from_slice(path);
            for n in [file.id.dev, file.id.ino, file.size] {
                out.extend_from_slice(&n.to_le_bytes());
            }
            out.extend_from_slice(&file.mtime.0.to_le_bytes());
            out.extend_from_slice(&file.mtime.1.to_le_bytes());
            varint::put(&mut out, file.runs.len() as u64);
            let mut at = 0;
            for run in &file.runs {
                varint::put(&mut out, run.first - at);
                varint::put(&mut out, run.pages);
                at = run.end();
            }
        }
        let sum = checksum(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        out
    }

    /// Reads and checks the bytes of a file; nothing in them is trusted.
    pub fn decode(bytes: &[u8]) -> Decoded<Self> {
        let mut r = SnapshotReader(bytes);
        if r.take(MAGIC.len()) != Ok(MAGIC) {
            return Err(CodecError::Magic);
        }
        let version = r.u32()?;
        if version > VERSION {
            return Err(CodecError::Version(version));
        }
        if version == 0 {
            return Err(CodecError::Invalid("format 0 does not exist"));
        }
        let body = bytes.len().checked_sub(8).ok_or(CodecError::Checksum)?;
        let (covered, sum) = bytes.split_at(body);
        if sum != checksum(covered).to_le_bytes() {
            return Err(CodecError::Checksum);
        }
        let mut r = SnapshotReader(covered.get(MAGIC.len() + 4..).ok_or(CodecError::Checksum)?);
        let page_size = r.u32()?;
        if !page_size.is_power_of_two() || page_size < 4096 {
            return Err(CodecError::Invalid("no machine has such a page size"));
        }
        let created = r.u64()?;
        let count = r.u64()?;
        if count > (r.0.len() / MIN_FILE) as u64 {
            return Err(CodecError::Invalid("more files than bytes"));
        }
        let mut files = Vec::with_capacity(count as usize);
        for _ in 0..count {
            files.push(decode_file(&mut r, page_size)?);
        }
        if !r.0.is_empty() {
            return Err(CodecError::Invalid("bytes after the last file"));
        }
        Ok(Self { page_size, created, files })
    }
}

fn decode_file(r: &mut SnapshotReader<'_>, page_size: u32) -> Decoded<SnapshotFile> {
    let len = r.u32()? as usize;
    if len > MAX_PATH {
        return Err(CodecError::Invalid("a path longer than Linux allows"));
    }
    let path = PathBuf::from(OsString::from_vec(r.take(len)?.to_vec()));
    if !path.is_absolute() || path.as_os_str().as_bytes().contains(&0) {
        return Err(CodecError::Invalid("a path that is not absolute"));
    }
    let (dev, ino, size) = (r.u64()?, r.u64()?, r.u64()?);
    let mtime = (i64::from_le_bytes(r.array()?), r.u32()?);
    let pages = size.div_ceil(u64::from(page_size));
    let count = r.varint()?;
    if count > (r.0.len() / 2) as u64 {
        return Err(CodecError::Invalid("more runs than bytes"));
    }
    let mut runs = Vec::with_capacity(count as usize);
    let mut at = 0_u64;
    for i in 0..count {
        let (gap, len) = (r.varint()?, r.varint()?);
        let first = at.checked_add(gap).ok_or(CodecError::Invalid("a page beyond all files"))?;
        let end = first.checked_add(len).ok_or(CodecError::Invalid("a page beyond all files"))?;
        if len == 0 || end > pages || (gap == 0 && i > 0) {
            return Err(CodecError::Invalid("runs of pages that do not fit the file"));
        }
        runs.push(PageRun { first, pages: len });
        at = end;
    }
    Ok(SnapshotFile { path, id: FileId { dev, ino }, size, mtime, runs })
}
