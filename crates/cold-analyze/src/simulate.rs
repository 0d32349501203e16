//! A recorded start as the input of a simulation: its files, what its threads compute and access, and who waits for
//! whom.
//!
//! What the recording's disk and read-around did is left out; what the program did stays. Between two accesses a thread
//! computes as long as it was on a CPU, less the time in which it ran only because pages were missing
//! (`crate::clock`). It waits for the threads it waited for, and sleeps where a timer or somebody outside woke it.
//! Of older recordings, and of tiers without BPF, less is known ([`WaitsKnown`]): they read what they read, but their
//! threads take what they took, whoever reads faster.
//!
//! Accesses are the touches that have an event: faults, and what buffered reads got. Pages that were mapped around a fault
//! have none, so only recordings with exact needs show all of them; of others [`Recorded::of`] and [`Recorded::at_most`]
//! are two bounds. Blocks of the file system's metadata are read where
//! the recorded start read them. What the program asked for ahead it asks for again; of other advice nothing is known.

mod accesses;
mod cached;
mod launch;
mod names;
mod observed;
mod outcome;
mod picture;
mod places;
mod read;
pub mod sweep;
#[cfg(test)]
mod tests;
mod threads;
mod warm;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use cold_layout::predict::Kernel;
use cold_model::pages::{Range, Runs};
use cold_model::recording::manifest::Tier;
use cold_model::recording::{FileIdx, FileKind, FillCause, Recording, TouchKind};
use cold_model::{Bytes, Dev};

use cold_sim::disk::{Bounds, Layout, Model};
use cold_sim::engine::{Costs, Step, Task, TaskStart};
use cold_sim::op::{FileId, Op};
use cold_sim::{LinuxVersion, Policy, SimFile};

use crate::cost::{DeviceCost, bounds_of};
use crate::usage::{Usage, Window};

pub use warm::{NotWarm, Warmed, read_as_cold};

pub use names::BlocksOfNames;
pub use observed::{Apart, Observed};
pub use outcome::{Helper, OPENS, Setting, Simulated};
pub use read::{Again, FileRead};

/// `read_ahead_kb` where a recording does not know it: Linux' default.
const WINDOW: u64 = 128 << 10;
/// A start that needs more is damaged: 1 TiB.
const MOST_PAGES: u64 = 1 << 28;

/// What cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotSimulated {
    /// It has no table of touches.
    #[error("the recording does not show which pages were needed: that takes perf events or BPF")]
    Unseen,
    /// No page of a file was touched.
    #[error("the recorded start touched no page of a file on a disk")]
    NoTouches,
    /// More pages than any start needs.
    #[error("the recorded start is said to have touched {0} pages: the recording is damaged")]
    TooLarge(u64),
}

/// Which waits a recording tells of: how far the times of its simulated start can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitsKnown {
    /// All of them, and who ended each.
    All,
    /// Those for storage, which are simulated anew. What passed otherwise, by computing or by waiting for other
    /// threads, passes as it was recorded: a thread that is waited for and reads faster makes nobody else faster.
    Storage,
    /// None: what was waited for storage is counted as the program's own time, and what is simulated comes on top.
    None,
}

/// A start to be simulated.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Threads, the first one first.
    pub tasks: Vec<Task>,
    /// Their ids in the recording.
    pub threads: Vec<u32>,
    /// What their times are made of.
    pub waits_known: WaitsKnown,
    /// The recording's file of each [`FileId`]; those of [`Recorded::add`] come behind them.
    pub names: Vec<FileIdx>,
    /// What was there before the start: file, first page, pages.
    pub cached: Vec<(FileId, u64, u64)>,
    /// Where the files lay, each disk of the recording a disk of its own.
    pub layout: Layout,
    /// The policy of the kernel that was recorded.
    pub policy: Policy,
    /// Pages that some access needs, metadata of file systems left out.
    pub needed: BTreeMap<FileId, Runs>,
    /// Processors of the recorded machine, at least one.
    pub processors: usize,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Pages of folios and faults on the recorded machine, with the usual window of faults.
    pub paging: cold_sim::Paging,
    /// Room for cached pages of the start under all settings, but not of the start as it was recorded; `None`: enough for
    /// all. No recording tells it.
    pub memory: Option<Bytes>,
    /// Pages that a fault mapped around itself during the recording.
    fault_around: u64,
    /// CPU time that reading takes.
    costs: Costs,
    /// By which factor the tasks compute longer than behind a helper, which reads pages before they are needed: 1 until
    /// [`Recorded::warm`] sets it.
    first_use: f64,
    files: Vec<OnDisk>,
    /// The whole disk behind each disk of the layout; `None` where no device is known.
    disks: Vec<Option<Dev>>,
    /// Bytes of each disk of the recording, where these are known.
    sizes: HashMap<Dev, u64>,
    /// Per disk of the layout what it is, where it is not the disk of the setting.
    own: Vec<Option<Model>>,
    added: BTreeMap<PathBuf, FileId>,
}

