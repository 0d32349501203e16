//! Metadata that a start needs before data: the file systems' own blocks, directories, names.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use cold_model::Dev;
use cold_model::pages::LiveRuns;
use cold_model::path_text;
use cold_model::recording::tables::Began;
use cold_model::recording::{self, FileIdx, LookupKind, Recording};
use cold_plan::plan::{FileKind, PAGE, Range};

use super::With;
use super::names;
use super::pages::push;
use super::select::Selection;
use cold_analyze::clock::DependencyClock;

/// What a lookup returns of a name that is not there: `-ENOENT`.
const NOT_THERE: i64 = -2;

/// Blocks that were read from block devices because a file system wanted them. Only reading shows them: a
/// warm start needs them as well, and nobody sees it.
///
/// With the block of one inode ext4 reads up to 32 beside it ahead (`inode_readahead_blks`), 5 MiB in all for
/// the 350 names of a `python3` with imports. Of these, only blocks with the inode of a planned name are kept.
pub(super) fn blocks(
    recording: &Recording,
    clock: &DependencyClock,
    with: &With<'_>,
    selection: &mut Selection<'_>,
    ranges: &mut Vec<Range>,
) {
    let readable = |f: &recording::File| {
        let path = f.place();
        with.readable.is_none_or(|readable| path.as_deref().is_some_and(readable))
    };
    let device = |f: &recording::File| f.kind == recording::FileKind::BlockDevice && readable(f);
    let device: Vec<bool> = recording.files.iter().map(device).collect();
    let mut seen: HashMap<FileIdx, LiveRuns> = HashMap::new();
    let in_vain = in_vain(recording, with, &selection.paths());
    for f in recording.fills.iter().flatten() {
        if !f.in_tree
            || device.get(f.file as usize) != Some(&true)
            || !clock.before_ready(f.at)
            || f.cause == recording::FillCause::Write
        {
            continue;
        }
        let need_ns = clock.need(f.at, f.tid);
        let Some(index) = selection.file(f.file, need_ns) else { continue };
        let pages = f.first_page..f.first_page.saturating_add(u64::from(f.pages));
        let seen = seen.entry(f.file).or_default();
        for hole in seen.holes(&pages) {
            let mut first = hole.start;
            for page in hole.clone().filter(|page| in_vain.contains(&(f.file, *page))).chain([hole.end]) {
                push(ranges, index, &(first..page), need_ns, false);
                first = page + 1;
            }
        }
        seen.insert(&pages);
    }
}

/// Pages of inode tables that were read ahead and hold no inode of the names, as far as that can be told.
fn in_vain(recording: &Recording, with: &With<'_>, names: &[PathBuf]) -> HashSet<(FileIdx, u64)> {
    /// `inode_readahead_blks` of 4096 bytes unless set otherwise; what is read ahead is aligned to it.
    const AHEAD: u64 = 32 * PAGE;
    let Some(inode_page) = with.inode_page else { return HashSet::new() };
    let requests = recording.device_reads.as_deref().unwrap_or_default();
    let is_ahead = |t: &&recording::Transfer| requests.get(t.request as usize).is_some_and(|r| r.readahead);
    let mut ahead = recording.transfers.iter().flatten().filter(is_ahead).peekable();
    if ahead.peek().is_none() {
        return HashSet::new(); // a warm start: where 30,000 inodes lie matters to nobody
    }
    // Whoever looks a name up needs the inodes of the directories on the way, too.
    let names: HashSet<&Path> = names.iter().flat_map(|n| n.ancestors()).collect();
    // A cached page of this machine may hold several of a plan's.
    let each = u64::from(recording.manifest.page_bytes) / PAGE;
    let group = (AHEAD / PAGE / each.max(1)).max(1);
    let here = |(dev, page): (Dev, u64)| (dev, page / each.max(1));
    let wanted: HashSet<(Dev, u64)> = names.into_iter().filter_map(inode_page).map(here).collect();
    let near: HashSet<(Dev, u64)> = wanted.iter().map(|(dev, page)| (*dev, page / group)).collect();
    let mut out = HashSet::new();
    for t in ahead {
        let Some(file) = t.file else { continue };
        let Some(row) = recording.files.get(file as usize) else { continue };
        if row.kind == recording::FileKind::BlockDevice {
            let dev = row.dev;
            let pages = t.first_page..t.first_page.saturating_add(u64::from(t.pages));
            let vain = |page: &u64| near.contains(&(dev, page / group)) && !wanted.contains(&(dev, *page));
            out.extend(pages.filter(vain).map(|page| (file, page)));
        }
    }
    out
}

