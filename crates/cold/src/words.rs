//! Figures and sentences for people.

pub(crate) use cold_model::figures::percent_of as percent;

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

/// `n thing` or `n things`, for things that end in a sibilant or in `ry`, too.
pub(crate) fn plural(n: u64, thing: &str) -> String {
    let things = match thing.strip_suffix("ry") {
        _ if n == 1 => thing.to_owned(),
        Some(stem) => format!("{stem}ries"),
        None if thing.ends_with('s') => format!("{thing}es"),
        None => format!("{thing}s"),
    };
    format!("{} {things}", count(n))
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
    fn counts_and_plurals() {
        assert_eq!(
            (count(0), count(999), count(1000), count(1_234_567)),
            ("0".into(), "999".into(), "1,000".into(), "1,234,567".into())
        );
        assert_eq!((plural(1, "page"), plural(2000, "page")), ("1 page".into(), "2,000 pages".into()));
        assert_eq!((plural(1, "process"), plural(0, "process")), ("1 process".into(), "0 processes".into()));
        assert_eq!(
            (plural(1, "directory"), plural(2, "directory")),
            ("1 directory".into(), "2 directories".into())
        );
    }

    #[test]
    fn wrapping_keeps_words_and_fits() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a/very/long/path x", 6), ["a/very/long/path", "x"]);
        assert_eq!(wrap("größe µs", 5), ["größe", "µs"], "characters count, not bytes");
        assert_eq!(wrap("", 5), [""]);
    }
}
