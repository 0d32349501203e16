//! The user's build command, with the order added to what it tells the linker.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use cold_bench::command::line_of;
use cold_journal::{Guard, Journal};
use cold_model::Shown as _;
use cold_sys::whole::{self, Ownership};

use super::keep;
use super::linker::{Linker, output};
use crate::exit::Failure;

/// Whose build it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Cargo, whose flags for rustc are added to.
    Cargo,
    /// A compiler that links, whose arguments are added to.
    Compiler,
    /// Anything else, whose compilers find a linker of ours.
    Other,
}

/// A flag of compilers without which a linker cannot move single functions.
const SECTIONS: &str = "-ffunction-sections";
/// What encoded flags are separated by.
const SEPARATOR: &str = "\u{1f}";
/// Names under which compilers look for a linker.
const LINKERS: [&str; 4] = ["ld", "ld.bfd", "ld.gold", "ld.lld"];
/// GCC's compilers proper, which it starts itself.
const COMPILERS: [&str; 2] = ["cc1", "cc1plus"];

/// The command to run, and what it stands for.
pub(super) struct Build {
    pub(super) command: Command,
    /// The line to keep in the user's own build.
    pub(super) keep: String,
    /// Programs of ours that the build finds, until it is over.
    tools: Option<Guard>,
}

impl Build {
    /// Removes what was made for the build.
    pub(super) fn end(self) -> Result<(), Failure> {
        self.tools.map_or(Ok(()), |guard| guard.undo().map(drop).map_err(Failure::from))
    }
}

/// What the command line begins.
pub(super) fn kind(argv: &[OsString]) -> Result<Kind, Failure> {
    let name = argv.first().map(|a| Path::new(a).file_name().unwrap_or_default().to_string_lossy());
    let name = name.ok_or_else(|| Failure::usage("no build command is given"))?;
    let stem =
        name.rsplit_once('-').filter(|(_, n)| n.parse::<f32>().is_ok()).map_or(&*name, |(stem, _)| stem);
    let plain = stem.rsplit('-').next().unwrap_or(stem);
    // What a configuration finds it writes down: paths that are gone when the build is over.
    let configures = match &*name {
        "cmake" => !argv.iter().any(|a| a == "--build"),
        "configure" | "autogen.sh" => true,
        _ => false,
    };
    if configures {
        return Err(Failure::usage(format!(
            "{} configures a build, and would keep what it finds here",
            name.shown()
        ))
        .hint(
            "configure first, without cold; then: cold layout link … -- cmake --build DIRECTORY, or -- make",
        ));
    }
    Ok(match plain {
        "cargo" => Kind::Cargo,
        "cc" | "gcc" | "c++" | "g++" | "clang" | "clang++" => Kind::Compiler,
        _ => Kind::Other,
    })
}

/// Refuses what no compiler hands to its linker in one piece.
pub(super) fn takes(file: &Path) -> Result<(), Failure> {
    if file.as_os_str().as_bytes().iter().any(|b| matches!(b, b',' | b'\n')) {
        let why = format!("{}: compilers split linker options at commas", file.shown());
        return Err(Failure::usage(why).hint("give the order file a name without"));
    }
    Ok(())
}

/// The command with the order in `file`, for `linker`.
pub(super) fn build(kind: Kind, argv: &[OsString], linker: &Linker, file: &Path) -> Result<Build, Failure> {
    match kind {
        Kind::Cargo => cargo(argv, linker, file),
        Kind::Compiler => Ok(compiler(argv, linker, file)),
        Kind::Other => other(argv, linker, file),
    }
}

fn command(argv: &[OsString]) -> Command {
    let mut command = Command::new(argv.first().map_or(OsStr::new(""), |a| a));
    command.args(argv.iter().skip(1));
    command
}

fn compiler(argv: &[OsString], linker: &Linker, file: &Path) -> Build {
    let mut all = argv.to_vec();
    all.push(SECTIONS.into());
    all.extend(linker.compiler_arguments(file));
    Build { command: command(&all), keep: line_of(&all), tools: None }
}

