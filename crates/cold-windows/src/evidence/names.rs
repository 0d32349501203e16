//! Names of files: one row per file however it is spelt, by drive letter where the trace tells it.

use std::collections::HashMap;

use super::FileId;

/// What the system's own directory is called.
const ROOT: &str = "\\SystemRoot\\";

/// `\Device\HarddiskVolume2\Windows\a.dll` as it is shown: with `/`, and by drive where `drives` has its volume.
/// Each of `drives` is a path by device and one by drive, both with their last `\`.
pub(super) fn shown(path: &str, drives: &[(String, String)]) -> String {
    let by_drive = drives.iter().find_map(|(device, drive)| {
        let head = path.get(..device.len())?;
        head.eq_ignore_ascii_case(device).then(|| format!("{drive}{}", &path[device.len()..]))
    });
    let on_boot = || {
        // Images on the system's own volume are told without any: `\Windows\System32\ntdll.dll`.
        let beside = |known: &str| path.get(..known.len()).is_some_and(|p| p.eq_ignore_ascii_case(known));
        let bare =
            path.starts_with('\\') && !["\\Device\\", "\\??\\", "\\\\", ROOT].iter().any(|k| beside(k));
        let (_, root) = drives.iter().find(|(device, _)| bare && device.eq_ignore_ascii_case(ROOT))?;
        let drive = root.split_once('\\')?.0;
        drive.ends_with(':').then(|| format!("{drive}{path}"))
    };
    by_drive.or_else(on_boot).as_deref().unwrap_or(path).replace('\\', "/")
}

/// Files by name.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// As they were spelt first.
    names: Vec<String>,
    by_key: HashMap<String, FileId>,
}

impl Names {
    /// The file of this name. NTFS compares names without regard to case.
    pub(super) fn file(&mut self, name: &str) -> FileId {
        let key = name.to_uppercase();
        *self.by_key.entry(key).or_insert_with(|| {
            self.names.push(name.to_owned());
            self.names.len() as FileId - 1
        })
    }

    /// All names by drive; the second is each old row's new one.
    pub(super) fn by_drive(self, drives: &[(String, String)]) -> (Vec<String>, Vec<FileId>) {
        let mut out = Self::default();
        let rows = self.names.iter().map(|name| out.file(&shown(name, drives))).collect();
        (out.names, rows)
    }
}
