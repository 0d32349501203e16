//! The testbed itself under test.

mod disk;
mod fake;
mod subject;
