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
    println!("cargo:rerun-if-changed={}", cold_bpf_build::INCLUDE);
    let arch = std::env::var_os("CARGO_CFG_TARGET_ARCH").ok_or("cargo sets CARGO_CFG_TARGET_ARCH")?;
    let target = match arch.to_str() {
        Some("x86_64") => "-D__TARGET_ARCH_x86",
        Some("aarch64") => "-D__TARGET_ARCH_arm64",
        other => return Err(format!("the BPF programs know no {other:?}: build without feature bpf").into()),
    };
    // Kernels before 5.17 refuse even the mention of bpf_loop: hence a second object for them.
    for (name, define) in [("new", "-UCOLD_OLD"), ("old", "-DCOLD_OLD")] {
        cold_bpf_build::compile("src/bpf/all.bpf.c", name, &[define, target])?;
    }
    Ok(())
}
