//! The testbed itself under test.

mod disk;
mod fake;
mod faults;
mod subject;
