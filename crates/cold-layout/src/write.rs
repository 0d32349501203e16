//! Order files, as linkers take them.

use std::collections::HashSet;
use std::fmt::Write as _;

use cold_model::order::Function;

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// lld's `--symbol-ordering-file`: one symbol per line.
    Lld,
    /// gold's `--section-ordering-file`: one section per line.
    Gold,
    /// GNU ld's `--section-ordering-file` (binutils 2.43): a part of a linker script.
    Gnu,
    /// `-order_file` of Apple's ld and of lld for Mach-O, whose symbols begin with an underscore.
    Apple,
    /// `/ORDER:@FILE` of MSVC's link and lld-link.
    Msvc,
    /// BOLT's `--reorder-functions=user --function-order`.
    Bolt,
}

impl Format {
    /// What to give the linker, with the file's place for `FILE`.
    pub const fn usage(self) -> &'static str {
        match self {
            Self::Lld => "-Wl,--symbol-ordering-file=FILE -Wl,--no-warn-symbol-ordering (-fuse-ld=lld)",
            Self::Gold => "-Wl,--section-ordering-file=FILE (-fuse-ld=gold, -ffunction-sections)",
            Self::Gnu => "-Wl,--section-ordering-file=FILE (binutils 2.43, -ffunction-sections)",
            Self::Apple => "-Wl,-order_file,FILE",
            Self::Msvc => "/ORDER:@FILE (compiled with /Gy)",
            Self::Bolt => {
                "llvm-bolt --reorder-functions=user --function-order=FILE (linked with --emit-relocs)"
            }
        }
    }
}

/// The file for these functions in this order. Functions without a name are left out.
pub fn written(functions: &[&Function], format: Format) -> String {
    let mut out = String::new();
    let mut seen = HashSet::new();
    let mut line = |text: String| {
        if seen.insert(text.clone()) {
            out.push_str(&text);
            out.push('\n');
        }
    };
    // A line feed in a name would make two of one; tables that are made to harm have such.
    let is_sound = |name: &&String| !name.is_empty() && !name.contains(|c: char| c.is_control() || c == ' ');
    match format {
        // All names of a function: which of them the object file has the linker knows.
        Format::Lld | Format::Msvc => {
            functions
                .iter()
                .flat_map(|f| f.names.iter().filter(is_sound))
                .for_each(|name| line(name.clone()));
        }
        Format::Apple => {
            // Its lld strips these suffixes from the symbols that it compares with.
            let bare = |name: &String| name.split(".llvm.").next().unwrap_or_default().to_owned();
            let names = functions.iter().flat_map(|f| f.names.iter().filter(is_sound));
            names.for_each(|name| line(format!("_{}", bare(name))));
        }
        Format::Bolt => {
            let names = functions.iter().filter_map(|f| f.names.iter().find(is_sound));
            names.for_each(|name| line(name.clone()));
        }
        Format::Gold => {
            let names = functions.iter().flat_map(|f| f.names.iter().filter(is_sound));
            names.flat_map(|name| sections(name)).for_each(line);
        }
        Format::Gnu => {
            line(".text : {".to_owned());
            let names = functions.iter().flat_map(|f| f.names.iter().filter(is_sound));
            names
                .flat_map(|name| sections(name))
                .for_each(|section| line(format!("  *({})", quoted(&section))));
            line("}".to_owned());
        }
    }
    out
}

/// Sections in which compilers put a function: by how often they guess it runs. GCC puts `f.cold` beside what is
/// unlikely of `f`.
fn sections(name: &str) -> Vec<String> {
    if let Some(of) = name.strip_suffix(".cold") {
        return vec![format!(".text.unlikely.{of}"), format!(".text.split.{name}")];
    }
    ["", ".hot", ".startup", ".unlikely"].iter().map(|kind| format!(".text{kind}.{name}")).collect()
}

/// As a linker script takes it.
fn quoted(section: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '$' | '-');
    if section.chars().all(is_plain) {
        return section.to_owned();
    }
    let mut out = String::from("\"");
    for c in section.chars().filter(|c| *c != '"') {
        // Writing to a text does not fail.
        let _ = write!(out, "{c}");
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(names: &[&str]) -> Function {
        Function {
            address: 0,
            bytes: 8,
            names: names.iter().map(|n| (*n).to_owned()).collect(),
            sources: vec![],
        }
    }

    fn text(format: Format) -> String {
        let all = [
            function(&["main"]),
            function(&["f", "alias_of_f"]),
            function(&[]),
            function(&["f.cold"]),
            function(&["g.llvm.12"]),
            function(&["main"]),
            function(&["bad\nname", "a b"]),
        ];
        written(&all.iter().collect::<Vec<_>>(), format)
    }

    #[test]
    fn every_name_once_in_the_form_of_each_linker() {
        assert_eq!(text(Format::Lld), "main\nf\nalias_of_f\nf.cold\ng.llvm.12\n");
        assert_eq!(text(Format::Msvc), text(Format::Lld));
        assert_eq!(text(Format::Apple), "_main\n_f\n_alias_of_f\n_f.cold\n_g\n");
        assert_eq!(text(Format::Bolt), "main\nf\nf.cold\ng.llvm.12\n");
        let gold = text(Format::Gold);
        assert!(
            gold.starts_with(
                ".text.main\n.text.hot.main\n.text.startup.main\n.text.unlikely.main\n.text.f\n"
            )
        );
        assert_eq!(gold.matches(".text.unlikely.f\n").count(), 1, "that of f and of f.cold is one");
        let gnu = text(Format::Gnu);
        assert!(gnu.starts_with(".text : {\n  *(.text.main)\n") && gnu.ends_with("\n}\n"), "{gnu}");
    }

    #[test]
    fn a_section_with_other_letters_is_quoted() {
        assert_eq!(quoted(".text.a$b"), ".text.a$b");
        assert_eq!(quoted(".text.a<\"b>"), "\".text.a<b>\"");
    }
}
