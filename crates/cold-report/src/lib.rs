//! Pictures of results: [`terminal`] plots, [`svg`] and self-contained [`html`] pages of a benchmark,
//! and a page and a picture of a [`recording`].
//!
//! [`probe`] draws the charts of experiments.
//! A start under other settings ([`simulate`]) has curves, a table and pictures of pages.
//! A series of starts ([`spawn`]) has its own picture and page.
//!
//! A recording is also written for two viewers: [`perfetto`] and [`firefox`].
//!
//! Never measures, never opens a file: every function takes a report and returns text. Command lines
//! and paths are untrusted and pass through [`escape`]. Start reading at [`scene`], which decides what
//! is drawn where; the others only draw it.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml

pub mod axis;
mod chart;
pub mod diagnosis;
pub mod escape;
pub mod firefox;
pub mod history;
pub mod html;
mod page;
pub mod perfetto;
pub mod plan;
pub mod probe;
pub mod recording;
pub mod scene;
pub mod simulate;
pub mod spawn;
pub mod svg;
pub mod terminal;
mod wording;
