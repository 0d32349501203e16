//! What an order does for a start: pages of code that it touches, before any link.
//!
//! Counts pages of 4 KiB that hold a byte of an entered function, as extents: what a kernel reads around them is the
//! simulator's matter. Functions are placed one behind the other, aligned as compilers do, those of the order first
//! (all that bear one of its names), the rest as it was.

use std::collections::HashSet;

use cold_model::order::Function;
use cold_model::pages::Runs;

use crate::place::{base, placed, with_namesakes};

/// Bytes of a page, of the counts made here.
const PAGE: u64 = 4096;

/// Pages of code that a start touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gain {
    /// Functions that it enters.
    pub entered: u64,
    /// Those of them that the order names.
    pub named: u64,
    /// Pages as the program is linked today.
    pub today: u64,
    /// Pages under the order.
    pub ordered: u64,
    /// Pages that the bytes of these functions fill.
    pub least: u64,
}

/// Of a start that enters `entered`, in a program with `functions`, under `order`; both are indices.
pub fn of(functions: &[Function], order: &[u32], entered: &[u32]) -> Gain {
    let base = base(functions, |_| true).unwrap_or_default();
    let place = placed(functions, &with_namesakes(functions, order), base);
    let named: HashSet<u32> = order.iter().copied().collect();
    let entered: Vec<usize> = entered.iter().map(|n| *n as usize).filter(|n| *n < functions.len()).collect();
    let pages = |address: &dyn Fn(usize) -> u64| {
        let range = |n: &usize| {
            let first = address(*n);
            let bytes = functions.get(*n).map_or(0, |f| f.bytes).max(1);
            first / PAGE..first.saturating_add(bytes).div_ceil(PAGE)
        };
        Runs::of(entered.iter().map(range).collect()).pages()
    };
    let bytes =
        entered.iter().filter_map(|n| functions.get(*n)).fold(0_u64, |sum, f| sum.saturating_add(f.bytes));
    Gain {
        entered: entered.len() as u64,
        named: entered.iter().filter(|n| named.contains(&(**n as u32))).count() as u64,
        today: pages(&|n| functions.get(n).map_or(0, |f| f.address)),
        ordered: pages(&|n| place.get(n).copied().unwrap_or(0)),
        least: bytes.div_ceil(PAGE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Functions of 1 KiB, one on every second page.
    fn functions() -> Vec<Function> {
        let one = |n: u64| Function { address: 8192 * n, bytes: 1024, names: vec![], sources: vec![] };
        (0..20).map(one).collect()
    }

    #[test]
    fn an_order_packs_what_it_names_and_leaves_the_rest() {
        let order = [3, 5, 7, 9, 11, 13, 15, 17];
        assert_eq!(
            of(&functions(), &order, &order),
            Gain { entered: 8, named: 8, today: 8, ordered: 2, least: 2 }
        );
        // Two that it has not seen: they follow behind, four to a page, in their old order.
        let seen_and_not = [3, 5, 0, 19];
        assert_eq!(
            of(&functions(), &order, &seen_and_not),
            Gain { entered: 4, named: 2, today: 4, ordered: 3, least: 1 }
        );
    }

    #[test]
    fn what_is_out_of_range_counts_for_nothing() {
        let mut all = functions();
        all[0] = Function { address: u64::MAX, bytes: u64::MAX, ..all[0].clone() };
        let gain = of(&all, &[0, 99, 1], &[99, 1]);
        assert_eq!((gain.entered, gain.named), (1, 1));
    }
}