/// Which read-ahead windows a start is simulated with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Windows {
    /// Those of the machine, as they are when nobody records exact needs.
    #[default]
    Usual,
    /// Those in force during the recording, as is the window in which faults map neighbours: to compare the model with
    /// what was recorded.
    Recorded,
    /// The same for all files.
    Of(Bytes),
}

/// A file, and the type of its file system, where that decides the size of folios.
#[derive(Debug, Clone)]
struct OnDisk {
    /// With the window of the recording.
    file: SimFile,
    /// Pages of the window that it has when nobody records.
    usual_window: u64,
    /// The device itself, for the metadata of its file system.
    metadata: bool,
    system: Option<String>,
}

impl Recorded {
    /// The start that was recorded, with the accesses that were seen: what it reads with windows smaller than the
    /// recorded ones is a lower bound, where faults were not exact.
    ///
    /// # Errors
    /// [`NotSimulated`]
    pub fn of(recording: &Recording) -> Result<Self, NotSimulated> {
        Self::with(recording, None)
    }

    /// The same start, with each page that was mapped around a fault touched then, as far as it may have been needed:
    /// an upper bound. `usage`: what [`crate::replay`] says of the recording.
    ///
    /// # Errors
    /// [`NotSimulated`]
    pub fn at_most(recording: &Recording, usage: &[Usage]) -> Result<Self, NotSimulated> {
        Self::with(recording, Some(usage))
    }

    fn with(recording: &Recording, around: Option<&[Usage]>) -> Result<Self, NotSimulated> {
        if recording.touches.is_none() {
            return Err(NotSimulated::Unseen);
        }
        let window = Window::of(recording);
        let page_bytes = recording.page_bytes();
        let names = used_files(recording, around.is_some());
        let ids: HashMap<FileIdx, FileId> =
            names.iter().enumerate().map(|(n, file)| (*file, FileId(n as u32))).collect();
        if ids.is_empty() {
            return Err(NotSimulated::NoTouches);
        }
        let (setup, accesses) = accesses::of(recording, &ids, window, around);
        let needed = by_file(accesses.iter().filter_map(|found| found.needs));
        let populated = accesses.iter().filter_map(|found| match found.op {
            Op::Populate { pages, .. } => Some(pages),
            _ => None,
        });
        let pages = needed.values().map(Runs::pages).chain(populated).fold(0, u64::saturating_add);
        if pages > MOST_PAGES {
            return Err(NotSimulated::TooLarge(pages));
        }
        let waits_known = match (&recording.off_cpu, &recording.stalls) {
            (Some(_), _) => WaitsKnown::All,
            (None, Some(_)) => WaitsKnown::Storage,
            (None, None) => WaitsKnown::None,
        };
        let (threads, mut tasks): (Vec<u32>, Vec<Task>) =
            threads::of(recording, accesses, window, waits_known).into_iter().unzip();
        match tasks.first_mut() {
            Some(first) => drop(first.steps.splice(0..0, setup.into_iter().map(Step::Access))),
            None => tasks.push(Task { start: TaskStart::AtOnce, steps: Vec::new() }),
        }
        let bytes = places::bytes(recording, &names, page_bytes);
        let machine = &recording.manifest.machine;
        let paging = cold_sim::Paging::of(page_bytes, machine.architecture == "aarch64");
        let around = recording.manifest.fault_around.value().map(|b| b.0);
        let policy = match recording.manifest.tier {
            // All evidence of other systems that can be imported is of Windows.
            Tier::Imported => Policy::Windows,
            _ => Policy::Linux(LinuxVersion::of_release(&recording.manifest.machine.kernel)),
        };
        let (layout, disks) = places::of(recording, &names, &bytes, page_bytes);
        Ok(Self {
            tasks,
            threads,
            waits_known,
            cached: cached::of(recording, &ids, &needed),
            own: vec![None; disks.len()],
            layout,
            disks,
            sizes: recording
                .manifest
                .devices
                .iter()
                .filter_map(|d| Some((d.dev, d.size.value()?.0)))
                .collect(),
            costs: Costs::default(),
            first_use: 1.0,
            added: BTreeMap::new(),
            policy,
            processors: (recording.manifest.machine.cpus as usize).max(1),
            files: names
                .iter()
                .zip(bytes)
                .map(|(file, n)| recorded_file(recording, *file, n, page_bytes))
                .collect(),
            names,
            needed,
            paging,
            fault_around: around.map_or(paging.fault_around, |bytes| (bytes / page_bytes).max(1)),
            page_bytes,
            memory: None,
        })
    }

