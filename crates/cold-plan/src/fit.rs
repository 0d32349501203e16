//! Does a plan still fit the files?

use std::fmt;
use std::path::Path;

use crate::Plan;
use crate::identity::Match;
use crate::plan::{FileKind, Identity};

/// Share of bytes in files that no longer fit from which a plan should be learnt again: one in so many.
const STALE: u64 = 10;

/// How a file no longer fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// It cannot be looked at.
    Gone,
    /// It is another one.
    Changed,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gone => "is gone",
            Self::Changed => "changed",
        })
    }
}

/// A file that no longer fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stale<'a> {
    /// Absolute path of the file, as the plan has it.
    pub path: &'a Path,
    /// What is wrong with it.
    pub why: Misfit,
    /// Bytes that the plan reads of it.
    pub bytes: u64,
}

/// What of a plan no longer fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fit<'a> {
    /// Its files that do not.
    pub stale: Vec<Stale<'a>>,
    /// Bytes that the plan reads.
    pub bytes: u64,
    /// Of these, in files that no longer fit.
    pub stale_bytes: u64,
    /// What is wrong with the program itself; none when it is the one of the plan.
    pub executable: Option<Misfit>,
}

impl<'a> Fit<'a> {
    /// Looks at every file. `build_id` reads that of a file (zeros: it has none), where only that can tell.
    pub fn of(plan: &'a Plan, build_id: &dyn Fn(&Path) -> [u8; 20]) -> Self {
        let mut fit = Self {
            stale: Vec::new(),
            bytes: plan.read_bytes(),
            stale_bytes: 0,
            executable: misfit(&plan.key.identity, &plan.key.executable, build_id),
        };
        for (file, reads) in plan.files.iter().zip(plan.reads_by_file()) {
            let why = match file.kind {
                FileKind::Regular => misfit(&file.identity, &file.path, build_id),
                FileKind::Directory | FileKind::BlockDevice => {
                    file.path.symlink_metadata().is_err().then_some(Misfit::Gone)
                }
                // It may have been missing already.
                FileKind::Name => None,
            };
            if let Some(why) = why {
                fit.stale_bytes += reads.bytes;
                fit.stale.push(Stale { path: &file.path, why, bytes: reads.bytes });
            }
        }
        fit
    }

    /// The plan is of another program, or too much of it is of other files.
    pub fn should_be_learnt_again(&self) -> bool {
        self.executable.is_some() || self.stale_bytes * STALE >= self.bytes.max(1)
    }
}

/// How the file at `path` is not the one with this identity, read as far as that needs.
fn misfit(identity: &Identity, path: &Path, build_id: &dyn Fn(&Path) -> [u8; 20]) -> Option<Misfit> {
    let Ok(meta) = path.metadata() else { return Some(Misfit::Gone) };
    match identity.matches(&meta) {
        Match::Same => None,
        Match::Touched if build_id(path) == identity.build_id => None,
        Match::Touched | Match::Changed => Some(Misfit::Changed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Op, PlanFile, Step};

    #[test]
    fn a_tenth_of_the_bytes_in_other_files_asks_for_learning() {
        let dir = tempfile::tempdir().unwrap();
        let mut plan = crate::sample::sample();
        let step = *plan.reads().next().unwrap();
        (plan.files, plan.steps) = (Vec::new(), Vec::new());
        let mut add = |name: &str, bytes: u32, build_id: [u8; 20]| {
            let path = dir.path().join(name);
            std::fs::write(&path, "content").unwrap();
            let identity = Identity::of(&path.metadata().unwrap(), build_id);
            plan.steps.push(Step { op: Op::Read, file: plan.files.len() as u32, bytes, offset: 0, ..step });
            plan.files.push(PlanFile {
                path,
                kind: FileKind::Regular,
                identity,
                need_ns: 1,
                uses: 1,
                exact: false,
            });
        };
        add("program", 82 << 12, [0; 20]);
        add("small", 9 << 12, [0; 20]);
        add("built", 9 << 12, [7; 20]);
        plan.key.executable = plan.files[0].path.clone();
        plan.key.identity = plan.files[0].identity;
        let none = |_: &Path| [0; 20];
        let fit = Fit::of(&plan, &none);
        assert_eq!((fit.stale.len(), fit.executable, fit.bytes), (0, None, 100 << 12));
        assert!(!fit.should_be_learnt_again());
        for kind in [FileKind::Name, FileKind::Directory] {
            plan.files.push(PlanFile { path: dir.path().join("none"), kind, ..plan.files[0].clone() });
        }
        let gone = [Stale { path: &dir.path().join("none"), why: Misfit::Gone, bytes: 0 }];
        // The directory. The name may have been missing already.
        assert_eq!(Fit::of(&plan, &none).stale, gone);
        plan.files.truncate(3);
        // Touched: its build-id tells.
        std::fs::File::open(&plan.files[2].path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(Fit::of(&plan, &|_| [7; 20]).stale, []);
        std::fs::remove_file(&plan.files[1].path).unwrap();
        let fit = Fit::of(&plan, &|_| [7; 20]);
        assert_eq!(fit.stale, [Stale { path: &plan.files[1].path, why: Misfit::Gone, bytes: 9 << 12 }]);
        assert!(!fit.should_be_learnt_again(), "9 %");
        let fit = Fit::of(&plan, &none);
        assert_eq!((fit.stale_bytes, fit.stale[1].why), (18 << 12, Misfit::Changed));
        assert!(fit.should_be_learnt_again());
        std::fs::write(&plan.key.executable, "another").unwrap();
        std::fs::File::open(&plan.key.executable).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        plan.files.remove(0);
        assert_eq!(Fit::of(&plan, &none).executable, Some(Misfit::Changed));
    }
}
