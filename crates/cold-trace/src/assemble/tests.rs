//! Rules, on made-up raw events.

mod damage;
mod events;
mod files;
mod pages;
mod reach;
mod residency;
mod tasks;
mod waits;

use cold_model::Dev;
use cold_model::recording::{File, Recording, TouchKind};
use cold_model::{Bytes, Known};

use super::assemble;
use crate::blocks::{self, Fact};
use crate::machine::FilesNow;
use crate::unwind::InnermostOnly;
use events::*;

/// A machine whose files have these pages in the cache, by inode, in these folios, if it tells.
struct Cached(Vec<(u64, Vec<(u64, u64)>)>, Option<Vec<(u64, u64)>>);

impl FilesNow for Cached {
    fn resident(&mut self, file: &File) -> Option<Vec<(u64, u64)>> {
        self.0.iter().find(|(inode, _)| *inode == file.inode).map(|(_, runs)| runs.clone())
    }
    fn folios(&mut self, _: &File, _: &[u64]) -> Option<Vec<(u64, u64)>> {
        self.1.clone()
    }
    fn content(&mut self, _: &File) -> Option<cold_model::file::Content> {
        None
    }
}

/// A log of one block per event, after the facts.
fn log(facts: &[Fact], events: &[Vec<u8>]) -> Vec<(u16, Vec<u8>)> {
    let facts = facts.iter().map(|f| (blocks::FACT, serde_json::to_vec(f).expect("serializes")));
    facts.chain(events.iter().map(|e| (blocks::BPF, e.clone()))).collect()
}

/// Follows the supervisor 1 from time 0 in tier A, on a kernel whose faults map nothing that no event tells.
fn facts() -> Vec<Fact> {
    let mut manifest = cold_model::recording::Manifest {
        tier: cold_model::recording::manifest::Tier::A,
        page_bytes: 4096,
        fault_around: Known::Value(Bytes(4096)),
        ..Default::default()
    };
    manifest.machine.kernel = "6.12.0".to_owned();
    vec![Fact::Manifest(Box::new(manifest)), Fact::Follow { at: 0, pid: SUPERVISOR, itself: false }]
}

fn run(events: &[Vec<u8>]) -> Recording {
    run_on(events, Vec::new())
}

fn run_on(events: &[Vec<u8>], cached: Vec<(u64, Vec<(u64, u64)>)>) -> Recording {
    assemble(log(&facts(), events), &mut InnermostOnly, &mut Cached(cached, None))
}

/// Touches as (time, path, first page, pages, kind).
fn touches(r: &Recording) -> Vec<(u64, String, u64, u32, TouchKind)> {
    let rows = r.touches.as_ref().expect("a table").iter();
    rows.map(|t| (t.at.0, path(r, t.file), t.first_page, t.pages, t.kind)).collect()
}

fn path(r: &Recording, file: u32) -> String {
    r.files[file as usize].path.clone().unwrap_or_default()
}

fn dev(minor: u32) -> Dev {
    Dev { major: 8, minor }
}
