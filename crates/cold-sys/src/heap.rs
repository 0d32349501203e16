//! The heap of this process.

/// For a process that goes on for weeks: what is freed at the end of a thread's heap goes back at once, and blocks of
/// 128 KiB and more are mappings of their own. Without this the C library keeps up to 64 MiB there after large blocks
/// were freed once (`mallopt(3)`, on `M_MMAP_THRESHOLD`), and `malloc_trim` looks at the end of the first heap only.
pub fn keep_little() {
    #[cfg(target_env = "gnu")]
    for parameter in [libc::M_MMAP_THRESHOLD, libc::M_TRIM_THRESHOLD] {
        // SAFETY: two numbers; may be called by any thread at any time.
        unsafe {
            libc::mallopt(parameter, 128 << 10);
        }
    }
}

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

    /// One test: what is resident is the whole process'.
    #[test]
    fn what_was_freed_goes_back() {
        by_a_thread_although_larger_blocks_were_freed_before();
        between_what_is_used();
    }

    fn between_what_is_used() {
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

    fn by_a_thread_although_larger_blocks_were_freed_before() {
        const EACH: usize = 64 << 10;
        const MANY: usize = 320;
        keep_little();
        // After this the C library would keep 32 MiB at the end of each heap.
        drop(std::hint::black_box(vec![1_u8; 16 << 20]));
        let before = resident_bytes();
        let thread = std::thread::spawn(|| {
            let all: Vec<_> = (0..MANY).map(|_| vec![1_u8; EACH]).collect();
            drop(std::hint::black_box(all));
        });
        thread.join().expect("no panic");
        let after = resident_bytes();
        assert!(after.saturating_sub(before) < (EACH * MANY / 2) as u64, "{before} then {after} bytes");
    }
}
