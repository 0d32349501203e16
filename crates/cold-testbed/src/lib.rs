//! What the tests of all crates stand on: the slow test disk with its log of block requests,
//! programs with known behaviour, fake `/proc` and `/sys` trees, faults at single system calls.
//!
//! For tests only; never shipped, and no product crate may depend on it outside its tests. Start
//! reading at [`disk::SlowDisk`], [`subject`] and [`need_root`]; docs/testbed.md shows how to use them.

pub mod disk;
pub mod faults;

mod fake;
mod need;
mod programs;
mod readers;
mod wait;
pub mod ways;

pub use disk::SlowDisk;
pub use fake::FakeTree;
pub use need::{need, need_root};
pub use programs::{executable, launcher, subject};
pub use readers::beside_readers;
pub use wait::{PATIENCE, attempts, until};
