//! Which files can be part of a plan, and as what.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use cold_model::Dev;
use cold_model::file_system::Origin;
use cold_model::path_text;
use cold_model::recording::manifest::FileSystem;
use cold_model::recording::{self, FileIdx, Fill, FillCause, PathFrom, Recording};
use cold_plan::identity::{WRITTEN_IN_PLACE, build_id_of};
use cold_plan::plan::{FileKind, Identity, PlanFile, Range};

use super::LeftOut;

/// Where such file systems lie, for names whose file system is not known.
const UNREAL_PLACES: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Need time of what nothing needs.
pub(super) const NO_NEED: u64 = u64::MAX;

/// The files chosen so far.
pub(super) struct Selection<'a> {
    files: &'a [recording::File],
    excluded: &'a [PathBuf],
    /// Places of file systems that cannot be planned.
    blind: Vec<PathBuf>,
    blind_devs: Vec<Dev>,
    /// Files of which the start read pages from storage.
    read: HashSet<FileIdx>,
    /// When the command was started, nanoseconds since 1970.
    started: Option<i64>,
    chosen: Vec<PlanFile>,
    by_path: HashMap<PathBuf, u32>,
    by_file: HashMap<FileIdx, Result<u32, LeftOut>>,
}

impl<'a> Selection<'a> {
    pub(super) fn of(recording: &'a Recording, excluded: &'a [PathBuf]) -> Self {
        let m = &recording.manifest;
        let blind = |f: &&FileSystem| f.blind.is_some() && Origin::of(&f.kind) != Origin::Layers;
        let started = m.started_at.parse::<jiff::Timestamp>().ok();
        Self {
            files: &recording.files,
            excluded,
            blind: m.file_systems.iter().filter(blind).map(|f| path_text::decode(&f.mounted_at)).collect(),
            blind_devs: m.file_systems.iter().filter(blind).map(|f| f.dev).collect(),
            read: recording
                .fills
                .iter()
                .flatten()
                .filter(|fill| was_read(fill))
                .map(|fill| fill.file)
                .collect(),
            started: started.and_then(|t| i64::try_from(t.as_nanosecond()).ok()),
            chosen: Vec::new(),
            by_path: HashMap::new(),
            by_file: HashMap::new(),
        }
    }

