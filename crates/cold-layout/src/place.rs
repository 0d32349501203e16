//! Where functions lie under an order.

use std::collections::HashMap;

use cold_model::order::Function;

/// What compilers align functions to on x86-64 and aarch64.
const ALIGN: u64 = 16;

/// What the C runtime has in sections of their own (`.init`, `.fini`), which no order moves. lld lays them behind the
/// code.
const APART: [&str; 2] = ["_init", "_fini"];

/// What GCC's `crtbegin.o` has in one section: who names one of them moves all, as they were.
const TOGETHER: [&str; 4] =
    ["deregister_tm_clones", "register_tm_clones", "__do_global_dtors_aux", "frame_dummy"];

/// The name of what a linker moves by `name`.
fn moved_by(name: &str) -> &str {
    if TOGETHER.contains(&name) { TOGETHER[0] } else { name }
}

fn is_apart(f: &Function) -> bool {
    f.names.iter().any(|name| APART.contains(&name.as_str()))
}

/// Where the first function lies that an order can move, of those at addresses that `inside` holds.
pub fn base(functions: &[Function], inside: impl Fn(u64) -> bool) -> Option<u64> {
    functions.iter().find(|f| inside(f.address) && !is_apart(f)).map(|f| f.address)
}

/// The address of each function, by its index: from `base` on one behind the other, aligned as compilers do, those of
/// the order first, the rest as it was, what cannot be moved last. That is how lld and gold place them on x86-64; on
/// aarch64 lld puts the ordered ones into the middle.
pub fn placed(functions: &[Function], order: &[u32], base: u64) -> Vec<u64> {
    let mut place = vec![0_u64; functions.len()];
    let mut is_named = vec![false; functions.len()];
    for n in order {
        if let Some(named) = is_named.get_mut(*n as usize) {
            *named = true;
        }
    }
    let rest = (0..).zip(&is_named).filter(|(_, named)| !**named).map(|(n, _)| n);
    let all: Vec<u32> = order.iter().copied().chain(rest).collect();
    let apart = |n: &u32| functions.get(*n as usize).is_some_and(is_apart);
    let (last, first): (Vec<u32>, Vec<u32>) = all.into_iter().partition(apart);
    let mut at = base;
    for n in first.into_iter().chain(last) {
        if let (Some(place), Some(f)) = (place.get_mut(n as usize), functions.get(n as usize)) {
            *place = at;
            at = at.saturating_add(f.bytes).checked_next_multiple_of(ALIGN).unwrap_or(u64::MAX);
        }
    }
    place
}

/// The order as a linker reads it: an order file says names, and where one stands for several functions (local ones of
/// several object files, instances of a generic one) all of them lie where it stands, one behind the other as they were.
/// So do the functions of the C runtime that share a section.
pub fn with_namesakes(functions: &[Function], order: &[u32]) -> Vec<u32> {
    let named = |n: &u32| functions.get(*n as usize).map_or(&[][..], |f| f.names.as_slice());
    let mut bearers: HashMap<&str, Vec<u32>> =
        order.iter().flat_map(named).map(|name| (moved_by(name), Vec::new())).collect();
    for (f, n) in functions.iter().zip(0..) {
        for name in &f.names {
            if let Some(bearers) = bearers.get_mut(moved_by(name)) {
                bearers.push(n);
            }
        }
    }
    let mut is_placed = vec![false; functions.len()];
    let mut out = Vec::with_capacity(order.len());
    for n in order {
        let namesakes = named(n).iter().filter_map(|name| bearers.get(moved_by(name))).flatten();
        // What has no name is in no order file, but in the order of a start that is alone.
        for n in namesakes.chain([n]) {
            if let Some(is_placed) = is_placed.get_mut(*n as usize).filter(|is_placed| !**is_placed) {
                *is_placed = true;
                out.push(*n);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(address: u64, names: &[&str]) -> Function {
        let names = names.iter().map(|n| (*n).to_owned()).collect();
        Function { address, bytes: 100, names, sources: vec![] }
    }

    #[test]
    fn a_name_brings_all_that_bear_it_to_where_it_stands() {
        let functions = [
            function(0, &["main"]),
            function(1000, &["init"]),
            function(2000, &["other"]),
            function(3000, &["run", "init"]),
            function(4000, &[]),
            function(5000, &["init"]),
        ];
        assert_eq!(with_namesakes(&functions, &[2, 5, 0, 4, 99]), [2, 1, 3, 5, 0, 4]);
        let place = placed(&functions, &with_namesakes(&functions, &[5, 0]), 64);
        assert_eq!(place, [64 + 3 * 112, 64, 64 + 4 * 112, 64 + 112, 64 + 5 * 112, 64 + 2 * 112]);
        assert!(with_namesakes(&functions, &[]).is_empty());
    }

    #[test]
    fn what_shares_a_section_moves_with_whatever_of_it_is_named_first() {
        let functions = [
            function(0, &["main"]),
            function(1000, &["deregister_tm_clones"]),
            function(2000, &["register_tm_clones"]),
            function(3000, &["frame_dummy"]),
            function(4000, &["at_exit"]),
        ];
        assert_eq!(with_namesakes(&functions, &[3, 0, 4, 1]), [1, 2, 3, 0, 4]);
    }

    #[test]
    fn what_no_order_moves_lies_behind_the_code_and_is_not_where_it_begins() {
        let functions = [
            function(16, &["_init"]),
            function(4700, &["a"]),
            function(5000, &["b"]),
            function(9000, &["_fini"]),
        ];
        assert_eq!(base(&functions, |_| true), Some(4700));
        assert_eq!(placed(&functions, &[0, 2], 4700), [4912, 4800, 4700, 5024]);
    }
}
