//! Values of flags that several commands share: times, sizes, streams.

use std::time::Duration;

use cold_bench::config::{Eviction, Stream};

use crate::exit::Failure;

type Result<T> = std::result::Result<T, Failure>;

/// A length of time in seconds.
pub(crate) fn seconds(flag: &str, value: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(value)
        .map_err(|_| Failure::usage(format!("{flag} {value} is not a length of time in seconds")))
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
