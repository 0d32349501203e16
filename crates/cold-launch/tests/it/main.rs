//! The launcher as a program: what it leaves of the started program's world, and what a plan can do to it.
#![allow(clippy::panic)]

mod hostile;
mod misfit;
mod own;
mod plain;
mod replay;
mod root;
mod world;
