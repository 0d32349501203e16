//! The file of a thread, reached in one of three ways.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::Instant;

use cold_model::Shown as _;
use cold_sys::evict;
use cold_sys::map::{self, MmapMut};
use cold_sys::mapped::{MapAdvice, MapKind, MappedFile};
use cold_sys::residency::cachestat;

use crate::spec::{Act, Advice, FileAdvice, Mapping, Mode, Work};

const PAGE: u64 = 4096;

/// An open file and what is needed to use it.
pub(super) struct Target {
    file: File,
    reach: Reach,
    buffer: MmapMut,
    record: u64,
    /// One bit per page that was used.
    touched: Vec<u64>,
}

enum Reach {
    Calls,
    Mapping(MappedFile, Mapping),
}

impl Target {
    pub(super) fn open(work: &Work) -> io::Result<Self> {
        let mut options = File::options();
        options.read(true).write(work.writes());
        if work.mode == Mode::Direct {
            options.custom_flags(rustix::fs::OFlags::DIRECT.bits().cast_signed());
        }
        let path = work.file.shown();
        let named =
            |what: &str, e: &dyn std::fmt::Display| io::Error::other(format!("cannot {what} {path}: {e}"));
        let file = options.open(&work.file).map_err(|e| match (work.mode, e.raw_os_error()) {
            (Mode::Direct, Some(22)) => named("open past the cache", &"its file system has no O_DIRECT"),
            _ => named("open", &e),
        })?;
        let reach = match work.mode {
            Mode::Direct => Reach::Calls,
            Mode::Buffered { advice } => {
                match advice {
                    FileAdvice::Normal => {}
                    FileAdvice::Random => evict::advise_random(&file).map_err(io::Error::other)?,
                    FileAdvice::Sequential => {
                        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Sequential)?;
                    }
                }
                Reach::Calls
            }
            Mode::Mapped(mapping) => {
                Reach::Mapping(map(&file, work, mapping).map_err(|e| named("map", &e))?, mapping)
            }
        };
        let mut buffer = map::pages(work.record as usize).map_err(io::Error::other)?;
        buffer.fill(0x5a);
        let touched = vec![0; work.bytes.div_ceil(PAGE).div_ceil(64) as usize];
        Ok(Self { file, reach, buffer, record: work.record, touched })
    }

    /// Uses one record; the timed part.
    #[inline]
    pub(super) fn act(&mut self, act: Act, record: u64) -> io::Result<()> {
        let (offset, len) = (record * self.record, self.record);
        match (&mut self.reach, act) {
            (Reach::Calls, Act::R) => self.file.read_exact_at(&mut self.buffer, offset),
            (Reach::Calls, Act::W) => self.file.write_all_at(&self.buffer, offset),
            (Reach::Mapping(map, how), act) => {
                let done = match (how.copy, act) {
                    (true, Act::R) => map.copy_out(offset, &mut self.buffer),
                    (true, Act::W) => map.copy_in(offset, &self.buffer),
                    (false, _) => pages(offset, len).all(|at| match act {
                        Act::R => map.touch(at).is_some(),
                        Act::W => map.poke(at, 0x5a),
                    }),
                };
                if done { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
            }
        }
    }

    /// Marks a record's pages as used.
    pub(super) fn mark(&mut self, record: u64) {
        let from = record * self.record / PAGE;
        let to = ((record + 1) * self.record).div_ceil(PAGE);
        for page in from..to {
            if let Some(word) = self.touched.get_mut((page / 64) as usize) {
                *word |= 1 << (page % 64);
            }
        }
    }

    /// Bytes of the pages that were marked.
    pub(super) fn touched_bytes(&self) -> u64 {
        self.touched.iter().map(|w| u64::from(w.count_ones())).sum::<u64>() * PAGE
    }

    /// Whether all pages of the record are cached; `None` where the kernel does not tell.
    pub(super) fn is_cached(&self, record: u64) -> Option<bool> {
        let (offset, len) = (record * self.record, self.record);
        let pages = (offset + len).div_ceil(PAGE) - offset / PAGE;
        cachestat(&self.file, offset, len).ok().flatten().map(|s| s.cached >= pages)
    }

    /// Waits until what was written is on the device.
    pub(super) fn flush(&self) -> io::Result<()> {
        // The pages of a mapping belong to the file: fdatasync writes them as well.
        self.file.sync_data()
    }
}

/// One place in each page of a record.
fn pages(offset: u64, len: u64) -> impl Iterator<Item = u64> {
    (offset / PAGE..(offset + len).div_ceil(PAGE)).map(move |p| (p * PAGE).max(offset))
}

fn map(file: &File, work: &Work, how: Mapping) -> Result<MappedFile, cold_sys::Error> {
    let kind = MapKind { exec: how.exec, write: work.writes(), shared: how.shared };
    let map = MappedFile::new(file, work.bytes, kind)?;
    let advice = match how.advice {
        Advice::Normal => return Ok(map),
        Advice::Random => MapAdvice::Random,
        Advice::Sequential => MapAdvice::Sequential,
        Advice::WillNeed => MapAdvice::WillNeed,
        Advice::Populate => MapAdvice::PopulateRead,
    };
    map.advise(advice, 0, work.bytes)?;
    Ok(map)
}

/// What using a record costs beside the record itself, nanoseconds: both readings of the clock and, where
/// pages of a mapping are touched, finding them. Measured on memory that is at hand, so that only our own
/// instructions are in it.
pub(super) fn own_cost(work: &Work) -> io::Result<f64> {
    match work.mode {
        // Calls and copies are what is measured; beside them there is the clock.
        Mode::Mapped(how) if !how.copy => {
            let file = File::from(rustix::fs::memfd_create("calibration", rustix::fs::MemfdFlags::CLOEXEC)?);
            file.set_len(work.record)?;
            let work = Work { bytes: work.record, ..work.clone() };
            let map = map(&file, &work, Mapping { exec: false, advice: Advice::Normal, ..how })
                .map_err(io::Error::other)?;
            let mut hot = Target {
                file,
                reach: Reach::Mapping(map, how),
                buffer: map::pages(1).map_err(io::Error::other)?,
                record: work.record,
                touched: Vec::new(),
            };
            let act = if work.writes() { Act::W } else { Act::R };
            hot.act(act, 0)?;
            Ok(usual_ns(|| drop(std::hint::black_box(&mut hot).act(act, 0))))
        }
        _ => Ok(clock_cost()),
    }
}

/// What two readings of the clock cost with nothing between them, nanoseconds.
pub(super) fn clock_cost() -> f64 {
    usual_ns(|| ())
}

/// The mean without the longest tenth, which was interrupted. (A median would be as coarse as the clock.)
fn usual_ns(mut what: impl FnMut()) -> f64 {
    const TIMES: usize = 2000;
    let mut found: Vec<u128> = (0..TIMES)
        .map(|_| {
            let before = Instant::now();
            what();
            before.elapsed().as_nanos()
        })
        .collect();
    found.sort_unstable();
    found.truncate(TIMES * 9 / 10);
    found.iter().sum::<u128>() as f64 / found.len() as f64
}

#[cfg(test)]
mod tests;
