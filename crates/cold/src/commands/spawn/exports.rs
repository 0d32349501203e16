//! Files to write: checked before the measurement, written after it.

use std::path::Path;

use cold_report::spawn as picture;
use cold_spawn::report::{Report, csv};

use super::Args;
use crate::exit::Failure;
use crate::results;

fn wanted(args: &Args) -> impl Iterator<Item = &Path> {
    [&args.csv, &args.svg, &args.html].into_iter().flatten().map(std::path::PathBuf::as_path)
}

/// Fails when a file could not be written later on.
pub(super) fn check(args: &Args) -> Result<(), Failure> {
    wanted(args).try_for_each(results::check)
}

/// Writes them all.
pub(super) fn write(args: &Args, report: &Report) -> Result<(), Failure> {
    type Writer = fn(&Report) -> String;
    let kinds: [(&Option<std::path::PathBuf>, Writer); 3] =
        [(&args.csv, csv), (&args.svg, picture::svg), (&args.html, picture::html)];
    for (path, text) in kinds {
        if let Some(path) = path {
            results::save(path, text(report))?;
        }
    }
    Ok(())
}
