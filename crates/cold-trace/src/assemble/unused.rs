//! Files that no row of any table names. Pure.
//!
//! The programs tell every file they meet; of some that is the last that is heard (the directory that a
//! lookup began from is in its path already). A reader would take their rows for files of the start.

use cold_model::recording::{FileIdx, Recording};

/// Drops them, and numbers the others anew.
pub(super) fn drop_files(r: &mut Recording) {
    let mut named = vec![false; r.files.len()];
    each_name(r, |file| {
        if let Some(named) = named.get_mut(*file as usize) {
            *named = true;
        }
    });
    let mut next = 0;
    let place: Vec<FileIdx> = named
        .iter()
        .map(|named| {
            next += FileIdx::from(*named);
            next.saturating_sub(1)
        })
        .collect();
    let mut kept = named.iter();
    r.files.retain(|_| kept.next().is_some_and(|named| *named));
    each_name(r, |file| *file = place.get(*file as usize).copied().unwrap_or(*file));
}

/// All places where a recording names a file.
fn each_name(r: &mut Recording, mut f: impl FnMut(&mut FileIdx)) {
    let Recording {
        manifest: _,
        processes,
        threads: _,
        files: _,
        touches,
        fills,
        evictions,
        residency,
        readahead,
        advice,
        device_reads: _,
        transfers,
        stalls,
        off_cpu: _,
        lookups,
        mappings,
        stacks,
    } = r;
    processes.iter_mut().filter_map(|p| p.executable.as_mut()).for_each(&mut f);
    touches.iter_mut().flatten().map(|t| &mut t.file).for_each(&mut f);
    fills.iter_mut().flatten().map(|t| &mut t.file).for_each(&mut f);
    evictions.iter_mut().flatten().map(|e| &mut e.file).for_each(&mut f);
    residency.iter_mut().flatten().map(|r| &mut r.file).for_each(&mut f);
    readahead.iter_mut().flatten().map(|r| &mut r.file).for_each(&mut f);
    advice.iter_mut().flatten().filter_map(|a| a.file.as_mut()).for_each(&mut f);
    transfers.iter_mut().flatten().filter_map(|t| t.file.as_mut()).for_each(&mut f);
    stalls.iter_mut().flatten().filter_map(|s| s.file.as_mut()).for_each(&mut f);
    lookups.iter_mut().flatten().filter_map(|l| l.file.as_mut()).for_each(&mut f);
    mappings.iter_mut().flatten().map(|m| &mut m.file).for_each(&mut f);
    let frames = stacks.iter_mut().flatten().flat_map(|s| &mut s.frames);
    frames.filter_map(|frame| frame.file.as_mut()).for_each(&mut f);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cold_model::recording::{Eviction, File};

    use super::*;

    /// Every table as text, with the path of each file behind its number, and those numbers left out.
    fn by_path(r: &Recording) -> BTreeMap<String, Vec<String>> {
        let dir = tempfile::tempdir().unwrap();
        cold_recording::export::csv::write(dir.path(), r).unwrap();
        let mut out = BTreeMap::new();
        for entry in std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path()) {
            let text = std::fs::read_to_string(&entry).unwrap();
            let head: Vec<&str> = text.lines().next().unwrap().split(',').collect();
            let number =
                |n: &usize| head.get(n + 1).is_some_and(|next| *next == format!("{}_path", head[*n]));
            let numbers: Vec<usize> = (0..head.len()).filter(number).collect();
            let row = |line: &str| -> String {
                let fields = line.split(',').enumerate().filter(|(n, _)| !numbers.contains(n));
                fields.map(|(_, field)| field).collect::<Vec<_>>().join(",")
            };
            let name = entry.file_stem().unwrap().to_string_lossy().into_owned();
            out.insert(name, text.lines().map(row).collect());
        }
        out
    }

    /// A recording with something in every table; its paths and arguments hold no comma.
    fn sample() -> Recording {
        let mut r = cold_recording::sample::firefox_like(3_000, 5);
        r.processes.iter_mut().for_each(|p| p.arguments = None);
        let evicted = Eviction { at: r.manifest.end, file: 9, first_page: 0, pages: 1 };
        r.evictions.get_or_insert_default().push(evicted);
        assert!(r.counts().iter().all(|(_, rows)| *rows > 0), "{:?}", r.counts());
        r
    }

    #[test]
    fn what_nobody_names_goes_and_everything_else_stays_what_it_was() {
        let mut whole = sample();
        drop_files(&mut whole);
        let before = by_path(&whole);
        assert!(before.values().filter(|rows| rows[0].contains("_path")).count() >= 11);
        // The same with strangers before, between and behind.
        let mut more = whole.clone();
        for at in [0, 7, whole.files.len() + 2] {
            more.files.insert(at, File { path: Some("/x".into()), ..whole.files[0].clone() });
            each_name(&mut more, |file| *file += u32::from(*file as usize >= at));
        }
        // No table was forgotten: each still has its paths.
        let other_tables = |mut tables: BTreeMap<String, Vec<String>>| {
            tables.remove("files").expect("a table");
            tables
        };
        assert_ne!(by_path(&more), before);
        assert_eq!(other_tables(by_path(&more)), other_tables(before));
        drop_files(&mut more);
        assert_eq!(more, whole);
    }
}
