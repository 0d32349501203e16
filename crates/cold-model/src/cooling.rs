//! How a processor that sleeps becomes slow, and fast again.

use serde::{Deserialize, Serialize};

/// What a program computes longer after its processor slept: its caches are cold, because others of the machine had them
/// meanwhile. Both ways are exponential, so that a sleep or a piece of work cut into parts comes to the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cooling {
    /// CPU time that a processor owes after a sleep without end, nanoseconds; 0: sleeping costs nothing.
    pub most_ns: u64,
    /// Sleep after which it owes all of that but the e-th part, nanoseconds.
    pub sleep_ns: u64,
    /// Computing by which it has paid what it owes but the e-th part, nanoseconds.
    pub work_ns: u64,
}

impl Cooling {
    /// A processor computes as fast after a sleep as before.
    pub const NONE: Self = Self { most_ns: 0, sleep_ns: 1, work_ns: 1 };

    /// What a processor owes after a sleep of `ns` that owed `owes` before, nanoseconds.
    pub fn slept(&self, owes: f64, ns: u64) -> f64 {
        let most = self.most_ns as f64;
        most - (most - owes).max(0.0) * (-(ns as f64) / self.sleep_ns.max(1) as f64).exp()
    }

    /// What it pays of that while it does work of `ns`, nanoseconds.
    pub fn pays(&self, owes: f64, ns: u64) -> f64 {
        owes * (1.0 - (-(ns as f64) / self.work_ns.max(1) as f64).exp())
    }

    /// What each of many pieces of work of `work` takes longer, between sleeps of `sleep`, nanoseconds.
    pub fn each(&self, sleep: f64, work: f64) -> f64 {
        let left = (-work / self.work_ns.max(1) as f64).exp();
        let kept = (-sleep / self.sleep_ns.max(1) as f64).exp();
        self.most_ns as f64 * (1.0 - kept) * (1.0 - left) / (1.0 - kept * left).max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const LAW: Cooling = Cooling { most_ns: 600_000, sleep_ns: 3 * MS, work_ns: MS };

    #[test]
    fn a_sleep_in_parts_costs_what_it_costs_as_one_and_so_does_work() {
        let parts = LAW.slept(LAW.slept(0.0, 2 * MS), 5 * MS);
        assert!((parts - LAW.slept(0.0, 7 * MS)).abs() < 1e-6);
        let first = LAW.pays(400_000.0, MS / 3);
        let second = LAW.pays(400_000.0 - first, MS);
        assert!((first + second - LAW.pays(400_000.0, MS + MS / 3)).abs() < 1e-6);
    }

    #[test]
    fn it_owes_never_more_than_the_most_and_pays_never_more_than_it_owes() {
        assert!((LAW.slept(0.0, u64::MAX) - 600_000.0).abs() < 1e-6);
        assert!((LAW.pays(600_000.0, u64::MAX) - 600_000.0).abs() < 1e-6);
        let nothing = [LAW.slept(0.0, 0), LAW.pays(600_000.0, 0), Cooling::NONE.slept(0.0, MS)];
        assert!(nothing.iter().all(|ns| ns.abs() < 1e-9), "{nothing:?}");
        // One who owes more than another program's most loses nothing more by sleeping.
        assert!((Cooling { most_ns: 100, ..LAW }.slept(200.0, MS) - 100.0).abs() < 1e-6);
    }

    #[test]
    fn what_each_of_many_takes_is_where_sleeping_and_paying_are_even() {
        let (sleep, work) = (8 * MS, MS / 4);
        let (mut owes, mut paid) = (0.0, 0.0);
        for _ in 0..1000 {
            owes = LAW.slept(owes, sleep);
            paid = LAW.pays(owes, work);
            owes -= paid;
        }
        assert!((LAW.each(sleep as f64, work as f64) - paid).abs() < 1e-3, "{paid}");
    }
}
