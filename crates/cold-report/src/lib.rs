//! Pictures of results: [`terminal`] plots, [`svg`] and self-contained [`html`] pages.
//!
//! Never measures, never opens a file: every function takes a report and returns text. Command lines
//! and paths are untrusted and pass through [`escape`]. Start reading at [`scene`], which decides what
//! is drawn where; the others only draw it.

pub mod axis;
pub mod escape;
pub mod firefox;
pub mod html;
pub mod perfetto;
pub mod scene;
pub mod svg;
pub mod terminal;
mod wording;
