//! Which programs the service is to learn by itself, and whether it may do so now.
//!
//! A program is learnt when it was seen to start cold once and is started again: that start, cold or warm, is recorded,
//! because a recorded warm start shows what is needed as well as a cold one. So what is started once is never learnt.

use std::collections::VecDeque;

use cold_model::Nanos;

/// A young process is looked at so long after it was heard of.
pub const LOOKS: [Nanos; 6] = [
    Nanos(2_000_000),
    Nanos(10_000_000),
    Nanos(50_000_000),
    Nanos(250_000_000),
    Nanos(1_000_000_000),
    Nanos(5_000_000_000),
];

/// It started cold, and a plan may be worth it, when it had so many bytes read from disks,
const COLD_BYTES: u64 = 128 << 10;
/// or so many faults that waited: at 50 to 700 µs each a launch of 10 ms loses some per cent.
const COLD_FAULTS: u64 = 4;

/// Whether everybody may be told that a program was started so, by the derived name of its scenario (docs/concepts/
/// scenarios.md). Behind one dash more than a letter may be a value that is glued to it, like a password (`-psecret`).
pub fn may_be_told(scenario: &str) -> bool {
    scenario.split('+').all(|part| !part.starts_with('-') || part.starts_with("--") || part.len() <= 2)
}

/// A start is taken of which no more than this part had passed when its pages began to be seen.
const MISSED: u64 = 50;

/// Whether enough was seen of a start that took `took`, of which `missed` had passed when its pages began to be seen:
/// what is missing is then what the loader does first.
pub fn is_seen(missed: Nanos, took: Nanos) -> bool {
    missed.0 <= took.0 / MISSED
}

/// Programs that are remembered; the one that was cold longest ago goes first.
const MOST: usize = 64;
/// Attempts, until a program is given up.
const ATTEMPTS: u32 = 3;
/// From one attempt to the next.
const REST: Nanos = Nanos(60_000_000_000);

/// New programs seldom come alone (a machine that was set up, a user who begins to work), and many that are short are
/// over before a recorder is made: after a start that was to be learnt one waits for so long, whatever is wanted.
const EXPECTED: Nanos = Nanos(600_000_000_000);

/// All recording, its evaluation included, may take so much CPU time of an hour: 1 % of one CPU.
pub const BUDGET: Nanos = Nanos(36_000_000_000);
const HOUR: Nanos = Nanos(3_600_000_000_000);

/// What a young process has cost its disks so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Look {
    /// Bytes that were read from devices for it.
    pub read_bytes: u64,
    /// Faults that waited for a device.
    pub major_faults: u64,
}

impl Look {
    /// It started cold, and that cost it something.
    pub fn is_cold(self) -> bool {
        self.read_bytes >= COLD_BYTES || self.major_faults >= COLD_FAULTS
    }
}

/// Why a program that was cold is not learnt yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waits {
    /// For its next start.
    ForAStart,
    /// The last attempt failed with this reason; it is tried again later.
    Rests(String),
    /// So did all attempts.
    GivenUp(String),
}

#[derive(Debug, Clone)]
struct Candidate<K> {
    key: K,
    cold_at: Nanos,
    failures: u32,
    rests_until: Nanos,
    why: String,
}

/// Programs that were cold and have no plan, and what learning has cost of late. `K` names a program, its script and
/// its scenario.
#[derive(Debug, Clone)]
pub struct Candidates<K> {
    all: Vec<Candidate<K>>,
    /// Whose plans are to be checked by a start of theirs; no recorder waits for these alone.
    checks: Vec<K>,
    /// When one was added last, or the first were expected.
    added: Option<Nanos>,
    /// When, and how much CPU time.
    spent: VecDeque<(Nanos, Nanos)>,
}

impl<K> Default for Candidates<K> {
    fn default() -> Self {
        Self { all: Vec::new(), checks: Vec::new(), added: None, spent: VecDeque::new() }
    }
}

impl<K: PartialEq> Candidates<K> {
    /// None, and the first are expected from `now` on.
    pub fn expected(now: Nanos) -> Self {
        Self { added: Some(now), ..Self::default() }
    }

    /// A start of it was cold, and there is something to learn from it.
    pub fn was_cold(&mut self, key: K, now: Nanos) {
        if let Some(known) = self.all.iter_mut().find(|c| c.key == key) {
            known.cold_at = now;
            return;
        }
        if self.all.len() >= MOST
            && let Some(oldest) = (0..self.all.len()).min_by_key(|i| self.all.get(*i).map(|c| c.cold_at))
        {
            self.all.swap_remove(oldest);
        }
        let new = Candidate { key, cold_at: now, failures: 0, rests_until: Nanos(0), why: String::new() };
        self.all.push(new);
        self.added = Some(now);
    }

