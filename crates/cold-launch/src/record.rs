//! The history of a plan's starts: what this one adds to it, and whether this one is a control.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use cold_plan::Judgement;
use cold_plan::format::{StandingView, View};
use cold_plan::history::{self, LaunchKind, Mark, Record};
use cold_plan::plan::Standing;

use crate::engine::Tally;
use crate::load::PlanPlace;
use crate::options::Skip;

/// What a start adds to the history; `None` where that is nothing about the plan.
pub(crate) fn kind_of(skip: &Skip) -> Option<LaunchKind> {
    Some(LaunchKind::Skipped(match skip {
        Skip::Warm => history::Skip::Warm,
        Skip::Memory { .. } => history::Skip::Memory,
        Skip::Busy(_) => history::Skip::DiskBusy,
        Skip::Off(_) => history::Skip::Disabled,
        _ => return None,
    }))
}

/// What is entered of a start by the plan of this number ([`View::id`]) that was seen now.
pub(crate) fn record(plan: u64, kind: LaunchKind, mark: Option<Mark>, done: Option<(Tally, bool)>) -> Record {
    let (tally, finished) = done.unwrap_or((Tally::default(), true));
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Record {
        when_ns: since.as_nanos() as u64,
        plan,
        kind,
        mark,
        bytes: tally.bytes,
        requests: tally.calls,
        late: mark.is_some() && !finished,
    }
}

/// Appends a record and returns it, and whether the history could take it. In a helper: a write may wait for a disk.
pub(crate) fn append(
    path: &Path,
    plan: u64,
    kind: LaunchKind,
    mark: Option<Mark>,
    done: Option<(Tally, bool)>,
) -> (Record, bool) {
    let record = record(plan, kind, mark, done);
    let entered = history::append(path, &record).is_ok();
    (record, entered)
}

/// Adds the mark to a record that was appended before. In a helper, too.
pub(crate) fn add_mark(path: &Path, record: &Record, mark: Mark) {
    // As for the record itself.
    let _ = history::append_mark(path, &Record { mark: Some(mark), ..*record });
}

/// What the history of this plan says of it; `None` where it cannot be read.
pub(crate) fn judge(place: &PlanPlace, view: View<'_>) -> Option<Judgement> {
    let records = history::read(&place.history).ok()?;
    let standing = if view.standing() == StandingView::Proven { Standing::Proven } else { Standing::Untried };
    Some(cold_plan::judge(&standing, &view.learnt(), view.trial().as_ref(), &records))
}

/// Whether this cold start is every `every`-th one, counted in the history. Where the count begins follows
/// from the plan, so that not all plans have their controls at once. A history that cannot be read has none.
pub(crate) fn is_control(path: &Path, view: View<'_>, every: u32) -> bool {
    if every == 0 {
        return false;
    }
    let key = view.key();
    let name = [key.executable.as_os_str().as_encoded_bytes(), key.scenario.as_bytes()];
    let first = cold_model::hash::fnv1a64(&name) % u64::from(every);
    let is_eligible = |r: &&Record| matches!(r.kind, LaunchKind::Prefetched | LaunchKind::Control);
    let Ok(records) = history::read(path) else { return false };
    let eligible = records.iter().filter(is_eligible).count() as u64;
    eligible % u64::from(every) == first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_third_cold_start_is_a_control_whatever_lies_between() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("x.log");
        let bytes = cold_plan::format::encode(&cold_plan::sample::sample()).expect("a plan");
        let view = View::parse(&bytes).expect("parses");
        let mut controls = Vec::new();
        for n in 0..12 {
            let control = is_control(&path, view, 3);
            controls.push(control);
            let kind = if control { LaunchKind::Control } else { LaunchKind::Prefetched };
            append(&path, view.id(), kind, None, None);
            if n % 2 == 0 {
                append(&path, view.id(), LaunchKind::Skipped(history::Skip::Warm), None, None);
            }
        }
        assert_eq!(controls.iter().filter(|c| **c).count(), 4, "{controls:?}");
        assert!(controls.chunks(3).all(|c| c == &controls[..3]), "{controls:?}");
        assert!(!is_control(&path, view, 0));
    }
}
