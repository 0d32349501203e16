//! Traces of first entries that belong to the files of a recording.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cold_model::layout::{Traced, TracedScenario};
use cold_model::order::{Trace, TracedFile};
use cold_model::pages::Runs;
use cold_model::recording::{FileIdx, Recording};

use crate::merge;

/// Per file of `recording` the first entries that `traces` tell of the same build: one with the same build-id. Traces
/// come with the directories that hold them, in the order in which they count; files without a build-id are left out,
/// because nothing says that they are the same.
pub fn of_recording(recording: &Recording, traces: &[(PathBuf, Trace)]) -> BTreeMap<FileIdx, Traced> {
    let mut found: BTreeMap<FileIdx, Traced> = BTreeMap::new();
    for (row, index) in recording.files.iter().zip(0..) {
        let Some(build) = &row.build_id else { continue };
        for (from, trace) in traces {
            let same = trace.files.iter().zip(0_u32..).filter(|(f, _)| f.build_id.as_ref() == Some(build));
            for (file, n) in same.filter(|(f, _)| !f.functions.is_empty()) {
                let traced = found
                    .entry(index)
                    .or_insert_with(|| Traced { file: file.clone(), scenarios: Vec::new() });
                let entered = entered(trace, n, file, &traced.file);
                if !entered.is_empty() {
                    traced.scenarios.push(TracedScenario {
                        name: trace.scenario.clone(),
                        command: trace.command.clone(),
                        from: from.clone(),
                        entered,
                        written: written(trace, n),
                    });
                }
            }
        }
    }
    found.retain(|_, traced| !traced.scenarios.is_empty());
    found
}

/// What all repeats of `trace` enter of its file number `n`, as functions of `target`: the same build, whose table may
/// come of another trace.
fn entered(trace: &Trace, n: u32, file: &TracedFile, target: &TracedFile) -> Vec<u32> {
    let place = |function: u32| {
        let address = file.functions.get(function as usize)?.address;
        let at = target.functions.binary_search_by_key(&address, |f| f.address).ok()?;
        u32::try_from(at).ok()
    };
    merge::entered(trace, n).into_iter().filter_map(place).collect()
}

/// Pages of file number `n` that any repeat wrote to; `None` where no repeat tells.
fn written(trace: &Trace, n: u32) -> Option<Runs> {
    let told: Vec<_> = trace.repeats.iter().filter_map(|r| r.facts.written.as_ref()).collect();
    let of_it = told.iter().copied().flatten().filter(|w| w.file == n).flat_map(|w| &w.pages);
    let runs = of_it.map(|(first, pages)| *first..first.saturating_add(*pages)).collect();
    (!told.is_empty()).then(|| Runs::of(runs))
}

#[cfg(test)]
mod tests {
    use cold_model::order::{Function, Written};
    use cold_model::sample::empty;

    use super::*;
    use crate::sample;

    fn file(build_id: &str, addresses: &[u64]) -> TracedFile {
        let one = |address: &u64| Function { address: *address, bytes: 16, names: vec![], sources: vec![] };
        TracedFile {
            path: "/p".into(),
            build_id: Some(build_id.to_owned()),
            linked: cold_model::order::Linked::Pie,
            is_go: false,
            texts: vec![],
            functions: addresses.iter().map(one).collect(),
        }
    }

    /// Each of its repeats wrote to pages of file 1.
    fn trace(scenario: &str, files: Vec<TracedFile>, repeats: &[&[(u32, u32)]]) -> Trace {
        let mut trace = sample::trace(scenario, files, repeats);
        for repeat in &mut trace.repeats {
            repeat.facts.written = Some(vec![Written { file: 1, pages: vec![(8, 2), (20, 1)] }]);
        }
        trace
    }

    #[test]
    fn traces_are_joined_by_build_and_their_functions_by_address() {
        let mut recording = empty();
        for (path, build) in [("/other", "22"), ("/p", "11"), ("/none", "")] {
            let at = recording.file(path, 4096);
            recording.files[at as usize].build_id = (!build.is_empty()).then(|| build.to_owned());
        }
        let first = trace(
            "a",
            vec![file("33", &[1]), file("11", &[16, 32, 64])],
            &[&[(1, 2), (0, 0), (1, 0)], &[(1, 1)]],
        );
        // The same build, with a table that knows one function less.
        let second = trace("b", vec![file("11", &[32, 64, 99])], &[&[(0, 0), (0, 2), (0, 1)]]);
        let traces = [(PathBuf::from("a.order"), first), (PathBuf::from("b.order"), second)];
        let found = of_recording(&recording, &traces);
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [1]);
        let entered: Vec<&[u32]> = found[&1].scenarios.iter().map(|s| s.entered.as_slice()).collect();
        assert_eq!(entered, [&[2, 0, 1][..], &[1, 2]], "address 99 is no function of the first table");
        let written: Vec<_> = found[&1].scenarios.iter().map(|s| s.written.clone().unwrap()).collect();
        assert_eq!(written, [Runs::of(vec![8..10, 20..21]), Runs::default()], "of the file itself");
        assert!(of_recording(&recording, &[]).is_empty());
    }
}
