//! Conditions on figures (`--fail-if`): the grammar, the answers, and what CI systems read of them.
//!
//! Pure, and without a subject: what can stand on the left side of a condition is the business of who has the
//! figures, `cold_bench::gate` for benchmarks and `cold_analyze::budget` for recordings. Both write
//!
//! ```text
//! LEFT OP LIMIT
//! OP    = '>' | '>=' | '<' | '<='
//! LIMIT = ['+'] NUMBER [ns|us|µs|ms|s | B|KiB|MiB|GiB|KB|MB|GB | 'x']
//! ```
//! `x` is how many times a reference's figure, `+` by how much more than it. Start reading at [`condition`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml

pub mod answer;
pub mod condition;
pub mod junit;
pub mod markdown;
mod point;
pub mod scan;
mod unit;

pub use answer::{Asked, Culprit, Culprits, GateResult, New, News, Outcome, PathText, overall};
pub use condition::{Against, Condition, Observed, Op};
pub use point::{Figure, Point};
pub use scan::{Scanner, SyntaxError};
pub use unit::Unit;
