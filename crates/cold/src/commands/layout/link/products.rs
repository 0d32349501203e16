//! Programs that a build makes, known by the functions that they have.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use cold_layout::functions::Functions;
use cold_layout::verify::{self, Placed};
use cold_model::FileId;
use cold_model::file::Content;

/// Directory entries that are looked at; the sources and objects of a browser are 600,000.
const MAX_ENTRIES: usize = 1_000_000;
/// How deep directories are followed.
const MAX_DEPTH: usize = 40;
/// Executable files whose functions are read, the newest: each takes up to a second.
const MAX_PROGRAMS: usize = 200;
/// Directories that hold no result of a build.
const SKIPPED: [&str; 4] = [".git", ".fingerprint", "incremental", "node_modules"];

/// A program that has the functions of the order.
pub(super) struct Product {
    pub(super) path: PathBuf,
    pub(super) functions: Functions,
    pub(super) placed: Placed,
    /// Which file it was, and of which content.
    pub(super) identity: (FileId, Content),
}

/// An executable file.
struct Candidate {
    path: PathBuf,
    mtime: (i64, i64),
}

/// The programs below `places` that have most of `names`; the best first: of most names, then the newest. What cannot
/// be read is none.
pub(super) fn find(places: &[PathBuf], names: &[String]) -> Vec<Product> {
    let mut found: HashMap<FileId, Candidate> = HashMap::new();
    let mut left = MAX_ENTRIES;
    for place in places {
        walk(place, MAX_DEPTH, &mut left, &mut found);
    }
    let mut candidates: Vec<Candidate> = found.into_values().collect();
    candidates.sort_by(|a, b| b.mtime.cmp(&a.mtime).then_with(|| a.path.cmp(&b.path)));
    candidates.truncate(MAX_PROGRAMS);
    let read = candidates.iter().filter_map(|c| Some((c.mtime, read(&c.path, names).ok()?)));
    let mut products: Vec<_> = read.filter(|(_, p)| p.placed.is_of_the_order()).collect();
    products
        .sort_by(|(a_time, a), (b_time, b)| (b.placed.resolved, b_time).cmp(&(a.placed.resolved, a_time)));
    products.into_iter().map(|(_, p)| p).collect()
}

/// What is compared of a linked program before and after.
pub(super) fn read(path: &Path, names: &[String]) -> anyhow::Result<Product> {
    let (file, meta) = cold_sys::open::regular(path, true)?;
    let identity = (FileId::of(&meta), Content::of(&meta));
    let functions = cold_symbols::functions(file, meta, path, &cold_symbols::Options::default())?;
    let placed = verify::placed(names, &functions);
    Ok(Product { path: path.to_owned(), functions, placed, identity })
}

fn walk(dir: &Path, depth: usize, left: &mut usize, found: &mut HashMap<FileId, Candidate>) {
    const EXECUTABLE: u32 = 0o111;
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let Some(rest) = left.checked_sub(1) else { return };
        *left = rest;
        let Ok(kind) = entry.file_type() else { continue };
        let path = entry.path();
        if kind.is_dir() && depth > 0 && SKIPPED.iter().all(|name| entry.file_name() != *name) {
            walk(&path, depth.saturating_sub(1), left, found);
        }
        let Some(meta) = kind.is_file().then(|| entry.metadata().ok()).flatten() else { continue };
        if meta.mode() & EXECUTABLE == 0 || meta.len() == 0 {
            continue;
        }
        let mtime = (meta.mtime(), meta.mtime_nsec());
        // Cargo gives a program two names: the shorter one is the user's.
        let depth_of = |path: &Path| path.components().count();
        let candidate = Candidate { path, mtime };
        let known = found.get(&FileId::of(&meta)).map(|c| (depth_of(&c.path), c.path.clone()));
        if known.is_none_or(|known| (depth_of(&candidate.path), candidate.path.clone()) < known) {
            found.insert(FileId::of(&meta), candidate);
        }
    }
}
