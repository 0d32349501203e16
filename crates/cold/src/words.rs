//! Figures and sentences for people.

pub(crate) use cold_model::figures::{count, percent_of as percent, plural};

/// `2026-05-01`, UTC, of nanoseconds since 1970.
pub(crate) fn day_of(at_ns: u64) -> String {
    let at = jiff::Timestamp::from_nanosecond(i128::from(at_ns)).unwrap_or_default();
    at.to_zoned(jiff::tz::TimeZone::UTC).date().to_string()
}

/// Breaks `text` at blanks into lines of at most `room` characters; a longer word stays whole.
pub(crate) fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in text.split(' ') {
        let len = word.chars().count();
        if used > 0 && used + 1 + len > room {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += len;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_keeps_words_and_fits() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a/very/long/path x", 6), ["a/very/long/path", "x"]);
        assert_eq!(wrap("größe µs", 5), ["größe", "µs"], "characters count, not bytes");
        assert_eq!(wrap("", 5), [""]);
    }
}
