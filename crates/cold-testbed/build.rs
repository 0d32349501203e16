//! Compiles the BPF programs of a punctual test disk, with feature `bpf` only.

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
    use std::env::var_os;

    let object = std::path::PathBuf::from(var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?).join("times.bpf.o");
    // The headers of the libbpf that is linked, from libbpf-sys' own build.
    let headers = var_os("DEP_BPF_INCLUDE").ok_or("libbpf-sys tells where its headers are")?;
    let mut clang = std::process::Command::new("clang");
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
    clang.arg("-I").arg(&headers).args(["-c", "src/bpf/times.bpf.c", "-o"]).arg(&object);
    let done = clang.output().map_err(|e| format!("clang: {e} (Debian: clang)"))?;
    if done.status.success() {
        return Ok(());
    }
    Err(format!("clang failed: {}", String::from_utf8_lossy(&done.stderr)).into())
}
