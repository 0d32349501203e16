//! From which moment of a start to which is counted: `--until MARKER`, `--phase FROM..UNTIL`.

use cold_model::recording::Recording;
use cold_model::{Known, Nanos, path_text};

use super::quantity::execs;
use crate::context::Context;

/// The recording up to this marker, which takes the place of ready: `ready` itself, `end` (of the recording), `serving`
/// (it could be asked for the first time; where it was),
/// `exec:NAME` (the first exec of a program whose file has this name). An error lists those that there are.
pub fn until(recording: &Recording, marker: &str) -> Result<Recording, String> {
    let at = place(&markers(recording), marker)?;
    let mut out = recording.clone();
    out.manifest.ready = Some(Known::Value(at));
    if marker != "ready" {
        marker.clone_into(&mut out.manifest.ready_means);
    }
    Ok(out)
}

/// The recording from one marker (`start`, or one of those of [`until`]) to another: its figures are of what was used,
/// read and waited for between them. What was cached or mapped before stays so: a page that the phase touches again is
/// needed in it, and not read.
pub fn phase(recording: &Recording, from: &str, to: &str) -> Result<Recording, String> {
    let start = match from {
        "start" => recording.manifest.start,
        _ => place(&markers(recording), from)?,
    };
    let mut out = until(recording, to)?;
    let end = match out.manifest.ready {
        Some(Known::Value(end)) if end > start => end,
        _ => return Err(format!("{to} is not after {from}")),
    };
    out.manifest.start = start;
    out.manifest.ready = Some(Known::Value(end));
    out.manifest.ready_means = format!("{from}..{to}");
    Ok(out)
}

/// When a marker was passed.
fn place(known: &[(String, Nanos)], marker: &str) -> Result<Nanos, String> {
    known.iter().find(|(name, _)| name == marker).map(|(_, at)| *at).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
        format!("the recording has no marker {marker:?}; it has {}", names.join(", "))
    })
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
        let name = format!("exec:{}", path_text::base(&path));
        if !out.iter().any(|(known, _)| *known == name) {
            out.push((name, p.began.max(m.start)));
        }
    }
    out.extend(m.serving.map(|serving| ("serving".to_owned(), serving)));
    if let Some(Known::Value(ready)) = &m.ready {
        out.push(("ready".to_owned(), *ready));
    }
    out.push(("end".to_owned(), m.end));
    out.sort_by_key(|(_, at)| *at);
    out
}
