//! Measures devices and ways of access.
//!
//! Does I/O on purpose and says what it cost; never prints, decides nothing. Start reading at [`device`].

pub mod device;
