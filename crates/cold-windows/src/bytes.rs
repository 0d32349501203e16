//! Little-endian numbers and slices out of untrusted bytes.

use crate::{Error, Result};

/// An input, or a part of it that knows where it stands.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    data: &'a [u8],
    /// Offset of `data` in the whole input, bytes: for errors.
    base: u64,
}

impl<'a> Input<'a> {
    /// A whole input.
    pub const fn new(data: &'a [u8]) -> Self {
        Self { data, base: 0 }
    }

    /// Size in bytes.
    pub const fn len(self) -> usize {
        self.data.len()
    }

    /// Whether nothing is there.
    pub const fn is_empty(self) -> bool {
        self.data.is_empty()
    }

    /// All of it.
    pub const fn all(self) -> &'a [u8] {
        self.data
    }

    /// The part of `len` bytes from `at` on; `what` names it in the error.
    ///
    /// # Errors
    /// [`Error::Short`] where it does not lie within.
    pub fn part(self, at: u64, len: u64, what: &'static str) -> Result<Self> {
        let has = (self.data.len() as u64).saturating_sub(at);
        // Even nothing has no place behind the end.
        if at > self.data.len() as u64 || len > has {
            return Err(Error::Short { what, at: self.base.saturating_add(at), wanted: len, has });
        }
        let data = &self.data[at as usize..(at + len) as usize];
        Ok(Self { data, base: self.base + at })
    }

    /// `count` entries of `size` bytes each from `at` on.
    ///
    /// # Errors
    /// [`Error::Short`] where they do not lie within.
    pub fn table(self, at: u64, count: u64, size: u64, what: &'static str) -> Result<Self> {
        self.part(at, count.saturating_mul(size), what)
    }

    fn array<const N: usize>(self, at: u64, what: &'static str) -> Result<[u8; N]> {
        let part = self.part(at, N as u64, what)?;
        let mut array = [0; N];
        array.copy_from_slice(part.data);
        Ok(array)
    }

    /// One byte at `at`.
    ///
    /// # Errors
    /// [`Error::Short`] where it does not lie within.
    pub fn u8(self, at: u64, what: &'static str) -> Result<u8> {
        self.array::<1>(at, what).map(|[byte]| byte)
    }

    /// Two bytes at `at`.
    ///
    /// # Errors
    /// [`Error::Short`] where they do not lie within.
    pub fn u16(self, at: u64, what: &'static str) -> Result<u16> {
        self.array(at, what).map(u16::from_le_bytes)
    }

    /// Four bytes at `at`.
    ///
    /// # Errors
    /// [`Error::Short`] where they do not lie within.
    pub fn u32(self, at: u64, what: &'static str) -> Result<u32> {
        self.array(at, what).map(u32::from_le_bytes)
    }

    /// Eight bytes at `at`.
    ///
    /// # Errors
    /// [`Error::Short`] where they do not lie within.
    pub fn u64(self, at: u64, what: &'static str) -> Result<u64> {
        self.array(at, what).map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_beyond_the_end_is_read_and_the_error_says_where() {
        let bytes = Input::new(&[1, 2, 3, 4, 5]);
        assert_eq!(bytes.u32(1, "a number"), Ok(0x0504_0302));
        let inner = bytes.part(2, 3, "a part").unwrap();
        assert_eq!(inner.all(), [3, 4, 5]);
        let short = Error::Short { what: "a number", at: 4, wanted: 4, has: 1 };
        assert_eq!(inner.u32(2, "a number"), Err(short));
        assert!(bytes.table(0, u64::MAX, 12, "a table").is_err());
        assert!(bytes.part(u64::MAX, 1, "a part").is_err());
        assert!(bytes.part(5, 0, "nothing").unwrap().is_empty());
        assert!(bytes.part(6, 0, "nothing").is_err());
    }
}
