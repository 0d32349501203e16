//! Which faults to try.

use std::collections::{BTreeMap, BTreeSet};

use super::calls;
use super::{Fault, Injection, Key};

/// How many, and which.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// At most so many; `None` for all.
    pub most: Option<usize>,
    /// Start of the random numbers.
    pub seed: u64,
}

/// Faults at the calls of a run without one: at the first, the middle and the last of equal calls each error that
/// they may have, and at the first of them the signals. `skipped` counts the first calls in which the runtime, not
/// the program, is at work. With a limit each key gets one fault before any gets a second one; keys for which
/// `matters` holds come first.
pub fn choose(
    calls: &[Key],
    skipped: usize,
    choice: Choice,
    matters: impl Fn(&Key) -> bool,
) -> Vec<Injection> {
    let mut seen: BTreeMap<&Key, (usize, usize)> = BTreeMap::new(); // of all, of the skipped ones
    for (index, key) in calls.iter().enumerate() {
        let (all, early) = seen.entry(key).or_default();
        *all += 1;
        *early += usize::from(index < skipped);
    }
    let mut random = Random(choice.seed);
    let mut ranks: Vec<(u64, Vec<Injection>)> = Vec::new();
    for (key, (all, early)) in seen {
        if all == early {
            continue;
        }
        let places = BTreeSet::from([early + 1, (early + 1 + all).div_ceil(2), all]);
        let mut faults: Vec<Injection> = Vec::new();
        for nth in places {
            let errors = calls::named(key.call).map_or(&[][..], |call| call.errors).iter();
            let errors = errors.map(|errno| Fault::Errno(*errno));
            let signals = [Fault::Signal(libc::SIGINT), Fault::Signal(libc::SIGTERM), Fault::Kill];
            let signals = signals.into_iter().filter(|_| nth == early + 1);
            faults.extend(errors.chain(signals).map(|fault| Injection { key: key.clone(), nth, fault }));
        }
        random.shuffle(&mut faults);
        ranks.push((u64::from(!matters(key)) << 32 | random.next() >> 32, faults));
    }
    ranks.sort_by_key(|(rank, _)| *rank);
    let rounds = ranks.iter().map(|(_, faults)| faults.len()).max().unwrap_or(0);
    let in_rounds = (0..rounds).flat_map(|n| ranks.iter().filter_map(move |(_, faults)| faults.get(n)));
    in_rounds.take(choice.most.unwrap_or(usize::MAX)).cloned().collect()
}

/// Pseudo-random numbers by splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = (self.next() % (i as u64 + 1)) as usize;
            items.swap(i, j);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(call: &'static str, about: &str) -> Key {
        Key { who: "main".into(), call, about: about.into() }
    }

    #[test]
    fn each_key_gets_one_before_any_gets_a_second_and_the_runtime_gets_none() {
        let mut calls = vec![key("read", "stdin"), key("mmap", "memory")];
        calls.extend((0..9).map(|_| key("read", "stdin")));
        calls.extend([key("openat", "W/a"), key("openat", "W/b")]);
        let with = |most| choose(&calls, 2, Choice { most, seed: 1 }, |k| k.about.starts_with('W'));
        let three = with(Some(3));
        let keys: BTreeSet<_> = three.iter().map(|i| i.key.clone()).collect();
        assert_eq!(keys.len(), 3, "{three:?}");
        assert!(three[..2].iter().all(|i| i.key.call == "openat"));
        let all = with(None);
        assert!(all.iter().all(|i| i.key.call != "mmap"));
        let places: BTreeSet<usize> = all.iter().filter(|i| i.key.call == "read").map(|i| i.nth).collect();
        assert_eq!(places, BTreeSet::from([2, 6, 10]));
        assert_eq!(with(Some(5)), with(Some(5)));
    }
}
