//! A recording on disk: written crash-safe, read, validated, exported as tables.
