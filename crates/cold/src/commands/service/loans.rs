//! Memory that was filled before anybody wanted it, and is given back where memory is wanted and nobody came for it.

use std::sync::Arc;

use cold_launch::{Brought, Wanted};
use cold_model::Nanos;
use cold_sys::procfs::Mount;
use cold_sys::time::monotonic;

use super::programs::{Planned, Program};

/// What was brought for one plan.
#[derive(Debug)]
struct Loan {
    /// The program's own number.
    program: u64,
    planned: Arc<Planned>,
    /// When it was begun to be brought.
    at: Nanos,
    brought: Brought,
}

/// All of them: one of each plan.
#[derive(Debug, Default)]
pub(crate) struct Loans {
    all: Vec<Loan>,
}

impl Loans {
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// These pages were brought for a plan of this program, from `at` on.
    pub(crate) fn add(&mut self, program: &Program, planned: &Arc<Planned>, at: Nanos, brought: Brought) {
        if brought.is_empty() {
            return;
        }
        let before = self.all.iter().position(|loan| loan.planned.held.key() == planned.held.key());
        let before = before.map(|at| self.all.swap_remove(at));
        let mut loan = Loan { program: program.number, planned: Arc::clone(planned), at, brought };
        // What a start has used is nobody's loan any more; another version of the plan numbers its files anew.
        if let Some(before) =
            before.filter(|before| Arc::ptr_eq(&before.planned, planned) && program.uses().last() < before.at)
        {
            loan.at = before.at;
            loan.brought.unite(before.brought);
        }
        self.all.push(loan);
    }

    /// Gives back until `lacking` bytes are free for it, or no more: first what is least worth keeping. Returns how many
    /// bytes went, and of how many plans.
    pub(crate) fn give_back(
        &mut self,
        lacking: u64,
        programs: &[Arc<Program>],
        mounts: &[Mount],
    ) -> (u64, u64) {
        let of = |loan: &Loan| programs.iter().find(|p| p.number == loan.program);
        let was_started_since = |program: &Program, at: Nanos| program.uses().last() >= at;
        self.all.retain(|loan| of(loan).is_none_or(|program| !was_started_since(program, loan.at)));
        let Some(first) = self.all.iter().map(|loan| loan.at).min() else { return (0, 0) };
        // Their starts may have used pages that were brought for others, such as those of a library.
        let mut wanted = Wanted::default();
        for program in programs.iter().filter(|program| was_started_since(program, first)) {
            // A plan that cannot be read is not followed either.
            program.plans.iter().for_each(|planned| drop(planned.whole().want(&mut wanted)));
        }
        let now = monotonic();
        let worth = |loan: &Loan| of(loan).map_or(0.0, |program| program.candidate(now).worth());
        // The last is given back first.
        self.all.sort_by(|a, b| worth(b).total_cmp(&worth(a)));
        let (mut bytes, mut plans) = (0, 0);
        while bytes < lacking
            && let Some(loan) = self.all.pop()
        {
            let went = loan.planned.whole().give_back(&loan.brought, &wanted, mounts).unwrap_or(0);
            bytes += went;
            plans += u64::from(went > 0);
        }
        (bytes, plans)
    }
}
