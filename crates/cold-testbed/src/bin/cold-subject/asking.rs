//! Asking for pages of a file without touching them, and faulting as fast as can be.

use std::fs::File;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Barrier;

use clap::{Args, ValueEnum};
use rustix::fs::Advice;

use crate::Failure;
use crate::memory::{FileMap, Pieces};

/// A way to ask for pages.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Way {
    /// `mmap` with `MAP_POPULATE`
    Populate,
    /// `madvise(MADV_WILLNEED)`
    Willneed,
    /// `posix_fadvise(POSIX_FADV_WILLNEED)`
    Fadvise,
}

#[derive(Args)]
pub(crate) struct Ask {
    way: Way,
    /// All of it is asked for
    file: PathBuf,
}

impl Ask {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let file = File::open(self.file)?;
        match self.way {
            Way::Populate => drop(FileMap::populated(&file)?),
            Way::Willneed => FileMap::new(&file, false)?.advise_willneed()?,
            Way::Fadvise => {
                let all = NonZeroU64::new(file.metadata()?.len());
                rustix::fs::fadvise(&file, 0, all, Advice::WillNeed)?;
            }
        }
        Ok(())
    }
}

#[derive(Args)]
pub(crate) struct TouchTogether {
    file: PathBuf,
    /// Page numbers and ranges: 0,5,7-9; all threads touch each at the same time
    pages: String,
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

impl TouchTogether {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let map = FileMap::new(&File::open(self.file)?, false)?;
        map.advise_random()?;
        let pages = crate::parse_pages(&self.pages)?;
        let barrier = Barrier::new(self.threads);
        let touch = || {
            pages.iter().try_for_each(|page| {
                barrier.wait();
                map.touch(*page)
            })
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads).map(|_| scope.spawn(touch)).collect();
            threads.into_iter().try_for_each(|t| t.join().unwrap_or_else(|p| std::panic::resume_unwind(p)))
        })?;
        Ok(())
    }
}

#[derive(Args)]
pub(crate) struct CountedFaults {
    file: PathBuf,
    /// Mappings of one page each (the kernel allows 65530)
    mappings: usize,
    /// How often each of them is touched and emptied
    rounds: u32,
}

impl CountedFaults {
    /// Prints how many faults the kernel counted (one may be repeated when somebody takes a page out of the
    /// page table meanwhile), and their number per second.
    pub(crate) fn run(self) -> Result<(), Failure> {
        let pieces = Pieces::new(&File::open(self.file)?, self.mappings)?;
        faults()?; // its own first faults
        let before = faults()?;
        let begin = std::time::Instant::now();
        for _ in 0..self.rounds {
            pieces.touch_all();
            pieces.empty()?;
        }
        let took = begin.elapsed().as_secs_f64();
        let number = faults()? - before;
        crate::say(&format!("{number} faults, {:.0} per second", number as f64 / took))?;
        Ok(())
    }
}

/// Minor and major faults of this process so far.
fn faults() -> Result<u64, Failure> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let (_, rest) = text.rsplit_once(')').ok_or("no name in /proc/self/stat")?;
    let field = |n| rest.split_whitespace().nth(n).unwrap_or("").parse::<u64>();
    Ok(field(7)? + field(9)?)
}
