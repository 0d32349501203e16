//! Figures and sentences for people.

/// `1234567` as `1,234,567`.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// `part` of `whole` in percent; `-` when there is nothing to be a part of. A little is never printed
/// as none, and not quite all never as all.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    match part as f64 * 100.0 / whole as f64 {
        p if part == 0 || part >= whole => format!("{p:.0}%"),
        p if p < 0.1 => "<0.1%".to_owned(),
        p if p > 99.9 => ">99.9%".to_owned(),
        p => format!("{p:.1}%"),
    }
}

/// `n thing` or `n things`.
pub(crate) fn plural(n: u64, thing: &str) -> String {
    format!("{} {thing}{}", count(n), if n == 1 { "" } else { "s" })
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
    fn counts_and_percents() {
        assert_eq!(
            (count(0), count(999), count(1000), count(1_234_567)),
            ("0".into(), "999".into(), "1,000".into(), "1,234,567".into())
        );
        assert_eq!((percent(0, 0), percent(0, 9), percent(9, 9)), ("-".into(), "0%".into(), "100%".into()));
        assert_eq!(
            (percent(1, 100_000), percent(99_999, 100_000), percent(1, 3)),
            ("<0.1%".into(), ">99.9%".into(), "33.3%".into())
        );
        assert_eq!((plural(1, "page"), plural(2000, "page")), ("1 page".into(), "2,000 pages".into()));
    }

    #[test]
    fn wrapping_keeps_words_and_fits() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a/very/long/path x", 6), ["a/very/long/path", "x"]);
        assert_eq!(wrap("größe µs", 5), ["größe", "µs"], "characters count, not bytes");
        assert_eq!(wrap("", 5), [""]);
    }
}
