//! Which names are looked up again.
//!
//! A lookup in advance is worth the blocks that it brings in: its directory's, and the one with its inode. The
//! names beside it then cost computing only, which the program does as fast itself: of the 30,000 names of a
//! `git status`, 1900 bring in all their inodes. So where the place of inodes is known:
//!
//! - of names whose inodes lie in one block, the one with the smallest inode stays (not the first in time, which
//!   threads change from start to start); none, where a file or directory of the plan has its inode there;
//! - enough stay for each directory: one where it has one block, [`PER_BLOCK`] per block where it has more, as
//!   names lie scattered over them; none, where it is listed;
//! - what stays is needed as early as what it stands for.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use cold_model::Dev;
use cold_model::file_system::Inode;
use cold_plan::plan::{FileKind, PlanFile, Range};

use super::InodeOf;
use super::select::{NO_NEED, Selection};

/// Names per block of a directory; so many at random places hit 98% of the blocks.
const PER_BLOCK: u64 = 4;

/// A name that needs no lookup, and what stands for it.
struct Spare {
    name: usize,
    /// Has its inode in the same block.
    inode: usize,
    /// Is that directory, listed, or lies in it.
    directory: Option<usize>,
}

/// Takes the names that need no lookup out of the selection.
pub(super) fn thin(selection: &mut Selection<'_>, ranges: &[Range], inode: InodeOf) {
    let files = selection.chosen();
    for Spare { name, inode, directory } in spare(files, ranges, inode) {
        let need_ns = std::mem::replace(&mut files[name].need_ns, NO_NEED);
        for stays in [Some(inode), directory].into_iter().flatten() {
            files[stays].need_ns = files[stays].need_ns.min(need_ns);
        }
    }
}

/// Names that read all blocks of a directory: one where it has one block, or where that is not known.
pub(super) fn enough(directory: &Path, inode: InodeOf) -> u64 {
    // What a link leads to, not the link.
    let blocks = inode(&directory.join(".")).map_or(1, |d| d.size.div_ceil(4096));
    if blocks <= 1 { 1 } else { blocks.saturating_mul(PER_BLOCK) }
}

fn spare(files: &[PlanFile], ranges: &[Range], inode: InodeOf) -> Vec<Spare> {
    let read: HashSet<usize> = ranges.iter().map(|r| r.file as usize).collect();
    let mut planned: Vec<usize> = (0..files.len())
        .filter(|&i| match files[i].kind {
            FileKind::Regular => read.contains(&i),
            FileKind::Directory | FileKind::Name => true,
            FileKind::BlockDevice => false,
        })
        .collect();
    planned.sort_by_key(|&i| &files[i].path);
    let inodes: HashMap<usize, Inode> =
        planned.iter().filter_map(|&i| Some((i, inode(&files[i].path)?))).collect();

    // By block, what stands for it.
    let mut blocks: HashMap<(Dev, u64), usize> = HashMap::new();
    let rank = |i: usize| (files[i].kind == FileKind::Name, inodes.get(&i).map(|n| n.number), &files[i].path);
    for (&i, n) in &inodes {
        let first = blocks.entry((n.dev, n.block)).or_insert(i);
        if rank(i) < rank(*first) {
            *first = i;
        }
    }
    let mut stays: HashSet<usize> = blocks.values().copied().collect();
    stays.extend(planned.iter().filter(|i| files[**i].kind != FileKind::Name || !inodes.contains_key(i)));

    let directories = directories(files, &planned, &mut stays, inode);
    let spare = |&i: &usize| {
        let n = inodes.get(&i).filter(|_| !stays.contains(&i))?;
        let directory = files[i].path.parent().and_then(|d| directories.get(d).copied());
        Some(Spare { name: i, inode: *blocks.get(&(n.dev, n.block))?, directory })
    };
    planned.iter().filter_map(spare).collect()
}

/// What stands for each directory, after as many more names stay as that needs.
fn directories<'a>(
    files: &'a [PlanFile],
    planned: &[usize],
    stays: &mut HashSet<usize>,
    inode: InodeOf,
) -> HashMap<&'a Path, usize> {
    let mut within: HashMap<&Path, Vec<usize>> = HashMap::new();
    for &i in planned {
        within.entry(files[i].path.parent().unwrap_or(Path::new("/"))).or_default().push(i);
    }
    let listed = planned.iter().filter(|i| files[**i].kind == FileKind::Directory);
    let mut out: HashMap<&Path, usize> = listed.map(|&i| (files[i].path.as_path(), i)).collect();
    for (directory, names) in within {
        if out.contains_key(directory) {
            continue;
        }
        let enough = enough(directory, inode);
        let stay = names.iter().filter(|i| stays.contains(i)).count() as u64;
        let more = usize::try_from(enough.saturating_sub(stay)).unwrap_or(usize::MAX);
        let more: Vec<usize> = names.iter().copied().filter(|i| !stays.contains(i)).take(more).collect();
        stays.extend(more);
        out.extend(names.iter().find(|i| stays.contains(i)).map(|&i| (directory, i)));
    }
    out
}

#[cfg(test)]
mod tests;
