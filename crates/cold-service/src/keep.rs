//! What is read before anybody wants it: when, how much, of which programs.
//!
//! By recency and frequency and no grander predictor: of 279 users, a learned model hit 0.8935 where least recently
//! used hit 0.8900. Of equally likely programs those come first whose start gains most for the memory that they take
//! (docs/benchmarks/service.md compares this rule with others). Only after something has emptied the cache (boot, a program that took all memory, a drop), into
//! free memory only, while nothing waits. What is read so and not used is given back once memory is wanted ([`lacking`]).
//! Where somebody takes memory faster than that is seen, it is among the first that the kernel takes: its pages lie on
//! the inactive list, and one read of each does not move them from there.

use cold_model::Nanos;

/// A start counts half after three days: of 6, 24, 72 and 168 hours this saved most, or as much as the best, on made-up
/// logs of every kind (docs/benchmarks/service.md).
pub const HALF_LIFE: Nanos = Nanos(3 * 86_400_000_000_000);
/// Programs below this were started once, a week ago.
const WORTH: f64 = 0.2;
/// Pages that were reclaimed since the last look (40 MiB): less is the ordinary coming and going.
const EMPTIED: u64 = 10_240;
/// Nobody has waited for memory, emptied the cache or started cold, and no disk was waited for much, for so long.
pub const REST: Nanos = Nanos(10_000_000_000);
/// How often it is looked behind a reading whether all is still there: after [`REST`], then each time after twice as long,
/// the last time after 21 minutes. Somebody else may take pages back that nobody has used yet, uncounted (a host's DAMON
/// took 1 to 3 % of five programs' pages within 25 s, docs/benchmarks/service.md). What goes for longer may go.
const AGAIN: u32 = 7;
/// Waits for memory that do not disturb it: single pages that come back, microseconds a second.
const MEMORY_STALL_US: u64 = 1_000;
/// Waits for storage that do not disturb the rest: a log that is written now and then, microseconds a second.
const IO_STALL_US: u64 = 20_000;

/// How likely a program is wanted next, by its starts so far.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Uses {
    score: f64,
    at: Nanos,
    /// The last start that was no earlier one's.
    started: Nanos,
}

impl Uses {
    /// So many starts at `now`.
    pub fn add(&mut self, starts: f64, now: Nanos) {
        self.add_halving(starts, now, HALF_LIFE);
        self.started = now;
    }

    /// So many starts at a time before `now`, as a history tells.
    pub fn add_earlier(&mut self, starts: f64, ago: Nanos, now: Nanos) {
        self.add_halving(starts * left(ago, HALF_LIFE), now, HALF_LIFE);
    }

    /// When a start was added last; 0: none was but earlier ones.
    pub fn last(&self) -> Nanos {
        self.started
    }

    /// Nobody is to know how often it was started.
    pub fn forget(&mut self) {
        self.score = 0.0;
    }

    /// How likely a program is to be started next, at `now`: recent and frequent starts count more.
    pub fn score(&self, now: Nanos) -> f64 {
        self.score_halving(now, HALF_LIFE)
    }

    /// As [`Self::add`], where a start counts half after another time.
    pub(crate) fn add_halving(&mut self, starts: f64, now: Nanos, half_life: Nanos) {
        self.score = self.score_halving(now, half_life) + starts;
        self.at = now;
    }

    pub(crate) fn score_halving(&self, now: Nanos, half_life: Nanos) -> f64 {
        self.score * left(now.saturating_sub(self.at), half_life)
    }
}

/// What a start still counts after this time.
fn left(passed: Nanos, half_life: Nanos) -> f64 {
    0.5_f64.powf(passed.0 as f64 / half_life.0 as f64)
}

/// A warm start gains the time in which its plan is read, and besides as much as reading so many bytes takes: names,
/// inodes, single reads that wait for each other. Fitted to cold less warm starts of seven programs on four disks
/// (docs/benchmarks/prefetch.md; relative least squares): 3 MiB on a cloud volume, 9 and 12 on SATA and hard disks, 51
/// on an SSD with 1 GB/s.
pub const BESIDES: u64 = 10 << 20;

/// Keeping saves less than a start's spread where it saves less than this share of its computing.
const PAYS: f64 = 0.05;

/// What reading a plan, or most of it, told of its disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Bytes of the whole plan.
    pub plan: u64,
    /// Bytes that were absent and asked for.
    pub bytes: u64,
    /// Until all of them had come.
    pub took: Nanos,
}

