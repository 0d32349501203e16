//! The read-ahead of the disks below a start's files, changed for that start alone: journalled, and put back.

use std::fs::OpenOptions;
use std::path::PathBuf;

use cold_journal::{Guard, Journal};
use cold_model::Shown as _;
use cold_model::bench::State;
use cold_model::{Bytes, Dev};
use cold_sys::sysfs::SysFs;

use crate::Result;
use crate::fileset::BlockDevices;

/// A device whose read-ahead was changed for the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The whole device.
    pub dev: Dev,
    /// Its `read_ahead_kb` before, in bytes; `None`: not known.
    pub usual: Option<Bytes>,
}

/// Where a whole disk tells its read-ahead, and is told it.
fn knob(disk: Dev) -> PathBuf {
    PathBuf::from(format!("/sys/dev/block/{disk}/queue/read_ahead_kb"))
}

/// Whether the read-ahead of these whole disks could be set from here; nothing is changed. An error says why not.
pub fn may_be_set(disks: impl IntoIterator<Item = Dev>) -> std::result::Result<(), String> {
    let mut why = "no disk is known whose read-ahead could be set".to_owned();
    for disk in disks {
        let path = knob(disk);
        // Opening does nothing yet; only a write would.
        match OpenOptions::new().write(true).open(&path) {
            Ok(_) => return Ok(()),
            Err(e) => why = format!("{} cannot be written: {e}", path.shown()),
        }
    }
    Err(why)
}

/// Sets `read_ahead_kb` of all these devices. Each change is added to `guards`, which undo it; an error says why one
/// could not be made.
pub(super) fn set(
    journal: &Journal,
    devices: &BlockDevices,
    window: Bytes,
    guards: &mut Vec<Guard>,
) -> std::result::Result<Vec<Changed>, String> {
    if let Some((kind, path)) = devices.without.first() {
        return Err(format!("{} lies on {kind}, whose read-ahead cannot be set here", path.shown()));
    }
    let mut changed: Vec<Changed> = Vec::new();
    for dev in &devices.devices {
        let sys = SysFs::default();
        let found = sys.block_device(*dev).map_err(|e| e.to_string())?;
        let usual = found.as_ref().and_then(|d| d.read_ahead_kb).map(|kib| Bytes(kib.saturating_mul(1024)));
        let whole = found.and_then(|d| d.disk_dev).unwrap_or(*dev);
        if changed.iter().any(|c| c.dev == whole) {
            continue;
        }
        let set = journal.set(&knob(whole), &(window.0 >> 10).to_string());
        guards.push(set.map_err(|e| format!("read-ahead cannot be set: {e}"))?);
        changed.push(Changed { dev: whole, usual });
    }
    if changed.is_empty() {
        return Err("no device is known whose read-ahead could be set".into());
    }
    Ok(changed)
}

/// Puts everything back, newest first.
pub(super) fn restore(mut guards: Vec<Guard>) -> Result<()> {
    let mut result = Ok(());
    while let Some(guard) = guards.pop() {
        result = result.and(guard.undo().map(drop).map_err(Into::into));
    }
    result
}

/// What a state asks of the disks, until it is put back. Dropped, it is put back too.
pub(super) struct Window {
    /// In the order in which they were made.
    guards: Vec<Guard>,
    /// Why the state has not what it asks for.
    not_set: Option<String>,
}

impl Window {
    /// Sets what this state asks for; most ask for nothing. Never fails: what could not be set is said.
    pub(super) fn of(state: &State, journal: &Journal, devices: &BlockDevices) -> Self {
        let State::ReadAhead(window) = state else { return Self { guards: Vec::new(), not_set: None } };
        let mut guards = Vec::new();
        let not_set = set(journal, devices, *window, &mut guards).err();
        Self { guards, not_set }
    }

    /// Puts it back; why the start had not what its state asks for.
    pub(super) fn restore(mut self) -> Result<Option<String>> {
        restore(std::mem::take(&mut self.guards))?;
        Ok(self.not_set.take())
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        while self.guards.pop().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_states_ask_for_nothing_and_what_cannot_be_set_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(dir.path().join("journal"));
        let devices = BlockDevices { devices: [Dev::new(4095, 77)].into(), ..BlockDevices::default() };
        for state in [State::Cold, State::Warm, State::Prefetched] {
            assert_eq!(Window::of(&state, &journal, &devices).restore().unwrap(), None, "{state}");
        }
        assert!(!journal.directory().exists(), "nothing was journalled");
        let why = Window::of(&State::ReadAhead(Bytes(128 << 10)), &journal, &devices).restore().unwrap();
        let why = why.expect("there is no such device");
        assert!(why.starts_with("read-ahead cannot be set: ") && why.contains("4095:77"), "{why}");
    }
}
