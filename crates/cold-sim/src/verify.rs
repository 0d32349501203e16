//! Which policy a kernel follows: operations to try on it, and what each policy says of them.
//!
//! Pure: somebody else does the operations ([`Workload`]) on a kernel and looks at what is cached and mapped after
//! each; a [`Follower`] says what a policy expected.

mod judge;
mod workload;

use cold_model::pages::Runs;

use crate::op::{Access, FileId, MapId, Op, PageCache, PageRead, Progress};
use crate::{Cache, Paging, Policy, SimFile};

pub use judge::{Difference, Seen, SeriesOutcome, What};
pub use workload::Workload;

/// Tries of one operation: each waits for a page, of which it has no more than this.
const TRIES: u64 = 1 << 24;

/// A policy that does the same operations as a kernel. Every read arrives at once.
pub struct Follower {
    policy: Policy,
    cache: Cache,
    reads: Vec<PageRead>,
}

impl Follower {
    /// With an empty cache.
    pub fn new(policy: Policy, paging: Paging, files: &[SimFile]) -> Self {
        Self { policy, cache: Cache::new(policy, paging, files), reads: Vec::new() }
    }

    /// The policy that it stands for.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Does an operation to its end; what was read for it.
    pub fn step(&mut self, op: &Op) -> &[PageRead] {
        let (mut progress, mut arrived) = (Progress::default(), 0);
        self.reads.clear();
        for _ in 0..TRIES {
            let access = self.cache.access(op, &mut progress, &mut self.reads);
            let new = self.reads.iter().skip(arrived);
            new.for_each(|read| self.cache.arrived(read));
            arrived = self.reads.len();
            if access == Access::Done {
                break;
            }
        }
        &self.reads
    }

    /// After a touch the kernel mapped others than the policy, but only of the pages that were read for it. Which
    /// pages fault-around finds depends on what has come when the fault is tried again: less than everything, where
    /// the page that was waited for came first; more than nothing, where a read-ahead that nobody waits for was
    /// quick. Then the policy goes on from there, and this is true.
    pub fn timing_alone(&mut self, op: &Op, map: MapId, more: &Runs, less: &Runs) -> bool {
        let asked = match *op {
            Op::Touch { page, .. } => Runs::one(page..page.saturating_add(1)),
            Op::Populate { first, pages, .. } => Runs::one(first..first.saturating_add(pages)),
            _ => return false,
        };
        let read = Runs::of(self.reads.iter().map(|r| r.first..r.first.saturating_add(r.pages)).collect());
        let others = |pages: &Runs| pages.minus(&asked) == *pages && pages.minus(&read).is_empty();
        let timing = others(more) && others(less);
        if timing {
            self.cache.correct_mapped(map, more, less);
        }
        timing
    }

    /// The cached pages of a file.
    pub fn cached(&self, file: FileId) -> Runs {
        self.cache.cached_pages(file)
    }

    /// The pages of the file that a mapping shows, without copies made by writes.
    pub fn mapped(&self, map: MapId) -> Runs {
        self.cache.mapped_pages(map)
    }
}
