//! Makes a dataset of made-up starts, and says what one takes:
//! `cargo run --release -p cold-fleet --features sample --example generate -- DATASET COUNT [NAME.cold]`.

#![allow(clippy::print_stdout)] // its result

use std::path::Path;
use std::time::{Duration, Instant};

use cold_fleet::sample;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let dataset = words.next().ok_or("name a directory for the dataset")?;
    let count: u64 = words.next().ok_or("say how many starts")?.parse()?;
    let like = match words.next() {
        Some(name) => cold_recording::read(Path::new(&name))?,
        None => cold_recording::sample::firefox_like(20_000, 1),
    };
    let (mut made, mut written) = (Duration::ZERO, Duration::ZERO);
    for n in 0..count {
        let began = Instant::now();
        let start = sample::start(&like, n, count)?;
        let rows = Instant::now();
        cold_recording::fleet::add(Path::new(&dataset), &start)?;
        made += rows - began;
        written += rows.elapsed();
    }
    let each = |all: Duration| all.as_secs_f64() * 1e3 / count.max(1) as f64;
    println!(
        "{count} starts: {:.2} ms each for the rows, {:.2} ms each to write them",
        each(made),
        each(written)
    );
    Ok(())
}
