//! What the tests of real files share.

use std::path::PathBuf;

/// A directory of the samples, which are no part of the project.
pub(crate) fn samples(kind: &str) -> Option<PathBuf> {
    let dir = std::env::var_os("COLDSTART_SAMPLES").map(|d| PathBuf::from(d).join(kind));
    if dir.is_none() {
        eprintln!("SKIPPED: COLDSTART_SAMPLES names no directory of samples");
    }
    dir
}
