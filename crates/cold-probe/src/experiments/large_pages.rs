//! Large pages for mapped files: what this kernel and file system give for code and data, by each way to ask for them,
//! and whether that helps a cold start.

mod verdict;

use std::collections::BTreeMap;

use cold_sim::LinuxVersion;
use cold_stats::interval::{Interval, of_median};
use cold_stats::{Pcg, median};
use cold_sys::folio::folios;
use cold_sys::huge::HugePages;
use cold_sys::page::page_size;
use cold_sys::procfs::ProcFs;
use cold_sys::sysfs::SysFs;
use serde::Serialize;

use super::{Lab, State, table};
use crate::subject::Subject;
use crate::toucher::{ARGUMENT, Refusal, Task, Touched, ToucherAnswer as Answered, Way};
use crate::trial::DeviceCount;
use crate::{Error, Result};

pub use verdict::{Gain, Judgement, MARGIN, WayAnswer, answers, judge};

/// The least file.
const LEAST: u64 = 4 << 20;
/// Of few touches there is one in so many bytes.
const SPARSE: u64 = 256 << 10;

/// What is measured.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct LargePagesOptions {
    /// Bytes of the file; rounded up to a huge page of 2 MiB, 4 MiB at least.
    pub bytes: u64,
    /// Rounds; each measures every line once.
    pub repeats: u64,
}

impl LargePagesOptions {
    /// 16 MiB, the text of a larger program; ten rounds.
    pub const USUAL: Self = Self { bytes: 16 << 20, repeats: 10 };
    /// 64 MiB.
    pub const MODERN: Self = Self { bytes: 64 << 20, ..Self::USUAL };
}

/// What is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// `PROT_READ | PROT_EXEC`.
    Code,
    /// `PROT_READ`.
    Data,
}

impl Kind {
    /// Both, in the order of the tables.
    pub const ALL: [Self; 2] = [Self::Code, Self::Data];
    /// What the tables call it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Data => "data",
        }
    }
}

/// Which pages are touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Touches {
    /// Every page, in order.
    All,
    /// One page in each 256 KiB, scattered.
    Few,
}

impl Touches {
    /// Both, in the order of the tables.
    pub const ALL: [Self; 2] = [Self::All, Self::Few];
    /// What the tables call it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Few => "few",
        }
    }
}

/// What this kernel says and is known for, before anything is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kernel {
    /// `uname -r`.
    pub release: String,
    /// Rust's word for the processor's architecture.
    pub architecture: &'static str,
    /// File system of the directory; `null` where it is not known.
    pub file_system: Option<String>,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Bytes that a huge entry of the page table maps (a PMD).
    pub huge_bytes: u64,
    /// Setting of transparent huge pages; `null` where the kernel has none.
    pub transparent: Option<String>,
    /// Bytes of a page of hugetlbfs.
    pub hugetlb_bytes: Option<u64>,
    /// Pages of hugetlbfs that are reserved and free.
    pub hugetlb_free: Option<u64>,
    /// Not measured, but what the model of this version takes it for: files of this file system are kept in large folios.
    pub model_large_folios: Option<bool>,
    /// Not measured, but known of this version and architecture: bytes of the folios that faults in code ask for; `null`:
    /// none are asked for.
    pub model_code_folio: Option<u64>,
}

impl Kernel {
    fn here(lab: &Lab<'_>) -> Self {
        let (proc, huge) = (ProcFs::default(), HugePages::of_kernel(&ProcFs::default(), &SysFs::default()));
        let release = proc.kernel_release();
        let version = LinuxVersion::of_release(&release);
        let resolved = lab.place.path().canonicalize().ok();
        let mount = resolved.and_then(|path| proc.mount_of(&path).ok().flatten());
        let file_system = mount.map(|mount| mount.fs_type);
        Self {
            architecture: std::env::consts::ARCH,
            page_bytes: page_size(),
            huge_bytes: huge.bytes,
            transparent: huge.transparent,
            hugetlb_bytes: huge.hugetlb_bytes,
            hugetlb_free: huge.hugetlb_free,
            model_large_folios: file_system.as_deref().map(|name| version.has_large_folios(name)),
            model_code_folio: version.code_folio(std::env::consts::ARCH, page_size()),
            release,
            file_system,
        }
    }
}

/// Pages of the cache in folios of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FolioSize {
    /// Bytes of the folio.
    pub bytes: u64,
    /// So many of them.
    pub count: u64,
}

