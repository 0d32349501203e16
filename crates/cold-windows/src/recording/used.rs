//! A trace names every file that was open anywhere; a recording holds those that its tables name.

use cold_model::recording::{FileIdx, Recording};

/// Leaves out the files that no row names.
pub(super) fn only(recording: &mut Recording) {
    let mut used = vec![false; recording.files.len()];
    each(recording, |file| {
        if let Some(slot) = used.get_mut(*file as usize) {
            *slot = true;
        }
    });
    let mut next = 0;
    let rows: Vec<FileIdx> = used
        .iter()
        .map(|used| {
            let row = next;
            next += FileIdx::from(*used);
            row
        })
        .collect();
    each(recording, |file| *file = rows.get(*file as usize).copied().unwrap_or(*file));
    let mut used = used.into_iter();
    recording.files.retain(|_| used.next().unwrap_or(false));
}

/// Every reference to a file that an imported recording has.
fn each(recording: &mut Recording, mut on: impl FnMut(&mut FileIdx)) {
    recording.processes.iter_mut().filter_map(|r| r.executable.as_mut()).for_each(&mut on);
    recording.mappings.iter_mut().flatten().map(|r| &mut r.file).for_each(&mut on);
    recording.touches.iter_mut().flatten().map(|r| &mut r.file).for_each(&mut on);
    recording.fills.iter_mut().flatten().map(|r| &mut r.file).for_each(&mut on);
    recording.stalls.iter_mut().flatten().filter_map(|r| r.file.as_mut()).for_each(&mut on);
    recording.device_reads.iter_mut().flatten().filter_map(|r| r.file.as_mut()).for_each(&mut on);
    recording.transfers.iter_mut().flatten().filter_map(|r| r.file.as_mut()).for_each(&mut on);
}
