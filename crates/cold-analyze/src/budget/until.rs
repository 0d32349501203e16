//! Up to which moment of a start is counted: `--until MARKER`.

use cold_model::recording::Recording;
use cold_model::{Known, Nanos};

use super::quantity::execs;
use crate::context::Context;

/// The recording up to this marker, which takes the place of ready: `ready` itself, `end` (of the recording),
/// `exec:NAME` (the first exec of a program whose file has this name). An error lists those that there are.
pub fn until(recording: &Recording, marker: &str) -> Result<Recording, String> {
    let known = markers(recording);
    let at = known.iter().find(|(name, _)| name == marker).map(|(_, at)| *at).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
        format!("the recording has no marker {marker:?}; it has {}", names.join(", "))
    })?;
    let mut out = recording.clone();
    out.manifest.ready = Some(Known::Value(at));
    if marker != "ready" {
        marker.clone_into(&mut out.manifest.ready_means);
    }
    Ok(out)
}

/// All markers of a recording in the order of time.
pub fn markers(recording: &Recording) -> Vec<(String, Nanos)> {
    let m = &recording.manifest;
    let mut whole = recording.clone();
    whole.manifest.ready = None;
    let layouts = cold_model::layout::Layouts::default();
    let cx = Context::new(&whole, &layouts);
    let mut out: Vec<(String, Nanos)> = Vec::new();
    for p in execs(&cx) {
        let path = p.executable.map_or_else(|| p.name.clone(), |file| cx.path(file));
        let name = format!("exec:{}", path.rsplit('/').next().unwrap_or(&path));
        if !out.iter().any(|(known, _)| *known == name) {
            out.push((name, p.began.max(m.start)));
        }
    }
    if let Some(Known::Value(ready)) = &m.ready {
        out.push(("ready".to_owned(), *ready));
    }
    out.push(("end".to_owned(), m.end));
    out.sort_by_key(|(_, at)| *at);
    out
}
