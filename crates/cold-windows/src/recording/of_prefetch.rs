//! The latest start that a prefetch file tells of, as a recording: which pages of which files it needed, without times.

use cold_model::recording::Recording;
use cold_model::recording::manifest::{Manifest, Subject};
use cold_model::recording::tables::{Began, Mapping, Process, Touch, TouchKind};
use cold_model::{Dev, Known, Nanos};

use super::{MOST_PAGES, PAGE, file, of_windows, pages};
use crate::filetime::{nanos_since_1970, rfc3339};
use crate::pf::{File, Page, Prefetch};

/// No file tells which process it was.
const PROCESS: u32 = 1;

/// Makes the recording. `tool` is the version of the program, `from` names the file for the notes.
pub fn start_of(p: &Prefetch, tool: &str, from: &str) -> Recording {
    let nowhere = Dev { major: 0, minor: 0 };
    let files = p.files.iter().enumerate().map(|(row, f)| file(row, nowhere, f.name.path()));
    // A launch's bucket is all that is told of the order, else that of the files and offsets.
    let mut used: Vec<(u32, u32, &Page)> = Vec::new();
    for (row, f) in p.files.iter().enumerate() {
        let latest = f.pages.iter().filter(|page| page.used & 1 == 1);
        used.extend(latest.map(|page| (page.phases.unwrap_or(0) & 7, row as u32, page)));
    }
    used.sort_by_key(|(phase, row, page)| (*phase, *row, page.offset));
    let touch = |(_, file, page): (u32, u32, &Page)| {
        let (first_page, pages) = pages(page.offset, PAGE);
        Touch {
            at: Nanos(0),
            pid: PROCESS,
            tid: PROCESS,
            file,
            first_page: first_page.min(MOST_PAGES),
            pages,
            kind: TouchKind::Fault,
            major: None,
            ip: None,
            stack: None,
            call: None,
            end: None,
        }
    };
    let process = Process {
        began: Nanos(0),
        how: Began::Fork,
        pid: PROCESS,
        parent: 0,
        name: p.executable.text(),
        executable: p.programs().next().map(|row| row as u32),
        arguments: None,
        in_tree: true,
        ended: None,
        status: None,
    };
    Recording {
        manifest: manifest(p, tool, from),
        processes: vec![process],
        files: files.collect(),
        touches: Some(used.into_iter().map(touch).collect()),
        mappings: Some(images(p)),
        ..Recording::default()
    }
}

/// The files of which pages were used as part of a program or library, as far as their pages are known. Where they were
/// mapped is not told.
fn images(p: &Prefetch) -> Vec<Mapping> {
    let image = |(row, f): (usize, &File)| {
        let end = f.pages.last()?.offset.saturating_add(PAGE).min(MOST_PAGES * PAGE);
        f.pages.iter().any(Page::image).then_some(Mapping {
            at: Nanos(0),
            pid: PROCESS,
            address: 0,
            bytes: end,
            offset: 0,
            file: row as u32,
            executable: true,
        })
    };
    p.files.iter().enumerate().filter_map(image).collect()
}

fn manifest(p: &Prefetch, tool: &str, from: &str) -> Manifest {
    let latest = p.run_times.first().copied().flatten();
    let ago = if p.boot { "the boot".to_owned() } else { p.executable.text() };
    Manifest {
        subject: Subject::Command,
        command: vec![p.executable.text().into()],
        started_at: latest.and_then(nanos_since_1970).and_then(rfc3339).unwrap_or_default(),
        ready: Some(Known::unknown("a prefetch file tells no times")),
        ready_means: "not told".to_owned(),
        notes: vec![
            format!("Imported from {from}: the latest launch of {ago}, of {} that were counted.", p.run_count),
            "A prefetch file tells which pages a launch used in its first seconds, already in memory or not. It tells no \
             times, no reads and no waits; files and directories of the file system itself are among the files."
                .to_owned(),
        ],
        ..of_windows(tool, &format!("Windows, prefetch files of version {}", p.version.number()), 0)
    }
}
