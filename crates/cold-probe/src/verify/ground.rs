//! The files that operations are done on, and what a model has to know of them and of this machine.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cold_journal::Journal;
use cold_model::Dev;
use cold_sim::verify::Workload;
use cold_sim::{Paging, Policy, SimFile};
use cold_sys::page::page_size;
use cold_sys::procfs::ProcFs;
use cold_sys::sysfs::SysFs;

use crate::subject::{ProbeTarget, Subject};
use crate::{Error, Result};

/// Files of our own on one file system.
#[derive(Debug)]
pub struct Ground {
    /// The files of the workload, in the order of their numbers.
    pub subjects: Vec<Subject>,
    /// How this machine maps and caches pages.
    pub paging: Paging,
    /// The block device below.
    pub(super) device: Dev,
    place: PathBuf,
    limits: Limits,
    files: Vec<SimFile>,
    file_system: String,
    /// Data go through the journal, which ext4 does in single pages.
    journals_data: bool,
}

/// What is set for the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limits {
    read_ahead_kb: u64,
    max_sectors_kb: u64,
}

impl Limits {
    fn of(place: &Path) -> Result<Option<Self>> {
        let meta = place.metadata().map_err(Error::io("stat", place))?;
        let device = SysFs::default().block_device(Dev::of_number(meta.dev()))?;
        let kib = device.and_then(|d| d.read_ahead_kb.zip(d.max_sectors_kb));
        Ok(kib.map(|(read_ahead_kb, max_sectors_kb)| Self { read_ahead_kb, max_sectors_kb }))
    }
}

impl Ground {
    /// Makes files of these sizes. An error where the directory lies on no block device whose read-ahead is known.
    pub fn new(target: &ProbeTarget, bytes: &[u64], journal: &Journal) -> Result<Self> {
        let path = target.path();
        let unusable = |why: &str| Error::Subject { path: path.to_owned(), why: why.to_owned() };
        let resolved = path.canonicalize().map_err(Error::io("resolve", path))?;
        let mount =
            ProcFs::default().mount_of(&resolved)?.ok_or_else(|| unusable("its mount is not known"))?;
        let Some(limits) = Limits::of(path)? else {
            let why = "it lies on no block device whose read-ahead is known: choose a directory on a disk";
            return Err(unusable(why));
        };
        let subjects = bytes.iter().map(|n| Subject::create(target, *n, journal)).collect::<Result<_>>()?;
        let pages = |kib: u64| kib.saturating_mul(1024) / page_size();
        let about = |n: &u64| SimFile {
            bytes: *n,
            window_pages: pages(limits.read_ahead_kb),
            io_pages: pages(limits.max_sectors_kb),
            large_folios: false,
        };
        Ok(Self {
            device: Dev::of_number(path.metadata().map_err(Error::io("stat", path))?.dev()),
            place: path.to_owned(),
            limits,
            subjects,
            paging: Paging::of(page_size(), cfg!(target_arch = "aarch64")),
            files: bytes.iter().map(about).collect(),
            file_system: mount.fs_type.clone(),
            journals_data: mount.super_options.split(',').any(|option| option == "data=journal"),
        })
    }

    /// An error where somebody set the device otherwise since the files were made: what was compared means nothing.
    pub fn is_unchanged(&self) -> Result<()> {
        if Limits::of(&self.place)? == Some(self.limits) {
            return Ok(());
        }
        Err(Error::Reset { path: self.place.clone() })
    }

    /// Operations on the files.
    pub fn workload(&self, seed: u64, case: u64) -> Workload {
        Workload::new(seed, case, self.paging.page_bytes, &self.files)
    }

    /// The files as a policy sees them: which file systems have large folios depends on the kernel.
    pub fn files(&self, policy: Policy) -> Vec<SimFile> {
        let large_folios = match policy {
            Policy::Linux(version) => !self.journals_data && version.has_large_folios(&self.file_system),
            _ => false,
        };
        self.files.iter().map(|file| SimFile { large_folios, ..*file }).collect()
    }
}
