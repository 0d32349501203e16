//! A process that maps a file in one [`Way`], touches pages of it once, and says what that cost: one of its own, so
//! that its faults, page tables and caches of address translations are those of a program that has just begun.
//!
//! It talks with its caller over a [`Channel`](cold_sys::helper::Channel): a [`Task`] comes in, an [`ToucherAnswer`] goes out.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Instant;

use cold_sys::evict::start_reading;
use cold_sys::huge;
use cold_sys::mapped::{MapAdvice, MapKind, MapPlace, MappedFile};
use cold_sys::page::page_size;
use cold_sys::perf_event::{Tlb, TlbCounter};
use cold_sys::procfs::ProcFs;
use cold_sys::residency::PageRun;
use cold_sys::usage;
use serde::{Deserialize, Serialize};

use crate::worker::{ThreadUsed, answered};

/// The hidden first argument that makes `cold` such a process.
pub const ARGUMENT: &str = "__probe-toucher";

/// How pages of a mapped file come into the cache and into the page table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Plain faults.
    Faults,
    /// The same once more: the control.
    FaultsAgain,
    /// `MADV_HUGEPAGE`, at an address that huge pages fit.
    Huge,
    /// `MADV_HUGEPAGE`, a page beside such an address: as most programs and libraries are laid out.
    HugeUnaligned,
    /// The pages are asked for ahead of the faults, as a plan does.
    Ahead,
    /// Asked for ahead, and then `MADV_HUGEPAGE`.
    AheadHuge,
    /// `MADV_POPULATE_READ` of the whole mapping.
    Populate,
    /// `MADV_HUGEPAGE`, and then `MADV_POPULATE_READ` of the whole mapping.
    HugePopulate,
    /// `MADV_COLLAPSE` of the whole mapping.
    Collapse,
    /// A copy of the whole file in reserved pages of hugetlbfs.
    Copy,
}

impl Way {
    /// All, in the order of the tables.
    pub const ALL: [Self; 10] = [
        Self::Faults,
        Self::FaultsAgain,
        Self::Huge,
        Self::HugeUnaligned,
        Self::Ahead,
        Self::AheadHuge,
        Self::Populate,
        Self::HugePopulate,
        Self::Collapse,
        Self::Copy,
    ];

    /// [`Self::word`] of each of [`Self::ALL`], in its order.
    pub const WORDS: [&str; Self::ALL.len()] = {
        let mut words = [""; Self::ALL.len()];
        let mut n = 0;
        while n < words.len() {
            words[n] = Self::ALL[n].word();
            n += 1;
        }
        words
    };

    /// What the tables call it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Faults => "faults",
            Self::FaultsAgain => "faults again",
            Self::Huge => "HUGEPAGE",
            Self::HugeUnaligned => "HUGEPAGE unaligned",
            Self::Ahead => "readahead",
            Self::AheadHuge => "readahead, HUGEPAGE",
            Self::Populate => "POPULATE_READ",
            Self::HugePopulate => "HUGEPAGE, POPULATE_READ",
            Self::Collapse => "COLLAPSE",
            Self::Copy => "hugetlb copy",
        }
    }
}

/// What such a process is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The file, as the process can open it.
    pub file: PathBuf,
    /// Bytes of it that are mapped.
    pub bytes: u64,
    /// Mapped as code; else as data.
    pub exec: bool,
    /// By which way the pages are touched.
    pub way: Way,
    /// The pages that are touched, in this order; pages of the machine.
    pub pages: Vec<u64>,
    /// Enter the function at the beginning of each page, too.
    pub enter: bool,
    /// Bytes of a huge page, which addresses are aligned to.
    pub huge_bytes: u64,
    /// Bytes of a page of hugetlbfs, where there is one.
    pub hugetlb_bytes: Option<u64>,
}

/// A count that not every machine gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// So many were counted.
    Known(u64),
    /// They cannot be counted; why.
    Unknown(String),
}

impl Counted {
    /// The count, where it is known.
    pub fn known(&self) -> Option<u64> {
        match self {
            Self::Known(n) => Some(*n),
            Self::Unknown(_) => None,
        }
    }
}

