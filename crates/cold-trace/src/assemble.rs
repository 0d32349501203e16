//! From a raw log to a recording. Pure: the same log gives the same recording on any machine, apart from
//! what the unwinder reads.
//!
//! The log is read whole, its events are put in order of time (each CPU writes its own, so they arrive
//! out of order), files are identified first, then one pass in order of time fills the tables. Nothing in
//! a log is trusted: it may be cut off, damaged or made up. Start reading at [`assemble`]; the rules are
//! in `causes` (why was a page filled, what did a task wait for), `pages` (what counts as needed) and
//! `files` (who is who).

mod builder;
mod calls;
mod causes;
mod files;
mod history;
mod index;
mod input;
mod mounts;
mod off_cpu;
mod pages;
mod reach;
mod requests;
mod residency;
mod side_band;
mod space;
mod stacks;
mod tasks;
mod unused;

pub use space::{Area, Space};

use cold_model::recording::manifest::{FORMAT, Tier, VERSION};
use cold_model::recording::{Manifest, Recording};
use cold_model::{Bytes, Nanos};

use crate::machine::FilesNow;
use crate::unwind::Unwinder;
use builder::Builder;
use input::Input;

/// Pages of this size where a log does not say.
const PAGE: u32 = 4096;

/// Makes a recording of the blocks of a log (see [`crate::blocks`]).
///
/// `machine` answers for the files as they are now: sizes, and which pages are cached, which cuts the
/// windows of fault-around to what can have been mapped.
pub fn assemble(
    log: impl IntoIterator<Item = (u16, Vec<u8>)>,
    unwinder: &mut dyn Unwinder,
    machine: &mut dyn FilesNow,
) -> Recording {
    let input = Input::read(log);
    let manifest = manifest(&input);
    let mut builder = Builder::new(&input, &manifest);
    for event in input.events() {
        builder.event(&event, unwinder);
    }
    builder.finish(manifest, machine)
}

/// The last manifest of the log, completed by what the log itself tells.
fn manifest(input: &Input) -> Manifest {
    let mut manifest = input.manifest.clone().unwrap_or_else(|| Manifest {
        tier: if input.has_bpf { Tier::B } else { Tier::D },
        notes: vec!["the log holds no manifest: tier and circumstances are guessed".to_owned()],
        ..Manifest::default()
    });
    FORMAT.clone_into(&mut manifest.format);
    manifest.version = VERSION;
    if !manifest.page_bytes.is_power_of_two() || manifest.page_bytes < 512 {
        manifest.page_bytes = PAGE;
    }
    for (class, count) in &input.lost {
        let lost = manifest.lost.entry(class.clone()).or_default();
        *lost = (*lost).max(*count);
    }
    manifest.notes.extend(input.notes.iter().cloned());
    if input.damaged > 0 {
        manifest
            .notes
            .push(format!("{} blocks or records of the log could not be understood", input.damaged));
    }
    manifest.cost.events = input.len() as u64;
    manifest.cost.bytes = Bytes(input.bytes());
    if manifest.end < manifest.start || manifest.end == Nanos(0) {
        manifest.end = Nanos(input.last().unwrap_or(0)).max(manifest.start);
    }
    manifest
}

#[cfg(test)]
mod tests;
