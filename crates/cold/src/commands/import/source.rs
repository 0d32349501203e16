//! A file that somebody else wrote, read piece by piece.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use cold_model::{Bytes, Shown as _};
use cold_windows::etl::Source;

use crate::exit::Failure;
use crate::progress::Line;

/// Bytes between two steps of the progress line.
const STEP: u64 = 16 << 20;

/// A regular file whose reading is shown.
pub(super) struct Shown<'a, 'u> {
    file: File,
    size: u64,
    name: String,
    line: &'a mut Line<'u>,
    /// Bytes read so far, and at the last step.
    read: (u64, u64),
}

impl<'a, 'u> Shown<'a, 'u> {
    /// Opens `path`, which must be a regular file.
    pub(super) fn open(path: &Path, line: &'a mut Line<'u>) -> Result<Self, Failure> {
        let (file, meta) = cold_sys::open::regular(path, true)?;
        let name = path.shown().to_string();
        Ok(Self { file, size: meta.len(), name, line, read: (0, 0) })
    }
}

impl Source for Shown<'_, '_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<(), String> {
        let (read, told) = self.read;
        self.read.0 = read + into.len() as u64;
        if self.read.0 >= told + STEP {
            self.read.1 = self.read.0;
            self.line.step(&format!("reading {}: {} of {}", self.name, Bytes(self.read.0), Bytes(self.size)));
        }
        self.file.read_exact_at(into, at).map_err(|e| e.to_string())
    }
}
