//! The files of a plan on their device: which can be arranged, and where they lie now.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use cold_layout::blocks::{self, Piece, Run, Spread};
use cold_model::{Dev, DeviceModel, Extent, Nanos, Shown as _};
use cold_plan::Plan;
use cold_plan::plan::FileKind;
use cold_sys::blocks::{Way, way};
use cold_sys::procfs::ProcFs;
use cold_sys::sysfs::SysFs;
use cold_sys::{extents, open};

use crate::exit::Failure;

type Result<T> = std::result::Result<T, Failure>;

/// A file whose bytes can be put elsewhere.
pub(super) struct Subject {
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) inode: u64,
}

/// The plan's files on the device that most of its reads lie on.
pub(super) struct Ground {
    pub(super) way: Way,
    /// Directory of the same file system where the donor goes.
    pub(super) place: PathBuf,
    pub(super) subjects: Vec<Subject>,
    /// Where each lies.
    pub(super) extents: Vec<Vec<Extent>>,
    /// What is read, in order of need, each byte once, whole blocks.
    pub(super) pieces: Vec<Piece>,
    /// Where that lies, in the order in which the plan reads today.
    pub(super) today: Vec<Run>,
    /// What is left where it is, and why.
    pub(super) left: Vec<(PathBuf, String)>,
}

impl Ground {
    /// Looks at every file that the plan reads; `taken` are bytes that other plans have arranged (path, offset, bytes).
    pub(super) fn of(plan: &Plan, taken: &[(PathBuf, u64, u64)]) -> Result<Self> {
        let dev =
            busiest(plan).ok_or_else(|| anyhow::anyhow!("none of the plan's files can be looked at"))?;
        let interpreters = interpreters(plan);
        let (mut subjects, mut left, mut found) = (Vec::new(), Vec::new(), None);
        let mut numbers = vec![None; plan.files.len()];
        let reads = plan.reads_by_file();
        for ((planned, reads), number) in plan.files.iter().zip(reads).zip(&mut numbers) {
            if planned.kind != FileKind::Regular || reads.requests == 0 {
                continue;
            }
            let path = &planned.path;
            let looked = match open::regular(path, true) {
                Err(e) => Err(e.to_string()),
                Ok((file, meta)) if Dev::of_number(meta.dev()) != dev => {
                    drop(file);
                    Err("on another device".to_owned())
                }
                Ok((_, meta)) if meta.len() != planned.identity.size => {
                    Err("changed since the plan was learnt".to_owned())
                }
                Ok((_, meta)) if meta.blksize() != u64::from(BLOCK) => {
                    Err("its blocks are not of 4 KiB".to_owned())
                }
                // Every start opens it: a moment without would be one for the whole machine.
                Ok(_) if interpreters.contains(path) => Err("the loader of all programs".to_owned()),
                Ok((file, meta)) => Ok((file, meta)),
            };
            match looked {
                Err(why) => left.push((path.clone(), why)),
                Ok((file, meta)) => {
                    if found.is_none() {
                        found = Some((way(&file)?, meta.dev()));
                    }
                    *number = Some(subjects.len());
                    subjects.push(Subject { path: path.clone(), file, inode: meta.ino() });
                }
            }
        }
        let (way, _) = found.ok_or_else(|| none(&left))?;
        let (fs_type, place) = mount(dev, subjects.first())?;
        let way = way.ok_or_else(|| {
            let why = anyhow::anyhow!("{fs_type} has no way known to put blocks of a file elsewhere");
            Failure::from(why).hint("ext4, XFS (with reflink) and btrfs have one")
        })?;
        let mut ground =
            Self { way, place, subjects, extents: Vec::new(), pieces: Vec::new(), today: Vec::new(), left };
        ground.look()?;
        ground.choose(plan, &numbers, taken);
        Ok(ground)
    }

    /// Asks anew where the files lie.
    pub(super) fn look(&mut self) -> Result<()> {
        self.extents = self.subjects.iter().map(|s| extents_of(&s.file)).collect::<Result<_>>()?;
        Ok(())
    }

    fn choose(&mut self, plan: &Plan, numbers: &[Option<usize>], taken: &[(PathBuf, u64, u64)]) {
        let of = |file: u32, offset, bytes| {
            let file = (*numbers.get(file as usize)?)?;
            Some(Piece { file, offset, bytes })
        };
        let today: Vec<Piece> = plan.reads().filter_map(|s| of(s.file, s.offset, s.bytes.into())).collect();
        self.today = blocks::runs(&blocks::distinct(today), &self.extents);
        let number = |path: &PathBuf| self.subjects.iter().position(|s| s.path == *path);
        let taken: Vec<Piece> = taken
            .iter()
            .filter_map(|(path, offset, bytes)| {
                Some(Piece { file: number(path)?, offset: *offset, bytes: *bytes })
            })
            .collect();
        let taken = blocks::distinct(taken);
        let wanted = cold_prefetch::arrange::by_need(plan);
        let wanted = wanted.iter().filter_map(|s| of(s.file, s.offset, s.bytes.into()));
        let distinct = blocks::distinct(taken.iter().copied().chain(wanted));
        let own = distinct.into_iter().skip(taken.len());
        self.pieces = own.filter_map(|p| self.movable(p)).flatten().collect();
    }

