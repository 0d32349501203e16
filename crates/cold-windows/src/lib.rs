//! Windows' own evidence of program starts, read on any system.
//!
//! Pure: it is handed bytes and gives back typed facts. Never opens a file or prints. Every input is untrusted:
//! each count, offset and size is held against the bytes that are left before anything is allocated, and damage is
//! an [`Error`], never a panic. Start reading at [`bytes::Input`]; event traces begin at [`etl::Trace`];
//! what they tell comes together in [`evidence::Evidence`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml

pub mod bytes;
mod error;
pub mod etl;
pub mod evidence;
pub mod filetime;
pub mod lz77;
pub mod lznt1;
pub mod pf;
mod recording;

pub mod text;
pub mod xpress;

pub use error::{Error, Result};
pub use recording::{recording, start_of};
