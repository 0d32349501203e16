//! Text that cannot leave its place in HTML, XML or a terminal.

use cold_model::text::is_hostile;
pub use cold_model::text::markup;

/// The text with no break between a number and its unit.
pub fn together(text: &str) -> String {
    const UNITS: [&str; 10] = ["ns", "µs", "ms", "s", "B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut out = String::with_capacity(text.len() + 8);
    let mut number = false;
    for (i, word) in text.split(' ').enumerate() {
        let unit = UNITS.contains(&word.trim_end_matches([',', ';', '.', ':', ')', ']']));
        if i > 0 {
            out.push(if number && unit { '\u{a0}' } else { ' ' });
        }
        out.push_str(word);
        number = word.ends_with(|c: char| c.is_ascii_digit());
    }
    out
}

/// One line of at most `most` characters without what a terminal obeys; what is cut ends in `…`.
pub fn line(text: &str, most: usize) -> String {
    let mut out: String = text.chars().take(most + 1).map(|c| if is_hostile(c) { ' ' } else { c }).collect();
    if let Some((cut, _)) = out.char_indices().nth(most) {
        out.truncate(cut);
        out.pop();
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_units() {
        assert_eq!(
            together("27.9 ms, 6% of it; 10.2 MiB (5 KiB) in 3 s and so"),
            "27.9\u{a0}ms, 6% of it; 10.2\u{a0}MiB (5\u{a0}KiB) in 3\u{a0}s and so"
        );
    }
}