impl Reading {
    /// What a warm start saves, by [`BESIDES`]; `None` where less than half of the plan was read, which tells little.
    pub fn saves(&self) -> Option<Nanos> {
        let all = self.plan.max(1).saturating_add(BESIDES) as f64;
        (self.bytes >= self.plan.div_ceil(2).max(1))
            .then(|| Nanos((self.took.0 as f64 * all / self.bytes as f64) as u64))
    }

    /// What keeping it would save, where the disks are so fast that it does not pay for a start that computes so long;
    /// 0 is unknown.
    pub fn too_little(&self, computing: Nanos) -> Option<Nanos> {
        self.saves().filter(|saves| (saves.0 as f64) < computing.0 as f64 * PAYS)
    }
}

/// A program whose plans may be read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// How likely it is started next ([`Uses::score`]).
    pub score: f64,
    /// Bytes that its plans take.
    pub bytes: u64,
}

impl Candidate {
    /// Time that keeping it is expected to save for each byte that it takes, in any unit.
    pub fn worth(&self) -> f64 {
        let bytes = self.bytes.max(1) as f64;
        self.score * (BESIDES as f64 + bytes) / bytes
    }
}

/// The programs worth keeping, those whose memory saves most first, as indices.
pub fn order(all: &[Candidate]) -> Vec<usize> {
    order_by(all, Candidate::worth)
}

/// The same by another figure.
pub(crate) fn order_by(all: &[Candidate], worth: impl Fn(&Candidate) -> f64) -> Vec<usize> {
    let mut likely: Vec<(usize, f64)> =
        all.iter().enumerate().filter(|(_, c)| c.score >= WORTH).map(|(i, c)| (i, worth(c))).collect();
    likely.sort_by(|a, b| b.1.total_cmp(&a.1));
    likely.into_iter().map(|(i, _)| i).collect()
}

/// Bytes that may be read: of the free memory that which is above a quarter of all, so that nobody's page has to go
/// for it, and no more than an eighth of all. Memory that others' cached files fill is not free.
pub fn room(free: u64, total: u64) -> u64 {
    free.saturating_sub(total / 4).min(total / 8)
}

/// Bytes of what was read so to give back: once less than an eighth of all memory is free, what lacks to the quarter down
/// to which is read. Between the two nothing is given back, so that what was read is not given back for a little that
/// somebody takes, and read again.
pub fn lacking(free: u64, total: u64) -> u64 {
    if free < total / 8 { total / 4 - free } else { 0 }
}

/// What the machine says at one moment; counts since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// Pages that were reclaimed (`pgsteal_*` of `/proc/vmstat`).
    pub reclaimed_pages: u64,
    /// Times that somebody dropped the cache (`drop_pagecache`).
    pub drops: u64,
    /// Microseconds in which tasks waited for memory (PSI).
    pub memory_stall_us: u64,
    /// Microseconds in which tasks waited for storage (PSI).
    pub io_stall_us: u64,
    /// A cold start is looked after right now.
    pub busy: bool,
}

/// Why to read now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Something has emptied the cache since the last reading, or there was none yet.
    Emptied,
    /// Some of what was read may have gone again since, uncounted.
    Again,
}

/// Plans were read as far as they may be.
#[derive(Debug, Clone, Copy)]
struct Round {
    /// What the machine said behind it.
    facts: Facts,
    /// When it ended.
    at: Nanos,
    /// How often it was looked since the cache was emptied whether all is still there.
    again: u32,
}

/// Says when to read.
#[derive(Debug, Clone, Default)]
pub struct Keeper {
    last: Option<(Facts, Nanos)>,
    read: Option<Round>,
    quiet_since: Option<Nanos>,
    /// It was told that something has emptied the cache since then.
    told: bool,
}

impl Keeper {
    /// Whether to read now, and why: nothing has waited for a while, and something has emptied the cache since the last
    /// reading, or that is so long ago that some of it may have gone again.
    pub fn is_time(&mut self, facts: Facts, now: Nanos) -> Option<Why> {
        let quiet = self.last.is_some_and(|(last, at)| is_quiet(&last, &facts, now.saturating_sub(at)));
        self.last = Some((facts, now));
        if !quiet {
            self.quiet_since = None;
            return None;
        }
        let since = *self.quiet_since.get_or_insert(now);
        let why = match self.read {
            Some(read) if !has_emptied(&read.facts, &facts) => read.may_have_gone(now).then_some(Why::Again),
            _ => Some(Why::Emptied),
        };
        why.filter(|_| now.saturating_sub(since) >= REST)
    }

