//! What reading from the device costs: the calibration that plans use, and whether distance and direction
//! matter.

use cold_model::DeviceModel;
use cold_stats::Histogram;
use serde::Serialize;

use super::{Lab, Times};
use crate::device::{DeviceEffort, measure};
use crate::{Error, Result};

/// Reads of one stride.
#[derive(Debug, Clone, Serialize)]
pub struct StrideRow {
    /// Bytes from one read's start to the next; negative is backward.
    pub stride: i64,
    /// Time per read of 4 KiB past the cache.
    pub ms: Times,
}

/// What the device costs, and whether distance and direction matter.
#[derive(Debug, Clone, Serialize)]
pub struct DeviceFindings {
    /// Latency, bandwidth, depths, cap.
    pub model: DeviceModel,
    /// Strides, forward and backward.
    pub strides: Vec<StrideRow>,
}

/// Reads per stride.
const READS: u64 = 100;

/// Smallest file for the strides: two reads of the longest.
const LEAST: u64 = 8 << 20;

/// Measures; `bytes` is the size of the file for the strides, at least 8 MiB.
pub fn run(lab: &Lab<'_>, bytes: u64) -> Result<DeviceFindings> {
    use std::os::unix::fs::{FileExt, OpenOptionsExt};
    lab.say("latency, bandwidth and depth");
    let model = measure(lab.place.path(), DeviceEffort::Usual)?;
    let bytes = bytes.max(LEAST);
    let subject = lab.subject(bytes)?;
    subject.make_cold()?;
    let direct = std::fs::File::options()
        .read(true)
        .custom_flags(rustix::fs::OFlags::DIRECT.bits().cast_signed())
        .open(subject.path())
        .map_err(Error::io("open past the cache", subject.path()))?;
    let mut page = cold_sys::map::pages(4096)?;
    let mut strides = Vec::new();
    for step in [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20] {
        for stride in [i64::from(step), -i64::from(step)] {
            lab.say(&format!("stride {stride}"));
            let mut series = Histogram::default();
            // The first read moves the heads there and does not count.
            for n in 0..=READS.min(bytes / step as u64 - 1) {
                lab.runner.check()?;
                let forward = n * step as u64 % bytes;
                let at = if stride > 0 { forward } else { bytes - step as u64 - forward };
                let began = std::time::Instant::now();
                direct.read_exact_at(&mut page, at).map_err(Error::io("read", subject.path()))?;
                if n > 0 {
                    series.add(began.elapsed().as_nanos() as u64);
                }
            }
            strides.push(StrideRow { stride, ms: Times::of(&series.closed()) });
        }
    }
    Ok(DeviceFindings { model, strides })
}
