//! When each page of a recorded start was first needed, by the dependency clock and by the wall clock: path, page,
//! milliseconds, milliseconds, between tabs; the first line is ready. For `benches/clock.py`.

#![allow(clippy::print_stdout)] // what an example is for

use std::collections::BTreeMap;
use std::path::Path;

use cold_analyze::Window;
use cold_analyze::clock::DependencyClock;
use cold_model::recording::{FileKind, TouchKind};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).ok_or("usage: need_times NAME.cold")?;
    let recording = cold_recording::read(Path::new(&name))?;
    let clock = DependencyClock::of(&recording, Window::of(&recording));
    let ms = |ns: u64| ns as f64 / 1e6;
    let mut first = BTreeMap::new();
    for t in recording.touches.iter().flatten().filter(|t| t.kind != TouchKind::FaultAround) {
        if t.at < clock.exec() || !clock.before_ready(t.at) {
            continue;
        }
        let needs = (clock.need(t.at, t.tid), t.at.0.saturating_sub(clock.exec().0));
        for page in t.first_page..t.first_page + u64::from(t.pages) {
            first.entry((t.file, page)).and_modify(|n: &mut (u64, u64)| *n = needs.min(*n)).or_insert(needs);
        }
    }
    println!("ready\t\t{:.3}\t{:.3}", ms(clock.computing()), ms(clock.window_ns()));
    for ((file, page), (need, wall)) in first {
        let Some(file) = recording.files.get(file as usize).filter(|f| f.kind == FileKind::Regular) else {
            continue;
        };
        if let Some(path) = &file.path {
            println!("{path}\t{page}\t{:.3}\t{:.3}", ms(need), ms(wall));
        }
    }
    Ok(())
}