    /// Whether a recorder is to wait: a start is wanted, or others may soon be. Not while learning has used up its share.
    pub fn is_recorder_wanted(&self, now: Nanos) -> bool {
        let expected = self.added.is_some_and(|at| now.saturating_sub(at) < EXPECTED);
        (expected && self.is_affordable(now)) || self.wanted(now).next().is_some()
    }

    fn is_affordable(&self, now: Nanos) -> bool {
        self.spent_lately(now) < BUDGET
    }

    /// Its plan was followed, and is to be checked: its next start is recorded if a recorder waits anyway.
    pub fn is_to_be_checked(&mut self, key: K) {
        if self.checks.len() < MOST && !self.checks.contains(&key) {
            self.checks.push(key);
        }
    }

    /// Whether its next start is to be recorded.
    pub fn wants(&self, key: &K, now: Nanos) -> bool {
        self.awaited(now).any(|wanted| wanted == key)
    }

    /// All whose next start a recorder that waits is to record; none while learning has used up its share.
    pub fn awaited(&self, now: Nanos) -> impl Iterator<Item = &K> {
        let affordable = self.is_affordable(now);
        self.wanted(now).chain(self.checks.iter().filter(move |_| affordable))
    }

    /// All for whose next start a recorder is to wait; none while learning has used up its share.
    fn wanted(&self, now: Nanos) -> impl Iterator<Item = &K> {
        let affordable = self.is_affordable(now);
        let open = move |c: &&Candidate<K>| affordable && c.failures < ATTEMPTS && c.rests_until <= now;
        self.all.iter().filter(open).map(|c| &c.key)
    }

    /// It has a plan now, or is not to have one.
    pub fn forget(&mut self, key: &K) {
        self.all.retain(|c| c.key != *key);
    }

    /// It could not be learnt; after some attempts it never will.
    pub fn failed(&mut self, key: &K, why: String, now: Nanos) {
        self.rests(key, why, now);
        if let Some(c) = self.all.iter_mut().find(|c| c.key == *key) {
            c.failures += 1;
        }
    }

    /// A start of it was recorded: another one is not, unless nothing is told of what came of it for long.
    pub fn recorded(&mut self, key: &K, now: Nanos) {
        self.checks.retain(|check| check != key);
        if let Some(c) = self.all.iter_mut().find(|c| c.key == *key) {
            c.rests_until = Nanos(now.0.saturating_add(REST.0));
        }
    }

    /// This start did not show enough; another one will.
    pub fn rests(&mut self, key: &K, why: String, now: Nanos) {
        self.recorded(key, now);
        if let Some(c) = self.all.iter_mut().find(|c| c.key == *key) {
            c.why = why;
        }
    }

    /// So much CPU time went into learning, whatever came of it.
    pub fn spent(&mut self, cpu: Nanos, now: Nanos) {
        while self.spent.front().is_some_and(|(at, _)| now.saturating_sub(*at) >= HOUR) {
            self.spent.pop_front();
        }
        self.spent.push_back((now, cpu));
    }

    /// CPU time that learning took in the last hour.
    pub fn spent_lately(&self, now: Nanos) -> Nanos {
        let lately = self.spent.iter().filter(|(at, _)| now.saturating_sub(*at) < HOUR);
        Nanos(lately.map(|(_, cpu)| cpu.0).sum())
    }

