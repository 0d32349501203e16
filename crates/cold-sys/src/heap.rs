//! The heap of this process.

/// Gives the kernel back what has been freed. The C library keeps it for later, page by page where something nearby is
/// still used: for a process that goes on for weeks after work that took much memory once. `malloc_trim(3)`, glibc; other
/// C libraries have no such call, and nothing is done.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes a number, touches nothing but what is free, and may be called by any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    fn resident_bytes() -> u64 {
        let statm = std::fs::read_to_string("/proc/self/statm").expect("procfs");
        let pages: u64 = statm.split(' ').nth(1).expect("a field").parse().expect("a number");
        pages * crate::page::page_size()
    }

    #[test]
    fn what_was_freed_between_what_is_used_goes_back() {
        const EACH: usize = 1024;
        const MANY: usize = 96 << 10;
        let mut all: Vec<Box<[u8; EACH]>> = (0..MANY).map(|_| Box::new([1; EACH])).collect();
        // What lies last keeps the C library from shrinking the heap by itself.
        let last = all.pop();
        drop(all);
        let before = resident_bytes();
        give_back();
        let after = resident_bytes();
        assert!(before.saturating_sub(after) > (EACH * MANY / 2) as u64, "{before} then {after} bytes");
        assert_eq!(last.map(|last| last[0]), Some(1));
    }
}
