//! Who made a start ready. It need not be the first process: a daemon's child listens, a helper prints the marker.

use cold_model::path_text;
use cold_model::recording::Recording;
use cold_model::recording::manifest::{Awaited, ReachedBy};

use crate::usage::Window;

/// As the recording was told, or as its lookups tell where a file or a socket with a name is what was waited for: who
/// first made it. `None`: nobody knows, or the end of the whole tree is meant.
pub(super) fn by(recording: &Recording, window: Window) -> Option<ReachedBy> {
    let m = &recording.manifest;
    if !window.ready {
        return None;
    }
    if m.reached_by.is_some() || m.serving.is_some() {
        return m.reached_by;
    }
    let Awaited::Name(name) = m.awaited() else { return None };
    let path = m.directory.join(name);
    let is_it = |text: &str| path_text::decode(text) == path;
    let mut made = recording.lookups.iter().flatten().filter(|l| l.result >= 0 && l.at <= window.until);
    let first = made.find(|l| l.place().as_deref().is_some_and(is_it))?;
    Some(ReachedBy { pid: first.pid, tid: Some(first.tid) })
}
