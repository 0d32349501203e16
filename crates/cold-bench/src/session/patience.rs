//! Starts of a lesson or a tuning that others disturbed: made again while that can help.

use cold_model::bench::Taint;

use crate::diagnose::taints::words;
use crate::session::single::Single;

/// How often one start is made again because others disturbed it, and how many in all. One that is disturbed
/// each time (by a program that holds its libraries, say) will be the next time, too: from then on none is.
const AGAIN: u32 = 2;
const AGAIN_IN_ALL: u32 = 6;

/// How often starts may still be made again.
#[derive(Debug)]
pub struct Patience {
    here: u32,
    in_all: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Self { here: AGAIN, in_all: AGAIN_IN_ALL }
    }
}

impl Patience {
    /// Whether this start is to be made again; if not, the next one begins.
    pub fn again(&mut self) -> bool {
        let again = self.here > 0 && self.in_all > 0;
        if again {
            (self.here, self.in_all) = (self.here - 1, self.in_all - 1);
        } else {
            (self.here, self.in_all) = (AGAIN, 0);
        }
        again
    }

    /// The start was not disturbed.
    pub fn next(&mut self) {
        self.here = AGAIN;
    }
}

/// Everything that disturbed the start, in words.
pub fn all(single: &Single) -> Vec<String> {
    single.run.taints.iter().map(words).collect()
}

/// What changed the start itself, or the cache under it.
pub fn lasting(single: &Single) -> Vec<String> {
    single.run.taints.iter().filter(|t| !only_slows(t)).map(words).collect()
}

/// Who only took CPU or disk time away made the start slower, and nothing that it needs another.
fn only_slows(taint: &Taint) -> bool {
    matches!(taint, Taint::Steal { .. } | Taint::BusyMachine { .. } | Taint::ForeignReads { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_start_is_made_again_twice_and_when_that_does_not_help_none_is_any_more() {
        let mut patience = Patience::default();
        assert_eq!([patience.again(), patience.again()], [true, true]);
        patience.next();
        assert_eq!([patience.again(), patience.again(), patience.again()], [true, true, false]);
        assert!(!patience.again(), "never again");
        let mut patience = Patience::default();
        for _ in 0..6 {
            assert!(patience.again());
            patience.next();
        }
        assert!(!patience.again(), "six in all");
    }
}
