//! What lies where in the files of a recording, and what the frames of its stacks are called.
//!
//! [`layouts`] reads the ELF files that a recording names, provided they still are the recorded ones,
//! and only what the recording needs of them: symbols on pages that occur, names of frames that occur.
//! [`needs`] is what a program asks the dynamic loader for, [`functions()`] where its functions begin, [`debug_search`]
//! where a separate debug file would lie.
//! [`unwind::Unwinder`] turns a copied stack into a list of addresses. Every file is untrusted: counts
//! and reads are bounded, damage is an [`Error`] or an entry in `Layouts::missing`, never a panic.
//!
//! Never downloads anything: separate debug files are taken from this machine or not at all.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml

mod debug_file;
mod demangle;
mod dynamic;
mod elf;
mod error;
mod functions;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod identity;
mod layout;
mod lines;
mod linkage;
mod occurs;
pub mod unwind;

pub use debug_file::{DebugSearch, Unfit, debug_search};
pub use dynamic::{Needs, needs};
pub use elf::{build_id, sections};
pub use error::Error;
pub use functions::functions;
pub use layout::{Options, layouts};
pub use linkage::linkage;
