//! Device numbers: the pair that `/proc` and `/sys` print, and the one number that `stat` packs it into.

/// Major and minor number of a device.
pub type Dev = (u32, u32);

/// The pair in an `st_dev` or `st_rdev`.
pub fn split(number: u64) -> Dev {
    (libc::major(number), libc::minor(number))
}

/// The number that `stat` gives for the pair.
pub fn join((major, minor): Dev) -> u64 {
    libc::makedev(major, minor)
}

/// The pair in text of the form `8:1`, as `/proc` and `/sys` print it.
pub fn parse(text: &str) -> Option<Dev> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pair_and_the_number_are_one_device() {
        for (number, pair) in [
            (0xfe00, (254, 0)),
            (0x0000_0000_0010_0801, (8, 0x101)),
            (0x0000_1000_0000_0500, (0x1005, 0)),
            (0x0000_1000_5672_3489, (0x1234, 0x5_6789)),
        ] {
            assert_eq!(split(number), pair);
            assert_eq!(join(pair), number);
        }
        assert_eq!(parse("259:3"), Some((259, 3)));
        assert_eq!(parse("259"), None);
    }
}
