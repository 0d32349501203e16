//! Made-up traces for tests.

use cold_model::Nanos;
use cold_model::bench::Ending;
use cold_model::order::{FirstEntry, Repeat, StartFacts, Trace, TracedFile};

/// A trace with one repeat per list of (file, function).
pub(crate) fn trace(scenario: &str, files: Vec<TracedFile>, repeats: &[&[(u32, u32)]]) -> Trace {
    let facts = StartFacts {
        ending: Ending::Code(0),
        processes: 1,
        threads: 0,
        duration_ns: 0,
        planted: 0,
        reading_ns: 0,
        planting_ns: 0,
        stops: 0,
        handling_ns: 0,
        crashes: Vec::new(),
        notes: Vec::new(),
        written: None,
    };
    let entry = |(file, function): &(u32, u32)| FirstEntry {
        at: Nanos(0),
        pid: 1,
        tid: 1,
        file: *file,
        function: *function,
    };
    let repeat =
        |list: &&[(u32, u32)]| Repeat { entries: list.iter().map(entry).collect(), facts: facts.clone() };
    Trace {
        scenario: scenario.to_owned(),
        files,
        repeats: repeats.iter().map(repeat).collect(),
        ..Trace::default()
    }
}