/// Names of the dynamic loaders of what was executed. Without them the program waits in its `exec` for the
/// directories on the way there: 4 ms behind what is being read ahead for it, on a disk of 40 µs per read.
pub(super) fn interpreters(
    recording: &Recording,
    clock: &DependencyClock,
    with: &With<'_>,
    selection: &mut Selection<'_>,
) {
    let Some(interpreter) = with.interpreter else { return };
    let mut seen = HashSet::new();
    for p in &recording.processes {
        let executable = p.executable.filter(|_| p.how == Began::Exec && p.in_tree);
        let Some(file) = executable.filter(|f| clock.before_ready(p.began) && seen.insert(*f)) else {
            continue;
        };
        let Some(path) = recording.files.get(file as usize).and_then(|f| f.path.as_deref()) else { continue };
        let need_ns = clock.need(p.began, p.pid);
        for name in interpreter(&cold_model::path_text::decode(path)) {
            if let Some(name) = name.to_str() {
                selection.name(name, FileKind::Name, need_ns);
            }
        }
    }
}

/// Names and directories that were found, and of names that were not there those that read another block of their
/// directory: one where nothing else is looked up (whoever looks for a program along PATH reads every directory on the
/// way), and of directories that have several blocks, in which names lie scattered, as many as [`names::enough`] says. The
/// other names that are missing beside them cost computing only.
pub(super) fn lookups(
    recording: &Recording,
    clock: &DependencyClock,
    with: &With<'_>,
    selection: &mut Selection<'_>,
) {
    let mut missing = Missing::default();
    for l in recording.lookups.iter().flatten() {
        if !clock.before_ready(l.at) || l.at < clock.exec() && l.kind != LookupKind::Exec {
            continue;
        }
        if l.result >= 0 {
            found(recording, l, clock.need(l.at, l.tid), selection);
        } else if l.result == NOT_THERE
            && let Some(path) = l.place()
            && let Some(path) = selection.nameable(&path_text::decode(&path))
        {
            missing.add(path, clock.need(l.at, l.tid));
        }
    }
    let within = selection.looked_into();
    let most = |directory: &Path| {
        let enough = with.inode.map_or(1, |inode| names::enough(directory, inode));
        match within.get(directory) {
            Some(listed) if *listed || enough == 1 => 0,
            _ => enough,
        }
    };
    // A directory in which something is looked up is there, and need not be looked for.
    let mut first = Missing::default();
    for (path, need_ns) in missing.of_each(&most) {
        let missing = if path.parent().is_some_and(|d| within.contains_key(d)) {
            path
        } else {
            first_missing(&path, with)
        };
        first.add(missing, need_ns);
    }
    for (path, need_ns) in first.of_each(&most) {
        selection.name(&path_text::encode(&path), FileKind::Name, need_ns);
    }
}

/// By directory, the names that are missing there, and when they are needed.
#[derive(Default)]
struct Missing(BTreeMap<PathBuf, BTreeMap<PathBuf, u64>>);

impl Missing {
    fn add(&mut self, path: PathBuf, need_ns: u64) {
        let Some(directory) = path.parent().map(Path::to_owned) else { return };
        let need = self.0.entry(directory).or_default().entry(path).or_insert(need_ns);
        *need = need_ns.min(*need);
    }

    /// So many of each directory, which stand for the others there: the first in the order of names, not in time, which
    /// threads and temporary names change. What stands for others is needed as early as they are.
    fn of_each(self, most: &dyn Fn(&Path) -> u64) -> impl Iterator<Item = (PathBuf, u64)> {
        self.0.into_iter().flat_map(move |(directory, names)| {
            let most = usize::try_from(most(&directory)).unwrap_or(usize::MAX);
            let first = names.values().copied().min().unwrap_or_default();
            let all = names.len() <= most;
            names.into_iter().take(most).map(move |(path, need_ns)| (path, if all { need_ns } else { first }))
        })
    }
}

/// Where the directory of a missing name is missing itself, what of the path is the first that is, as far as file systems
/// tell: of the many places that the loader tries below a directory that it has already looked into.
fn first_missing(path: &Path, with: &With<'_>) -> PathBuf {
    let is_there = |path: &Path| with.inode.is_some_and(|inode| inode(&path.join(".")).is_some());
    let deepest = path.ancestors().skip(1).position(is_there);
    path.ancestors().nth(deepest.unwrap_or(0)).unwrap_or(path).to_owned()
}

fn found(recording: &Recording, l: &recording::Lookup, need_ns: u64, selection: &mut Selection<'_>) {
    if l.file.is_some_and(|f| !selection.can_be_named(f)) {
        return;
    }
    let row = l.file.and_then(|f| recording.files.get(f as usize));
    let directory = row.is_some_and(|f| f.kind == recording::FileKind::Directory);
    let listed = l.kind == LookupKind::List;
    let opened = directory && l.kind == LookupKind::Open;
    let kind = if listed || opened { FileKind::Directory } else { FileKind::Name };
    // A listing is of an open directory, whose path the call does not name.
    let known = row.filter(|_| listed).and_then(|f| f.path.as_deref());
    // What is named below a root that is not seen from here cannot be named by a plan.
    let path = if l.path.is_some() { l.place() } else { known.map(Cow::Borrowed) };
    if let Some(path) = path {
        selection.name(&path, kind, need_ns);
    }
}

#[cfg(test)]
mod tests;
