//! The functions of a file, with the help of its separate debug file.

use std::fs::{File, Metadata};
use std::path::Path;

use cold_layout::functions::{Functions, of_object};

use crate::elf::Image;
use crate::{Error, Options, debug_file};

/// The functions of an open ELF file. `path` is where its debug file is searched from, and what messages call it.
pub fn functions(file: File, meta: Metadata, path: &Path, options: &Options) -> Result<Functions, Error> {
    let image = Image::of(file, meta, path)?;
    let object = image.parse()?;
    let debug = debug_file::find(&object, path, &options.debug_directories);
    let debug = debug.as_ref().and_then(|image| image.parse().ok());
    let damaged = |e: cold_layout::Error| Error::Damaged { path: path.to_owned(), why: e.to_string() };
    of_object(&object, debug.as_ref()).map_err(damaged)
}