    /// Whether something has emptied the cache since the last reading: told once until the next one.
    pub fn tells_emptied(&mut self, facts: Facts) -> bool {
        let emptied = !self.told && self.read.is_some_and(|read| has_emptied(&read.facts, &facts));
        self.told |= emptied;
        emptied
    }

    /// What was wanted was read at `now`, for this reason, when these were the facts.
    pub fn has_read(&mut self, why: Why, facts: Facts, now: Nanos) {
        let before = self.read.filter(|_| why == Why::Again).map_or(0, |read| read.again + 1);
        self.read = Some(Round { facts, at: now, again: before });
        self.told = false;
    }
}

impl Round {
    fn may_have_gone(&self, now: Nanos) -> bool {
        self.again < AGAIN && now.saturating_sub(self.at) >= Nanos(REST.0 << self.again)
    }
}

fn has_emptied(before: &Facts, now: &Facts) -> bool {
    now.drops != before.drops || now.reclaimed_pages.saturating_sub(before.reclaimed_pages) >= EMPTIED
}

fn is_quiet(before: &Facts, now: &Facts, passed: Nanos) -> bool {
    let seconds = passed.0 / 1_000_000_000 + 1;
    let waited = now.io_stall_us.saturating_sub(before.io_stall_us);
    // Whoever empties the cache may not be done, or does it to measure.
    let emptied = has_emptied(before, now);
    let starved = now.memory_stall_us.saturating_sub(before.memory_stall_us);
    let waits = starved > MEMORY_STALL_US * seconds || waited > IO_STALL_US * seconds;
    !now.busy && !emptied && !waits
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn what_was_started_often_and_lately_comes_first_and_what_is_forgotten_not_at_all() {
        let day = HALF_LIFE.0;
        let now = Nanos(10 * day);
        let uses = |starts: f64, days_ago: u64| {
            let mut uses = Uses::default();
            uses.add(starts, Nanos(now.0 - days_ago * day));
            uses.score(now)
        };
        let equal = |score| Candidate { score, bytes: 1 << 20 };
        let all = [uses(1.0, 0), uses(10.0, 1), uses(1.0, 5), uses(4.0, 3)].map(equal);
        assert_eq!(order(&all), [1, 0, 3]);
        let mut twice = Uses::default();
        twice.add(1.0, Nanos(day));
        twice.add(1.0, Nanos(2 * day));
        assert!((twice.score(Nanos(2 * day)) - 1.5).abs() < 1e-9);
        let mut earlier = Uses::default();
        earlier.add_earlier(4.0, Nanos(2 * day), now);
        assert!((earlier.score(now) - 1.0).abs() < 1e-9);
        assert_eq!((earlier.last(), twice.last()), (Nanos(0), Nanos(2 * day)));
        twice.forget();
        assert_eq!((twice.score(Nanos(2 * day)), twice.last()), (0.0, Nanos(2 * day)));
    }

    #[test]
    fn of_equally_likely_programs_the_small_one_comes_first_and_a_likely_large_one_before_both() {
        let of = |score, mib: u64| Candidate { score, bytes: mib << 20 };
        // A quarter of the memory saves twice the time for each byte: (10 + 40) / 40 to (10 + 10) / 10 is 5 to 8.
        assert_eq!(order(&[of(1.0, 40), of(1.0, 10)]), [1, 0]);
        assert_eq!(
            order(&[of(1.0, 10), of(1.7, 40), of(0.1, 1)]),
            [1, 0],
            "and what is forgotten not at all"
        );
        assert!(of(1.0, 0).worth().is_finite());
    }

    #[test]
    fn a_quarter_of_the_memory_stays_free() {
        assert_eq!((room(900, 1000), room(300, 1000), room(200, 1000)), (125, 50, 0));
    }

    #[test]
    fn what_a_fast_disk_reads_soon_does_not_pay_for_a_start_that_computes_long() {
        let ms = |ms: u64| Nanos(ms * 1_000_000);
        let read = |bytes| Reading { plan: 40 << 20, bytes, took: ms(20) };
        // 50 MiB at the rate of 2 GiB/s.
        assert_eq!(read(40 << 20).saves(), Some(ms(25)));
        assert_eq!(read(20 << 20).saves(), Some(ms(50)));
        assert_eq!((read((20 << 20) - 1).saves(), read(0).saves()), (None, None), "too little was absent");
        let of = |computing| read(40 << 20).too_little(computing);
        assert_eq!((of(ms(499)), of(ms(501))), (None, Some(ms(25))));
        assert_eq!(of(Nanos(0)), None, "unknown");
        let nothing = Reading { plan: 0, bytes: 0, took: ms(1) };
        assert_eq!(nothing.saves(), None);
    }

    #[test]
    fn memory_is_given_back_below_an_eighth_up_to_a_quarter() {
        assert_eq!((lacking(250, 1000), lacking(125, 1000), lacking(124, 1000)), (0, 0, 126));
        assert_eq!((lacking(0, 1000), lacking(0, 0)), (250, 0));
        let free = 100 + lacking(100, 1000);
        assert_eq!(room(free, 1000), 0, "and not read again for it");
    }

    #[test]
    fn single_waits_for_memory_do_not_disturb_the_rest_and_lasting_ones_do() {
        let first = |us_a_second: u64| {
            let mut keeper = Keeper::default();
            let facts = |s: u64| Facts { memory_stall_us: s * us_a_second, ..Facts::default() };
            (0..100).find(|s| keeper.is_time(facts(*s), Nanos(*s * SECOND)).is_some())
        };
        assert_eq!((first(100), first(5 * MEMORY_STALL_US)), (Some(11), None));
    }

    #[test]
    fn it_reads_after_a_rest_and_again_when_something_has_emptied_the_cache() {
        let mut keeper = Keeper::default();
        let mut facts = Facts::default();
        let at = |s: u64| Nanos(s * SECOND);
        let first = (0..100).find_map(|s| Some((s, keeper.is_time(facts, at(s))?)));
        assert_eq!(first, Some((11, Why::Emptied)), "boot is one reason");
        keeper.has_read(Why::Emptied, facts, at(11));
        facts.reclaimed_pages += EMPTIED;
        facts.memory_stall_us += 5;
        assert_eq!(keeper.is_time(facts, at(100)), None);
        let again = (101..200).find_map(|s| Some((s, keeper.is_time(facts, at(s))?)));
        assert_eq!(again, Some((111, Why::Emptied)), "ten seconds after the last wait");
        assert!(keeper.tells_emptied(facts) && !keeper.tells_emptied(facts), "told once");
        keeper.has_read(Why::Emptied, facts, at(111));
        assert!(!keeper.tells_emptied(facts));
        facts.drops += 1;
        facts.busy = true;
        assert!((200..300).all(|s| keeper.is_time(facts, at(s)).is_none()), "a cold start goes first");
        facts.busy = false;
        keeper.is_time(facts, at(300));
        facts.drops += 1;
        let after = (301..400).find(|s| keeper.is_time(facts, at(*s)).is_some());
        assert_eq!(after, Some(312), "ten seconds after the last drop");
    }

    #[test]
    fn behind_a_reading_it_looks_again_in_growing_distances_until_it_lets_go() {
        let mut keeper = Keeper::default();
        let mut facts = Facts::default();
        let at = |s: u64| Nanos(s * SECOND);
        let mut looked = Vec::new();
        let mut look = |keeper: &mut Keeper, facts, seconds: std::ops::Range<u64>| {
            for s in seconds {
                if let Some(why) = keeper.is_time(facts, at(s)) {
                    keeper.has_read(why, facts, at(s));
                    looked.push((s, why == Why::Emptied));
                }
            }
            std::mem::take(&mut looked)
        };
        let again = |s: u64| (s, false);
        let first = look(&mut keeper, facts, 0..10_000);
        assert_eq!(first[0], (11, true));
        assert_eq!(first[1..], [21, 41, 81, 161, 321, 641, 1281].map(again));
        // Emptied anew, it begins anew; what disturbs it only puts it off.
        facts.drops += 1;
        assert_eq!(look(&mut keeper, facts, 10_000..10_030), [(10_011, true), again(10_021)]);
        facts.io_stall_us += 10_000_000;
        assert_eq!(look(&mut keeper, facts, 10_030..10_050), [again(10_041)]);
        facts.io_stall_us += 10_000_000;
        assert_eq!(look(&mut keeper, facts, 10_079..10_100), [again(10_090)], "ten quiet seconds");
    }
}
