//! Timed reads past the cache.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cold_model::io_model::AtDepth;
use cold_stats::{Pcg, median_u64};

use crate::gate::Gate;

/// Bytes of a scattered read.
const PAGE: usize = 4096;
/// Bytes of a long read.
const LONG: usize = 1 << 20;
/// Fewer reads than this say nothing, however long they take; so many are always made …
const LEAST: usize = 12;
/// … unless this is over.
const PATIENCE: Duration = Duration::from_secs(4);

/// Memory whose bytes begin at a multiple of 4096, as direct I/O wants it.
struct Aligned(Vec<u8>, usize, usize);

impl Aligned {
    fn new(bytes: usize) -> Self {
        let memory = vec![0_u8; bytes + 4096];
        let start = memory.as_ptr().align_offset(4096).min(4096);
        Self(memory, start, bytes)
    }
    fn bytes(&mut self) -> &mut [u8] {
        &mut self.0[self.1..self.1 + self.2]
    }
}

/// Fills an empty file with bytes that neither compress nor repeat, until `most` or, beyond `least`, until
/// the time is over. Returns its size.
pub(super) fn fill(file: &File, most: u64, least: u64, time: Duration) -> io::Result<u64> {
    let mut buffer = Aligned::new(LONG);
    let mut rng = Pcg::new(most, 0);
    for word in buffer.bytes().chunks_exact_mut(8) {
        word.copy_from_slice(&rng.next_u64().to_le_bytes());
    }
    let began = Instant::now();
    let mut at = 0;
    while at < most && (at < least || began.elapsed() < time) {
        for page in buffer.bytes().chunks_exact_mut(PAGE) {
            page[..8].copy_from_slice(&rng.next_u64().to_le_bytes());
        }
        file.write_all_at(buffer.bytes(), at)?;
        at += LONG as u64;
    }
    Ok(at)
}

/// What reads of single pages at random places came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scattered {
    /// Median time of one.
    pub(super) median_ns: f64,
    iops: f64,
}

impl Scattered {
    pub(super) fn at_depth(&self, depth: u32) -> AtDepth {
        AtDepth { depth, iops: self.iops.round().max(1.0) }
    }
}

