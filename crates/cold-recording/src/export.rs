//! A recording in other clothes. Its own form, Parquet, is made by [`crate::write()`] into any directory.

pub mod csv;
pub mod json;

#[cfg(test)]
mod tests;
