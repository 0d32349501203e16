//! The order of a program's functions: what functions a file has, in which order starts entered them, and what a
//! linker is told to place them in that order. And the order of its files' blocks on a disk ([`blocks`]).
//!
//! Pure: it is handed bytes and gives back tables and text. Never opens a file, traces or prints. Every file is
//! untrusted: counts and names are bounded, damage is an [`Error`] or a shorter table, never a panic. Start reading
//! at [`functions::Functions`], then [`merge`], [`resolve`], [`scenario`],
//! [`write`](mod@write), [`verify`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml

pub mod advice;
pub mod blocks;
mod error;
pub mod functions;
pub mod gain;
pub mod merge;
pub mod place;
pub mod predict;
pub mod read;
pub mod resolve;
#[cfg(test)]
mod sample;
pub mod scenario;
pub mod traced;
pub mod verify;
pub mod write;

pub use error::Error;
