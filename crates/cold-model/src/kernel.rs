//! The kernel's version, and what depends on it.

/// Whether the kernel of a release (`uname -r`: `6.18.44-x`) is of this version (major, minor) or later; `None` where
/// the release begins with no version. What claims a fact needs `Some`; what bounds one takes an unknown kernel for a
/// new one.
pub fn since(release: &str, version: (u32, u32)) -> Option<bool> {
    let mut numbers = release.split(['.', '-', '+']).map_while(|n| n.parse::<u32>().ok());
    let found = numbers.next().zip(numbers.next())?;
    Some(found >= version)
}

/// Whether a fault on a file's page maps the whole of its large folio, whatever the fault-around window may be: so
/// since 6.18 (`finish_fault` in mm/memory.c). If unknown, yes: then what may have been touched is told too large, and
/// never too small.
pub fn faults_map_whole_folios(release: &str) -> bool {
    since(release, (6, 18)).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_kernels_are_taken_for_new_ones() {
        for (release, new) in [("6.1.0-37-amd64", false), ("6.18.44-x", true), ("7.0", true), ("5.10", false)]
        {
            assert_eq!(faults_map_whole_folios(release), new, "{release}");
        }
        for release in ["", "strange", "6"] {
            assert!(faults_map_whole_folios(release));
            assert_eq!(since(release, (5, 0)), None);
        }
        assert_eq!((since("6.12+deb", (6, 12)), since("6.12+deb", (6, 13))), (Some(true), Some(false)));
    }
}
