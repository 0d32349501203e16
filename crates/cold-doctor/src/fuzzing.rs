//! The readers of programs, the loader's cache and crontabs for arbitrary bytes.

use std::fs::File;

use crate::{calendar, elf};

/// Reads the file as an ELF file.
pub fn program(file: &File) {
    let _ = elf::needs(file);
}

/// Looks a library up in `cache`.
pub fn loader_cache(cache: &[u8]) {
    let _ = elf::cached_paths(cache, "libc.so.6");
}

/// Reads a crontab of a user and of the system, and asks when its jobs are due.
pub fn crontab(text: &str) {
    for with_user in [false, true] {
        for job in calendar::parse_crontab(text, with_user).jobs {
            let _ = job.schedule.due_within(1_800_000_000, 60, cold_sys::clock::local_time);
        }
    }
}
