//! When each page of a recorded start was first needed, by the dependency clock and by the wall clock: path, page,
//! milliseconds, milliseconds, between tabs; the first line is ready. With a warm start beside it: by the plan that both
//! make together, twice the same. For `benches/clock.py`.

#![allow(clippy::print_stdout)] // what an example is for

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cold_analyze::Window;
use cold_analyze::clock::DependencyClock;
use cold_model::recording::{FileKind, Recording, TouchKind};
use cold_plan::plan::{self, Identity, Key};
use cold_prefetch::{learn, merge};

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let mut names = std::env::args_os().skip(1).map(PathBuf::from);
    let name = names.next().ok_or("usage: need_times NAME.cold [WARM.cold]")?;
    let recording = cold_recording::read(&name)?;
    if let Some(warm) = names.next() {
        return by_plan(&recording, &cold_recording::read(&warm)?);
    }
    by_clocks(&recording);
    Ok(())
}

fn line(path: &Path, page: u64, need: u64, wall: u64) {
    println!("{}\t{page}\t{:.3}\t{:.3}", path.to_string_lossy(), need as f64 / 1e6, wall as f64 / 1e6);
}

fn by_clocks(recording: &Recording) {
    let clock = DependencyClock::of(recording, Window::of(recording));
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
    line(Path::new("ready"), 0, clock.computing(), clock.window_ns());
    for ((file, page), (need, wall)) in first {
        let file = recording.files.get(file as usize).filter(|f| f.kind == FileKind::Regular);
        if let Some(path) = file.and_then(|f| f.path.as_ref()) {
            line(Path::new(path), page, need, wall);
        }
    }
}

fn by_plan(cold: &Recording, warm: &Recording) -> Result<(), Failed> {
    let with = learn::With::default();
    let starts = [learn::observe(cold, &with)?, learn::observe(warm, &with)?];
    let key = Key {
        executable: PathBuf::new(),
        identity: Identity::default(),
        script: None,
        scenario: String::new(),
    };
    let made = merge::lesson(None, &key, &starts, 0).ok_or("two starts make a plan")?;
    line(Path::new("ready"), 0, made.learnt.cpu_ns, made.learnt.cpu_ns);
    for range in &made.ranges {
        let Some(file) = made.files.get(range.file as usize).filter(|f| f.kind == plan::FileKind::Regular)
        else {
            continue;
        };
        for page in range.first_page..range.first_page + u64::from(range.pages) {
            line(&file.path, page, range.need_ns, range.need_ns);
        }
    }
    Ok(())
}
