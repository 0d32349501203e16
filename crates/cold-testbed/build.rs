//! Compiles the BPF programs of a punctual test disk, with feature `bpf` only.

#![allow(clippy::print_stdout, clippy::disallowed_macros)] // how a build script talks to Cargo

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=src/bpf");
    #[cfg(feature = "bpf")]
    {
        println!("cargo:rerun-if-changed={}", cold_bpf_build::INCLUDE);
        cold_bpf_build::compile("src/bpf/times.bpf.c", "times", &[])?;
    }
    Ok(())
}