    /// A file that the start did not use, so that a helper can read it and its reads pass the same disk. It lies in
    /// one piece behind all others: on the disk of its file system, or on the first one where that is not known. A
    /// path that was added before is that file.
    pub fn add(&mut self, recording: &Recording, path: &Path, dev: Dev, bytes: u64) -> FileId {
        if let Some(known) = self.added.get(path) {
            return *known;
        }
        let whole = recording.manifest.whole_disk(dev);
        let disk = self.disks.iter().position(|d| d.is_some() && *d == whole).unwrap_or(0);
        let id = self.layout.add(disk, bytes, None);
        self.files.push(on_disk(recording, dev, bytes, self.page_bytes));
        self.added.insert(path.to_path_buf(), id);
        id
    }

    /// The setting's disk stands for this one alone: each other is what the start's own requests to it say, where there
    /// were any. `None`: it stands for none of those that had requests. For all, where the start has no such disk (a
    /// recording of another machine, numbers of another boot).
    pub fn keep_disks_but(&mut self, recording: &Recording, disk: Option<Dev>) {
        let disk = disk.map(|dev| recording.manifest.whole_disk(dev).unwrap_or(dev));
        if disk.is_some() && !self.disks.contains(&disk) {
            return self.keep_no_disks();
        }
        let model = |dev: Dev| {
            let cost = DeviceCost::of_disk(recording, dev)?;
            Some(cost.disk(bounds_of(recording, |d| recording.manifest.whole_disk(d.dev) == Some(dev))))
        };
        let others = self.disks.iter().map(|dev| dev.filter(|_| *dev != disk).and_then(model));
        self.own = others.collect();
    }

    /// The setting's disk stands for every one, as it does from the beginning.
    pub fn keep_no_disks(&mut self) {
        self.own.fill(None);
    }

    /// It was recorded with the read-ahead windows and the window of faults that the machine has when nobody records.
    fn was_as_usual(&self) -> bool {
        self.fault_around == self.paging.fault_around
            && self.files.iter().all(|f| f.usual_window == f.file.window_pages)
    }

    /// Pages that some access needs, metadata of file systems left out.
    pub fn needed_pages(&self) -> u64 {
        self.needed.values().map(Runs::pages).fold(0, u64::saturating_add)
    }

    /// It stands for a whole device: the metadata of a file system.
    pub fn is_metadata(&self, file: FileId) -> bool {
        self.files.get(file.0 as usize).is_some_and(|f| f.metadata)
    }

