//! Compiles the BPF programs, with feature `bpf` only: the rest of the crate builds without clang.

fn main() {
    println!("cargo:rerun-if-changed=src/bpf");
    #[cfg(feature = "bpf")]
    programs();
}

#[cfg(feature = "bpf")]
fn programs() {
    use std::path::PathBuf;

    let object = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("all.bpf.o");
    // v3 (32-bit arithmetic, all comparisons): Linux 5.1, and every kernel with a ring buffer (5.8).
    let arguments = ["-mcpu=v3", "-Wall", "-Wextra", "-Werror", "-Isrc/bpf"];
    let built = libbpf_cargo::SkeletonBuilder::new()
        .source("src/bpf/all.bpf.c")
        .obj(&object)
        .clang_args(arguments)
        .build();
    if let Err(error) = built {
        println!("cargo:warning=the BPF programs need clang (Debian: clang llvm libelf-dev zlib1g-dev)");
        eprintln!("{error:#}");
        std::process::exit(1);
    }
}
