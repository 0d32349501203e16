//! How counts, shares and p-values are printed, everywhere.

/// A percentage with one decimal. A little is never printed as none, and not quite all never as all.
pub fn percent(p: f64) -> String {
    let exactly = |whole: f64| (p - whole).abs() < 1e-9;
    if exactly(0.0) || exactly(100.0) {
        format!("{p:.0}%")
    } else if p > 0.0 && p < 0.1 {
        "<0.1%".to_owned()
    } else if p > 99.9 && p < 100.0 {
        ">99.9%".to_owned()
    } else {
        format!("{p:.1}%")
    }
}

/// `part` of `whole` in percent; `-` when there is nothing to be a part of. More than the whole is all of it.
pub fn percent_of(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    percent(if part >= whole { 100.0 } else { part as f64 * 100.0 / whole as f64 })
}

/// A p-value with two significant digits; below 0.01 that it is less: it is never 0.
pub fn p_value(p: f64) -> String {
    match p {
        p if p < 0.01 => "p < 0.01".to_owned(),
        p if p < 0.1 => format!("p = {p:.3}"),
        p => format!("p = {p:.2}"),
    }
}

/// `1234567` as `1,234,567`.
pub fn count(n: u64) -> String {
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
pub fn plural(n: u64, thing: &str) -> String {
    let things = match thing.strip_suffix("ry") {
        _ if n == 1 => thing.to_owned(),
        Some(stem) => format!("{stem}ries"),
        None if thing.ends_with('s') => format!("{thing}es"),
        None => format!("{thing}s"),
    };
    format!("{} {things}", count(n))
}

/// What a processor is called whose model nobody tells.
pub const UNKNOWN_CPU: &str = "CPU of unknown model";

/// The processors of a machine: `2 × AMD EPYC`.
pub fn cpus(number: usize, model: &str) -> String {
    format!("{number} × {model}")
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
    fn shares_are_never_rounded_to_none_or_all() {
        assert_eq!(
            (percent_of(0, 0), percent_of(0, 9), percent_of(9, 9)),
            ("-".into(), "0%".into(), "100%".into())
        );
        let near = (percent_of(1, 100_000), percent_of(99_999, 100_000), percent_of(1, 3));
        assert_eq!(near, ("<0.1%".into(), ">99.9%".into(), "33.3%".into()));
        assert_eq!(
            (percent(7.0), percent(187.54), percent(-3.0)),
            ("7.0%".into(), "187.5%".into(), "-3.0%".into())
        );
    }

    #[test]
    fn p_values_have_two_digits_and_are_never_none() {
        assert_eq!(
            [0.0, 0.0099, 0.012, 0.5, 1.0].map(p_value),
            ["p < 0.01", "p < 0.01", "p = 0.012", "p = 0.50", "p = 1.00"]
        );
    }
}