/// Reads pages at random places, `depth` at a time, for about that time.
pub(super) fn scattered(
    file: &File,
    size: u64,
    depth: u32,
    time: Duration,
    seed: u64,
) -> io::Result<Scattered> {
    let pages = (size / PAGE as u64).max(1);
    let done = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    // All begin together: starting 32 threads takes longer than a read.
    let gate = Gate::default();
    let lane = |lane: u64| -> io::Result<Vec<u64>> {
        let mut buffer = Aligned::new(PAGE);
        let mut rng = Pcg::new(seed, lane);
        let mut times = Vec::new();
        if !gate.pass() {
            return Ok(times);
        }
        while !stop.load(Ordering::Relaxed) {
            let page = rng.next_u64() % pages;
            let began = Instant::now();
            file.read_exact_at(buffer.bytes(), page * PAGE as u64)?;
            times.push(began.elapsed().as_nanos() as u64);
            done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(times)
    };
    std::thread::scope(|scope| {
        let lane = &lane;
        let start = |n| std::thread::Builder::new().spawn_scoped(scope, move || lane(n));
        let lanes = (0..u64::from(depth)).map(start).collect::<io::Result<Vec<_>>>();
        let lanes = lanes.inspect_err(|_| gate.give_up())?;
        gate.open(lanes.len());
        let began = Instant::now();
        loop {
            let left = time.saturating_sub(began.elapsed());
            std::thread::sleep(left.max(Duration::from_millis(1)));
            let enough = done.load(Ordering::Relaxed) as usize >= LEAST.max(2 * depth as usize);
            let failed = lanes.iter().any(std::thread::ScopedJoinHandle::is_finished);
            if failed || (enough && began.elapsed() >= time) || began.elapsed() > PATIENCE {
                break;
            }
        }
        let (n, took) = (done.load(Ordering::Relaxed), began.elapsed());
        stop.store(true, Ordering::Relaxed);
        let mut times = Vec::new();
        for lane in lanes {
            let of = lane.join().map_err(|_| io::Error::other("a reading thread failed"))?;
            times.extend(of?);
        }
        let median_ns = median_u64(times).ok_or_else(|| io::Error::other("no read ended"))? as f64;
        Ok(Scattered { median_ns, iops: n as f64 / took.as_secs_f64().max(1e-9) })
    })
}

/// Time per byte of a disk with heads, in nanoseconds: reads of two sizes by turns, each beginning where the
/// one before ended, and the slope between their medians. The size is below every usual limit of a request:
/// the halves of a larger one may come in the wrong order, and then the heads move.
pub(super) fn slope(file: &File, size: u64, time: Duration) -> io::Result<f64> {
    const SIZES: [usize; 2] = [128 << 10, 512 << 10];
    let mut buffer = Aligned::new(SIZES[1]);
    let mut times = [Vec::new(), Vec::new()];
    let began = Instant::now();
    let mut at = 0;
    while (times[1].len() < LEAST || began.elapsed() < time) && began.elapsed() < PATIENCE {
        for (bytes, times) in SIZES.into_iter().zip(&mut times) {
            if at + bytes as u64 > size {
                at = 0;
                file.read_exact_at(&mut buffer.bytes()[..PAGE], at)?;
                at += PAGE as u64;
            }
            let before = Instant::now();
            file.read_exact_at(&mut buffer.bytes()[..bytes], at)?;
            times.push(before.elapsed().as_nanos() as u64);
            at += bytes as u64;
        }
    }
    let [Some(short), Some(long)] = times.map(median_u64) else {
        return Err(io::Error::other("no read ended"));
    };
    // Never 0: a cost of nothing is no measurement.
    Ok(((long as f64 - short as f64) / (SIZES[1] - SIZES[0]) as f64).max(1e-3))
}

/// Time per byte of a read that has the device to itself, in nanoseconds: reads of a page and of the usual read-ahead
/// window at random places by turns, and the slope between their medians. Each page comes into a piece of memory of its
/// own, as in the page cache: a device takes longer for 32 pieces than for one (a virtual disk 190 to 245 µs for 128 KiB
/// in a start, 145 to 186 into one piece).
pub(super) fn alone(file: &File, size: u64, time: Duration, seed: u64) -> io::Result<f64> {
    const WINDOW: usize = 128 << 10;
    // Every other page is used.
    let mut buffer = Aligned::new(2 * WINDOW);
    let places = (size.saturating_sub(WINDOW as u64) / PAGE as u64).max(1);
    let mut rng = Pcg::new(seed, 0);
    let mut times = [Vec::new(), Vec::new()];
    let began = Instant::now();
    while (times[1].len() < LEAST || began.elapsed() < time) && began.elapsed() < PATIENCE {
        for (bytes, times) in [PAGE, WINDOW].into_iter().zip(&mut times) {
            let at = rng.next_u64() % places * PAGE as u64;
            let pairs = buffer.bytes()[..2 * bytes].chunks_exact_mut(2 * PAGE);
            let mut pages: Vec<IoSliceMut<'_>> =
                pairs.map(|pair| IoSliceMut::new(&mut pair[..PAGE])).collect();
            let before = Instant::now();
            let read = rustix::io::preadv(file, &mut pages, at)?;
            times.push(before.elapsed().as_nanos() as u64);
            if read < bytes {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
    let [Some(short), Some(long)] = times.map(median_u64) else {
        return Err(io::Error::other("no read ended"));
    };
    Ok(((long as f64 - short as f64) / (WINDOW - PAGE) as f64).max(0.0))
}

/// Time per byte of long reads one after another, in nanoseconds, `lanes` at a time.
pub(super) fn streamed(file: &File, size: u64, lanes: u32, time: Duration) -> io::Result<f64> {
    let pieces = (size / LONG as u64).max(1);
    let next = AtomicU64::new(0);
    let began = Instant::now();
    let lane = || -> io::Result<()> {
        let mut buffer = Aligned::new(LONG);
        loop {
            let piece = next.fetch_add(1, Ordering::Relaxed);
            let enough = piece >= u64::from(4 * lanes);
            if (enough && began.elapsed() >= time) || began.elapsed() > PATIENCE {
                next.fetch_sub(1, Ordering::Relaxed);
                return Ok(());
            }
            file.read_exact_at(buffer.bytes(), piece % pieces * LONG as u64)?;
        }
    };
    std::thread::scope(|scope| {
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, lane);
        let lanes = (0..lanes).map(start).collect::<io::Result<Vec<_>>>()?;
        for lane in lanes {
            lane.join().map_err(|_| io::Error::other("a reading thread failed"))??;
        }
        Ok::<(), io::Error>(())
    })?;
    let bytes = next.load(Ordering::Relaxed).max(1) * LONG as u64;
    Ok(began.elapsed().as_nanos() as f64 / bytes as f64)
}
