//! Order files read back: for which linker, and which names.

use cold_model::order::Function;

use crate::write::Format;

/// What an order file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Whose form it has: [`Format::Lld`], [`Format::Gold`] or [`Format::Gnu`].
    pub format: Format,
    /// Names of functions in their order, each as often as it stands there.
    pub names: Vec<String>,
}

impl Order {
    /// The names as functions of one name each, for [`crate::write::written`].
    pub fn functions(&self) -> Vec<Function> {
        let one =
            |name: &String| Function { address: 0, bytes: 0, names: vec![name.clone()], sources: Vec::new() };
        self.names.iter().map(one).collect()
    }
}

/// Sections that hold the same function by how often a compiler guesses that it runs; [`crate::write`] names the plain
/// one of each function as well.
const GUESSES: [&str; 4] = ["hot.", "startup.", "unlikely.", "split."];

/// Reads an order file. One of a list of symbols may hold comments (`#`) and empty lines, as lld takes them.
pub fn order(text: &str) -> Order {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let is_script = lines().next().is_some_and(|line| line.starts_with(".text") && line.ends_with('{'));
    let name = |section: &str| {
        let name = section.strip_prefix(".text.")?;
        (!GUESSES.iter().any(|guess| name.starts_with(guess))).then(|| name.to_owned())
    };
    if is_script {
        let section = |line: &str| {
            let section = line.strip_prefix("*(")?.strip_suffix(')')?;
            name(section.trim_matches('"'))
        };
        return Order { format: Format::Gnu, names: lines().filter_map(section).collect() };
    }
    if lines().next().is_some() && lines().all(|line| line.starts_with(".text.")) {
        return Order { format: Format::Gold, names: lines().filter_map(name).collect() };
    }
    Order { format: Format::Lld, names: lines().map(str::to_owned).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::written;

    #[test]
    fn what_was_written_for_a_linker_is_read_back() {
        let names = ["main", "_ZN1a1bE", "f.llvm.3", "odd name's"].map(str::to_owned);
        let all = Order { format: Format::Lld, names: names.to_vec() }.functions();
        for format in [Format::Lld, Format::Gold, Format::Gnu] {
            let read = order(&written(&all.iter().collect::<Vec<_>>(), format));
            assert_eq!((read.format, &read.names[..]), (format, &names[..3]), "a blank makes a name unsound");
        }
        let commented = order("# of 3 starts\n\nmain\r\n  f\n");
        assert_eq!((commented.format, &commented.names[..]), (Format::Lld, &["main".into(), "f".into()][..]));
        assert!(order("").names.is_empty());
    }
}
