//! A recording of one file: what touches a virtual machine's memory file, say. Pure.

use std::collections::HashMap;

use cold_model::recording::{FileIdx, Recording, RequestIdx, Transfer};

/// Leaves out all that does not concern the file of this path (as [`cold_model::path_text`] writes it).
///
/// Processes and threads stay: they are who touched it. The times without a CPU go as a whole, since a part of them
/// explains nothing, and so do stacks, which name many files. A file that was deleted and made again under its name is
/// two rows, and both stay.
pub fn keep(recording: &mut Recording, path: &str) {
    let rows = recording.files.iter().enumerate();
    let kept = rows.filter(|(_, f)| f.path.as_deref() == Some(path)).map(|(row, _)| row as FileIdx);
    let places: HashMap<FileIdx, FileIdx> = kept.zip(0..).collect();
    let (place, r) = (|file: FileIdx| places.get(&file).copied(), recording);
    let mut row = 0;
    r.files.retain(|_| {
        row += 1;
        places.contains_key(&(row - 1))
    });
    for p in &mut r.processes {
        p.executable = p.executable.and_then(place);
    }
    rows_of(&mut r.touches, |t| {
        t.stack = None;
        place(t.file).map(|file| t.file = file).is_some()
    });
    rows_of(&mut r.fills, |f| place(f.file).map(|file| f.file = file).is_some());
    rows_of(&mut r.evictions, |e| place(e.file).map(|file| e.file = file).is_some());
    rows_of(&mut r.residency, |c| place(c.file).map(|file| c.file = file).is_some());
    rows_of(&mut r.readahead, |a| place(a.file).map(|file| a.file = file).is_some());
    rows_of(&mut r.mappings, |m| place(m.file).map(|file| m.file = file).is_some());
    rows_of(&mut r.advice, |a| moved(&mut a.file, place));
    rows_of(&mut r.stalls, |s| {
        (s.stack, s.lookup) = (None, None);
        moved(&mut s.file, place)
    });
    rows_of(&mut r.lookups, |l| {
        (l.stack, l.root) = (None, None);
        moved(&mut l.file, place)
    });
    requests(r, place);
    r.off_cpu = None;
    r.stacks = None;
    r.manifest.notes.push(if r.files.is_empty() {
        format!("only {path} was to be recorded, and nothing touched it")
    } else {
        format!("only what concerns {path} was recorded: counts and times are of this file alone")
    });
}

/// Keeps the rows of a table that was recorded.
fn rows_of<T>(table: &mut Option<Vec<T>>, keeps: impl FnMut(&mut T) -> bool) {
    if let Some(rows) = table {
        rows.retain_mut(keeps);
    }
}

/// The file's new row, where it stays.
fn moved(file: &mut Option<FileIdx>, place: impl Fn(FileIdx) -> Option<FileIdx>) -> bool {
    *file = file.and_then(place);
    file.is_some()
}

/// Requests that brought pages of the file, with what else they brought left out.
fn requests(r: &mut Recording, place: impl Fn(FileIdx) -> Option<FileIdx>) {
    rows_of(&mut r.transfers, |t: &mut Transfer| moved(&mut t.file, &place));
    let mut numbers: HashMap<RequestIdx, RequestIdx> = HashMap::new();
    for t in r.transfers.iter().flatten() {
        numbers.insert(t.request, 0);
    }
    let (mut old, mut new) = (0, 0);
    rows_of(&mut r.device_reads, |read| {
        let number = numbers.get_mut(&old);
        old += 1;
        let Some(number) = number else { return false };
        *number = new;
        new += 1;
        read.file = read.file.and_then(&place);
        true
    });
    for t in r.transfers.iter_mut().flatten() {
        t.request = numbers.get(&t.request).copied().unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use cold_model::recording::{Manifest, Touch, TouchKind};

    use super::*;

    /// The sample of the recording format, in which every table has rows of several files.
    fn sample() -> Recording {
        cold_recording::sample::small()
    }

    #[test]
    fn every_row_that_stays_is_of_the_file_and_none_of_its_rows_is_lost() {
        let whole = sample();
        for (row, file) in whole.files.iter().enumerate() {
            let Some(path) = &file.path else { continue };
            let of = |f: FileIdx| f as usize == row;
            let mut kept = whole.clone();
            keep(&mut kept, path);
            assert_eq!(kept.files, std::slice::from_ref(file));
            let touches: Vec<Touch> =
                whole.touches.iter().flatten().filter(|t| of(t.file)).copied().collect();
            let was = |t: &Touch| Touch { file: 0, stack: None, ..*t };
            assert_eq!(kept.touches, Some(touches.iter().map(was).collect()), "{path}");
            let transfers = |r: &Recording, of: &dyn Fn(FileIdx) -> bool| {
                let rows = r.transfers.iter().flatten().filter(|t| t.file.is_some_and(of));
                let request = |t: &Transfer| {
                    let read = r.device_reads.iter().flatten().nth(t.request as usize).expect("its request");
                    (read.queued, read.sector, t.first_page, t.pages)
                };
                rows.map(request).collect::<Vec<_>>()
            };
            assert_eq!(transfers(&kept, &|f| f == 0), transfers(&whole, &of), "{path}");
            assert_eq!(kept.transfers.iter().flatten().count(), transfers(&whole, &of).len());
            let stalls = whole.stalls.iter().flatten().filter(|s| s.file.is_some_and(of)).count();
            assert_eq!(kept.stalls.iter().flatten().count(), stalls);
            assert!(kept.stalls.iter().flatten().all(|s| s.file == Some(0) && s.lookup.is_none()));
            assert_eq!((kept.off_cpu, kept.stacks), (None, None), "a part of them explains nothing");
            assert_eq!(kept.processes.len(), whole.processes.len(), "who touched it");
            assert!(kept.manifest.notes.last().is_some_and(|n| n.contains("only what concerns")));
        }
    }

    #[test]
    fn what_nobody_touched_leaves_empty_tables_and_says_so_and_missing_tables_stay_missing() {
        let mut kept = sample();
        keep(&mut kept, "/no/such/file");
        assert_eq!((kept.files.len(), kept.touches.as_deref()), (0, Some(&[][..])));
        assert!(kept.manifest.notes.last().is_some_and(|n| n.ends_with("nothing touched it")));
        let touch = Touch { kind: TouchKind::Read, ..sample().touches.expect("touches")[0] };
        let manifest = Manifest::default();
        let mut tier_c = Recording { manifest, touches: Some(vec![touch]), ..Recording::default() };
        keep(&mut tier_c, "/no/such/file");
        assert_eq!((tier_c.fills, tier_c.device_reads), (None, None));
    }
}
