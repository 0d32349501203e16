//! Whether a linked program has the order that its linker was given.

use std::collections::{BTreeSet, HashMap};

use cold_model::order::Function;

use crate::functions::Functions;
use crate::gain;

/// Least share of the order's names that the program must have.
pub const RESOLVED: f64 = 0.90;
/// Least share of ordered functions that must lie in the order's sequence. Not all do: of functions in one section
/// (hand-written assembly, archives compiled without function sections) a linker cannot change the sequence. A program
/// with 100 functions of its own and 101 of a static C library has 0.86 by lld; one without an order 0.1.
pub const FOLLOWS: f64 = 0.75;
/// Most by which the size of the code may change: relinking moves functions, and changes padding only.
pub const SIZE: f64 = 0.01;

/// Functions of the C runtime's own object files, which are compiled without function sections.
const RUNTIME: [&str; 9] = [
    "_start",
    "_init",
    "_fini",
    "_dl_relocate_static_pie",
    "deregister_tm_clones",
    "register_tm_clones",
    "__do_global_dtors_aux",
    "frame_dummy",
    "__libc_csu_init",
];

/// Where a program has the functions of an order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Placed {
    /// Names in the order, each once.
    pub names: u64,
    /// Those that the program has.
    pub resolved: u64,
    /// Of these, names that stand for several functions: a linker places all of them.
    pub ambiguous: u64,
    /// Functions whose place can be judged: of one name alone, in the main section of code, none of the C runtime's.
    pub judged: u64,
    /// Of these, the longest sequence of the order whose addresses rise, as far as one can say that it is kept.
    pub in_order: u64,
    /// Pages of 4 KiB that hold a byte of an ordered function.
    pub pages: u64,
    /// Pages that the bytes of these functions fill.
    pub least: u64,
}

/// A program with a smaller share of the order's names is another one.
const IS_IT: f64 = 0.5;

impl Placed {
    /// Whether the program is one that the order is for: it has at least half of the names.
    pub fn is_of_the_order(&self) -> bool {
        self.resolved_share().is_some_and(|share| share >= IS_IT)
    }

    /// Share of the names that the program has; `None` of an empty order.
    pub fn resolved_share(&self) -> Option<f64> {
        share(self.resolved, self.names)
    }

    /// Share of the functions that lie in the order's sequence; `None` with none to judge.
    pub fn order_share(&self) -> Option<f64> {
        share(self.in_order, self.judged)
    }
}

fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

/// Looks up `names` in `program`, whose functions are also handed over as traces keep them.
pub fn placed(names: &[String], program: &Functions) -> Placed {
    let mut by_name: HashMap<&str, Vec<u32>> = HashMap::new();
    for (f, n) in program.functions.iter().zip(0_u32..) {
        for name in &f.names {
            by_name.entry(name.text.as_str()).or_default().push(n);
        }
    }
    let main = program.code.iter().max_by_key(|c| c.end.saturating_sub(c.start)).cloned().unwrap_or_default();
    let mut seen = BTreeSet::new();
    let (mut found, mut chain) = (Vec::new(), Vec::new());
    let mut placed = Placed::default();
    for name in names.iter().map(String::as_str) {
        if !seen.insert(name) {
            continue;
        }
        placed.names = placed.names.saturating_add(1);
        let Some(all) = by_name.get(name) else { continue };
        placed.resolved = placed.resolved.saturating_add(1);
        found.extend_from_slice(all);
        let [one] = all[..] else {
            placed.ambiguous = placed.ambiguous.saturating_add(1);
            continue;
        };
        let address = program.functions.get(one as usize).map(|f| f.address);
        chain.extend(address.filter(|a| main.contains(a) && !RUNTIME.contains(&name)));
    }
    // Names of one address follow each other, and are one function.
    chain.dedup();
    placed.judged = chain.len() as u64;
    placed.in_order = rising(&chain);
    found.sort_unstable();
    found.dedup();
    let plain = |f: &crate::functions::Function| Function {
        address: f.address,
        bytes: f.bytes,
        names: Vec::new(),
        sources: Vec::new(),
    };
    let functions: Vec<Function> = program.functions.iter().map(plain).collect();
    let gain = gain::of(&functions, &[], &found);
    (placed.pages, placed.least) = (gain.today, gain.least);
    placed
}

/// Length of the longest rising subsequence (Fredman 1975: the least end of each length, found by halving).
fn rising(values: &[u64]) -> u64 {
    let mut ends: Vec<u64> = Vec::new();
    for value in values {
        let at = ends.partition_point(|end| end < value);
        match ends.get_mut(at) {
            Some(end) => *end = *value,
            None => ends.push(*value),
        }
    }
    ends.len() as u64
}

/// One thing that must hold of a program linked anew.
#[derive(Debug, Clone, PartialEq)]
pub enum Check {
    /// It has the functions of the order: [`RESOLVED`].
    Resolved,
    /// They lie in the order: [`FOLLOWS`].
    Follows,
    /// Its code is as large as before: [`SIZE`]; by how much it changed, as a share.
    Size(Option<f64>),
    /// It needs no symbol that it did not need before; those that it does.
    Undefined(Vec<String>),
}

