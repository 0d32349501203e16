//! For build scripts: BPF programs in C, compiled with clang against the headers of the libbpf that is linked.
//!
//! Programs begin with `#include <cold/bpf.h>`. Prints nothing; what Cargo has to be told is for the build script.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml

use std::env::var_os;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where `cold/bpf.h` lies; a change of it asks for a new build.
pub const INCLUDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/include");

/// What Debian calls the packages of all that is needed.
const NEEDS: &str = "the BPF programs need clang and llvm-strip (Debian: clang llvm libelf-dev zlib1g-dev)";

/// Compiles `source`, a path below the crate, with clang's further `arguments`, into `OUT_DIR/name.bpf.o`.
///
/// # Errors
/// Where a tool is missing or refuses the source, and outside a build script of a crate that depends on libbpf-sys.
pub fn compile(source: &str, name: &str, arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    let object = PathBuf::from(var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?).join(format!("{name}.bpf.o"));
    // From libbpf-sys' own build.
    let headers = var_os("DEP_BPF_INCLUDE").ok_or("libbpf-sys tells where its headers are")?;
    let mut clang = Command::new("clang");
    // v3 (32-bit arithmetic, all comparisons): Linux 5.1, and every kernel with a ring buffer (5.8). -g is where
    // BTF comes from; of it, the DWARF goes again.
    clang.args([
        "-target",
        "bpf",
        "-mcpu=v3",
        "-O2",
        "-g",
        "-fno-stack-protector",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]);
    clang.args(["-I", INCLUDE, "-I"]).arg(&headers).args(arguments).args(["-c", source, "-o"]).arg(&object);
    run("clang", &mut clang)?;
    run("llvm-strip", &mut strip(&object))
}

/// libbpf reads BTF as it is; relocations of its line numbers would be a quarter of the object.
fn strip(object: &Path) -> Command {
    let mut strip = Command::new("llvm-strip");
    strip.args(["-g", "-R", ".rel.BTF", "-R", ".rel.BTF.ext"]).arg(object);
    strip
}

fn run(name: &str, command: &mut Command) -> Result<(), Box<dyn Error>> {
    let done = command.output().map_err(|e| format!("{name}: {e}; {NEEDS}"))?;
    if done.status.success() {
        return Ok(());
    }
    Err(format!("{name} failed: {}\n{NEEDS}", String::from_utf8_lossy(&done.stderr)).into())
}
