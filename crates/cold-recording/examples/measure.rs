//! Time, size and memory of writing and reading a made-up recording, and the log's throughput:
//! `cargo run --release -p cold-recording --features sample --example measure [EVENTS]`.
#![allow(clippy::print_stdout)] // it is a program

use std::path::Path;
use std::time::Instant;

use cold_model::Nanos;
use cold_recording::{log, read, sample, write};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let events = std::env::args().nth(1).map_or(Ok(1_000_000), |n| n.parse())?;
    let dir = std::env::temp_dir().join(format!("cold-measure-{}", std::process::id()));
    std::fs::create_dir(&dir)?;
    let done = measure(events, &dir);
    std::fs::remove_dir_all(&dir)?;
    done
}

fn measure(events: usize, dir: &Path) -> Result<()> {
    let recording = sample::firefox_like(events, 1);
    println!("{:?}", recording.counts());
    println!("with the sample in memory: {}", peak()?);
    let place = dir.join("a.cold");
    let start = Instant::now();
    write(&place, &recording)?;
    println!("write: {:?}, {}", start.elapsed(), peak()?);
    let mut bytes = 0;
    for entry in std::fs::read_dir(&place)? {
        bytes += entry?.metadata()?.len();
    }
    println!("size: {:.2} MB", bytes as f64 / 1e6);
    drop(recording);
    let start = Instant::now();
    let back = read(&place)?;
    println!("read: {:?}, {} ({} touches)", start.elapsed(), peak()?, back.touches.map_or(0, |t| t.len()));

    let block = vec![0x5a; 16 << 10];
    let (start, ran) = (Instant::now(), on_cpu()?);
    let mut writer = log::Writer::create(dir, 4096, Nanos(0))?;
    for _ in 0..64 << 10 {
        writer.append(1, &block)?;
    }
    let bytes = writer.bytes();
    writer.finish()?;
    let megabytes = bytes as f64 / 1e6;
    let (elapsed, cpu) = (start.elapsed().as_secs_f64(), on_cpu()? - ran);
    println!(
        "log, 16 KiB blocks: {:.0} MB/s; {:.0} MB per second of CPU",
        megabytes / elapsed,
        megabytes / cpu
    );
    let start = Instant::now();
    let blocks = log::Reader::open(dir)?.count();
    println!("log read: {:.0} MB/s ({blocks} blocks)", megabytes / start.elapsed().as_secs_f64());
    Ok(())
}

/// Seconds this thread was on a CPU: on a busy machine the elapsed time is others' work as well.
fn on_cpu() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split_whitespace().next().unwrap_or("0").parse::<f64>()? / 1e9)
}

/// Peak of resident memory so far.
fn peak() -> Result<String> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|l| l.starts_with("VmHWM")).unwrap_or("VmHWM: unknown");
    Ok(format!("peak{}", line.trim_start_matches("VmHWM")))
}