/// What one cold start and the warm one after it did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Seen {
    /// Cold, with what came before the touches.
    pub cold: Touched,
    /// By another process, in the same way, right afterwards.
    pub warm: Touched,
    /// Folios in the cache afterwards, by size ascending; `null` to everybody but root.
    pub folios: Option<Vec<FolioSize>>,
    /// The file's bytes in the cache afterwards; `null` where the kernel does not tell.
    pub cached_bytes: Option<u64>,
    /// What the block layer counted meanwhile; `null` where it is not shown.
    pub device: Option<DeviceCount>,
}

impl Seen {
    fn ms(touched: &Touched) -> f64 {
        (touched.before_ns + touched.touch_ns) as f64 / 1e6
    }
}

/// What one way came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What was mapped.
    pub kind: Kind,
    /// What was touched.
    pub touches: Touches,
    /// By which way the pages were touched.
    pub way: Way,
    /// Of each round the time cold, with what came before the touches; milliseconds.
    pub cold_ms: Vec<f64>,
    /// Of each round the time warm.
    pub warm_ms: Vec<f64>,
    /// Median of the cold times.
    pub cold_median_ms: Option<f64>,
    /// Interval of that median, where there are rounds enough for one.
    pub cold_interval_ms: Option<Interval>,
    /// Median of the warm times.
    pub warm_median_ms: Option<f64>,
    /// Interval of that median, where there are rounds enough for one.
    pub warm_interval_ms: Option<Interval>,
    /// The round whose cold time is nearest to the median.
    pub usual: Option<Seen>,
    /// The kernel refused this way.
    pub refused: Option<Refusal>,
}

impl Row {
    fn of(line: PagesLine, rounds: &[Measured], seed: u64) -> Self {
        let seen: Vec<&Seen> = rounds.iter().filter_map(|m| m.as_ref().ok()).collect();
        let refused = rounds.iter().find_map(|m| m.as_ref().err().cloned());
        // A way that was refused in one round was not measured.
        let seen = if refused.is_some() { Vec::new() } else { seen };
        let cold_ms: Vec<f64> = seen.iter().map(|s| Seen::ms(&s.cold)).collect();
        let warm_ms: Vec<f64> = seen.iter().map(|s| Seen::ms(&s.warm)).collect();
        let cold_median_ms = median(&cold_ms);
        let away = |s: &Seen| cold_median_ms.map_or(0.0, |m| (Seen::ms(&s.cold) - m).abs());
        let usual = seen.iter().min_by(|a, b| away(a).total_cmp(&away(b))).map(|s| (*s).clone());
        Self {
            kind: line.kind,
            touches: line.touches,
            way: line.way,
            cold_interval_ms: of_median(&cold_ms, seed),
            warm_median_ms: median(&warm_ms),
            warm_interval_ms: of_median(&warm_ms, seed),
            cold_median_ms,
            cold_ms,
            warm_ms,
            usual,
            refused,
        }
    }

    fn ms(&self, state: State) -> &[f64] {
        match state {
            State::Cold => &self.cold_ms,
            State::Warm => &self.warm_ms,
        }
    }

    /// Bytes that huge entries mapped in the usual round.
    pub fn huge_bytes(&self) -> Option<u64> {
        self.usual.as_ref()?.cold.huge_bytes
    }
}

/// What all ways came to.
#[derive(Debug, Clone, Serialize)]
pub struct LargePagesFindings {
    /// Of this kernel.
    pub kernel: Kernel,
    /// Bytes of the file.
    pub bytes: u64,
    /// Functions were entered (code), not only looked at: not in a file that the user gave up.
    pub entered: bool,
    /// By kind, touches and way.
    pub rows: Vec<Row>,
    /// Each way beside plain faults.
    pub answers: Vec<WayAnswer>,
    /// What that means, by kind.
    pub judgements: Vec<Judgement>,
    /// Rounds that were measured whole.
    pub rounds: usize,
    /// It was interrupted after these.
    pub interrupted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PagesLine {
    kind: Kind,
    touches: Touches,
    way: Way,
}

fn lines() -> Vec<PagesLine> {
    let mut lines = Vec::new();
    for kind in Kind::ALL {
        for touches in Touches::ALL {
            lines.extend(Way::ALL.map(|way| PagesLine { kind, touches, way }));
        }
    }
    lines
}

/// A way seen, or refused.
type Measured = std::result::Result<Seen, Refusal>;

/// What all lines have in common.
struct Bed {
    subject: Subject,
    kernel: Kernel,
    enter: bool,
    all: Vec<u64>,
    few: Vec<u64>,
}

impl Bed {
    fn make(lab: &Lab<'_>, bytes: u64) -> Result<Self> {
        let kernel = Kernel::here(lab);
        let mut subject = lab.subject(bytes)?;
        let enter = subject.make_code(kernel.page_bytes)?;
        let pages = bytes / kernel.page_bytes;
        Ok(Self {
            few: few(pages, kernel.page_bytes, lab.seed),
            all: (0..pages).collect(),
            subject,
            kernel,
            enter,
        })
    }

