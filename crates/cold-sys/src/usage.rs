//! What the calling thread has used (getrusage(2)).

/// Counters of a thread since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadUsage {
    /// Faults that waited for I/O.
    pub major_faults: u64,
    /// Faults that did not.
    pub minor_faults: u64,
    /// Bytes of reads that the thread itself handed to a block device.
    pub read_bytes: u64,
    /// Times it slept of its own accord: for I/O, a lock, a timer.
    pub waits: u64,
    /// CPU time, user and system, microseconds.
    pub cpu_us: u64,
}

/// The counters of the calling thread.
pub fn thread() -> ThreadUsage {
    // SAFETY: rusage is plain data for which zeroes are valid; the kernel fills it.
    let mut raw: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `raw` is a live, writable rusage. With a valid `who` the call cannot fail.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut raw) };
    ThreadUsage {
        major_faults: raw.ru_majflt.cast_unsigned(),
        minor_faults: raw.ru_minflt.cast_unsigned(),
        read_bytes: raw.ru_inblock.cast_unsigned() * 512,
        waits: raw.ru_nvcsw.cast_unsigned(),
        cpu_us: us(raw.ru_utime) + us(raw.ru_stime),
    }
}

fn us(t: libc::timeval) -> u64 {
    t.tv_sec.cast_unsigned() * 1_000_000 + t.tv_usec.cast_unsigned()
}

impl ThreadUsage {
    /// What was used since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            major_faults: self.major_faults - before.major_faults,
            minor_faults: self.minor_faults - before.minor_faults,
            read_bytes: self.read_bytes - before.read_bytes,
            waits: self.waits - before.waits,
            cpu_us: self.cpu_us - before.cpu_us,
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn touching_fresh_memory_counts_as_minor_faults() {
        let before = super::thread();
        let mut pages = crate::map::pages(100 * crate::page::page_size() as usize).unwrap();
        pages.iter_mut().for_each(|b| *b = 1);
        let used = super::thread().since(before);
        // Huge pages may cover many at once.
        assert!(used.minor_faults >= 1, "{used:?}");
    }
}