    /// The files as a policy sees them, with these read-ahead windows.
    pub fn files(&self, policy: Policy, windows: Windows) -> Vec<SimFile> {
        let large = |system: &str| match policy {
            Policy::Linux(version) => version.has_large_folios(system),
            _ => false,
        };
        let of = |f: &OnDisk| SimFile {
            window_pages: match windows {
                Windows::Usual => f.usual_window,
                Windows::Recorded => f.file.window_pages,
                Windows::Of(bytes) => bytes.0 / self.page_bytes,
            },
            large_folios: f.system.as_deref().is_some_and(large),
            ..f.file
        };
        self.files.iter().map(of).collect()
    }
}

/// Files on disks with touches or pages that were asked for, and devices whose metadata was read, in order of their
/// numbers.
fn used_files(recording: &Recording, around: bool) -> Vec<FileIdx> {
    let touched = recording.touches.iter().flatten().filter(|t| around || t.kind != TouchKind::FaultAround);
    let metadata = recording.fills.iter().flatten().filter(|f| f.in_tree && f.cause == FillCause::Metadata);
    let asked = recording.advice.iter().flatten().filter(|a| accesses::asks(a)).filter_map(|a| a.file);
    let used: BTreeSet<FileIdx> =
        touched.map(|t| t.file).chain(metadata.map(|f| f.file)).chain(asked).collect();
    let on_disk = |file: &FileIdx| {
        let kind = recording.files.get(*file as usize).map(|f| f.kind);
        matches!(kind, Some(FileKind::Regular | FileKind::BlockDevice))
    };
    used.into_iter().filter(on_disk).collect()
}

fn recorded_file(recording: &Recording, index: FileIdx, bytes: u64, page_bytes: u64) -> OnDisk {
    let file = recording.files.get(index as usize);
    let metadata = file.is_some_and(|f| f.kind == FileKind::BlockDevice);
    OnDisk { metadata, ..on_disk(recording, file.map_or(Dev::default(), |f| f.dev), bytes, page_bytes) }
}

/// The kernel that was recorded, and how it reads one file when nobody records.
pub(crate) fn kernel_of(recording: &Recording, file: FileIdx) -> Kernel {
    let page_bytes = recording.page_bytes();
    let version = LinuxVersion::of_release(&recording.manifest.machine.kernel);
    let disk = recorded_file(recording, file, 0, page_bytes);
    Kernel {
        policy: Policy::Linux(version),
        paging: cold_sim::Paging::of(page_bytes, recording.manifest.machine.architecture == "aarch64"),
        window: Bytes(disk.usual_window.saturating_mul(page_bytes)),
        large_folios: disk.system.as_deref().is_some_and(|system| version.has_large_folios(system)),
    }
}

/// A regular file of the file system with this device number.
fn on_disk(recording: &Recording, dev: Dev, bytes: u64, page_bytes: u64) -> OnDisk {
    let system = recording.manifest.file_systems.iter().find(|fs| fs.dev == dev);
    let window = system.and_then(|fs| fs.read_ahead.value().copied()).map_or(WINDOW, |b| b.0);
    let device = recording.manifest.device(dev);
    let usual = device.and_then(|d| d.usual_read_ahead).map_or(window, |b| b.0);
    let largest =
        device.and_then(|d| d.max_request.value().copied()).map_or_else(|| Bounds::default().bytes, |b| b.0);
    // Where data go through the journal, ext4 keeps them in single pages.
    let plain = system.filter(|fs| !fs.options.split(',').any(|option| option == "data=journal"));
    OnDisk {
        file: SimFile {
            bytes,
            window_pages: window / page_bytes,
            io_pages: largest / page_bytes,
            large_folios: false,
        },
        usual_window: usual / page_bytes,
        metadata: false,
        system: plain.map(|fs| fs.kind.clone()),
    }
}

/// Runs of pages of each file, from first pages and numbers of pages.
fn by_file(pages: impl Iterator<Item = (FileId, u64, u64)>) -> BTreeMap<FileId, Runs> {
    let mut ranges: BTreeMap<FileId, Vec<Range>> = BTreeMap::new();
    for (file, first, pages) in pages {
        ranges.entry(file).or_default().push(first..first.saturating_add(pages));
    }
    ranges.into_iter().map(|(file, ranges)| (file, Runs::of(ranges))).collect()
}