fn cargo(argv: &[OsString], linker: &Linker, file: &Path) -> Result<Build, Failure> {
    let file = file.to_str().ok_or_else(|| Failure::usage("cargo takes no path that is not UTF-8"))?;
    let flags: Vec<String> = linker
        .compiler_arguments(Path::new(file))
        .iter()
        .map(|a| format!("-Clink-arg={}", a.to_string_lossy()))
        .collect();
    let toolchain = argv.get(1).is_some_and(|a| a.as_bytes().starts_with(b"+"));
    let after = if toolchain { 2 } else { 1 };
    // Only the program's own crate is compiled anew: nothing else has these flags.
    if argv.get(after).is_some_and(|a| a == "rustc") {
        let mut all = argv.to_vec();
        if !argv.iter().any(|a| a == "--") {
            all.push("--".into());
        }
        all.extend(flags.iter().map(Into::into));
        return Ok(Build { command: command(&all), keep: line_of(&all), tools: None });
    }
    let variable = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    let given = variable("CARGO_ENCODED_RUSTFLAGS").or_else(|| {
        let words = variable("RUSTFLAGS")?;
        Some(words.split_whitespace().collect::<Vec<_>>().join(SEPARATOR))
    });
    if let Some(given) = given {
        // Cargo takes these variables instead of every configuration.
        let mut command = command(argv);
        command.env("CARGO_ENCODED_RUSTFLAGS", [&[given][..], &flags].concat().join(SEPARATOR));
        let keep = format!("RUSTFLAGS=\"$RUSTFLAGS {}\" {}", flags.join(" "), line_of(argv));
        return Ok(Build { command, keep, tools: None });
    }
    let cargo = argv.first().and_then(|a| a.to_str()).unwrap_or("cargo");
    let key = if takes_build_flags(cargo) { "build" } else { "target.\"cfg(all())\"" };
    let list = serde_json::to_string(&flags)?; // strings of JSON are strings of TOML
    let mut all = argv.to_vec();
    all.splice(after..after, ["--config".into(), format!("{key}.rustflags={list}").into()]);
    Ok(Build { command: command(&all), keep: line_of(&all), tools: None })
}

/// Whether the configuration has flags in `build.rustflags` that any in `target` would put out of use. Only flags in
/// the same place are joined. `cargo config` is not stable yet; without an answer flags go to `target`, where most are.
fn takes_build_flags(cargo: &str) -> bool {
    let get = |key: &str| {
        let mut command = Command::new(cargo);
        command.args(["-Zunstable-options", "config", "get", "--format", "json-value", key]);
        let done = command.env("RUSTC_BOOTSTRAP", "1").output().ok().filter(|o| o.status.success())?;
        serde_json::from_slice::<serde_json::Value>(&done.stdout).ok()
    };
    let is_set = |value: &serde_json::Value| match value {
        serde_json::Value::Array(list) => !list.is_empty(),
        serde_json::Value::String(text) => !text.is_empty(),
        _ => false,
    };
    let targets = get("target");
    let of_targets = targets.as_ref().and_then(serde_json::Value::as_object).into_iter().flatten();
    let has_target = of_targets.filter_map(|(_, t)| t.get("rustflags")).any(&is_set);
    let in_environment = std::env::var("CARGO_BUILD_RUSTFLAGS").is_ok_and(|v| !v.is_empty());
    !has_target && (in_environment || get("build.rustflags").is_some_and(|flags| is_set(&flags)))
}

/// GCC and clang search `COMPILER_PATH` for the programs they start: there they find a linker that is given the order,
/// and GCC a compiler proper that puts each function into a section. clang takes the latter by `CCC_OVERRIDE_OPTIONS`.
fn other(argv: &[OsString], linker: &Linker, file: &Path) -> Result<Build, Failure> {
    let (directory, guard) = Journal::open()?.create_private("coldstart-link-")?;
    let before = std::env::var_os("COMPILER_PATH").filter(|v| !v.is_empty());
    let put = |name: &str, text: &[u8]| {
        let path = directory.join(name);
        let written = whole::write(&path, Ownership::Own(0o700), text);
        written.map_err(|e| anyhow::Error::new(e).context(format!("cannot write {}", path.shown())))
    };
    let script = linker_script(&linker.program, &linker.arguments(file));
    LINKERS.iter().try_for_each(|name| put(name, &script))?;
    COMPILERS.iter().try_for_each(|name| put(name, &compiler_script(name, before.as_deref())))?;
    let mut command = command(argv);
    let mut search = directory.into_os_string();
    if let Some(before) = before {
        search.push(":");
        search.push(before);
    }
    command.env("COMPILER_PATH", search);
    // The sign in front keeps clang from telling each change.
    let overrides = match std::env::var("CCC_OVERRIDE_OPTIONS") {
        Ok(given) if !given.is_empty() => format!("{given} +{SECTIONS}"),
        _ => format!("#+{SECTIONS}"),
    };
    command.env("CCC_OVERRIDE_OPTIONS", overrides);
    of_inner_cargo(&mut command, linker, file);
    let keep = keep::line(argv, SECTIONS, &linker.compiler_arguments(file));
    Ok(Build { command, keep, tools: Some(guard) })
}

