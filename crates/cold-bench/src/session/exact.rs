//! Making touches exact: for one start the kernel maps, or reads, nothing around a fault.
//!
//! A mapped fault maps up to 16 cached neighbours with it (`fault_around_bytes`), which then never fault.
//! With a window of one page each page's first touch is a fault of its own. Where debugfs is not to be
//! had, and where a fault maps large folios whole whatever the window, read-ahead is turned off on the
//! devices instead: then only needed pages are in the cache, so only needed pages can be mapped around. Both
//! are machine-wide, journalled, and put back.

use cold_journal::{Guard, Journal};
use cold_model::Shown as _;
use cold_model::kernel::faults_map_whole_folios;
use cold_model::{Bytes, Known};
use cold_sys::kernelfs;
use cold_sys::open::held;
use cold_sys::page::page_size;
use cold_sys::procfs::ProcFs;

use super::read_ahead::{self, Changed};
use crate::Result;
use crate::fileset::{BlockDevices, FileSet};

/// Where the kernel's window lies in debugfs.
const FAULT_AROUND: &str = "fault_around_bytes";

/// Whether touches were exact, and by which means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExactNeed {
    /// It was not asked for: the kernel maps and reads neighbours as usual.
    NotAsked,
    /// Faults mapped one page each.
    FaultAround,
    /// Nothing was read ahead or around on these devices (names), so in a cold start only needed pages
    /// could be mapped around.
    ReadAhead {
        /// Devices whose read-ahead was off, with what was put back.
        devices: Vec<Changed>,
        /// Why not by fault-around.
        why: String,
    },
    /// It could not be had; why.
    Not(String),
}

/// The settings, until they are put back.
pub(super) struct Exactness {
    how: ExactNeed,
    /// In the order in which they were made.
    guards: Vec<Guard>,
}

impl Exactness {
    /// Changes what can be changed. Never fails: what could not be reached is said.
    /// `files` are those of the start, still cached from observing it.
    pub(super) fn reach(
        wanted: bool,
        journal: &Journal,
        proc: &ProcFs,
        files: Option<&FileSet>,
        devices: &BlockDevices,
    ) -> Self {
        if !wanted {
            return Self { how: ExactNeed::NotAsked, guards: Vec::new() };
        }
        let mut guards = Vec::new();
        let why = match fault_around(journal, &mut guards) {
            Ok(()) => match maps_whole_folios(proc, files) {
                None => return Self { how: ExactNeed::FaultAround, guards },
                // The window stays at one page; small folios come from reading nothing ahead.
                Some(why) => why,
            },
            Err(why) => {
                drop_newest_first(&mut guards);
                why
            }
        };
        match read_ahead::set(journal, devices, Bytes(0), &mut guards) {
            Ok(devices) => Self { how: ExactNeed::ReadAhead { devices, why }, guards },
            Err(also) => {
                drop_newest_first(&mut guards);
                Self { how: ExactNeed::Not(format!("{why}; {also}")), guards }
            }
        }
    }

    /// Puts everything back, newest first.
    pub(super) fn restore(self) -> (ExactNeed, Result<()>) {
        (self.how, read_ahead::restore(self.guards))
    }
}

/// Files that are tried, at most.
const TRIED: usize = 64;

/// Whether a fault maps large folios whole with a window of one page, and how that is known; `None`: it does
/// not. The kernel is asked with the files of the start; where none of them has a large folio, its version
/// must do: since 6.18 (`finish_fault`) a fault maps all of its folio, and unknown kernels are taken for new
/// ones.
fn maps_whole_folios(proc: &ProcFs, files: Option<&FileSet>) -> Option<String> {
    let mut only_the_page = false;
    for file in files.into_iter().flat_map(|set| &set.files).filter(|f| f.size > page_size()).take(TRIED) {
        let Ok((open, meta)) = cold_sys::open::regular(&file.path, false) else { continue };
        match cold_sys::folio::maps_whole_folios(&open, &meta, page_size()) {
            Ok(Some(true)) => {
                return Some(format!("a fault maps whole large folios, as in {}", file.path.shown()));
            }
            Ok(Some(false)) => only_the_page = true,
            Ok(None) | Err(_) => {}
        }
    }
    let release = proc.kernel_release();
    (!only_the_page && faults_map_whole_folios(&release)).then(|| {
        format!(
            "Linux {release} maps whole large folios on a fault (since 6.18; no file here had one to try)"
        )
    })
}

