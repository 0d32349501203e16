//! Against what binutils read of programs that are compiled here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;

use super::*;

const SOURCE: &str = r#"
#include <stdio.h>
int data_in_text[4] __attribute__((section(".text.zz,\"ax\",@progbits#"))) = {1, 2, 3, 4};
__attribute__((noinline)) static int own(int n) { return n * 3 + 1; }
__attribute__((noinline)) int shared(int n) { return own(n) ^ data_in_text[n & 3]; }
int alias_of_shared(int n) __attribute__((alias("shared")));
static int fast(int n) { return n + 2; }
static int (*resolve(void))(int) { return fast; }
int chosen(int n) __attribute__((ifunc("resolve")));
__attribute__((noinline, cold)) void rare(int n) { printf("%d\n", n); }
int main(int argc, char **argv) { if (argc > 3) rare(argc); return shared(argc) + chosen(argc) > 1000; }
"#;

/// The program linked in this way; `None` where this machine cannot.
fn compiled(dir: &Path, name: &str, flags: &[&str]) -> Option<PathBuf> {
    let (source, out) = (dir.join("it.c"), dir.join(name));
    std::fs::write(&source, SOURCE).unwrap();
    let status =
        Command::new("gcc").args(["-O2", "-w"]).args(flags).arg("-o").arg(&out).arg(&source).status();
    cold_testbed::need(status.is_ok_and(|s| s.success()), "gcc").then_some(out)
}

fn output(program: &str, args: &[&str], file: &Path) -> String {
    let out = Command::new(program).args(args).arg(file).output().unwrap();
    assert!(out.status.success(), "{program} {args:?}");
    String::from_utf8(out.stdout).unwrap()
}

fn read(file: &Path) -> Functions {
    of_bytes(&std::fs::read(file).unwrap(), None).unwrap()
}

/// Names and addresses of functions as `nm` knows them.
fn by_nm(file: &Path, args: &[&str]) -> BTreeMap<u64, BTreeSet<String>> {
    let mut all: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    // NAME|VALUE|CLASS|TYPE|SIZE|LINE|SECTION
    for line in output("nm", &[&["-f", "sysv", "--defined-only"], args].concat(), file).lines() {
        let words: Vec<&str> = line.split('|').map(str::trim).collect();
        if let [name, value, _, "FUNC" | "IFUNC", ..] = words[..] {
            let name = name.split('@').next().unwrap().to_owned();
            all.entry(u64::from_str_radix(value, 16).unwrap()).or_default().insert(name);
        }
    }
    all
}

/// Addresses and lengths of FDEs as readelf knows them.
fn by_readelf(file: &Path) -> BTreeMap<u64, u64> {
    let text = output("readelf", &["--wide", "--debug-dump=frames,no-follow-links"], file);
    let ranges = text.lines().filter(|l| l.contains(" FDE ")).filter_map(|l| l.split("pc=").nth(1));
    let ends = ranges.filter_map(|r| r.split_once(".."));
    let hex = |t: &str| u64::from_str_radix(t.trim(), 16).unwrap();
    ends.map(|(a, b)| (hex(a), hex(b) - hex(a))).collect()
}

#[test]
fn programs_of_every_linkage_have_the_functions_that_nm_lists() {
    let dir = tempfile::tempdir().unwrap();
    let ways: [(&str, &[&str], Linked); 5] = [
        ("pie", &["-pie", "-fPIE"], Linked::Pie),
        ("fixed", &["-no-pie", "-fno-pie"], Linked::Fixed),
        ("static", &["-static", "-no-pie", "-fno-pie"], Linked::Static),
        ("static-pie", &["-static-pie", "-fPIE"], Linked::StaticPie),
        ("library", &["-shared", "-fPIC", "-Wl,-soname,it"], Linked::Library),
    ];
    for (name, flags, linked) in ways {
        let Some(file) = compiled(dir.path(), name, flags) else { return };
        let read = read(&file);
        assert_eq!(read.linked, linked, "{name}");
        let nm = by_nm(&file, &[]);
        for (address, names) in &nm {
            let found = read.at(*address).unwrap_or_else(|| panic!("{name}: {names:?} at {address:#x}"));
            let texts: BTreeSet<String> = found.names.iter().map(|n| n.text.clone()).collect();
            assert!(texts.is_superset(names), "{name}: {texts:?} has not all of {names:?}");
            assert!(found.sources.has(Sources::SYMTAB) && found.bytes > 0, "{name}: {found:?}");
        }
        // Every other function is known by an FDE alone.
        let extra = read.functions.iter().filter(|f| !nm.contains_key(&f.address));
        for f in extra {
            assert_eq!(f.sources.names().collect::<Vec<_>>(), ["eh_frame"], "{name}: {f:x?}");
        }
        assert!(read.functions.windows(2).all(|w| w[0].address < w[1].address));
        assert!(!read.functions.iter().any(|f| f.names.iter().any(|n| n.text == "data_in_text")), "{name}");
        let shared = read.functions.iter().find(|f| f.names.iter().any(|n| n.text == "shared")).unwrap();
        assert!(shared.names.iter().any(|n| n.text == "alias_of_shared" && !n.local), "{shared:?}");
        let own = read.functions.iter().find(|f| f.names.iter().any(|n| n.text == "own"));
        assert!(own.is_none_or(|f| f.names.iter().all(|n| n.local)), "{own:?}");
    }
}

