//! The launcher as a program: what it leaves of the started program's world, and what a plan can do to it.
#![allow(clippy::panic)]

mod controls;
mod descriptors;
// Registers are the machine's own.
#[cfg(target_arch = "x86_64")]
mod faults;
mod hostile;
mod limits;
mod misfit;
mod own;
mod plain;
mod replay;
mod root;
mod servers;
mod subject;
mod warmth;
mod world;
mod wrappers;