/// A guard undoes its change when it is dropped; newest first, as everywhere.
fn drop_newest_first(guards: &mut Vec<Guard>) {
    while guards.pop().is_some() {}
}

/// The kernel's fault-around window as it is now, where debugfs can be read (mounted or, by root, without that).
pub fn window(proc: &ProcFs) -> Known<Bytes> {
    let root = match kernelfs::DEBUGFS.root(proc) {
        Ok(root) => root,
        Err(e) => return Known::unknown(format!("debugfs is not mounted ({e})")),
    };
    let path = held(&root).join(FAULT_AROUND);
    match std::fs::read_to_string(path).map(|t| t.trim().parse().map(Bytes)) {
        Ok(Ok(bytes)) => Known::Value(bytes),
        Ok(Err(_)) => Known::unknown(format!("{FAULT_AROUND} in debugfs is no number")),
        Err(e) => Known::unknown(format!("{FAULT_AROUND} in debugfs: {e}")),
    }
}

fn fault_around(journal: &Journal, guards: &mut Vec<Guard>) -> std::result::Result<(), String> {
    let set = journal.set_kernel(&kernelfs::DEBUGFS, FAULT_AROUND.as_ref(), &page_size().to_string());
    guards.push(set.map_err(|e| format!("the fault-around window cannot be set: {e}"))?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cold_model::Dev;

    use super::*;

    fn journal(dir: &Path) -> Journal {
        Journal::open_in(dir.join("journal"))
    }

    #[test]
    fn what_was_not_asked_for_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal(dir.path());
        let devices = BlockDevices { devices: [Dev::new(8, 0)].into(), ..BlockDevices::default() };
        let exact = Exactness::reach(false, &journal, &ProcFs::new(dir.path()), None, &devices);
        assert!(exact.guards.is_empty());
        let (how, restored) = exact.restore();
        assert_eq!(how, ExactNeed::NotAsked);
        restored.unwrap();
        assert!(!journal.directory().exists(), "nothing was journalled");
    }

    #[test]
    fn read_ahead_is_left_alone_where_it_cannot_be_turned_off_everywhere() {
        let dir = tempfile::tempdir().unwrap();
        let mut guards = Vec::new();
        let mut why = |devices: BlockDevices| {
            read_ahead::set(&journal(dir.path()), &devices, Bytes(0), &mut guards).unwrap_err()
        };
        assert_eq!(why(BlockDevices::default()), "no device is known whose read-ahead could be set");
        // One file of many on a network: its read-ahead would map neighbours all the same.
        let mixed = BlockDevices {
            devices: [Dev::new(8, 0)].into(),
            without: vec![("nfs".into(), "/mnt/lib.so".into())],
        };
        assert_eq!(why(mixed), "/mnt/lib.so lies on nfs, whose read-ahead cannot be set here");
        let gone = BlockDevices { devices: [Dev::new(4095, 77)].into(), ..BlockDevices::default() };
        let why = why(gone);
        assert!(why.starts_with("read-ahead cannot be set: ") && why.contains("4095:77"), "{why}");
        assert!(guards.is_empty());
    }

    #[test]
    fn a_kernel_that_no_file_can_tell_about_is_judged_by_its_version() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("sys/kernel")).unwrap();
        for (release, whole) in
            [("6.12.9-amd64", false), ("6.17.0", false), ("6.18.0-rc1", true), ("7.0.0", true)]
        {
            std::fs::write(dir.path().join("sys/kernel/osrelease"), format!("{release}\n")).unwrap();
            let why = maps_whole_folios(&ProcFs::new(dir.path()), None);
            assert_eq!(why.is_some(), whole, "{release}: {why:?}");
            assert!(why.is_none_or(|why| why.contains(release)));
        }
    }
}
