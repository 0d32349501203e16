//! Text that cannot leave its place in HTML, XML or a terminal.

use cold_model::text::is_hostile;

/// Escapes for element content and quoted attributes of HTML and XML. Characters that XML forbids
/// (controls such as ESC) and marks that reorder a line become U+FFFD.
pub fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(c),
            c if is_hostile(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
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