/// All checks, each with its answer; `None`: not known, because the program as it was before is not.
pub fn checks(placed: &Placed, new: &Functions, old: Option<&Functions>) -> Vec<(Check, Option<bool>)> {
    let at_least = |share: Option<f64>, least: f64| share.map(|s| s >= least);
    let change = old.and_then(|old| {
        let (old, new) = (old.code_bytes() as f64, new.code_bytes() as f64);
        (old > 0.0).then(|| new / old - 1.0)
    });
    let known: BTreeSet<&String> = old.map(|old| old.undefined.iter().collect()).unwrap_or_default();
    let news: Vec<String> = match old {
        Some(_) => new.undefined.iter().filter(|name| !known.contains(name)).cloned().collect(),
        None => Vec::new(),
    };
    let no_news = old.map(|_| news.is_empty());
    vec![
        (Check::Resolved, at_least(placed.resolved_share(), RESOLVED)),
        (Check::Follows, at_least(placed.order_share(), FOLLOWS)),
        (Check::Size(change), change.map(|c| c.abs() <= SIZE)),
        (Check::Undefined(news), no_news),
    ]
}

#[cfg(test)]
mod tests {
    use cold_model::order::Linked;
    use proptest::prelude::*;

    use super::*;
    use crate::functions::Name;

    /// A program whose functions of 1 KiB lie in this sequence from 0x1000 on.
    fn program(names: &[&str]) -> Functions {
        let function = |(name, n): (&&str, u64)| crate::functions::Function {
            address: 0x1000 + 1024 * n,
            bytes: 1024,
            names: vec![Name { text: (*name).to_owned(), local: false }],
            ..Default::default()
        };
        Functions {
            linked: Linked::Pie,
            machine: 62,
            build_id: None,
            is_go: false,
            texts: Vec::new(),
            code: vec![0x100..0x110, 0x1000..0x1000 + 1024 * names.len() as u64],
            undefined: vec!["malloc".into()],
            functions: names.iter().zip(0..).map(function).collect(),
        }
    }

    fn order(names: &[&str]) -> Vec<String> {
        names.iter().map(|n| (*n).to_owned()).collect()
    }

    #[test]
    fn an_order_that_is_kept_and_one_that_is_not() {
        let names: Vec<String> = (0..20).map(|n| format!("f{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let wanted = order(&names.iter().rev().copied().step_by(2).collect::<Vec<_>>());
        let as_it_was = placed(&wanted, &program(&names));
        assert_eq!((as_it_was.resolved, as_it_was.judged, as_it_was.in_order), (10, 10, 1));
        let linked: Vec<&str> = wanted
            .iter()
            .map(String::as_str)
            .chain(names.iter().copied().filter(|n| !wanted.contains(&(*n).to_owned())))
            .collect();
        let relinked = placed(&wanted, &program(&linked));
        assert_eq!(relinked.order_share(), Some(1.0));
        assert_eq!((as_it_was.pages, relinked.pages, relinked.least), (5, 3, 3));
        let all = checks(&relinked, &program(&linked), Some(&program(&names)));
        assert!(all.iter().all(|(_, answer)| *answer == Some(true)), "{all:?}");
        let bad = checks(&as_it_was, &program(&names), None);
        let answers: Vec<Option<bool>> = bad.iter().map(|(_, a)| *a).collect();
        assert_eq!(answers, [Some(true), Some(false), None, None]);
    }

    #[test]
    fn what_is_gone_ambiguous_or_of_the_runtime_is_not_judged() {
        let placed = placed(
            &order(&["gone", "b", "b", "twice", "_start", "a"]),
            &program(&["_start", "a", "b", "twice", "twice"]),
        );
        assert_eq!((placed.names, placed.resolved, placed.ambiguous), (5, 4, 1));
        assert_eq!((placed.judged, placed.in_order), (2, 1));
        assert_eq!(super::placed(&[], &program(&["a"])).resolved_share(), None);
    }

    #[test]
    fn more_code_and_new_needs_fail() {
        let (old, mut new) = (program(&["a", "b"]), program(&["a", "b", "c"]));
        new.undefined.push("dlopen".into());
        let all = checks(&placed(&order(&["a", "b"]), &new), &new, Some(&old));
        assert_eq!(all[3], (Check::Undefined(vec!["dlopen".into()]), Some(false)));
        assert!(matches!(all[2], (Check::Size(Some(change)), Some(false)) if change > 0.3), "{all:?}");
    }

    proptest! {
        #[test]
        fn the_longest_rising_sequence_is_that_of_trying_all(values in prop::collection::vec(0_u64..50, 0..12)) {
            let subsets = 0_u32..1 << values.len();
            let kept = |mask: u32| values.iter().enumerate().filter(move |(n, _)| mask >> n & 1 == 1).map(|(_, v)| *v);
            let best = subsets
                .filter(|mask| kept(*mask).zip(kept(*mask).skip(1)).all(|(a, b)| a < b))
                .map(u32::count_ones)
                .max();
            prop_assert_eq!(Some(rising(&values)), best.map(u64::from));
        }
    }
}
