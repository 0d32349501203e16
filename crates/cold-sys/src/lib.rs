//! Kernel interfaces as safe functions.
//!
//! Holds mechanism, never policy: nothing here decides whether a run counts, what to evict or what to
//! print. The only crate (beside the tracer's loader) that contains `unsafe`; each block says why it
//! is sound. Every reader of `/proc` and `/sys` takes a root directory, so tests build fake trees.
//! Start reading at [`procfs`] and [`open`].
#![allow(unsafe_code)] // this crate owns kernel access; `undocumented_unsafe_blocks` is denied.

pub mod loopdev;
pub mod mount;
pub mod open;
pub mod page;
pub mod pidfd;
pub mod procfs;

mod error;

pub use error::{Error, Result};
