//! Writes down what this machine's page cache does with the operations of `cold_sim::verify`, as JSON: the truth that
//! `cold-sim` is tested against for kernels that are not running.
//!
//! usage: page-cache DIRECTORY SEED CASES OPERATIONS
#![allow(clippy::print_stdout)] // a program

use std::error::Error;

use cold_journal::Journal;
use cold_model::pages::Runs;
use cold_probe::subject::ProbeTarget;
use cold_probe::verify::{Ground, Player};
use cold_sim::{LinuxVersion, Policy};
use cold_sys::page::page_size;
use cold_sys::procfs::ProcFs;
use serde_json::{Value, json};

const BYTES: [u64; 4] = [(4 << 20) + 100, 700 << 10, (40 << 10) + 1, 4096];

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, directory, seed, cases, operations] = args.as_slice() else {
        return Err("usage: page-cache DIRECTORY SEED CASES OPERATIONS".into());
    };
    let (seed, cases, operations): (u64, u64, u64) = (seed.parse()?, cases.parse()?, operations.parse()?);
    let state = std::path::Path::new(directory).join("journal");
    let target = ProbeTarget::Directory(directory.into());
    let ground = Ground::new(&target, &BYTES, &Journal::open_in(state))?;
    let release = ProcFs::default().sysctl("kernel.osrelease")?;
    let mut all = Vec::new();
    for case in 0..cases {
        for subject in &ground.subjects {
            subject.make_cold()?;
        }
        let workload = ground.workload(seed, case);
        all.push(one(&ground, workload.take(operations as usize))?);
    }
    let files = ground.files(Policy::Linux(LinuxVersion::of_release(release.trim())));
    let about = files.first().ok_or("no file")?;
    println!(
        "{}",
        json!({
            "kernel": release,
            "seed": seed,
            "operations": operations,
            "page_bytes": page_size(),
            "files": BYTES,
            "window_pages": about.window_pages,
            "io_pages": about.io_pages,
            "large_folios": about.large_folios,
            "cases": all,
        })
    );
    Ok(())
}

/// Of each operation: what came into the cache, what went, and what the touched mapping shows now; `null` where
/// nothing was looked at.
fn one(ground: &Ground, ops: impl Iterator<Item = cold_sim::op::Op>) -> Result<Value, Box<dyn Error>> {
    let mut player = Player::new(ground);
    let mut cached = vec![Runs::default(); ground.subjects.len()];
    let mut seen = Vec::new();
    for op in ops {
        player.play(&op)?;
        let Some(file) = player.file_of(&op) else {
            seen.push(Value::Null);
            continue;
        };
        let mapped = player.map_of(&op).map(|map| player.mapped(map)).transpose()?;
        let now = player.cached(file)?;
        let before = cached.get_mut(file.0 as usize).ok_or("no such file")?;
        let mapped = mapped.map_or(Value::Null, |runs| pairs(&runs));
        seen.push(json!([pairs(&now.minus(before)), pairs(&before.minus(&now)), mapped]));
        *before = now;
    }
    Ok(Value::Array(seen))
}

fn pairs(runs: &Runs) -> Value {
    runs.runs().iter().map(|run| json!([run.start, run.end])).collect()
}