/// A cargo that the build starts has its linker from rustc: it is told by the variable of its target.
fn of_inner_cargo(command: &mut Command, linker: &Linker, file: &Path) {
    let Some(told) = output("rustc", &["-vV"]) else { return };
    let Some(host) = told.lines().find_map(|l| l.strip_prefix("host:")) else { return };
    let flags = linker.compiler_arguments(file);
    let flags: Vec<String> = flags.iter().map(|a| format!("-Clink-arg={}", a.to_string_lossy())).collect();
    let taken = ["CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS"].into_iter().find(|name| std::env::var(name).is_ok());
    let own = format!("CARGO_TARGET_{}_RUSTFLAGS", host.trim().to_uppercase().replace('-', "_"));
    let name = taken.map_or(own, str::to_owned);
    let between = if name == "CARGO_ENCODED_RUSTFLAGS" { SEPARATOR } else { " " };
    // Only the encoded form takes blanks within a flag.
    if between == " " && flags.iter().any(|f| f.contains(char::is_whitespace)) {
        return;
    }
    let mut all: Vec<String> = std::env::var(&name).into_iter().filter(|v| !v.is_empty()).collect();
    all.extend(flags);
    command.env(name, all.join(between));
}

/// Links with the order, but for partial links, whose sections are placed later.
fn linker_script(program: &Path, arguments: &[OsString]) -> Vec<u8> {
    let program = quoted(program.as_os_str());
    let arguments: Vec<Vec<u8>> = arguments.iter().map(|a| quoted(a)).collect();
    let mut out =
        b"#!/bin/sh\nfor word in \"$@\"; do\n  case \"$word\" in -r|-i|--relocatable) exec ".to_vec();
    out.extend_from_slice(&program);
    out.extend_from_slice(b" \"$@\" ;; esac\ndone\nexec ");
    out.extend_from_slice(&program);
    out.extend_from_slice(b" \"$@\"");
    for argument in arguments {
        out.push(b' ');
        out.extend_from_slice(&argument);
    }
    out.push(b'\n');
    out
}

/// Starts the compiler proper of the GCC that asks for it, which tells its own name in `COLLECT_GCC`.
fn compiler_script(name: &str, before: Option<&OsStr>) -> Vec<u8> {
    let mut out = b"#!/bin/sh\n".to_vec();
    match before {
        Some(before) => {
            out.extend_from_slice(b"COMPILER_PATH=");
            out.extend_from_slice(&quoted(before));
            out.extend_from_slice(b"\nexport COMPILER_PATH\n");
        }
        None => out.extend_from_slice(b"unset COMPILER_PATH\n"),
    }
    let rest = format!(
        "real=$(\"${{COLLECT_GCC:?}}\" -print-prog-name={name}) || exit 1\n\
         case \"$real\" in /*) exec \"$real\" \"$@\" {SECTIONS} ;; esac\n\
         echo \"$COLLECT_GCC does not tell where its {name} is\" >&2\nexit 1\n"
    );
    out.extend_from_slice(rest.as_bytes());
    out
}

/// As one word of a shell, whatever it holds.
fn quoted(word: &OsStr) -> Vec<u8> {
    let mut out = vec![b'\''];
    for byte in word.as_bytes() {
        match byte {
            b'\'' => out.extend_from_slice(b"'\\''"),
            other => out.push(*other),
        }
    }
    out.push(b'\'');
    out
}

/// Directories that a build writes its program to: the one it runs in, and cargo's.
pub(super) fn places(kind: Kind, argv: &[OsString]) -> Vec<PathBuf> {
    let mut all = vec![PathBuf::from(".")];
    if kind == Kind::Cargo {
        let cargo = argv.first().and_then(|a| a.to_str()).unwrap_or("cargo");
        let mut ask = vec!["metadata", "--no-deps", "--format-version", "1"];
        let manifest = argv.iter().skip_while(|a| *a != "--manifest-path").nth(1).and_then(|a| a.to_str());
        ask.extend(manifest.into_iter().flat_map(|path| ["--manifest-path", path]));
        let told = output(cargo, &ask).and_then(|t| serde_json::from_str::<serde_json::Value>(&t).ok());
        let target = told.and_then(|v| v.get("target_directory")?.as_str().map(PathBuf::from));
        let chosen = argv.iter().skip_while(|a| *a != "--target-dir").nth(1).map(PathBuf::from);
        all.extend(chosen.or(target).filter(|dir| dir.is_dir()));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(Into::into).collect()
    }

    #[test]
    fn builds_are_known_by_their_first_word() {
        for (line, expected) in [
            ("cargo build", Kind::Cargo),
            ("/usr/bin/x86_64-linux-gnu-gcc-12 a.c", Kind::Compiler),
            ("clang++-19 a.cc", Kind::Compiler),
            ("make -j2", Kind::Other),
            ("cmake --build out", Kind::Other),
        ] {
            assert_eq!(kind(&words(line)).ok(), Some(expected), "{line}");
        }
        assert!(kind(&words("cmake -S . -B out")).is_err() && kind(&words("./configure")).is_err());
        assert!(kind(&[]).is_err());
    }

    #[test]
    fn a_shell_gets_back_what_was_quoted() {
        let script = linker_script(Path::new("/a b/it's"), &["--x=/c d".into()]);
        let script = String::from_utf8(script).expect("text");
        assert!(script.ends_with("exec '/a b/it'\\''s' \"$@\" '--x=/c d'\n"), "{script}");
    }
}
