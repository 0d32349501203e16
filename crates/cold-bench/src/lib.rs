//! `cold bench` without its printing: making starts, judging them, computing with them.
//!
//! Never prints, exits or reads argv. Two halves: the *runner* (start reading at [`session`]; it uses
//! [`launch`], [`ready`], [`fileset`], [`counters`] and [`taint`]) turns a [`config::Config`] into a
//! [`cold_model::bench::Report`]. The *pure half* computes from that report on any machine: [`summary`]
//! (figures, by [`cold_stats`]), [`diagnose`] (words), [`gate`] (`--fail-if`), [`point`] (for histories), [`export`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml

pub mod baseline;
pub mod command;
pub mod config;
pub mod counters;
pub mod diagnose;
pub mod export;
pub mod fileset;
pub mod gate;
mod hooks;
pub mod launch;
mod lingering;
pub mod metric;
pub mod params;
pub mod point;
pub mod ready;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
pub mod session;
pub mod summary;
pub mod taint;

mod error;

pub use error::{Error, Result};
