//! Joins touches, fills, device reads and stalls of a recording, and explains a start.
//!
//! Pure: no I/O, no clock, no printing; the same recording gives the same answer on any machine. Start
//! reading at [`model`], which is what every report shows; [`analyze`] computes it, [`compare`] sets two
//! beside each other.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml

mod advice;
pub mod budget;
mod checks;
pub mod clock;
mod compare;
mod context;
pub mod cost;
mod data;
mod files;
mod first_entries;
mod headline;
mod in_front;
mod join;
mod misses;
pub mod model;
mod packages;
pub mod page_map;
pub mod reasons;
mod sections;
pub mod simulate;
mod stacks;
mod steps;
mod story;
mod symbols;
mod usage;
pub mod waits;
mod whole_reads;

pub use compare::compare;
pub use join::stall_requests;
pub use model::{Analysis, compare::Comparison};
pub use stacks::stack_in_words;
pub use story::{Reason, Search, Topic, calls_in_words, searches, short_name, story, story_title};
pub use symbols::symbol_at;
pub use usage::{Usage, Window, replay, replay_within};

use cold_model::layout::Layouts;
use cold_model::recording::Recording;

use context::Context;

/// Everything the reports say about one recording.
pub fn analyze(recording: &Recording, layouts: &Layouts) -> Analysis {
    let cx = Context::new(recording, layouts);
    let mut files = files::files(&cx);
    let hardly_needed = files::hardly_needed(&cx, &mut files);
    let headline = headline::headline(&cx, &files);
    let misses = misses::misses(&cx);
    let sections = sections::sections(&cx);
    let in_front = in_front::in_front(&cx);
    let whole_reads = whole_reads::whole_reads(&cx, &files);
    let packages = packages::packages(&cx, &files);
    let first_entries = first_entries::first_entries(&cx);
    let found = advice::Found {
        headline: &headline,
        files: &files,
        hardly_needed: &hardly_needed,
        misses: &misses,
        in_front: in_front.as_ref(),
        whole_reads: &whole_reads,
        packages: &packages,
        first_entries: &first_entries,
    };
    let suggestions = advice::suggestions(&cx, found);
    Analysis {
        headline,
        hardly_needed,
        sections,
        symbols: symbols::symbols(&cx),
        first_entries,
        data: data::data(&cx),
        misses,
        in_front,
        whole_reads,
        packages,
        stacks: stacks::stacks(&cx),
        suggestions,
        checks: checks::checks(&cx),
        files,
        usage: cx.usage,
    }
}

#[cfg(test)]
mod tests;
