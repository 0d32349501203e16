//! A smaller or larger read-around window.

use cold_model::figures::plural;
use cold_model::recording::StallCause;
use cold_model::{Bytes, Nanos};

use super::{Facts, few, worth};
use crate::faults::{ReadAround, Simulated, read_around};
use crate::model::Suggestion;

/// Largest difference between the model of the present window and what was recorded.
const TRUSTED: f64 = 0.25;
/// Part of the bytes from which on fewer are worth a word where time stays the same.
const FEWER: f64 = 0.75;
/// Fewer bytes saved are not.
const LEAST: Bytes = Bytes(1 << 20);
/// From here on a window is not a choice but an accident.
const HUGE: Bytes = Bytes(1 << 20);

pub(super) fn rule(f: &Facts<'_, '_>) -> Option<Suggestion> {
    let model = read_around(f.cx.recording, &f.cx.usage, f.cost.as_ref())?;
    let apart = model.present.bytes.0.abs_diff(model.recorded.0) as f64;
    if apart > TRUSTED * model.recorded.0.max(1) as f64 {
        return None;
    }
    let now = model.present.waits?;
    let waited = f.waited(|w| w.stall.cause == StallCause::Fault);
    let best = model.others.iter().min_by_key(|s| (s.waits, s.bytes))?;
    // It may promise no more than the same part of what faults really waited, and nothing that is less
    // than its own error.
    let part = (waited.0 as f64 / now.0.max(1) as f64).min(1.0);
    let saved = Nanos((now.saturating_sub(best.waits?).0 as f64 * part) as u64);
    if let Some(saved) = worth(f, saved).filter(|saved| saved.0 > now.0.abs_diff(waited.0)) {
        return Some(suggestion(f, &model, best, Some(saved), waited));
    }
    let as_fast = |s: &&Simulated| s.waits.is_some_and(|w| w.0 <= now.0 + now.0 / 50);
    let thrifty = |s: &&Simulated| s.bytes.0 as f64 <= FEWER * model.present.bytes.0 as f64;
    let fewest = model.others.iter().filter(as_fast).filter(thrifty).min_by_key(|s| s.bytes)?;
    let enough = model.present.bytes.saturating_sub(fewest.bytes) >= LEAST;
    enough.then(|| suggestion(f, &model, fewest, None, waited))
}

fn suggestion(
    f: &Facts<'_, '_>,
    model: &ReadAround,
    best: &Simulated,
    saved: Option<Nanos>,
    waited: Nanos,
) -> Suggestion {
    let (old, new) = (model.present_window, best.window.unwrap_or_default());
    let id = match () {
        () if old >= HUGE && new < old => "huge_read_ahead",
        () if new < old => "smaller_read_around",
        () => "larger_read_around",
    };
    let table: Vec<String> = model
        .others
        .iter()
        .map(|s| {
            let waits = s.waits.unwrap_or_default();
            format!(
                "{}: {} in {}, {waits}",
                s.window.unwrap_or_default(),
                s.bytes,
                plural(s.requests, "request")
            )
        })
        .collect();
    let bound = if model.exact {
        ""
    } else {
        "; faults were not exact (record with --exact-need), so every page mapped around one counts as needed"
    };
    let larger = new > old;
    let time = if saved.is_some() { "" } else { "; no time is promised: a change within the replay's error" };
    Suggestion {
        id: id.to_string(),
        what: format!("Set read_ahead_kb of the device to {} instead of {}.", new.0 >> 10, old.0 >> 10),
        why: format!(
            "Replayed, its faults read {} in {} with the present window, and {} in {} with {}.",
            model.present.bytes,
            plural(model.present.requests, "request"),
            best.bytes,
            plural(best.requests, "request"),
            best.window.unwrap_or_default(),
        ),
        saves_bytes: (!larger).then(|| model.present.bytes.saturating_sub(best.bytes)).filter(|b| b.0 > 0),
        saves_requests: Some(model.present.requests.saturating_sub(best.requests)).filter(|n| *n > 0),
        saves_time: saved,
        estimate: format!(
            "replay of this start's faults with each window, timed by a line through its requests; the replay \
             of the present window reads {} where {} was recorded, and waits {} where faults waited {waited}\
             {bound}{time}; buffered reads and other programs feel the setting too and are not modelled. Windows of {}",
            model.present.bytes,
            model.recorded,
            model.present.waits.unwrap_or_default(),
            table.join("; ")
        ),
        files: few(f.files.iter().filter(|x| x.unused.0 > 0).map(|x| x.file)),
    }
}
