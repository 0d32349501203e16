//! Several starts, and several scenarios, as one order.

use std::collections::HashMap;

use cold_model::order::{Function, Trace};

/// How scenarios are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// The functions of the first scenario in the order of their first entries, then those that only the second
    /// enters, and so on: what matters most lies together.
    FirstTouch,
    /// What most scenarios enter comes first; among equals as [`Algorithm::FirstTouch`].
    Frequency,
}

/// Each function once, where it first comes.
pub fn concatenated<'a>(lists: impl IntoIterator<Item = &'a [u32]>) -> Vec<u32> {
    let mut seen = std::collections::HashSet::new();
    lists.into_iter().flatten().copied().filter(|f| seen.insert(*f)).collect()
}

/// Functions of file number `file` that the starts of a trace enter, by their indices in it: one start after the other.
pub fn entered(trace: &Trace, file: u32) -> Vec<u32> {
    let own = trace.repeats.iter().map(|r| r.entries.iter().filter(|e| e.file == file).map(|e| e.function));
    let own: Vec<Vec<u32>> = own.map(Iterator::collect).collect();
    concatenated(own.iter().map(Vec::as_slice))
}

/// Scenarios, each a list of functions in the order of first entries, in the order of their priority.
pub fn merged(scenarios: &[Vec<u32>], algorithm: Algorithm) -> Vec<u32> {
    let mut order = concatenated(scenarios.iter().map(Vec::as_slice));
    if algorithm == Algorithm::Frequency {
        let mut count: HashMap<u32, usize> = HashMap::new();
        for scenario in scenarios {
            for f in concatenated([scenario.as_slice()]) {
                let n = count.entry(f).or_default();
                *n = n.saturating_add(1);
            }
        }
        // Stable: equals stay as they are.
        order.sort_by_key(|f| std::cmp::Reverse(count.get(f).copied().unwrap_or(0)));
    }
    order
}

/// Those of `entered` that an order file can name: what has no name stays where it is.
pub fn nameable(entered: &[u32], functions: &[Function]) -> Vec<u32> {
    let has_name = |n: &u32| functions.get(*n as usize).is_some_and(|f| f.name().is_some());
    entered.iter().copied().filter(has_name).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn priority_and_frequency() {
        let scenarios = [vec![5, 1, 5, 2], vec![3, 2, 4], vec![4, 2]];
        assert_eq!(merged(&scenarios, Algorithm::FirstTouch), [5, 1, 2, 3, 4]);
        assert_eq!(merged(&scenarios, Algorithm::Frequency), [2, 4, 5, 1, 3]);
        assert!(merged(&[], Algorithm::Frequency).is_empty());
    }

    #[test]
    fn what_has_no_name_is_not_in_an_order() {
        let function = |name: &str| Function {
            address: 0,
            bytes: 1,
            names: if name.is_empty() { vec![] } else { vec![name.to_owned()] },
            sources: vec![],
        };
        let functions = ["a", "", "c"].map(function);
        assert_eq!(nameable(&[2, 1, 0, 7], &functions), [2, 0]);
    }

    proptest! {
        #[test]
        fn every_function_comes_once_and_scenarios_keep_their_order(
            scenarios in prop::collection::vec(prop::collection::vec(0_u32..40, 0..30), 1..5)
        ) {
            for algorithm in [Algorithm::FirstTouch, Algorithm::Frequency] {
                let order = merged(&scenarios, algorithm);
                let all: std::collections::BTreeSet<u32> = scenarios.iter().flatten().copied().collect();
                prop_assert_eq!(order.len(), all.len());
                prop_assert_eq!(order.iter().copied().collect::<std::collections::BTreeSet<_>>(), all);
            }
            let first = concatenated([scenarios[0].as_slice()]);
            prop_assert_eq!(&merged(&scenarios, Algorithm::FirstTouch)[..first.len()], &first[..]);
        }
    }
}
