//! Compiles the BPF programs, with feature `bpf` only: the rest of the crate builds without clang.

#![allow(clippy::print_stdout, clippy::disallowed_macros)] // how a build script talks to Cargo

/// What went wrong, as Cargo shows it.
type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    println!("cargo:rerun-if-changed=src/bpf");
    programs()
}

#[cfg(not(feature = "bpf"))]
#[allow(clippy::unnecessary_wraps)] // the other one can fail
fn programs() -> Outcome {
    Ok(())
}

#[cfg(feature = "bpf")]
fn programs() -> Outcome {
    use std::path::PathBuf;

    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    // Kernels before 5.17 refuse even the mention of bpf_loop: hence a second object for them.
    for (name, define) in [("new", "-UCOLD_OLD"), ("old", "-DCOLD_OLD")] {
        // v3 (32-bit arithmetic, all comparisons): Linux 5.1, and every kernel with a ring buffer (5.8).
        let arguments = ["-mcpu=v3", "-Wall", "-Wextra", "-Werror", "-Isrc/bpf", define];
        libbpf_cargo::SkeletonBuilder::new()
            .source("src/bpf/all.bpf.c")
            .obj(out.join(format!("{name}.bpf.o")))
            .clang_args(arguments)
            .build()
            .map_err(|error| {
                format!("the BPF programs need clang (Debian: clang llvm libelf-dev zlib1g-dev): {error:#}")
            })?;
    }
    Ok(())
}
