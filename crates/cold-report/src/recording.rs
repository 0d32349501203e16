//! Pictures of a recording: an interactive offline page ([`html`]) and the main picture for paper
//! ([`svg`]).
//!
//! Both start from `marks`: what was read and needed, as runs of pages that were used or not. The page
//! carries them as compressed columns and draws them itself (`web/*.js`), because a million points
//! as markup or JSON take tens of seconds to appear. Drawing is our own rather than a chart library's:
//! the libraries that draw a million points fast enough only do numeric axes, and three of the six
//! charts here have bands of files, rows of threads or boxes of functions instead.

use cold_analyze::Analysis;
use cold_model::layout::Layouts;
use cold_model::recording::Recording;

mod columns;
mod data;
pub mod html;
mod marks;
mod names;
pub mod svg;

/// One recording with all that is known about it.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// What to call it beside another one, usually its directory's name.
    pub name: &'a str,
    /// The raw facts.
    pub recording: &'a Recording,
    /// Sections and symbols of its files; may be empty.
    pub layouts: &'a Layouts,
    /// What was worked out from recording and layouts.
    pub analysis: &'a Analysis,
}

#[cfg(test)]
mod tests;
