//! What the tests of all crates stand on: the slow test disk with its log of block requests,
//! programs with known behaviour, fake `/proc` and `/sys` trees.
//!
//! For tests only; never shipped, and no product crate may depend on it outside its tests.

mod need;

pub use need::{need, need_root};
