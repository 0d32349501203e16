//! Panics of the Parquet library, turned into errors.
//!
//! Version 60 asserts what a forged file can break (found by flipping bits behind the checksum). Accidents
//! never get so far, because the checksum of each file is compared first.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// This thread's panics are expected: no message.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f`; a panic becomes an error and prints nothing. Panics of other threads are reported as ever.
pub(super) fn catch<T>(f: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !EXPECTED.get() {
                usual(info);
            }
        }));
    });
    EXPECTED.set(true);
    // What `f` leaves half done is dropped with it: it owns the file and the rows.
    let result = catch_unwind(AssertUnwindSafe(f));
    EXPECTED.set(false);
    result.unwrap_or_else(|panic| Err(format!("the Parquet library gave up ({})", words(panic.as_ref()))))
}

fn words(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a reason")
}
