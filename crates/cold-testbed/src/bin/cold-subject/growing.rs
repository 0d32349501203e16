//! Starts that leave something behind, and find what the ones before have left.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;

/// How the cost of a start depends on how many there were in the same directory.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum CostGrowth {
    /// Not at all: always the same lookups
    Constant,
    /// Doubles the number until a name is free, then halves the distance
    Gallop,
    /// Tries every name from 0 on until one is free
    Scan,
    /// Lists the directory
    List,
    /// Appends to a file and reads it in full
    File,
    /// More lookups from a certain start on
    Step,
}

#[derive(clap::Args)]
pub(crate) struct Growing {
    kind: CostGrowth,
    /// The directory that holds what starts leave behind
    dir: PathBuf,
    /// First start after the step
    #[arg(long, default_value_t = 100)]
    at: u64,
}

impl Growing {
    pub(crate) fn run(&self) -> io::Result<()> {
        match self.kind {
            CostGrowth::Constant => {
                looks(&self.dir, 20);
                Ok(())
            }
            CostGrowth::Gallop => self.create(gallop(|n| taken(&self.name(n)))),
            CostGrowth::Scan => self.create((0..u64::MAX).find(|n| !taken(&self.name(*n))).unwrap_or(0)),
            CostGrowth::List => {
                let names = fs::read_dir(&self.dir)?.count() as u64;
                // No numbers one after the other: what grows is the list, and no search.
                self.create(names.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20)
            }
            CostGrowth::File => {
                let path = self.dir.join("log");
                OpenOptions::new().create(true).append(true).open(&path)?.write_all(&[b'x'; 8192])?;
                fs::read(path).map(drop)
            }
            CostGrowth::Step => {
                let path = self.dir.join("count");
                let mut file = OpenOptions::new().create(true).append(true).open(path)?;
                file.write_all(b"x")?;
                looks(&self.dir, if file.metadata()?.len() > self.at { 220 } else { 20 });
                Ok(())
            }
        }
    }

    fn name(&self, n: u64) -> PathBuf {
        self.dir.join(format!("report.{n}.log"))
    }

    fn create(&self, n: u64) -> io::Result<()> {
        File::create_new(self.name(n)).map(drop)
    }
}

fn taken(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Looks for names that are not there, always the same ones.
fn looks(dir: &Path, names: u32) {
    (0..names).for_each(|n| drop(fs::symlink_metadata(dir.join(format!("none-{}", n % 2)))));
}

/// The first free number, where all below it are taken.
fn gallop(taken: impl Fn(u64) -> bool) -> u64 {
    if !taken(0) {
        return 0;
    }
    let mut high = 1;
    while taken(high) {
        high *= 2;
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = u64::midpoint(low, high);
        if taken(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}
