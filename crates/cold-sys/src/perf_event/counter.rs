//! Counting what the processor itself counts: misses of its caches of address translations.

use std::fs::File;
use std::io::{self, Read};

use super::{Attr, flag};

/// `PERF_COUNT_HW_CACHE_OP_READ` and `PERF_COUNT_HW_CACHE_RESULT_MISS`, where `config` wants them.
const READ_MISS: u64 = 1 << 16;

/// A processor's cache of address translations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tlb {
    /// Those of data (`dTLB`).
    Data,
    /// Those of instructions (`iTLB`).
    Instructions,
}

impl Tlb {
    /// `PERF_COUNT_HW_CACHE_DTLB` and `_ITLB`.
    fn config(self) -> u64 {
        READ_MISS
            | match self {
                Self::Data => 3,
                Self::Instructions => 4,
            }
    }
}

/// Counts the misses of the calling thread in user code, from its opening on.
#[derive(Debug)]
pub struct TlbCounter(File);

impl TlbCounter {
    /// Opens it. The kernel's refusal comes back as it is: `ENOENT` or `EOPNOTSUPP` where the processor (or the virtual
    /// machine's) counts no such thing, `EACCES` or `EPERM` by `kernel.perf_event_paranoid` or a seccomp filter.
    ///
    /// # Errors
    /// See above.
    pub fn open(tlb: Tlb) -> io::Result<Self> {
        let attr = Attr::cache_counter(tlb.config(), flag::EXCLUDE_KERNEL | flag::EXCLUDE_HV);
        Ok(Self(attr.open(0, -1)?.into()))
    }

    /// Misses until now.
    ///
    /// # Errors
    /// Those of read(2).
    pub fn read(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        (&self.0).read_exact(&mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_are_counted_or_refused_with_a_reason() {
        match TlbCounter::open(Tlb::Data) {
            Ok(counter) => {
                let before = counter.read().unwrap();
                // Far more pages than any such cache holds.
                let mut pages = crate::map::pages(64 << 20).unwrap();
                pages.iter_mut().step_by(4096).for_each(|b| *b = 1);
                assert!(counter.read().unwrap() > before);
            }
            Err(e) => assert!(e.raw_os_error().is_some(), "{e}"),
        }
    }
}
