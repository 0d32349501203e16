//! The code that does what lengthened.

use cold_model::recording::{Recording, StackIdx};
use cold_spawn::Cause;

/// Puts the stacks of causes into words. `recording` is that of the last observed starts.
pub(super) fn name(causes: &mut [Cause], mut recording: Recording) {
    let wanted: Vec<StackIdx> = causes.iter().filter_map(|c| c.stack).collect();
    if wanted.is_empty() {
        return;
    }
    // Symbols are looked up of all that a recording holds; here frames are all that is of interest.
    (recording.touches, recording.fills, recording.stalls) = (None, None, None);
    for (index, stack) in recording.stacks.iter_mut().flatten().enumerate() {
        if !wanted.iter().any(|w| *w as usize == index) {
            stack.frames.clear();
        }
    }
    let layouts = cold_symbols::layouts(&recording, &cold_symbols::Options::default(), |_, _| {});
    for cause in causes {
        let stack = cause.stack.map(|s| cold_analyze::stack_in_words(&recording, &layouts, s));
        cause.code = stack.unwrap_or_default();
    }
}