    fn task(&self, line: PagesLine) -> Task {
        Task {
            file: self.subject.path().to_owned(),
            bytes: self.subject.bytes(),
            exec: line.kind == Kind::Code,
            way: line.way,
            pages: match line.touches {
                Touches::All => self.all.clone(),
                Touches::Few => self.few.clone(),
            },
            enter: self.enter,
            huge_bytes: self.kernel.huge_bytes,
            hugetlb_bytes: self.kernel.hugetlb_bytes,
        }
    }

    /// Folios of the file in the cache, by size.
    fn folios(&self) -> Result<Option<Vec<FolioSize>>> {
        let file = self.subject.file();
        let meta = file.metadata().map_err(Error::io("stat", self.subject.path()))?;
        let found = folios(file, &meta, &self.all)?;
        Ok(found.map(|runs| by_size(runs.iter().map(|run| run.pages * self.kernel.page_bytes))))
    }
}

/// One page of each [`SPARSE`] bytes, in an order without a pattern.
fn few(pages: u64, page: u64, seed: u64) -> Vec<u64> {
    let (mut rng, each) = (Pcg::new(seed, 16), (SPARSE / page).max(1));
    let within = u32::try_from(each).unwrap_or(u32::MAX);
    let mut few: Vec<u64> = (0..pages / each).map(|n| n * each + u64::from(rng.below(within))).collect();
    rng.shuffle(&mut few);
    few
}

fn by_size(folios: impl Iterator<Item = u64>) -> Vec<FolioSize> {
    let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
    folios.for_each(|bytes| *sizes.entry(bytes).or_default() += 1);
    sizes.into_iter().map(|(bytes, count)| FolioSize { bytes, count }).collect()
}

/// Measures every way in each round, in an order of its own.
pub fn run(lab: &Lab<'_>, o: &LargePagesOptions) -> Result<LargePagesFindings> {
    let bytes = o.bytes.max(LEAST).next_multiple_of(2 << 20);
    let bed = Bed::make(lab, bytes)?;
    lab.log.watch_files(&[("large-pages", &bed.subject)]);
    let lines = lines();
    let (measured, interrupted) = table::rounds(&lines, o.repeats, lab.seed, |line, round| {
        let (kind, touches) = (line.kind.word(), line.touches.word());
        lab.say(&format!("round {} of {}: {kind}, {touches}, {}", round + 1, o.repeats, line.way.word()));
        one(lab, &bed, *line)
    })?;
    let rounds = measured.first().map_or(0, Vec::len);
    let rows: Vec<Row> = lines.iter().zip(&measured).map(|(l, m)| Row::of(*l, m, lab.seed)).collect();
    Ok(LargePagesFindings {
        answers: answers(&rows),
        judgements: Kind::ALL.into_iter().map(|kind| judge(&rows, kind)).collect(),
        bytes,
        entered: bed.enter,
        kernel: bed.kernel,
        rows,
        rounds,
        interrupted,
    })
}

fn one(lab: &Lab<'_>, bed: &Bed, line: PagesLine) -> Result<Measured> {
    // Proved: an error where a page stays.
    bed.subject.make_cold()?;
    let task = bed.task(line);
    let name = line.way.word();
    let ask = || -> Result<std::result::Result<Touched, Refusal>> {
        match lab.runner.ask(ARGUMENT, name, &task)? {
            Answered::Done(touched) => Ok(Ok(touched)),
            Answered::Refused(refusal) => Ok(Err(refusal)),
            Answered::Failed(why) => Err(Error::Worker { name: name.to_owned(), why }),
        }
    };
    let before = lab.runner.dev.and_then(DeviceCount::of);
    let cold = match ask()? {
        Ok(touched) => touched,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let device = before.zip(lab.runner.dev.and_then(DeviceCount::settled)).map(|(b, a)| a.since(b));
    let cached_bytes = bed.subject.cached()?.map(|b| b.0);
    // Looking at them brings none: what is not cached is in none.
    let folios = bed.folios()?;
    Ok(ask()?.map(|warm| Seen { cold, warm, folios, cached_bytes, device }))
}

#[cfg(test)]
mod tests;
