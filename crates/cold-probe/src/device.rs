//! What reading from a file system's device costs: a measurement of two to three seconds.
//!
//! It reads past the page cache (`O_DIRECT`) from a file of its own without a name (`O_TMPFILE`), which the
//! kernel removes even when the process is killed; where none can be made, from a large file that is given.
//!
//! - **Latency and depth**: pages at random places, one at a time, then 2, 4, … 32 at a time.
//! - **Bytes**: long reads one after another, several at a time; where the disk rotates the slope between two
//!   sizes, one at a time. Where it does not, that slope besides, at scattered places and into scattered pages.
//! - **The silent cap**: one `readahead` call for 16 MiB of a file that is not cached, then counting what is.
//!
//! On a disk with heads the places lie within the file, so its seeks are those of files that lie near each
//! other, as a program's do; not those across the whole disk.

mod cache;
mod find;
mod sample;

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cold_model::DeviceModel;
use cold_sys::open::held;
use cold_sys::procfs::ProcFs;
use cold_sys::sysfs::SysFs;

pub use cache::{file_name, load, load_or_measure, save};
pub use find::{FoundDevice, find};

/// Largest temporary file, and the least that is worth measuring.
const MOST: u64 = 64 << 20;
const LEAST: u64 = 8 << 20;
/// No heads move and no platter turns in less (the half turn of 15,000 rpm is 2 ms).
const HEADS_NS: f64 = 1e6;
/// Long reads at a time, where no heads move: one alone leaves the device idle between two.
const LANES: u32 = 4;
/// What one readahead call is asked for.
const ASKED: u64 = 16 << 20;

/// How long the measurement may take, about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceEffort {
    /// About 1 s.
    Quick,
    /// 2 to 3 s.
    Usual,
}

impl DeviceEffort {
    fn slice(self) -> Duration {
        Duration::from_millis(match self {
            Self::Quick => 80,
            Self::Usual => 220,
        })
    }
}

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No block device of this machine behind it.
    #[error("{place} is on no block device that can be measured: {why}")]
    NoDevice {
        /// What was asked for.
        place: PathBuf,
        /// What lies there instead, or what is not known.
        why: String,
    },
    /// Neither room nor a file to read.
    #[error("nothing to measure with in {place}: {why}; name a file of at least 8 MiB on that disk instead")]
    NoFile {
        /// The directory in which no file can be made, or the file that is too small.
        place: PathBuf,
        /// How much room or file there is, or why no temporary file can be made.
        why: String,
    },
    /// An operation failed.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The attempted action.
        action: &'static str,
        /// What it was attempted on.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The kernel's interface failed.
    #[error(transparent)]
    System(#[from] cold_sys::Error),
}

/// Measures the device behind a directory (with a temporary file there) or a regular file of at least 8 MiB
/// (which is only read). Takes as long as `effort` says, longer on a disk whose single reads take long.
pub fn measure(place: &Path, effort: DeviceEffort) -> Result<DeviceModel, Error> {
    let found = find(place, &ProcFs::default(), &SysFs::default())?;
    measure_found(place, &found, effort)
}