    /// What of a piece has blocks that can be moved: of its extents, and on file systems that share only whole ones.
    fn movable(&self, piece: Piece) -> Option<Vec<Piece>> {
        let size = self.subjects.get(piece.file)?.file.metadata().ok()?.len();
        let whole = self.way == Way::Share;
        let extents = self.extents.get(piece.file)?;
        Some(blocks::movable(&piece, extents, size, u64::from(BLOCK), whole))
    }
}

/// Why none of the files can be placed elsewhere: each reason once.
fn none(left: &[(PathBuf, String)]) -> anyhow::Error {
    let mut by: BTreeMap<&str, Vec<&PathBuf>> = BTreeMap::new();
    for (path, why) in left {
        by.entry(why).or_default().push(path);
    }
    let words = |(why, paths): (&str, Vec<&PathBuf>)| {
        let first = paths.first().map(|p| p.shown().to_string()).unwrap_or_default();
        match paths.len() {
            1 => format!("{first}: {why}"),
            n => format!("{first} and {} more: {why}", n - 1),
        }
    };
    let all: Vec<String> = by.into_iter().map(words).collect();
    anyhow::anyhow!("none of the plan's files can be placed elsewhere: {}", all.join("; "))
}

/// The device that the plan was made for, or that most of what is read lies on, as `stat` names it now: the plan's own
/// numbers are those of the kernel, which on btrfs are others, and of an earlier boot.
fn busiest(plan: &Plan) -> Option<Dev> {
    let (proc, sys) = (ProcFs::default(), SysFs::default());
    let mut bytes: BTreeMap<Dev, u64> = BTreeMap::new();
    let mut seen: BTreeMap<Dev, bool> = BTreeMap::new();
    for (file, reads) in plan.files.iter().zip(plan.reads_by_file()) {
        let meta = file.path.metadata().ok().filter(|_| file.kind == FileKind::Regular);
        let Some(meta) = meta else { continue };
        let dev = Dev::of_number(meta.dev());
        *bytes.entry(dev).or_default() += reads.bytes;
        let made_for = |model: &DeviceModel| {
            cold_probe::device::find(&file.path, &proc, &sys).is_ok_and(|disk| disk.dev == model.dev)
        };
        seen.entry(dev).or_insert_with(|| plan.device.as_ref().is_some_and(made_for));
    }
    if seen.values().any(|own| *own) {
        bytes.retain(|dev, _| seen.get(dev) == Some(&true));
    }
    bytes.into_iter().max_by_key(|(_, bytes)| *bytes).map(|(dev, _)| dev)
}

/// Pieces are whole blocks of this; file systems with others are left alone.
pub(super) const BLOCK: u32 = 4096;

/// What a way of lying costs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    pub(super) spread: Spread,
    /// By the plan's device, where that was measured.
    pub(super) time: Option<Nanos>,
}

/// By the plan's device model.
pub(super) fn cost(plan: &Plan, runs: &[Run]) -> Cost {
    let pairs = || runs.iter().map(|r| (r.physical, r.bytes));
    let time = plan.device.as_ref().map(|device| cold_prefetch::arrange::reading(pairs(), device));
    Cost { spread: blocks::spread(runs), time }
}

pub(super) fn extents_of(file: &File) -> Result<Vec<Extent>> {
    let told = extents::extents(file)?;
    told.ok_or_else(|| anyhow::anyhow!("the file system does not tell where files lie").into())
}

/// Type of the file system, and a directory of it that this user can write to.
fn mount(dev: Dev, subject: Option<&Subject>) -> Result<(String, PathBuf)> {
    let proc = ProcFs::default();
    let path = subject.and_then(|s| s.path.canonicalize().ok());
    let path = path.ok_or_else(|| anyhow::anyhow!("the plan's files are gone"))?;
    let mount = proc.mount_of(&path)?;
    let mount =
        mount.ok_or_else(|| anyhow::anyhow!("{} lies on no mount that is seen here", path.shown()))?;
    if Dev::of_number(mount.mount_point.metadata()?.dev()) == dev {
        return Ok((mount.fs_type, mount.mount_point));
    }
    // A subvolume that is not mounted by itself.
    let parent = path.parent().map(PathBuf::from);
    Ok((mount.fs_type, parent.ok_or_else(|| anyhow::anyhow!("{} has no directory", path.shown()))?))
}

/// The loaders that programs of the plan name.
fn interpreters(plan: &Plan) -> Vec<PathBuf> {
    let regular = plan.files.iter().filter(|f| f.kind == FileKind::Regular);
    let files = regular.filter_map(|f| open::regular(&f.path, true).ok());
    let named = files.filter_map(|(file, _)| cold_symbols::needs(&file)?.interpreter);
    let mut all: Vec<PathBuf> =
        named.filter_map(|name| std::path::Path::new(&name).canonicalize().ok()).collect();
    all.sort();
    all.dedup();
    all
}
