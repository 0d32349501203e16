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

/// What Debian calls the packages of all that is needed.
#[cfg(feature = "bpf")]
const NEEDS: &str = "the BPF programs need clang and llvm-strip (Debian: clang llvm libelf-dev zlib1g-dev)";

#[cfg(feature = "bpf")]
fn programs() -> Outcome {
    use std::env::var_os;
    use std::path::PathBuf;
    use std::process::Command;

    let out = PathBuf::from(var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    // The headers of the libbpf that is linked, from libbpf-sys' own build.
    let headers = PathBuf::from(var_os("DEP_BPF_INCLUDE").ok_or("libbpf-sys tells where its headers are")?);
    let target = match var_os("CARGO_CFG_TARGET_ARCH").ok_or("cargo sets CARGO_CFG_TARGET_ARCH")?.to_str() {
        Some("x86_64") => "-D__TARGET_ARCH_x86",
        Some("aarch64") => "-D__TARGET_ARCH_arm64",
        other => return Err(format!("the BPF programs know no {other:?}: build without feature bpf").into()),
    };
    // Kernels before 5.17 refuse even the mention of bpf_loop: hence a second object for them.
    for (name, define) in [("new", "-UCOLD_OLD"), ("old", "-DCOLD_OLD")] {
        let object = out.join(format!("{name}.bpf.o"));
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
        clang.arg("-Isrc/bpf").arg("-I").arg(&headers).args([define, target]);
        run("clang", clang.args(["-c", "src/bpf/all.bpf.c", "-o"]).arg(&object))?;
        // libbpf reads BTF as it is; relocations of its line numbers would be a quarter of the object.
        let sections = ["-g", "-R", ".rel.BTF", "-R", ".rel.BTF.ext"];
        run("llvm-strip", Command::new("llvm-strip").args(sections).arg(&object))?;
    }
    Ok(())
}

#[cfg(feature = "bpf")]
fn run(name: &str, command: &mut std::process::Command) -> Outcome {
    let done = command.output().map_err(|e| format!("{name}: {e}; {NEEDS}"))?;
    if done.status.success() {
        return Ok(());
    }
    Err(format!("{name} failed: {}\n{NEEDS}", String::from_utf8_lossy(&done.stderr)).into())
}
