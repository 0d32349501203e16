//! Perf events: what tiers C and D are made of, and the mappings of all tiers.

pub mod record;
pub mod recorder;
