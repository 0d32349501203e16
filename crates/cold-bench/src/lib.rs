//! `cold bench` without its printing: making starts, judging them, computing with them.
//!
//! Never prints, exits or reads argv. Two halves: the *runner* ([`session`] is where to start reading;
//! it uses [`launch`], [`ready`], [`counters`] and [`taint`]) turns a [`config::Config`] into a
//! [`cold_model::bench::Report`]; the pure half ([`stats`]) computes from that report.

pub mod command;
pub mod config;
pub mod counters;
pub mod fileset;
mod hooks;
pub mod launch;
pub mod ready;
pub mod session;
pub mod stats;
pub mod taint;

mod error;

pub use error::{Error, Result};
