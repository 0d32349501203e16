//! The functions whose address on a stack tells what the kernel waits for, as the programs look them up
//! (`struct telling` in `waits.h`).

use crate::waiting::KernelFunction;

/// `TELLING_WORDS`, of 64 bits each.
const WORDS: u64 = 32768;
/// Bytes of code that a bit stands for: what compilers align functions to.
const GRAIN: u64 = 16;
const BITS: u64 = WORDS * 64;

/// The bytes of `struct telling`; of no functions: "not set", so that the programs rule out nothing.
pub(super) fn bytes(functions: &[KernelFunction]) -> Vec<u8> {
    let mut bits = vec![0_u64; usize::try_from(WORDS).unwrap_or_default()];
    for function in functions {
        let (first, last) = (function.start / GRAIN, function.end.saturating_sub(1) / GRAIN);
        // More than all bits are no more than all.
        for grain in first..=last.min(first.saturating_add(BITS)) {
            if let Some(word) = usize::try_from(grain % BITS / 64).ok().and_then(|at| bits.get_mut(at)) {
                *word |= 1 << (grain % 64);
            }
        }
    }
    let from = functions.iter().map(|f| f.start).min().unwrap_or_default();
    let to = functions.iter().map(|f| f.end).max().unwrap_or_default();
    [from, to].iter().chain(&bits).flat_map(|word| word.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waiting::Waiting;

    /// As `may_tell` in `waits.h` looks at a word of the stack.
    fn tells(bytes: &[u8], word: u64) -> bool {
        let words: Vec<_> = bytes.as_chunks().0.iter().map(|w| u64::from_le_bytes(*w)).collect();
        let bit = words[2 + ((word >> 10) & 32767) as usize] >> ((word >> 4) & 63) & 1;
        word >= words[0] && word < words[1] && bit == 1
    }

    fn function(start: u64, end: u64) -> KernelFunction {
        KernelFunction { start, end, what: Waiting::Lock }
    }

    #[test]
    fn every_address_in_a_function_tells_and_its_neighbours_do_not() {
        let functions = [
            function(0xffff_ffff_8121_9770, 0xffff_ffff_8121_9a13),
            function(0xffff_ffff_81b0_2500, 0xffff_ffff_81b0_2501),
            function(0xffff_ffff_c03f_fff0, 0xffff_ffff_c040_0410), // a module's
        ];
        let bytes = bytes(&functions);
        assert_eq!(bytes.len(), 16 + 32768 * 8);
        for f in &functions {
            assert!((f.start..f.end).all(|address| tells(&bytes, address)), "{f:x?}");
            assert!(!tells(&bytes, f.start - 1) && !tells(&bytes, f.end + 15), "{f:x?}");
        }
        assert!(!tells(&bytes, 0xffff_8881_0021_9780), "no code");
    }

    #[test]
    fn without_functions_nothing_is_ruled_out() {
        assert!(bytes(&[]).iter().all(|byte| *byte == 0), "to: 0 says that it is not set");
        let all = bytes(&[function(0, u64::MAX)]);
        assert!(tells(&all, 0xffff_ffff_8000_0000), "a function without an end that is known");
    }
}