/// What it cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touched {
    /// What was told, asked for or copied before the first touch, nanoseconds.
    pub before_ns: u64,
    /// The touches, nanoseconds.
    pub touch_ns: u64,
    /// Both: faults, bytes read, CPU time.
    pub used: ThreadUsed,
    /// Bytes that huge entries of the page table map afterwards; `None` where the kernel does not tell.
    pub huge_bytes: Option<u64>,
    /// Bytes by which the page tables grew (`VmPTE`).
    pub page_table_bytes: Option<u64>,
    /// Misses of the processor's cache of address translations during the touches, in user code: of instructions for
    /// code, of data for data.
    pub tlb_misses: Counted,
    /// Functions that were entered.
    pub entered: u64,
}

/// A call that the kernel refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// System call that was refused.
    pub call: String,
    /// The kernel's number.
    pub errno: Option<i32>,
    /// The kernel's answer in words.
    pub why: String,
}

impl Refusal {
    fn of(call: &str, e: &cold_sys::Error) -> Self {
        let errno = e.errno();
        let why = errno.map_or_else(|| e.to_string(), |n| io::Error::from_raw_os_error(n).to_string());
        Self { call: call.to_owned(), errno, why }
    }
}

/// What the toucher answers to a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToucherAnswer {
    /// It is done.
    Done(Touched),
    /// The kernel refuses this way; nothing was touched.
    Refused(Refusal),
    /// Something else failed.
    Failed(String),
}

/// Serves as such a process. `args` are the arguments after [`ARGUMENT`].
///
/// # Errors
/// They name no socket, or the caller says no [`Task`], or is gone when the answer is there.
pub fn serve(args: &[OsString]) -> crate::Result<()> {
    answered(ARGUMENT, args, |task: Task, _| match perform(&task) {
        Ok(touched) => ToucherAnswer::Done(touched),
        Err(Stopped::Refused(r)) => ToucherAnswer::Refused(r),
        Err(Stopped::Failed(e)) => ToucherAnswer::Failed(e),
    })
}

enum Stopped {
    Refused(Refusal),
    Failed(String),
}

fn failed(e: impl std::fmt::Display) -> Stopped {
    Stopped::Failed(e.to_string())
}

/// Bytes of the page tables of this process; `None` where the kernel does not tell.
fn page_tables(proc: &ProcFs) -> Option<u64> {
    proc.process_field(own_pid(), "status", "VmPTE").ok().flatten()?.checked_mul(1024)
}

fn own_pid() -> i32 {
    i32::try_from(std::process::id()).unwrap_or(0)
}

fn perform(task: &Task) -> Result<Touched, Stopped> {
    let file = File::open(&task.file).map_err(failed)?;
    let proc = ProcFs::default();
    let counter = TlbCounter::open(if task.exec { Tlb::Instructions } else { Tlb::Data });
    let tables = page_tables(&proc);
    // A copy needs no mapping of the file.
    let mut map = match task.way {
        Way::Copy => None,
        _ => Some(mapping(&file, task)?),
    };
    let before = usage::thread();
    let began = Instant::now();
    if let Some(map) = &map {
        prepare(&file, map, task)?;
    }
    let map = match map.take() {
        Some(map) => map,
        None => copied(&file, task)?,
    };
    let prepared = began.elapsed();
    let counted = counter.as_ref().map(TlbCounter::read);
    let mut entered = 0;
    let page = page_size();
    for n in &task.pages {
        let at = n * page;
        if map.touch(at).is_none() {
            return Err(failed(format!("page {n} lies beyond the mapping")));
        }
        entered += u64::from(task.enter && map.enter(at));
    }
    let all = began.elapsed();
    let tlb_misses = misses(&counter, counted);
    let used = usage::thread().since(before);
    let page_table_bytes = tables.zip(page_tables(&proc)).map(|(b, a)| a.saturating_sub(b));
    let parts = proc.smaps(own_pid()).ok();
    let own = parts.and_then(|parts| parts.into_iter().find(|part| part.start == map.address()));
    Ok(Touched {
        before_ns: prepared.as_nanos() as u64,
        touch_ns: all.saturating_sub(prepared).as_nanos() as u64,
        used: used.into(),
        huge_bytes: own.map(|part| part.huge_file + part.hugetlb),
        page_table_bytes,
        tlb_misses,
        entered,
    })
}