pub(crate) fn measure_found(
    place: &Path,
    found: &FoundDevice,
    effort: DeviceEffort,
) -> Result<DeviceModel, Error> {
    let subject = if place.is_dir() { temporary(place, effort)? } else { existing(place)? };
    let io = |e| Error::Io { action: "read", path: place.to_owned(), source: e };
    let slice = effort.slice();
    // The first reads bring the file's extents, and wake a disk that sleeps.
    sample::scattered(&subject.direct, subject.bytes, 1, slice / 8, 0).map_err(io)?;
    // Latency and bandwidth twice, before and after the rest, and the better one counts: a neighbour that
    // takes the CPU or the disk for a while makes both only worse.
    let single = |seed| sample::scattered(&subject.direct, subject.bytes, 1, slice * 3 / 4, seed).map_err(io);
    let single_before = single(1)?;
    let rotational = found.rotational && single_before.median_ns >= HEADS_NS;
    let bytes = || {
        let (file, bytes, time) = (&subject.direct, subject.bytes, slice);
        if rotational {
            sample::slope(file, bytes, time).map_err(io)
        } else {
            sample::streamed(file, bytes, LANES, time).map_err(io)
        }
    };
    let bytes_before = bytes()?;
    let mut depths = Vec::new();
    for (n, depth) in [2, 4, 8, 16, 32].into_iter().enumerate() {
        let found =
            sample::scattered(&subject.direct, subject.bytes, depth, slice, 2 + n as u64).map_err(io)?;
        depths.push(found.at_depth(depth));
    }
    let ns_per_byte = bytes()?.min(bytes_before);
    let alone = || sample::alone(&subject.direct, subject.bytes, slice, 8).map_err(io);
    let ns_per_byte_alone = if rotational { None } else { Some(rounded(alone()?, 10_000.0)) };
    let single_after = single(7)?;
    let single = if single_after.median_ns < single_before.median_ns { single_after } else { single_before };
    depths.insert(0, single.at_depth(1));
    let readahead_cap = match &subject.buffered {
        Some(file) => {
            cap(file).map_err(|e| Error::Io { action: "read ahead", path: place.to_owned(), source: e })?
        }
        None => None,
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    Ok(DeviceModel {
        dev: found.dev,
        name: found.name.clone(),
        rotational,
        // The line through one page at a time and long reads: what is left at no bytes.
        latency_ns: rounded((single.median_ns - 4096.0 * ns_per_byte).max(0.0), 10.0),
        ns_per_byte: rounded(ns_per_byte, 10_000.0),
        ns_per_byte_alone,
        depths,
        readahead_cap: readahead_cap.unwrap_or(found.stated_cap),
        measured_at: now,
    })
}

/// Digits that were measured, no more: such a number also comes back from JSON as it was.
fn rounded(x: f64, parts: f64) -> f64 {
    (x * parts).round() / parts
}

/// The file that is read.
struct DeviceSubject {
    direct: File,
    /// The same file for reads through the cache, where its pages may be dropped.
    buffered: Option<File>,
    bytes: u64,
}

fn direct_flags(extra: rustix::fs::OFlags) -> i32 {
    (rustix::fs::OFlags::DIRECT | extra).bits().cast_signed()
}

fn existing(path: &Path) -> Result<DeviceSubject, Error> {
    let (looked, meta) = cold_sys::open::regular(path, true)?;
    if meta.len() < LEAST {
        let why = format!("{} bytes are too few", meta.len());
        return Err(Error::NoFile { place: path.to_owned(), why });
    }
    let direct = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(direct_flags(rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY))
        .open(held(&looked))
        .map_err(|e| Error::Io { action: "open past the cache", path: path.to_owned(), source: e })?;
    // Its pages may be in use: what is cached of it stays, so the cap is taken from what the kernel states.
    Ok(DeviceSubject { direct, buffered: None, bytes: meta.len() & !4095 })
}

fn temporary(directory: &Path, effort: DeviceEffort) -> Result<DeviceSubject, Error> {
    let none = |why: String| Error::NoFile { place: directory.to_owned(), why };
    let failed = |action| move |e: io::Error| Error::Io { action, path: directory.to_owned(), source: e };
    let space = rustix::fs::statvfs(directory).map_err(|e| failed("ask for the free space of")(e.into()))?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    let most = MOST.min(free / 8) & !((1 << 20) - 1);
    if most < LEAST {
        return Err(none(format!("only {} are free", cold_model::Bytes(free))));
    }
    let direct = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(direct_flags(rustix::fs::OFlags::TMPFILE))
        .open(directory)
        .map_err(|e| none(format!("no temporary file can be made ({e})")))?;
    let bytes = sample::fill(&direct, most, LEAST, effort.slice() * 3).map_err(failed("write a file in"))?;
    direct.sync_all().map_err(failed("sync a file in"))?;
    let buffered = File::open(held(&direct)).map_err(failed("open again a file in"))?;
    Ok(DeviceSubject { direct, buffered: Some(buffered), bytes })
}

/// What one readahead call brings; `None` where it cannot be counted.
fn cap(file: &File) -> io::Result<Option<u64>> {
    if cold_sys::evict::advise_dontneed(file).is_err() {
        return Ok(None);
    }
    let cached = || {
        cold_sys::residency::cachestat(file, 0, 0)
            .ok()
            .flatten()
            .map(|s| s.cached * cold_sys::page::page_size())
    };
    if cached() != Some(0) {
        return Ok(None);
    }
    cold_sys::readahead::read_ahead(file, 0, ASKED)?;
    // Pages on their way count as cached, so there is nothing to wait for.
    let got = cached().filter(|n| *n > 0);
    let _ = cold_sys::evict::advise_dontneed(file);
    Ok(got)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_in_whole_pages_and_a_small_one_not_at_all() {
        let dir = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
        let path = dir.path().join("f");
        let existing = |bytes| {
            File::create(&path).unwrap().set_len(bytes).unwrap();
            existing(&path)
        };
        assert_eq!(existing(LEAST).unwrap().bytes, LEAST);
        let odd = existing(LEAST + 8191).unwrap();
        assert_eq!(odd.bytes, LEAST + 4096);
        assert!(odd.buffered.is_none(), "its pages are left in the cache: they may be in use");
        let why = existing(LEAST - 1).err().unwrap().to_string();
        assert!(why.contains("8388607 bytes are too few; name a file of at least 8 MiB"), "{why}");
    }

    #[test]
    fn a_fifo_or_a_directory_is_no_file_to_read_and_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        // A FIFO that nobody writes would be waited for.
        let fifo = dir.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        for place in [&*fifo, dir.path()] {
            let why = existing(place).err().unwrap().to_string();
            assert!(why.contains("not a regular file"), "{why}");
        }
    }

    #[test]
    fn what_was_measured_comes_back_from_json_as_it_was() {
        for x in [123_456.789_012_3, 0.333_333_333, 1e-3, 0.0] {
            let kept = rounded(x, 10_000.0);
            assert!((kept - x).abs() <= 0.5 / 10_000.0);
            let text = serde_json::to_string(&kept).unwrap();
            assert_eq!(serde_json::from_str::<f64>(&text).unwrap().to_bits(), kept.to_bits());
        }
    }
}
