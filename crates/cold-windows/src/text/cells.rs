//! Cells of a line, and what stands in them.

/// Splits a line at `separator` outside of quotes. A quote ends its cell only where a separator follows it: xperf quotes
/// paths, and writes command lines as they are.
pub(super) fn split(line: &str, separator: char) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = line;
    loop {
        let begin = rest.trim_start_matches(' ');
        let quoted = begin.strip_prefix('"').and_then(|inner| closed(inner, separator));
        let (cell, behind) = match quoted {
            Some((cell, behind)) => (cell.replace("\"\"", "\""), behind),
            None => match begin.split_once(separator) {
                Some((cell, behind)) => (cell.trim().to_owned(), Some(behind)),
                None => (begin.trim().to_owned(), None),
            },
        };
        out.push(cell);
        match behind {
            Some(behind) => rest = behind,
            None => return out,
        }
    }
}

/// The content of a quoted cell, and what follows its separator.
fn closed(inner: &str, separator: char) -> Option<(&str, Option<&str>)> {
    let mut from = 0;
    loop {
        let at = from + inner.get(from..)?.find('"')?;
        let behind = &inner[at + 1..];
        if let Some(doubled) = behind.strip_prefix('"') {
            from = inner.len() - doubled.len();
            continue;
        }
        let trimmed = behind.trim_start_matches(' ');
        if trimmed.is_empty() {
            return Some((&inner[..at], None));
        }
        return trimmed.strip_prefix(separator).map(|rest| (&inner[..at], Some(rest)));
    }
}

/// `name.exe (1234)`, also `name ( 4)`.
pub(super) fn process(cell: &str) -> Option<(&str, u32)> {
    let (name, rest) = cell.rsplit_once('(')?;
    let pid = rest.trim().strip_suffix(')')?.trim().parse().ok()?;
    Some((name.trim(), pid))
}

/// A whole number, decimal or hexadecimal.
pub(super) fn number(cell: &str) -> Option<u64> {
    match cell.strip_prefix("0x").or_else(|| cell.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => cell.parse().ok(),
    }
}

/// A number as a spreadsheet shows it, in billionths of its unit: `1,234.5`, or with `comma` as the
/// decimal mark `1.234,5`.
pub(super) fn billionths(cell: &str, comma: bool) -> Option<i128> {
    let (mark, group) = if comma { (',', '.') } else { ('.', ',') };
    let plain: String = cell.chars().filter(|c| *c != group && !c.is_whitespace() && *c != '\'').collect();
    let (sign, digits) = plain.strip_prefix('-').map_or((1, plain.as_str()), |digits| (-1, digits));
    let (whole, part) = digits.split_once(mark).unwrap_or((digits, ""));
    let all = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() && part.is_empty() || !all(whole) || !all(part) || whole.len() > 18 {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let part: i128 = format!("{part:0<9}").get(..9)?.parse().ok()?;
    Some(sign * (whole * 1_000_000_000 + part))
}