    /// The names chosen so far.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.chosen.iter().filter(|f| f.kind != FileKind::BlockDevice).map(|f| f.path.clone()).collect()
    }

    /// Directories of which a block is read because something is looked up there, or all of them, because they are listed
    /// (true).
    pub(super) fn looked_into(&self) -> HashMap<PathBuf, bool> {
        let files = || self.chosen.iter().filter(|f| f.kind != FileKind::BlockDevice);
        let within = files().filter_map(|f| f.path.parent()).map(|directory| (directory.to_owned(), false));
        let listed = files().filter(|f| f.kind == FileKind::Directory).map(|f| (f.path.clone(), true));
        within.chain(listed).collect()
    }

    /// What was chosen so far. What has no need is not part of the plan.
    pub(super) fn chosen(&mut self) -> &mut [PlanFile] {
        &mut self.chosen
    }

    /// The plan's number of a regular file or block device, if it can be planned.
    pub(super) fn file(&mut self, file: FileIdx, need_ns: u64) -> Option<u32> {
        let chosen = if let Some(known) = self.by_file.get(&file) {
            *known
        } else {
            let chosen = self.choose(file);
            self.by_file.insert(file, chosen);
            chosen
        };
        let chosen = chosen.ok()?;
        if let Some(f) = self.chosen.get_mut(chosen as usize) {
            f.need_ns = f.need_ns.min(need_ns);
        }
        Some(chosen)
    }

    /// A file of which all needed pages were new.
    pub(super) fn made(&mut self, file: FileIdx) {
        if self.is_regular(file) {
            self.by_file.entry(file).or_insert(Err(LeftOut::Made));
        }
    }

    fn is_regular(&self, file: FileIdx) -> bool {
        self.files.get(file as usize).is_some_and(|f| f.kind == recording::FileKind::Regular)
    }

    /// How many regular files were asked for and are not in the plan, by the reason.
    pub(super) fn left_out(&self) -> BTreeMap<LeftOut, u64> {
        let mut out = BTreeMap::new();
        for (file, chosen) in &self.by_file {
            if let (Err(why), true) = (chosen, self.is_regular(*file)) {
                *out.entry(*why).or_insert(0) += 1;
            }
        }
        out
    }

    fn choose(&mut self, file: FileIdx) -> Result<u32, LeftOut> {
        let row = self.files.get(file as usize).ok_or(LeftOut::Unnamed)?;
        let kind = match row.kind {
            recording::FileKind::Regular => FileKind::Regular,
            recording::FileKind::BlockDevice => FileKind::BlockDevice,
            _ => return Err(LeftOut::Unnamed),
        };
        let size = row.size.filter(|n| *n > 0);
        // What was read from storage was there before: it is written in place. What was not, this start made.
        let written = self.written(row);
        let made = written && !self.read.contains(&file);
        let regular = kind == FileKind::Regular;
        if regular && !self.real(row) {
            return Err(LeftOut::NoDevice);
        }
        if row.deleted || (regular && made) {
            return Err(LeftOut::Made);
        }
        if row.path_from == PathFrom::Unknown || (regular && size.is_none()) {
            return Err(LeftOut::Unnamed);
        }
        let named = row.place().ok_or(LeftOut::Unnamed)?;
        let path = self
            .place(&named)
            .ok_or_else(|| if self.is_ours(&named) { LeftOut::OurOwn } else { LeftOut::Unnamed })?;
        if regular == path.starts_with("/dev") {
            return Err(LeftOut::NoDevice);
        }
        let identity = Identity {
            dev: row.dev,
            inode: if regular { row.inode } else { 0 },
            size: size.unwrap_or(0),
            mtime_ns: if regular && written { WRITTEN_IN_PLACE } else { row.mtime_ns.unwrap_or(0) },
            build_id: row.build_id.as_deref().and_then(build_id_of).unwrap_or_default(),
        };
        Ok(self.put(path, kind, identity, NO_NEED))
    }

    /// Its file system is one whose files are read from storage of this machine.
    fn real(&self, row: &recording::File) -> bool {
        let origin = Origin::of(&row.file_system);
        // A read ahead from elsewhere may hang, or does nothing.
        !origin.reads_nothing() && !origin.may_hang() && !self.blind_devs.contains(&row.dev)
    }

    /// The start itself made or changed it, so the next one finds another.
    fn written(&self, row: &recording::File) -> bool {
        row.mtime_ns.zip(self.started).is_some_and(|(changed, start)| changed >= start)
    }

    /// A name of this file can be looked up again: it is on such a file system, whatever it is, and was not
    /// made by this start.
    pub(super) fn can_be_named(&self, file: FileIdx) -> bool {
        self.files.get(file as usize).is_some_and(|f| {
            self.real(f) && !f.deleted && (f.kind == recording::FileKind::Directory || !self.written(f))
        })
    }

    /// A path as plans have it: absolute, without `.`, `..` and double slashes.
    fn place(&self, path: &Path) -> Option<PathBuf> {
        let clean: PathBuf = path.components().collect();
        let plain = clean.is_absolute()
            && clean
                .components()
                .all(|c| matches!(c, std::path::Component::RootDir | std::path::Component::Normal(_)));
        (plain && !self.is_ours(&clean)).then_some(clean)
    }

    fn is_ours(&self, path: &Path) -> bool {
        self.excluded.iter().any(|e| path.starts_with(e))
    }

    fn in_unreal_place(&self, path: &Path) -> bool {
        let blind = self.blind.iter().map(PathBuf::as_path).filter(|p| *p != Path::new("/"));
        UNREAL_PLACES.iter().map(Path::new).chain(blind).any(|p| path.starts_with(p))
    }

    /// A directory or name, if it can be planned and is not yet there as something better.
    pub(super) fn name(&mut self, path: &str, kind: FileKind, need_ns: u64) {
        if let Some(path) = self.nameable(&path_text::decode(path)) {
            self.put(path, kind, Identity::default(), need_ns);
        }
    }

    /// The path as plans have it, if a plan can name it.
    pub(super) fn nameable(&self, path: &Path) -> Option<PathBuf> {
        self.place(path).filter(|path| path != Path::new("/") && !self.in_unreal_place(path))
    }

    fn put(&mut self, path: PathBuf, kind: FileKind, identity: Identity, need_ns: u64) -> u32 {
        let next = self.chosen.len() as u32;
        let index = *self.by_path.entry(path.clone()).or_insert(next);
        if index == next {
            self.chosen.push(PlanFile { path, kind, identity, need_ns, uses: 1, exact: false });
        } else if let Some(f) = self.chosen.get_mut(index as usize) {
            f.need_ns = f.need_ns.min(need_ns);
            // Opening a file looks its name up, listing a directory as well.
            if f.kind == FileKind::Name {
                (f.kind, f.identity) = (kind, identity);
            }
        }
        index
    }

    /// A regular file that another source than the recording names.
    pub(super) fn opened(&mut self, file: &cold_model::observed::ObservedFile) -> Option<u32> {
        let path = self.place(&file.path)?;
        let changed = self.started.is_some_and(|start| file.mtime_ns >= start);
        if file.gone
            || file.elsewhere
            || file.how.written
            || file.how.inherited
            || changed
            || file.size.0 == 0
            || self.in_unreal_place(&path)
        {
            return None;
        }
        let identity = Identity {
            dev: Dev::of_number(file.id.dev),
            inode: file.id.ino,
            size: file.size.0,
            mtime_ns: file.mtime_ns,
            build_id: [0; 20],
        };
        Some(self.put(path, FileKind::Regular, identity, NO_NEED))
    }

    pub(super) fn earlier(&mut self, file: u32, need_ns: u64) {
        if let Some(f) = self.chosen.get_mut(file as usize) {
            f.need_ns = f.need_ns.min(need_ns);
        }
    }

    /// The files by first need, and the ranges renumbered and sorted by need.
    pub(super) fn finish(self, ranges: &mut Vec<Range>) -> Vec<PlanFile> {
        let mut has_ranges = vec![false; self.chosen.len()];
        for r in ranges.iter() {
            if let Some(has) = has_ranges.get_mut(r.file as usize) {
                *has = true;
            }
        }
        let mut order: Vec<usize> = (0..self.chosen.len())
            .filter(|&i| {
                let named = matches!(self.chosen[i].kind, FileKind::Directory | FileKind::Name);
                (named || has_ranges[i]) && self.chosen[i].need_ns < NO_NEED
            })
            .collect();
        order.sort_by_key(|&i| self.chosen[i].need_ns);
        let mut new = vec![u32::MAX; self.chosen.len()];
        for (n, &i) in order.iter().enumerate() {
            new[i] = n as u32;
        }
        ranges.retain_mut(|r| {
            r.file = new.get(r.file as usize).copied().unwrap_or(u32::MAX);
            r.file != u32::MAX
        });
        ranges.sort_by_key(|r| (r.need_ns, r.file, r.first_page));
        let mut chosen: Vec<Option<PlanFile>> = self.chosen.into_iter().map(Some).collect();
        order.into_iter().filter_map(|i| chosen[i].take()).collect()
    }
}

/// A fill that brought what was on storage before.
fn was_read(fill: &Fill) -> bool {
    use FillCause::{BufferedRead, DemandFault, ReadAhead, ReadAround};
    fill.in_tree && matches!(fill.cause, BufferedRead | DemandFault | ReadAhead | ReadAround)
}
