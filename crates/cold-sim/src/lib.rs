//! A start as a model: what a page cache reads under a policy, and when a disk delivers it. The same recorded
//! accesses give requests, bytes and time under another read-around, another disk or a plan.
//!
//! Never does I/O, never looks at a clock, and gives the same result for the same input on any machine.
//!
//! Start reading at [`op`]: what programs do, and what a page cache answers; then [`Cache`], the page cache, and
//! [`Policy`], what it reads; then [`mod@disk`] and [`engine`], when it comes.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml

pub mod disk;
pub mod engine;
pub mod op;
pub mod oracle;
pub mod paused;
pub mod spread;
pub mod tails;
pub mod verify;

mod cache;
mod cached;
mod linux;
mod lru;
mod mapping;
mod names;
mod policy;
mod sparse;

pub use cache::{Cache, Paging, SimFile};
pub use linux::LinuxVersion;
pub use names::Names;
pub use policy::{Placed, Policy};
