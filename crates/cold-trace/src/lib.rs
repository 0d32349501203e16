//! Live recorders: BPF tracepoints and the perf-event fallback.

#[cfg(feature = "bpf")]
pub mod bpf;
pub mod raw;