fn misses(counter: &io::Result<TlbCounter>, before: Result<io::Result<u64>, &io::Error>) -> Counted {
    let why = |e: &io::Error| {
        let known = match e.raw_os_error() {
            // ENOENT, EOPNOTSUPP
            Some(2 | 95) => "this processor, or the virtual machine's, counts none",
            // EACCES, EPERM
            Some(13 | 1) => "kernel.perf_event_paranoid or a filter forbids counting",
            _ => return Counted::Unknown(e.to_string()),
        };
        Counted::Unknown(known.to_owned())
    };
    match (counter, before) {
        (Ok(counter), Ok(Ok(before))) => match counter.read() {
            Ok(after) => Counted::Known(after.saturating_sub(before)),
            Err(e) => why(&e),
        },
        (_, Ok(Err(e))) => why(&e),
        (Err(e), _) | (_, Err(e)) => why(e),
    }
}

/// Maps the file at an address that huge pages fit, or one page beside such a one.
fn mapping(file: &File, task: &Task) -> Result<MappedFile, Stopped> {
    let kind = MapKind { exec: task.exec, ..MapKind::default() };
    let refused = |e| Stopped::Refused(Refusal::of("mmap", &e));
    // Where there is room enough. Nothing else is mapped meanwhile: this process has one thread.
    let room = MappedFile::new(file, task.bytes + 2 * task.huge_bytes, kind).map_err(refused)?;
    let aligned = room.address().next_multiple_of(task.huge_bytes.max(1));
    drop(room);
    let beside = if task.way == Way::HugeUnaligned { page_size() } else { 0 };
    let place = MapPlace { offset: 0, address: aligned + beside };
    MappedFile::at(file, place, task.bytes, kind).map_err(refused)
}

/// What is done before the first touch.
fn prepare(file: &File, map: &MappedFile, task: &Task) -> Result<(), Stopped> {
    let advise =
        |advice, call| map.advise(advice, 0, task.bytes).map_err(|e| Stopped::Refused(Refusal::of(call, &e)));
    let huge = || advise(MapAdvice::Huge, "madvise(MADV_HUGEPAGE)");
    let populate = || advise(MapAdvice::PopulateRead, "madvise(MADV_POPULATE_READ)");
    match task.way {
        Way::Faults | Way::FaultsAgain | Way::Copy => Ok(()),
        Way::Huge | Way::HugeUnaligned => huge(),
        Way::Ahead => ahead(file, &task.pages),
        Way::AheadHuge => {
            ahead(file, &task.pages)?;
            huge()
        }
        Way::Populate => populate(),
        Way::HugePopulate => {
            huge()?;
            populate()
        }
        Way::Collapse => advise(MapAdvice::Collapse, "madvise(MADV_COLLAPSE)"),
    }
}

/// Asks for the pages, as a plan does that holds them: in the order of the file, by ranges.
fn ahead(file: &File, pages: &[u64]) -> Result<(), Stopped> {
    for run in runs(pages) {
        start_reading(file, run).map_err(|e| Stopped::Refused(Refusal::of("posix_fadvise(WILLNEED)", &e)))?;
    }
    Ok(())
}

/// The runs of pages that these are.
fn runs(pages: &[u64]) -> Vec<PageRun> {
    let mut pages = pages.to_vec();
    pages.sort_unstable();
    pages.dedup();
    let mut runs: Vec<PageRun> = Vec::new();
    for page in pages {
        match runs.last_mut() {
            Some(run) if run.end() == page => run.pages += 1,
            _ => runs.push(PageRun { first: page, pages: 1 }),
        }
    }
    runs
}

/// The file's bytes in huge pages.
fn copied(file: &File, task: &Task) -> Result<MappedFile, Stopped> {
    let none = || Refusal {
        call: "memfd_create(MFD_HUGETLB)".to_owned(),
        errno: None,
        why: "this kernel has no hugetlbfs".to_owned(),
    };
    let page = task.hugetlb_bytes.ok_or_else(|| Stopped::Refused(none()))?;
    let memory = huge::memory(task.bytes, page, task.exec);
    let mut map = memory.map_err(|e| Stopped::Refused(Refusal::of("mmap of hugetlb memory", &e)))?;
    let mut buffer = vec![0; 1 << 20];
    let mut at = 0;
    while at < task.bytes {
        let want = (buffer.len() as u64).min(task.bytes - at) as usize;
        let part = buffer.get_mut(..want).unwrap_or_default();
        file.read_exact_at(part, at).map_err(failed)?;
        if !map.copy_in(at, part) {
            return Err(failed("a copy does not fit its memory"));
        }
        at += want as u64;
    }
    Ok(map)
}

#[cfg(test)]
mod tests;
