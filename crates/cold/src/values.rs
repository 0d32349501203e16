//! Values of flags that several commands share: times, sizes, streams.

use std::time::Duration;

use cold_bench::config::{DiskLimit, Eviction, Stream};

use crate::exit::Failure;

type Result<T> = std::result::Result<T, Failure>;

/// A length of time in seconds.
pub(crate) fn seconds(flag: &str, value: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(value)
        .map_err(|_| Failure::usage(format!("{flag} {value} is not a length of time in seconds")))
}

/// A time with its unit: `90d`, `12h`, `1.5m`, `10s`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let number = text.strip_suffix(['d', 'h', 'm', 's'])?;
    let unit = match text.as_bytes().last()? {
        b'd' => 86_400.0,
        b'h' => 3_600.0,
        b'm' => 60.0,
        _ => 1.0,
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * unit).ok()
}

/// A count with the suffixes k, M, G (powers of 1000) and Ki, Mi, Gi (of 1024).
pub(crate) fn count(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor: u64 = match &text[digits.len()..] {
        "" => 1,
        "k" | "K" => 1000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "Ki" | "KiB" => 1 << 10,
        "Mi" | "MiB" => 1 << 20,
        "Gi" | "GiB" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// `null`, `inherit`, a file; `pipe` for output.
pub(crate) fn stream(flag: &str, text: &str) -> Result<Stream> {
    match text {
        "null" => Ok(Stream::Null),
        "inherit" => Ok(Stream::Inherit),
        "pipe" if flag == "--output" => Ok(Stream::Pipe),
        "" => Err(Failure::usage(format!("{flag} is empty"))),
        file => Ok(Stream::File(file.into())),
    }
}

/// `--evict`, whose values clap has checked.
pub(crate) fn eviction(text: &str) -> Eviction {
    match text {
        "all" => Eviction::All,
        "files" => Eviction::Files,
        "program" => Eviction::Program,
        _ => Eviction::Auto,
    }
}

/// `2%` or `0.02` as 0.02.
pub(crate) fn percent(flag: &str, text: &str) -> Result<f64> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |n| (n, 100.0));
    match number.trim().parse::<f64>() {
        Ok(v) if v.is_finite() && v >= 0.0 && v / scale < 10.0 => Ok(v / scale),
        _ => Err(Failure::usage(format!("{flag} {text:?} is not a share: write 2% or 0.02"))),
    }
}
/// `iops=N,bps=M`, with the suffixes k, M, G (powers of 1000) and Ki, Mi, Gi (of 1024).
pub(crate) fn disk_limit(text: &str) -> Result<DiskLimit> {
    let fail = || {
        Failure::usage(format!(
            "cannot understand --disk-limit {text:?}: write iops=3000,bps=125M (either alone will do)"
        ))
    };
    let mut limit = DiskLimit { iops: None, bps: None };
    for part in text.split(',') {
        let (key, value) = part.split_once('=').ok_or_else(fail)?;
        let slot = match key {
            "iops" => &mut limit.iops,
            "bps" => &mut limit.bps,
            _ => return Err(fail()),
        };
        if slot.replace(count(value).filter(|n| *n > 0).ok_or_else(fail)?).is_some() {
            return Err(fail());
        }
    }
    Ok(limit)
}

/// A seed by the clock.
pub(crate) fn clock_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    // Nine digits are enough, and can be typed again.
    now.as_micros() as u64 % 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration("90d"), Some(Duration::from_hours(90 * 24)));
        assert_eq!(duration("12h"), Some(Duration::from_hours(12)));
        assert_eq!(duration("1.5m"), Some(Duration::from_secs(90)));
        for bad in ["", "d", "9", "-1d", "1w", "99999999999999999d", "1dd ", "nans", "1e400s", "infs"] {
            assert_eq!(duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn limits_of_a_disk() {
        let both = DiskLimit { iops: Some(3000), bps: Some(125_000_000) };
        assert_eq!(disk_limit("iops=3000,bps=125M").expect("parses"), both);
        assert_eq!(disk_limit("bps=1Gi").expect("parses").bps, Some(1 << 30));
        for bad in ["", "iops", "iops=x", "iops=0", "iops=1,iops=2", "read=4", "bps=99999999999G"] {
            assert!(disk_limit(bad).is_err(), "{bad}");
        }
    }
}
