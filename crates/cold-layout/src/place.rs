//! Where functions lie under an order.

use cold_model::order::Function;

/// What compilers align functions to on x86-64 and aarch64.
const ALIGN: u64 = 16;

/// The address of each function, by its index: from `base` on one behind the other, aligned as compilers do, those of
/// the order first, the rest as it was. That is how lld and gold place them on x86-64; on aarch64 lld puts the ordered
/// ones into the middle.
pub fn placed(functions: &[Function], order: &[u32], base: u64) -> Vec<u64> {
    let mut place = vec![0_u64; functions.len()];
    let mut is_named = vec![false; functions.len()];
    for n in order {
        if let Some(named) = is_named.get_mut(*n as usize) {
            *named = true;
        }
    }
    let rest = (0..).zip(&is_named).filter(|(_, named)| !**named).map(|(n, _)| n);
    let mut at = base;
    for n in order.iter().copied().chain(rest) {
        if let (Some(place), Some(f)) = (place.get_mut(n as usize), functions.get(n as usize)) {
            *place = at;
            at = at.saturating_add(f.bytes).checked_next_multiple_of(ALIGN).unwrap_or(u64::MAX);
        }
    }
    place
}
