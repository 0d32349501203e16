//! Linkers that can place functions in an order, and what they are told.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use cold_layout::write::Format;
use cold_sys::search;

use crate::exit::Failure;

/// GNU ld takes an order from this version on.
const GNU: (u32, u32) = (2, 43);
/// rustc links by its own lld from this minor version on, on x86-64 Linux with the GNU C library.
const OWN_LLD: u32 = 90;
/// Versions of lld as distributions number them, the newest first.
const VERSIONS: std::ops::RangeInclusive<u32> = 12..=40;

/// A linker that is there, and which flags it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Linker {
    /// Which one, by the form of the order file that it takes.
    pub(super) format: Format,
    /// Path of its executable.
    pub(super) program: PathBuf,
    /// Where a compiler finds it, when it would not by itself.
    directory: Option<PathBuf>,
}

impl Linker {
    /// Its name as `-fuse-ld=` takes it.
    pub(super) fn name(&self) -> &'static str {
        match self.format {
            Format::Gold => "gold",
            Format::Gnu => "bfd",
            _ => "lld",
        }
    }

    /// What the linker itself is given, with the order in `file`.
    pub(super) fn arguments(&self, file: &Path) -> Vec<OsString> {
        let option =
            if self.format == Format::Lld { "--symbol-ordering-file=" } else { "--section-ordering-file=" };
        let mut order = OsString::from(option);
        order.push(file);
        let mut all = vec![order];
        if self.format == Format::Lld {
            all.push("--no-warn-symbol-ordering".into());
        }
        all
    }

    /// What a compiler that links is given.
    pub(super) fn compiler_arguments(&self, file: &Path) -> Vec<OsString> {
        let mut all: Vec<OsString> = Vec::new();
        if let Some(directory) = &self.directory {
            all.push(joined("-B", directory.as_os_str()));
        }
        all.push(format!("-fuse-ld={}", self.name()).into());
        all.extend(self.arguments(file).iter().map(|a| joined("-Wl,", a)));
        all
    }
}

fn joined(head: &str, tail: &OsStr) -> OsString {
    let mut out = OsString::from(head);
    out.push(tail);
    out
}

/// The linker that is wanted (`auto`, `lld`, `gold`, `bfd`); `for_rust`: rustc calls it.
pub(super) fn find(wanted: &str, for_rust: bool) -> Result<Linker, Failure> {
    let (lld, own) = (system_lld, || own_lld(for_rust));
    let found = match wanted {
        "lld" => lld().or_else(own),
        "gold" => gold(),
        "bfd" => gnu(),
        _ if for_rust => own().or_else(lld).or_else(gold).or_else(gnu),
        _ => lld().or_else(gold).or_else(gnu).or_else(own),
    };
    found.ok_or_else(|| {
        let (what, hint) = match wanted {
            "lld" => ("ld.lld is not here", "install lld (Debian: apt install lld)"),
            "gold" => (
                "ld.gold is not here",
                "install gold (Debian 12: apt install binutils; later: binutils-gold)",
            ),
            "bfd" => (
                "GNU ld takes an order from binutils 2.43 on, and the one here is older or absent",
                "--linker lld or --linker gold",
            ),
            _ => (
                "no linker here can place functions in an order; mold and older GNU ld cannot",
                "install lld (Debian: apt install lld)",
            ),
        };
        Failure::from(anyhow::anyhow!(what)).hint(hint)
    })
}

fn in_path(name: &str) -> Option<PathBuf> {
    search::find(OsStr::new(name), std::env::var_os("PATH").as_deref(), Path::new("."))
}

fn system_lld() -> Option<Linker> {
    if let Some(program) = in_path("ld.lld") {
        return Some(Linker { format: Format::Lld, program, directory: None });
    }
    // GCC knows no `-fuse-ld=lld-19`: it is told the directory in which that one is called ld.lld.
    let program = VERSIONS.rev().find_map(|n| in_path(&format!("ld.lld-{n}")))?;
    let directory = program.canonicalize().ok()?.parent()?.to_owned();
    let plain = directory.join("ld.lld");
    if plain.is_file() {
        return Some(Linker { format: Format::Lld, program: plain, directory: Some(directory) });
    }
    None
}

/// The lld that comes with rustc.
fn own_lld(for_rust: bool) -> Option<Linker> {
    let told = output("rustc", &["-vV"])?;
    let field = |name: &str| told.lines().find_map(|l| l.strip_prefix(name)).map(str::trim);
    let (host, release) = (field("host:")?, field("release:")?);
    let sysroot = output("rustc", &["--print", "sysroot"])?;
    let directory = Path::new(sysroot.trim()).join("lib/rustlib").join(host).join("bin/gcc-ld");
    let program = directory.join("ld.lld");
    let minor: u32 = release.split('.').nth(1)?.parse().ok()?;
    let is_default = for_rust && minor >= OWN_LLD && host == "x86_64-unknown-linux-gnu";
    let directory = (!is_default).then_some(directory);
    program.is_file().then_some(Linker { format: Format::Lld, program, directory })
}

fn gold() -> Option<Linker> {
    let program = in_path("ld.gold")?;
    Some(Linker { format: Format::Gold, program, directory: None })
}

fn gnu() -> Option<Linker> {
    let program = in_path("ld.bfd")?;
    let told = output(program.to_str()?, &["--version"])?;
    (version(&told)? >= GNU).then_some(Linker { format: Format::Gnu, program, directory: None })
}

/// `GNU ld (GNU Binutils for Debian) 2.40` as (2, 40).
fn version(told: &str) -> Option<(u32, u32)> {
    let mut parts = told.lines().next()?.rsplit(' ').next()?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// What a tool says of itself.
pub(super) fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let done = Command::new(program).args(arguments).output().ok().filter(|o| o.status.success())?;
    String::from_utf8(done.stdout).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_stands_at_the_end_of_the_first_line() {
        assert_eq!(version("GNU ld (GNU Binutils for Debian) 2.40\nCopyright"), Some((2, 40)));
        assert_eq!(version("GNU ld version 2.43.1"), Some((2, 43)));
        assert_eq!(version("other"), None);
    }

    #[test]
    fn each_linker_is_told_in_its_own_words() {
        let linker = |format, directory: Option<&str>| Linker {
            format,
            program: "/bin/ld".into(),
            directory: directory.map(Into::into),
        };
        let words = |l: Linker| l.compiler_arguments(Path::new("/o.txt"));
        assert_eq!(
            words(linker(Format::Lld, Some("/llvm"))),
            ["-B/llvm", "-fuse-ld=lld", "-Wl,--symbol-ordering-file=/o.txt", "-Wl,--no-warn-symbol-ordering"]
        );
        assert_eq!(words(linker(Format::Gnu, None)), ["-fuse-ld=bfd", "-Wl,--section-ordering-file=/o.txt"]);
    }
}
