//! A smaller or larger read-around window.

use cold_model::{Bytes, Nanos};

use super::{Facts, few, worth};
use crate::model::Suggestion;
use crate::simulate::{ReadAround, Simulated, read_around};

/// Largest difference between the model of the present window and what was recorded.
const TRUSTED: f64 = 0.25;
/// From here on a window is not a choice but an accident.
const HUGE: Bytes = Bytes(1 << 20);

pub(super) fn rule(f: &Facts<'_, '_>) -> Option<Suggestion> {
    let model = read_around(f.cx.recording, &f.cx.usage, f.cost.as_ref())?;
    let apart = model.present.bytes.0.abs_diff(model.recorded.0) as f64;
    if apart > TRUSTED * model.recorded.0.max(1) as f64 {
        return None;
    }
    let now = model.present.waits?;
    let best = model.others.iter().min_by_key(|s| (s.waits, s.bytes))?;
    let saved = worth(f, now.saturating_sub(best.waits?))?;
    Some(suggestion(f, &model, best, saved))
}

fn suggestion(f: &Facts<'_, '_>, model: &ReadAround, best: &Simulated, saved: Nanos) -> Suggestion {
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
            format!("{}: {} in {} requests, {waits}", s.window.unwrap_or_default(), s.bytes, s.requests)
        })
        .collect();
    let bound = if model.exact {
        ""
    } else {
        "; faults were not exact (record with --exact-need), so every page mapped around one counts as needed"
    };
    let larger = new > old;
    Suggestion {
        id: id.to_string(),
        what: format!("Set read_ahead_kb of the device to {} instead of {}.", new.0 >> 10, old.0 >> 10),
        why: format!(
            "Faults read {} with the present window; windows of {}.",
            model.recorded,
            table.join("; ")
        ),
        saves_bytes: (!larger).then(|| model.present.bytes.saturating_sub(best.bytes)).filter(|b| b.0 > 0),
        saves_requests: Some(model.present.requests.saturating_sub(best.requests)).filter(|n| *n > 0),
        saves_time: Some(saved),
        estimate: format!(
            "replay of this start's faults with each window, timed by a line through its requests; the replay \
             of the present window reads {} where {} was recorded{bound}; buffered reads and other programs \
             feel the setting too and are not modelled",
            model.present.bytes, model.recorded
        ),
        files: few(f.files.iter().filter(|x| x.unused.0 > 0).map(|x| x.file)),
    }
}
