//! Names of Rust and C++ symbols as people write them.

use std::fmt;

/// Longest mangled name that is tried, and longest result. Some names of template code unfold without
/// end; such a name is shown as the table has it.
const MAX_NAME: usize = 4096;

/// The readable name; what is not mangled, or cannot be read, stays as it is.
pub(crate) fn demangle(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw.get(..MAX_NAME).unwrap_or(raw));
    if raw.len() > MAX_NAME {
        return text.into_owned();
    }
    if let Ok(name) = rustc_demangle::try_demangle(&text) {
        let mut out = Bounded(String::new());
        // `#` leaves out the hash.
        if fmt::write(&mut out, format_args!("{name:#}")).is_ok() {
            return out.0;
        }
    } else if text.starts_with("_Z") {
        let options = cpp_demangle::DemangleOptions::new().recursion_limit(128);
        let mut out = Bounded(String::new());
        if let Ok(symbol) = cpp_demangle::Symbol::new(text.as_bytes())
            && symbol.structured_demangle(&mut out, &options).is_ok()
        {
            return out.0;
        }
    }
    text.into_owned()
}

/// Refuses what goes beyond [`MAX_NAME`].
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.0.len() + part.len() > MAX_NAME {
            return Err(fmt::Error);
        }
        self.0.push_str(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn rust_and_cpp_names_are_read_and_others_left() {
        assert_eq!(demangle(b"_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
        assert_eq!(demangle(b"_RNvCs1234_7mycrate3foo"), "mycrate::foo");
        assert_eq!(
            demangle(b"_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back(int const&)"
        );
        assert_eq!(demangle(b"PyEval_EvalCode"), "PyEval_EvalCode");
        assert_eq!(demangle(b"_Znope"), "_Znope");
        assert_eq!(demangle(b"caf\xe9"), "caf\u{fffd}");
    }

    #[test]
    fn a_name_without_end_is_not_followed() {
        let bomb = format!("_Z1f{}", "SI_".repeat(2000));
        assert!(demangle(bomb.as_bytes()).len() <= 4096 * 3);
        let long = vec![b'_'; 100_000];
        assert!(demangle(&long).len() <= 4096);
    }
}
