//! Which plans a recorded start has shown to read in vain, and which are still to be looked at.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use cold_launch::{Held, Skip, Weather};
use cold_model::path_text;
use cold_plan::plan::Key;
use cold_sys::exec_watch::ExecWatch;

use super::{Entry, Inner, Young};
use crate::commands::service::history::{Check, Name};
use crate::commands::service::serve::{FollowedPlan, options};

/// Starts that are recorded to check one plan, at most: too much of a short one may have passed before its pages are seen.
const ATTEMPTS: u32 = 3;

/// By name, which plan was checked, or how often that was tried.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// None: nobody has asked the history yet, which then tells what came of lessons until then.
    known: Option<HashMap<Name, Known>>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    plan: u64,
    /// Starts that may still be recorded for it.
    left: u32,
}

impl Checks {
    /// Whether another start of this plan is to be recorded.
    fn wants(&mut self, name: &Name, plan: u64) -> bool {
        let known = self.known.get_or_insert_default().entry(name.clone());
        let known = known.or_insert(Known { plan, left: ATTEMPTS });
        if known.plan != plan {
            *known = Known { plan, left: ATTEMPTS };
        }
        known.left > 0
    }

    /// A start of it was recorded, whatever comes of that.
    pub(super) fn tried(&mut self, name: &Name) {
        if let Some(known) = self.known.as_mut().and_then(|known| known.get_mut(name)) {
            known.left = known.left.saturating_sub(1);
        }
    }

    fn is_checked(&mut self, name: Name, plan: u64) {
        if let Some(known) = self.known.as_mut() {
            known.insert(name, Known { plan, left: 0 });
        }
    }
}

impl Inner {
    pub(super) fn checks(&self) -> std::sync::MutexGuard<'_, Checks> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the history anew, of which something was deleted.
    pub(in crate::commands::service) fn forget_checks(&self) {
        self.checks().known = None;
    }

    /// A recorded start has shown what it needed of its plan.
    pub(in crate::commands::service) fn is_checked(&self, key: &Key, check: Check) {
        let name = Name::of(key);
        self.checks().is_checked(name.clone(), check.plan);
        self.shared.recorder.add(Entry::Checked { name, check });
    }

    /// The pages of this plan are in memory.
    pub(in crate::commands::service) fn is_cached(&self, held: &Held) -> bool {
        let mounts = Arc::clone(&self.shared.machine().mounts);
        let mut options = options();
        (options.guards.memory, options.guards.pressure) = (false, false);
        matches!(held.prospect(&mounts, Weather::default(), &options), Err(Skip::Warm))
    }

    /// The next starts of plans that were followed and never checked are recorded, where a recorder waits anyway.
    pub(super) fn look_at_followed(&self) {
        let followed = self.shared.take_followed();
        if followed.is_empty() {
            return;
        }
        if self.checks().known.is_none() {
            // Without a history each is checked once more.
            let rows = self.shared.recorder.rows().unwrap_or_default();
            let known =
                rows.into_iter().filter_map(|row| Some((row.name, Known { plan: row.check?.plan, left: 0 })));
            self.checks().known = Some(known.collect());
        }
        for FollowedPlan { name, plan, pid, at } in followed {
            if !self.checks().wants(&name, plan) {
                continue;
            }
            let files = ExecWatch::ids_of(&path_text::decode(&name.executable)).unwrap_or_default();
            self.candidates().is_to_be_checked(name);
            let young = files.iter().map(|file| Young { pid, at, file: *file, before: None });
            self.await_next(&files, young);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_checked_once_and_tried_three_times() {
        let name = |n: &str| Name { executable: n.to_owned(), script: None, scenario: "default".to_owned() };
        let mut checks = Checks::default();
        checks.tried(&name("a"));
        checks.is_checked(name("a"), 1);
        assert!(checks.known.is_none(), "the history is still to be asked");
        assert!(checks.wants(&name("a"), 1));
        for _ in 0..ATTEMPTS {
            assert!(checks.wants(&name("a"), 1));
            checks.tried(&name("a"));
        }
        assert!(!checks.wants(&name("a"), 1) && checks.wants(&name("a"), 2), "another plan");
        checks.is_checked(name("a"), 2);
        checks.is_checked(name("b"), 3);
        assert!(!checks.wants(&name("a"), 2) && !checks.wants(&name("b"), 3) && checks.wants(&name("b"), 4));
    }
}
