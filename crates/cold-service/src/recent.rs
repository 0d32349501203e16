//! One start is told several times: of a script its own file and its interpreter, and both again where a file system
//! lies over another. The first time counts.

use cold_model::Nanos;

/// A process that executes the same program again later than this has started it again.
const SAME_START: Nanos = Nanos(1_000_000_000);
/// Starts that are remembered: those of [`SAME_START`] on a busy machine.
const KEPT: usize = 64;

/// The last [`KEPT`] of what came.
#[derive(Debug)]
struct Last<T> {
    all: Vec<T>,
    next: usize,
}

impl<T> Default for Last<T> {
    fn default() -> Self {
        Self { all: Vec::new(), next: 0 }
    }
}

impl<T> Last<T> {
    fn add(&mut self, one: T) {
        match self.all.get_mut(self.next) {
            Some(place) => *place = one,
            None => self.all.push(one),
        }
        self.next = (self.next + 1) % KEPT;
    }
}

/// The starts of the last moments.
#[derive(Debug, Default)]
pub struct Recent(Last<(i32, u64, Nanos)>);

impl Recent {
    /// Whether the start of this program (any number that its script and its interpreter have in common) by this process
    /// is told for the first time.
    pub fn is_new(&mut self, pid: i32, program: u64, now: Nanos) -> bool {
        let same = |(p, q, at): &(i32, u64, Nanos)| {
            (*p, *q) == (pid, program) && now.saturating_sub(*at) < SAME_START
        };
        if self.0.all.iter().any(same) {
            return false;
        }
        self.0.add((pid, program, now));
        true
    }
}

/// The files of one start (a script, its interpreter) are told within this time.
const ONE_START: Nanos = Nanos(100_000_000);

/// Who opened which file of late to execute it.
#[derive(Debug)]
pub struct Opened<F>(Last<(i32, F, Nanos)>);

impl<F> Default for Opened<F> {
    fn default() -> Self {
        Self(Last::default())
    }
}

impl<F: Copy + PartialEq> Opened<F> {
    /// A process opened `file` to execute it; gives what it opened just before for the same start: of an interpreter
    /// the script.
    pub fn heard(&mut self, pid: i32, file: F, now: Nanos) -> Option<F> {
        let same = |(p, _, then): &&(i32, F, Nanos)| *p == pid && now.saturating_sub(*then) < ONE_START;
        let before =
            self.0.all.iter().filter(same).max_by_key(|(_, _, then)| *then).map(|(_, file, _)| *file);
        self.0.add((pid, file, now));
        before.filter(|before| *before != file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_counts_once_and_the_next_one_again() {
        let mut recent = Recent::default();
        let at = |ms: u64| Nanos(5_000_000_000 + ms * 1_000_000);
        assert!(recent.is_new(7, 1, at(0)));
        assert!(!recent.is_new(7, 1, at(1)) && recent.is_new(7, 2, at(1)) && recent.is_new(8, 1, at(1)));
        assert!(recent.is_new(7, 1, at(1001)));
        let many = i32::try_from(2 * KEPT).expect("few");
        for pid in 100..100 + many {
            assert!(recent.is_new(pid, 1, at(1002)));
        }
        assert_eq!(recent.0.all.len(), KEPT, "bounded");
        assert!(!recent.is_new(99 + many, 1, at(1003)));
    }

    #[test]
    fn a_script_is_what_the_same_process_opened_just_before_its_interpreter() {
        let mut opened = Opened::default();
        let at = |ms: u64| Nanos(5_000_000_000 + ms * 1_000_000);
        assert_eq!(opened.heard(7, "script", at(0)), None);
        assert_eq!(opened.heard(8, "other", at(1)), None);
        assert_eq!(opened.heard(7, "sh", at(2)), Some("script"));
        assert_eq!(opened.heard(7, "sh", at(3)), None, "told twice");
        assert_eq!(opened.heard(7, "late", at(200)), None, "another start");
    }
}
