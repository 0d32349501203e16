//! The kernel's version, and what depends on it.

/// Major and minor number of a release as `uname -r` prints it (`6.18.44-x`); `None` where it begins with none.
pub fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(['.', '-', '+']).map_while(|n| n.parse::<u32>().ok());
    numbers.next().zip(numbers.next())
}

/// Whether a fault on a file's page maps the whole of its large folio, whatever the fault-around window: so since
/// 6.18 (`finish_fault` in mm/memory.c). Unknown kernels are taken for new ones: then what may have been touched is
/// told too large, and never too small.
pub fn faults_map_whole_folios(release: &str) -> bool {
    version(release).is_none_or(|version| version >= (6, 18))
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
        assert!(faults_map_whole_folios("") && faults_map_whole_folios("strange"));
        assert_eq!((version("6.12+deb"), version("6")), (Some((6, 12)), None));
    }
}
