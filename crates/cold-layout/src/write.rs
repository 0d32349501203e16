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

/// What to give lld for [`temporal_profile`].
pub const PROFILE_USAGE: &str =
    "-Wl,--irpgo-profile=FILE -Wl,--bp-startup-sort=function (-fuse-ld=lld of LLVM 21)";

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
    let is_sound = |name: &&String| is_sound(name);
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

/// lld's text profile (`--irpgo-profile=FILE --bp-startup-sort=function`, LLVM 21) of which functions each scenario
/// enters, in the order of their first entries: from it lld orders by balanced partitioning, which puts together what
/// the same scenarios enter. Weights are 1. The records behind the traces say that each function ran once, which is all
/// that lld wants of them. Source: LLVM's `InstrProfReader.cpp` (`TextInstrProfReader`).
pub fn temporal_profile(scenarios: &[Vec<&Function>]) -> String {
    let named = |list: &[&Function]| -> Vec<String> {
        let names =
            list.iter().filter_map(|f| f.names.iter().find(|name| is_sound(name) && !name.contains(',')));
        names.cloned().collect()
    };
    let traces: Vec<Vec<String>> = scenarios.iter().map(|s| named(s)).filter(|t| !t.is_empty()).collect();
    let count = traces.len();
    let mut out = format!(
        "# IR level Instrumentation Flag\n:ir\n:temporal_prof_traces\n# Num Traces\n{count}\n# Trace Stream Size:\n{count}\n"
    );
    let mut seen = HashSet::new();
    let mut records = String::new();
    for trace in &traces {
        out.push_str("# Weight\n1\n");
        out.push_str(&trace.join(","));
        out.push('\n');
        for name in trace.iter().filter(|name| seen.insert(name.as_str())) {
            records.push_str(name);
            records.push_str("\n# Func Hash:\n0\n# Num Counters:\n1\n# Counter Values:\n1\n\n");
        }
    }
    out.push('\n');
    out + &records
}

/// A line feed in a name would make two of one; tables that are made to harm have such.
fn is_sound(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_control() || c == ' ')
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
    fn a_profile_has_a_trace_for_each_scenario_and_each_function_once() {
        let (main, f, g) = (function(&["main"]), function(&["f", "alias"]), function(&["g"]));
        let (none, bad) = (function(&[]), function(&["a,b"]));
        let text = temporal_profile(&[vec![&main, &f, &bad], vec![&none], vec![&main, &g]]);
        let (head, records) = text.split_once("\n\n").unwrap();
        assert_eq!(
            head,
            "# IR level Instrumentation Flag\n:ir\n:temporal_prof_traces\n# Num Traces\n2\n# Trace Stream Size:\n2\n\
             # Weight\n1\nmain,f\n# Weight\n1\nmain,g"
        );
        let names: Vec<_> = records.split("\n\n").filter_map(|r| r.lines().next()).collect();
        assert_eq!(names, ["main", "f", "g"]);
    }

    #[test]
    fn a_section_with_other_letters_is_quoted() {
        assert_eq!(quoted(".text.a$b"), ".text.a$b");
        assert_eq!(quoted(".text.a<\"b>"), "\".text.a<b>\"");
    }
}
