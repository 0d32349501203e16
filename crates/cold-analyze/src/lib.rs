//! Joins touches, fills, device reads and stalls of a recording, and explains a start.
//!
//! Pure: no I/O, no clock, no printing; the same recording gives the same answer on any machine. Start
//! reading at [`model`], which is what every report shows; [`analyze`] computes it, [`compare`] sets two
//! beside each other, [`timeline`] gives the series that pictures draw.

mod advice;
mod checks;
mod compare;
mod context;
pub mod cost;
mod files;
mod headline;
mod join;
mod misses;
pub mod model;
pub mod pages;
mod sections;
pub mod simulate;
mod stacks;
mod story;
mod symbols;
pub mod timeline;
mod usage;
pub mod waits;

pub use compare::compare;
pub use join::stall_requests;
pub use model::{Analysis, compare::Comparison};
pub use stacks::stack_in_words;
pub use story::{Search, calls, searches, short_name, story, story_title};
pub use symbols::symbol_at;
pub use usage::{Usage, Window, page_bytes, replay};

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
    let suggestions = advice::suggestions(&cx, &headline, &files, &hardly_needed, &misses);
    Analysis {
        headline,
        hardly_needed,
        sections,
        symbols: symbols::symbols(&cx),
        misses,
        stacks: stacks::stacks(&cx),
        suggestions,
        checks: checks::checks(&cx),
        files,
    }
}

#[cfg(test)]
mod tests;
