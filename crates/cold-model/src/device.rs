//! Device numbers: the pair that `/proc` and `/sys` print, and the one number that `stat` packs it into.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A device number, split as the kernel splits it. Printed as `8:1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Dev {
    /// Major number: the driver's; 0 where the kernel made the number up ([`Dev::is_anonymous`]).
    pub major: u32,
    /// Minor number: the device, or partition, among those of one major.
    pub minor: u32,
}

impl Dev {
    /// The device of a major and a minor number, taken as they are.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// Of an `st_dev` or `st_rdev` (glibc's `gnu_dev_major` and `gnu_dev_minor`).
    #[allow(clippy::cast_possible_truncation, reason = "masked to 32 bits")]
    pub const fn of_number(number: u64) -> Self {
        let major = (number >> 32 & 0xffff_f000) | (number >> 8 & 0xfff);
        let minor = (number >> 12 & 0xffff_ff00) | (number & 0xff);
        Self { major: major as u32, minor: minor as u32 }
    }

    /// As `stat` gives it (glibc's `gnu_dev_makedev`).
    pub const fn number(self) -> u64 {
        let (major, minor) = (self.major as u64, self.minor as u64);
        (major & 0xffff_f000) << 32 | (major & 0xfff) << 8 | (minor & 0xffff_ff00) << 12 | (minor & 0xff)
    }

    /// From text of the form `8:1`, as `/proc` and `/sys` print it.
    pub fn parse(text: &str) -> Option<Self> {
        Self::in_base(text, 10)
    }

    /// From hexadecimal text of that form (`fe:00`), as `/proc/PID/maps` and `/proc/locks` print it.
    pub fn parse_hex(text: &str) -> Option<Self> {
        Self::in_base(text, 16)
    }

    fn in_base(text: &str, base: u32) -> Option<Self> {
        let (major, minor) = text.split_once(':')?;
        let number = |digits| u32::from_str_radix(digits, base).ok();
        Some(Self { major: number(major)?, minor: number(minor)? })
    }

    /// A number that the kernel made up for a file system without a block device of its own.
    pub const fn is_anonymous(self) -> bool {
        self.major == 0
    }
}

impl fmt::Display for Dev {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pair_and_the_number_are_one_device() {
        for (number, major, minor) in [
            (0xfe00, 254, 0),
            (0x0000_0000_0010_0801, 8, 0x101),
            (0x0000_1000_0000_0500, 0x1005, 0),
            (0x0000_1000_5672_3489, 0x1234, 0x5_6789),
            (u64::MAX, u32::MAX, u32::MAX),
        ] {
            assert_eq!(Dev::of_number(number), Dev::new(major, minor));
            assert_eq!(Dev::new(major, minor).number(), number);
        }
        assert_eq!(
            (Dev::parse("259:3"), Dev::parse_hex("fe:1a")),
            (Some(Dev::new(259, 3)), Some(Dev::new(254, 26)))
        );
        assert_eq!(
            (Dev::parse("259"), Dev::parse("259:3").map(|d| d.to_string())),
            (None, Some("259:3".to_owned()))
        );
    }
}
