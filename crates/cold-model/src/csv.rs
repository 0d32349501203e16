//! Cells of CSV files (RFC 4180) that a spreadsheet shows and does not compute.

use std::borrow::Cow;

/// Text as a cell. Quoted where RFC 4180 asks for it. Text that a spreadsheet would take for a formula gets an
/// apostrophe in front, and so does text that begins with apostrophes and such a beginning: whoever reads the file
/// with a program takes one apostrophe off what [`is_guarded`] and has the text as it was. Numbers stay as they
/// are; an empty text gives an empty cell.
pub fn text(text: &str) -> Cow<'_, str> {
    let guard = is_formula(text.trim_start_matches('\'')) && !is_number(text);
    let quote = text.contains(['"', ',', '\n', '\r']);
    match (guard, quote) {
        (false, false) => Cow::Borrowed(text),
        (true, false) => Cow::Owned(format!("'{text}")),
        (guard, true) => {
            let guard = if guard { "'" } else { "" };
            Cow::Owned(format!("\"{guard}{}\"", text.replace('"', "\"\"")))
        }
    }
}

/// Whether the content of a cell (its quotes removed) has an apostrophe more than the text that was written.
pub fn is_guarded(cell: &str) -> bool {
    cell.starts_with('\'') && is_formula(cell.trim_start_matches('\''))
}

/// What spreadsheets compute: also with full-width signs, and after white space that they take off.
fn is_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'])
}

fn is_number(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_digit() || b"+-.eE".contains(&b);
    text.bytes().all(plain) && text.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula_and_numbers_stay_numbers() {
        for (plain, cell) in [
            ("/usr/bin/x -y", "/usr/bin/x -y"),
            ("", ""),
            ("a, \"b\"", "\"a, \"\"b\"\"\""),
            ("=cmd|'/c calc'!A0", "'=cmd|'/c calc'!A0"),
            ("=HYPERLINK(\"http://x\",1)", "\"'=HYPERLINK(\"\"http://x\"\",1)\""),
            ("-bash", "'-bash"),
            ("+1+2", "'+1+2"),
            ("@SUM(1)", "'@SUM(1)"),
            ("\t=1", "'\t=1"),
            ("\r=1", "\"'\r=1\""),
            ("＝1", "'＝1"),
            ("'=1", "''=1"),
            ("'quoted'", "'quoted'"),
            ("-5", "-5"),
            ("+1.5e-3", "+1.5e-3"),
            ("-inf", "'-inf"),
        ] {
            assert_eq!(text(plain), cell);
        }
    }

    proptest::proptest! {
        #[test]
        fn a_program_reads_what_was_written(plain in "['=+@\t,\"a-]{0,6}") {
            let cell = text(&plain);
            let inner = match cell.strip_prefix('"') {
                Some(rest) => rest.strip_suffix('"').expect("closed").replace("\"\"", "\""),
                None => cell.to_string(),
            };
            let read = if is_guarded(&inner) { &inner[1..] } else { &inner };
            proptest::prop_assert_eq!(read, plain);
        }
    }
}
