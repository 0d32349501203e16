//! Measures devices and ways of access.
