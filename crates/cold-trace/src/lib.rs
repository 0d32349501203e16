//! Live recorders: BPF tracepoints and the perf-event fallback.

pub mod raw;