    /// All of them, and what they wait for.
    pub fn all(&self) -> impl Iterator<Item = (&K, Waits)> {
        self.all.iter().map(|c| {
            let waits = match c.failures {
                ATTEMPTS.. => Waits::GivenUp(c.why.clone()),
                _ if c.why.is_empty() => Waits::ForAStart,
                _ => Waits::Rests(c.why.clone()),
            };
            (&c.key, waits)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Nanos {
        Nanos(10_000_000_000_000 + s * 1_000_000_000)
    }

    #[test]
    fn a_lesson_misses_a_fiftieth_of_its_start_at_most() {
        assert!(is_seen(Nanos(2), Nanos(100)) && !is_seen(Nanos(3), Nanos(100)));
        assert!(is_seen(Nanos(0), Nanos(0)));
    }

    #[test]
    fn what_was_cold_is_wanted_until_it_is_learnt_or_given_up() {
        let mut c = Candidates::default();
        assert!(!c.wants(&"git", at(0)));
        c.was_cold("git", at(0));
        c.was_cold("git", at(1));
        assert!(c.wants(&"git", at(1)));
        assert_eq!(c.all().collect::<Vec<_>>(), [(&"git", Waits::ForAStart)]);
        c.failed(&"git", "why".into(), at(2));
        assert!(!c.wants(&"git", at(61)) && c.wants(&"git", at(62)));
        c.recorded(&"git", at(62));
        assert!(!c.wants(&"git", at(63)) && c.wants(&"git", at(122)), "one start at a time");
        assert_eq!(c.all().next(), Some((&"git", Waits::Rests("why".into()))));
        for attempt in 1..9 {
            c.rests(&"git", "over too soon".into(), at(attempt * 100));
        }
        assert!(c.wants(&"git", at(900)), "that is no failure");
        c.failed(&"git", "why".into(), at(970));
        c.failed(&"git", "still".into(), at(1040));
        assert!(!c.wants(&"git", at(100_000)));
        assert_eq!(c.all().next(), Some((&"git", Waits::GivenUp("still".into()))));
        c.forget(&"git");
        c.was_cold("git", at(200_000));
        assert!(c.wants(&"git", at(200_000)), "another file by now");
    }

    #[test]
    fn after_a_cold_start_a_recorder_waits_for_others_too_as_long_as_that_is_affordable() {
        let mut c = Candidates::default();
        assert!(!c.is_recorder_wanted(at(0)));
        c.was_cold("git", at(0));
        c.forget(&"git");
        assert!(Candidates::<&str>::expected(at(1)).is_recorder_wanted(at(2)));
        assert!(c.is_recorder_wanted(at(599)) && !c.is_recorder_wanted(at(600)));
        c.was_cold("git", at(700));
        c.was_cold("git", at(1299));
        assert!(c.is_recorder_wanted(at(5000)), "its next start is wanted");
        c.failed(&"git", "why".into(), at(5000));
        assert!(!c.is_recorder_wanted(at(5001)) && c.is_recorder_wanted(at(5060)));
        c.was_cold("vi", at(5060));
        c.spent(BUDGET, at(5060));
        assert!(!c.is_recorder_wanted(at(5061)));
    }

    #[test]
    fn no_recorder_waits_for_a_check_and_one_that_does_takes_it_once() {
        let mut c = Candidates::default();
        c.is_to_be_checked("git");
        c.is_to_be_checked("git");
        assert!(c.wants(&"git", at(0)) && !c.is_recorder_wanted(at(0)));
        assert_eq!(c.awaited(at(0)).count(), 1);
        assert_eq!(c.all().count(), 0, "it is not to be learnt");
        c.recorded(&"git", at(1));
        assert!(!c.wants(&"git", at(1)));
        c.is_to_be_checked("git");
        c.spent(BUDGET, at(2));
        assert!(!c.wants(&"git", at(3)), "not affordable");
    }

    #[test]
    fn learning_has_a_share_of_each_hour() {
        let mut c = Candidates::default();
        c.was_cold(1, at(0));
        c.spent(Nanos(BUDGET.0 - 1), at(0));
        assert!(c.wants(&1, at(1)));
        c.spent(Nanos(1), at(10));
        assert!(!c.wants(&1, at(11)) && !c.wants(&1, at(3599)));
        assert!(c.wants(&1, at(3600)), "the first is an hour ago");
        assert_eq!(c.spent_lately(at(3600)), Nanos(1));
    }

    #[test]
    fn what_may_hold_a_password_is_not_told() {
        for told in
            ["default", "status+--short+-C+WORD", "m=json.tool+.json", "--headless+--screenshot+URL", "-"]
        {
            assert!(may_be_told(told), "{told}");
        }
        for kept in ["-psecret", "as=mysql+-h+-psecret", "-screenshot+URL"] {
            assert!(!may_be_told(kept), "{kept}");
        }
    }

    #[test]
    fn so_many_are_remembered_and_the_latest() {
        let mut c = Candidates::default();
        for n in 0..=MOST as u64 {
            c.was_cold(n, at(n));
        }
        assert_eq!(c.all().count(), MOST);
        assert!(!c.wants(&0, at(100)) && c.wants(&1, at(100)) && c.wants(&(MOST as u64), at(100)));
    }

    #[test]
    fn what_read_hardly_anything_was_not_cold() {
        let look = |read_bytes, major_faults| Look { read_bytes, major_faults };
        assert!(!look(0, 0).is_cold() && !look(COLD_BYTES - 1, COLD_FAULTS - 1).is_cold());
        assert!(look(COLD_BYTES, 0).is_cold() && look(0, COLD_FAULTS).is_cold());
    }
}
