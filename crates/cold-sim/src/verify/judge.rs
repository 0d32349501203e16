//! What a kernel has, compared with what a policy expected.

use cold_model::pages::Runs;

use super::Follower;
use crate::op::{FileId, MapId, Op};

/// The first operation of a series after which the kernel had other pages than the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Number of the series of operations.
    pub case: u64,
    /// The operation, counted from 0.
    pub at: u64,
    /// What it was.
    pub op: Op,
    /// The file or the mapping that differs.
    pub what: What,
    /// Pages of the kernel that the policy does not have.
    pub only_kernel: Runs,
    /// Pages of the policy that the kernel does not have.
    pub only_policy: Runs,
}

/// In what the kernel and the model differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Cached pages of a file.
    Cached(FileId),
    /// Mapped pages of a mapping.
    Mapped(MapId),
}

/// How one series went for a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeriesOutcome {
    /// Operations that were compared: those up to the first difference.
    pub operations: u64,
    /// Touches after which other pages were mapped than expected, by the time at which pages came alone
    /// ([`Follower::timing_alone`]).
    pub timing: u64,
    /// The first difference.
    pub difference: Option<Difference>,
}

/// What the kernel has after an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Number of the series of operations.
    pub case: u64,
    /// The operation, counted from 0.
    pub at: u64,
    /// What it was.
    pub op: Op,
    /// The file that it may have brought or dropped pages of.
    pub file: FileId,
    /// The cached pages of that file.
    pub cached: Runs,
    /// The mapping that was touched, and its pages that show those of the file.
    pub mapped: Option<(MapId, Runs)>,
}

impl Seen {
    fn differs(&self, what: What, kernel: &Runs, policy: &Runs) -> Difference {
        Difference {
            case: self.case,
            at: self.at,
            op: self.op,
            what,
            only_kernel: kernel.minus(policy),
            only_policy: policy.minus(kernel),
        }
    }

    /// Compares with a policy that did the same; nothing more after its first difference.
    pub fn judge(&self, follower: &mut Follower, outcome: &mut SeriesOutcome) {
        if outcome.difference.is_some() {
            return;
        }
        outcome.operations += 1;
        let expected = follower.cached(self.file);
        if self.cached != expected {
            outcome.difference = Some(self.differs(What::Cached(self.file), &self.cached, &expected));
            return;
        }
        let Some((map, pages)) = &self.mapped else { return };
        let expected = follower.mapped(*map);
        if *pages == expected {
            return;
        }
        let (more, less) = (pages.minus(&expected), expected.minus(pages));
        if follower.timing_alone(&self.op, *map, &more, &less) {
            outcome.timing += 1;
        } else {
            outcome.difference = Some(self.differs(What::Mapped(*map), pages, &expected));
        }
    }

    /// Pages that were cached before are gone, and the operation did not drop them: somebody else did.
    pub fn disturbed(&self, before: &Runs) -> bool {
        let gone = before.minus(&self.cached);
        match self.op {
            Op::DontNeed { first, pages, .. } => {
                !gone.minus(&Runs::one(first..first.saturating_add(pages))).is_empty()
            }
            _ => !gone.is_empty(),
        }
    }
}
