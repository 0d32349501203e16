//! One start is told several times: of a script its own file and its interpreter, and both again where a file system
//! lies over another. The first time counts.

use cold_model::Nanos;

/// A process that executes the same program again later than this has started it again.
const SAME_START: Nanos = Nanos(1_000_000_000);
/// Starts that are remembered: those of [`SAME_START`] on a busy machine.
const KEPT: usize = 64;

/// The starts of the last moments.
#[derive(Debug, Default)]
pub struct Recent {
    starts: Vec<(i32, u64, Nanos)>,
    next: usize,
}

impl Recent {
    /// Whether the start of this program (any number of its own) by this process is told for the first time.
    pub fn is_new(&mut self, pid: i32, program: u64, now: Nanos) -> bool {
        let same = |(p, q, at): &(i32, u64, Nanos)| {
            (*p, *q) == (pid, program) && now.saturating_sub(*at) < SAME_START
        };
        if self.starts.iter().any(same) {
            return false;
        }
        let start = (pid, program, now);
        match self.starts.get_mut(self.next) {
            Some(place) => *place = start,
            None => self.starts.push(start),
        }
        self.next = (self.next + 1) % KEPT;
        true
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
        assert_eq!(recent.starts.len(), KEPT, "bounded");
        assert!(!recent.is_new(99 + many, 1, at(1003)));
    }
}
