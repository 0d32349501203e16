//! Joins touches, fills, device reads and stalls of a recording, and explains a start.
//!
//! Pure: no I/O, no clock, no printing; the same recording gives the same answer on any machine. Start
//! reading at [`model`], which is what every report shows; [`analyze`] computes it.

pub mod model;

pub use model::Analysis;