#[test]
fn a_stripped_program_has_its_frames_and_with_its_debug_file_its_names() {
    let dir = tempfile::tempdir().unwrap();
    let Some(whole) = compiled(dir.path(), "whole", &["-Wl,--build-id"]) else { return };
    let (stripped, debug) = (dir.path().join("stripped"), dir.path().join("debug"));
    for (flag, out) in [("--strip-all", &stripped), ("--only-keep-debug", &debug)] {
        let ran = Command::new("objcopy").arg(flag).args([&whole, out]).status().unwrap();
        assert!(ran.success());
    }
    let (alone, whole) = (read(&stripped), read(&whole));
    let frames = by_readelf(&stripped);
    for f in &alone.functions {
        assert!(f.names.is_empty() || f.sources.has(Sources::DYNSYM), "{f:?}");
        assert_eq!(frames.get(&f.address), Some(&f.bytes), "{f:x?}");
    }
    let named = |wanted: &str| {
        whole.functions.iter().find(|f| f.names.iter().any(|n| n.text == wanted)).unwrap().address
    };
    for name in ["main", "shared", "rare", "_start"] {
        assert!(alone.at(named(name)).is_some_and(|f| f.names.is_empty()), "{name}");
    }
    let bytes = |path| std::fs::read(path).unwrap();
    let both = of_bytes(&bytes(&stripped), Some(&bytes(&debug))).unwrap();
    let facts =
        |t: &Functions| t.functions.iter().map(|f| (f.address, f.bytes, f.names.clone())).collect::<Vec<_>>();
    assert_eq!(facts(&both), facts(&whole));
    assert!(both.at(named("main")).unwrap().sources.has(Sources::DEBUG_FILE.and(Sources::FRAME)));
    assert_eq!(both.build_id, whole.build_id);
    assert!(both.build_id.is_some_and(|id| output("readelf", &["-n"], &stripped).contains(&id)));
}

#[test]
fn the_c_library_has_all_functions_of_its_dynamic_symbols_and_frames() {
    let Some(libc) =
        ["/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6", "/lib64/libc.so.6"]
            .map(Path::new)
            .into_iter()
            .find(|p| p.exists())
    else {
        let _ = cold_testbed::need(false, "libc.so.6");
        return;
    };
    let read = read(libc);
    assert_eq!(read.linked, Linked::Library);
    for (address, names) in by_nm(libc, &["-D"]) {
        assert!(read.at(address).is_some_and(|f| f.sources.has(Sources::DYNSYM)), "{names:?}");
    }
    let plt = output("readelf", &["-SW"], libc);
    let plt: Vec<(u64, u64)> = plt
        .lines()
        .filter_map(|l| l.split_once("] .plt"))
        .map(|(_, l)| {
            let words: Vec<&str> = l.split_whitespace().collect();
            let at = words.iter().position(|w| *w == "PROGBITS").unwrap();
            let hex = |n: usize| u64::from_str_radix(words[at + n], 16).unwrap();
            (hex(1), hex(1) + hex(3))
        })
        .collect();
    let in_plt = |a: u64| plt.iter().any(|(first, end)| (*first..*end).contains(&a));
    let missing: Vec<u64> =
        by_readelf(libc).into_keys().filter(|a| !in_plt(*a) && read.at(*a).is_none()).collect();
    assert!(missing.len() <= 2, "but for the signal trampoline's: {missing:x?}");
    assert!(!read.functions.iter().any(|f| in_plt(f.address)));
}

#[test]
fn what_is_no_elf_file_is_an_error() {
    for bytes in [&b""[..], b"\x7fELF", b"#!/bin/sh\n", b"MZ\x90\0\x03\0\0\0"] {
        assert!(matches!(of_bytes(bytes, None), Err(Error::NotElf(_))));
    }
}

/// A small program with all tables, without the C library.
fn small() -> Option<Vec<u8>> {
    let dir = tempfile::tempdir().unwrap();
    compiled(dir.path(), "small", &["-shared", "-fPIC", "-nostdlib", "-Wl,--build-id"])
        .map(|file| std::fs::read(file).unwrap())
}

proptest! {
    #[test]
    fn damaged_files_are_read_to_an_end(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        static SMALL: std::sync::OnceLock<Option<Vec<u8>>> = std::sync::OnceLock::new();
        let Some(whole) = SMALL.get_or_init(small) else { return Ok(()) };
        let mut bytes = whole.clone();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(read) = of_bytes(&bytes, Some(whole)) {
            for f in &read.functions {
                prop_assert!(f.address.checked_add(f.bytes).is_some());
                prop_assert!(read.texts.iter().any(|t| f.address - t.address.min(f.address) < t.bytes));
            }
        }
    }
}
