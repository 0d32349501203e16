//! Windows' time: 100 ns since 1601-01-01 UTC.

/// From 1601 to 1970, in units of 100 ns.
const EPOCH: i128 = 116_444_736_000_000_000;

/// Nanoseconds since 1970; `None` for 0, which stands for no time.
pub fn nanos_since_1970(filetime: u64) -> Option<i128> {
    (filetime != 0).then(|| (i128::from(filetime) - EPOCH) * 100)
}

/// UTC by RFC 3339, to the second; `None` for years beyond 9999.
pub fn rfc3339(nanos_since_1970: i128) -> Option<String> {
    let time = jiff::Timestamp::from_nanosecond(nanos_since_1970).ok()?;
    Some(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// UTC as `2016-01-13 22:05:51`, the form of spreadsheets; empty for no time and years beyond 9999.
pub fn plain(filetime: u64) -> String {
    nanos_since_1970(filetime).map_or_else(String::new, plain_nanos)
}

/// The same of nanoseconds since 1970.
pub fn plain_nanos(nanos_since_1970: i128) -> String {
    let time = jiff::Timestamp::from_nanosecond(nanos_since_1970).ok();
    time.map_or_else(String::new, |t| t.strftime("%Y-%m-%d %H:%M:%S").to_string())
}
