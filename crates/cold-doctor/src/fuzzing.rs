//! The readers of the loader's cache and of crontabs for arbitrary bytes.

use crate::{calendar, loader_cache};

/// Looks a library up in `cache`.
pub fn loader_cache(cache: &[u8]) {
    let _ = loader_cache::paths(cache, "libc.so.6");
}

/// Reads a crontab of a user and of the system, and asks when its jobs are due.
pub fn crontab(text: &str) {
    for with_user in [false, true] {
        for job in calendar::parse_crontab(text, with_user).jobs {
            let _ = job.schedule.due_within(1_800_000_000, 60, cold_sys::clock::local_time);
        }
    }
}
