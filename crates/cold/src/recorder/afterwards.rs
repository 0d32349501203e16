//! What is looked up when the start is over: what files are called now, and the build-ids of programs and
//! libraries, by which their symbols are found later, elsewhere.

mod names;

use std::collections::BTreeSet;
use std::path::PathBuf;

use cold_model::recording::manifest::Subject;
use cold_model::recording::{File, FileIdx, FileKind, Recording};

/// Completes the files of a recording that was just made here.
pub(super) fn add(recording: &mut Recording) {
    if lives_here(recording) {
        let began = recording.manifest.started_at.parse::<jiff::Timestamp>().ok();
        let began = began.and_then(|at| i64::try_from(at.as_nanosecond()).ok());
        names::look_up(&mut recording.files, began);
    }
    build_ids(recording);
}

/// Whether the names of the recording are ours: a process in a container has its own. One that has ended
/// meanwhile cannot be asked.
fn lives_here(recording: &Recording) -> bool {
    match recording.manifest.subject {
        Subject::Command => true,
        Subject::Process { pid } => same_mounts(pid) == Some(true),
        Subject::Machine => false,
    }
}

/// Whether a process sees the same mounts as this one; `None`: it cannot be told.
pub(super) fn same_mounts(pid: u32) -> Option<bool> {
    let namespace = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    Some(namespace("self")? == namespace(&pid.to_string())?)
}

/// Notes the build-id of each file that was mapped or executed and still is the recorded one.
fn build_ids(recording: &mut Recording) {
    let mapped = recording.mappings.iter().flatten().map(|m| m.file);
    let executed = recording.processes.iter().filter_map(|p| p.executable);
    let programs: BTreeSet<FileIdx> = mapped.chain(executed).collect();
    for index in programs {
        let Some(file) = recording.files.get_mut(index as usize) else { continue };
        if file.build_id.is_none()
            && let Some(path) = still_there(file)
        {
            // What is no ELF file, or cannot be read, has none.
            file.build_id = cold_symbols::build_id(&path).ok().flatten();
        }
    }
}

/// Its path, if the file there is the one that was recorded.
fn still_there(file: &File) -> Option<PathBuf> {
    let path = file.place().filter(|_| file.kind == FileKind::Regular && !file.deleted)?;
    let meta = std::fs::metadata(&path).ok()?;
    file.is_still(&meta).then_some(path)
}
