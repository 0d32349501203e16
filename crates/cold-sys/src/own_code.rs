//! The machine code of this process.

use crate::procfs::{MapEntry, ProcFs};

/// Lets go of the machine code that this process has run: what runs next is mapped again, from the page cache (0.3 µs a
/// page), or from the disk where it is not cached any more. For a process that goes on for weeks after work that it does
/// seldom. Without procfs nothing happens.
pub fn give_back() {
    // These pages are as the file has them, which cannot be written while it is executed (ETXTBSY), as this process
    // writes to no code: they come back the same.
    for map in &code() {
        advise(map, libc::MADV_DONTNEED);
    }
}

/// Mappings of this program's file that may be executed, and not written.
fn code() -> Vec<MapEntry> {
    let (proc, pid) = (ProcFs::default(), std::process::id().cast_signed());
    let (Ok(own), Ok(mut maps)) = (proc.exe(pid), proc.maps(pid)) else { return Vec::new() };
    maps.retain(|map| &map.perms == b"r-xp" && map.path.as_ref() == Some(&own));
    maps
}

/// Tells the kernel something of a mapping from [`code`].
fn advise(map: &MapEntry, what: i32) {
    let (Ok(start), Ok(end)) = (usize::try_from(map.start), usize::try_from(map.end)) else { return };
    // SAFETY: advice on pages that are as their file has them changes nothing that anybody sees.
    unsafe {
        libc::madvise(std::ptr::with_exposed_provenance_mut(start), end.saturating_sub(start), what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of code of this process that are mapped.
    fn mapped() -> u64 {
        let code: Vec<u64> = code().iter().map(|map| map.start).collect();
        let all = ProcFs::default().smaps(std::process::id().cast_signed()).expect("procfs");
        all.iter().filter(|part| code.contains(&part.start)).map(|part| part.resident).sum()
    }

    #[test]
    fn code_that_is_given_back_comes_back_when_it_runs() {
        for map in &code() {
            advise(map, libc::MADV_POPULATE_READ);
        }
        let before = mapped();
        give_back();
        let after = mapped();
        // Large folios are mapped whole, and other tests run beside this one: a fault maps up to 2 MiB of the 4 that it has.
        assert!(after > 0 && after < before, "{before} bytes, then {after}");
    }
}
