//! Exact decimals of at most 15 digits, so that 0.1 + 0.2 is 0.3.

/// `digits` × 10^−`scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    pub(super) digits: i128,
    pub(super) scale: usize,
}

impl Decimal {
    /// Parses `[+-]digits[.digits]`; none for anything else or for more than 15 digits on either side.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (negative, unsigned) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let plain = |part: &str| part.len() <= 15 && part.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() && fraction.is_empty() || !plain(whole) || !plain(fraction) {
            return None;
        }
        let digits: i128 = format!("0{whole}{fraction}").parse().ok()?;
        Some(Self { digits: if negative { -digits } else { digits }, scale: fraction.len() })
    }

    /// Its digits with `scale` decimals, which must not be fewer than it has (at most 15).
    pub(super) fn at(self, scale: usize) -> i128 {
        (self.scale..scale).fold(self.digits, |d, _| d * 10)
    }

    /// With `scale` decimals; further ones are zeros by construction and dropped.
    pub(super) fn show(self, scale: usize) -> String {
        let sign = if self.digits < 0 { "-" } else { "" };
        let all = format!("{:0>width$}", self.digits.unsigned_abs(), width = self.scale + 1);
        let (whole, fraction) = all.split_at(all.len() - self.scale);
        if scale == 0 {
            format!("{sign}{whole}")
        } else {
            format!("{sign}{whole}.{:0<scale$}", &fraction[..scale.min(fraction.len())])
        }
    }
}
