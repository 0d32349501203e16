use std::process::Command;

use super::*;

/// `chain.c`, compiled with these options; `None` without a compiler.
pub(crate) fn chain(dir: &Path, options: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/unwind/chain.c");
    let program = dir.join("chain");
    let compiled = Command::new("gcc").arg("-O2").args(options).arg("-o").arg(&program).arg(source).status();
    let compiles = compiled.is_ok_and(|status| status.success());
    cold_testbed::need(compiles, "gcc").then_some(program)
}

/// What the program wrote: registers, stack, mappings.
struct Dump {
    registers: Registers,
    stack: Vec<u8>,
    maps: String,
}

fn dump(program: &Path) -> Dump {
    let output = Command::new(program).output().unwrap().stdout;
    let word = |n: usize| u64::from_le_bytes(*output[8 * n..].first_chunk().unwrap());
    let end = 40 + word(4) as usize;
    let registers = if cfg!(target_arch = "aarch64") {
        Registers::Aarch64 { pc: word(0), sp: word(1), fp: word(2), lr: word(3) }
    } else {
        Registers::X86_64 { ip: word(0), sp: word(1), bp: word(2) }
    };
    let maps = String::from_utf8(output[end..].to_vec()).unwrap();
    Dump { registers, stack: output[40..end].to_vec(), maps }
}

fn map_all(unwinder: &mut Unwinder, pid: u32, maps: &str) {
    for m in cold_sys::procfs::parse_maps(maps) {
        if let Some(path) = m.path.filter(|p| p.is_absolute() && m.perms.contains(&b'x')) {
            unwinder.map(pid, m.start, m.end - m.start, m.offset, &path);
        }
    }
}

/// Functions of `program` by their addresses, from nm.
fn functions(program: &Path, maps: &str, addresses: &[u64]) -> Vec<String> {
    let nm = Command::new("nm").arg("-S").arg(program).output().unwrap();
    let maps = cold_sys::procfs::parse_maps(maps);
    let base = maps.iter().find(|m| m.path.as_deref() == Some(program)).unwrap().start;
    let fixed = base < 0x1000_0000;
    let symbols: Vec<(u64, u64, String)> = String::from_utf8(nm.stdout)
        .unwrap()
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let mut number = || u64::from_str_radix(words.next()?, 16).ok();
            let (at, bytes) = (number()?, number()?);
            Some((at + if fixed { 0 } else { base }, bytes, words.nth(1)?.to_owned()))
        })
        .collect();
    let name = |a: &u64| symbols.iter().find(|(at, n, _)| at <= a && a < &(at + n)).map(|s| s.2.clone());
    addresses.iter().filter_map(name).collect()
}

const CHAIN: [&str; 5] = ["deepest", "third", "second", "first", "main"];

#[test]
fn a_copied_stack_gives_the_chain_of_calls() {
    let dir = tempfile::tempdir().unwrap();
    for options in [
        &["-fomit-frame-pointer"][..],
        &["-fno-omit-frame-pointer"],
        &["-fomit-frame-pointer", "-no-pie"],
        &["-fomit-frame-pointer", "-static"],
        &["-fomit-frame-pointer", "-Wl,--no-eh-frame-hdr"],
    ] {
        let Some(program) = chain(dir.path(), options) else { return };
        let dump = dump(&program);
        let mut unwinder = Unwinder::new();
        map_all(&mut unwinder, 7, &dump.maps);
        let found = unwinder.unwind(7, &dump.registers, &dump.stack);
        let names = functions(&program, &dump.maps, &found.addresses);
        assert_eq!(names[..5], CHAIN, "{options:?} {found:x?}");
        // main's callers in the C library, up to _start, which says that it is the outermost.
        assert_eq!(names.last().map(String::as_str), Some("_start"), "{options:?}");
        assert!(!found.truncated, "{options:?}");
        if let Some(half) = dump.stack.get(..dump.stack.len() / 64) {
            let part = unwinder.unwind(7, &dump.registers, half);
            assert!(part.truncated && found.addresses.starts_with(&part.addresses), "{part:x?}");
        }
    }
}

#[test]
fn mappings_follow_fork_exec_and_new_mappings() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = chain(dir.path(), &["-fomit-frame-pointer"]) else { return };
    let dump = dump(&program);
    let mut unwinder = Unwinder::new();
    map_all(&mut unwinder, 7, &dump.maps);
    let whole = unwinder.unwind(7, &dump.registers, &dump.stack);
    unwinder.fork(7, 8);
    unwinder.clear(7);
    assert_eq!(unwinder.unwind(8, &dump.registers, &dump.stack), whole);
    assert_eq!(unwinder.unwind(7, &dump.registers, &dump.stack).addresses, whole.addresses[..1]);
    // Another file over the program: its tables no longer count.
    let base = cold_sys::procfs::parse_maps(&dump.maps)[0].start;
    unwinder.map(8, base, 1 << 20, 0, Path::new("/etc/hostname"));
    let other = unwinder.unwind(8, &dump.registers, &dump.stack);
    assert!(other.truncated && other.addresses.len() < 4, "{other:x?}");
}

#[test]
fn a_mapping_is_cut_where_another_one_lies() {
    let path = PathBuf::from("/x");
    let mapped = |first, end, offset| Mapped { first, end, offset, path: path.clone() };
    let mut all = vec![mapped(0x1000, 0x9000, 0), mapped(0xa000, 0xb000, 0), mapped(0x4000, 0x4800, 0)];
    cut(&mut all, 0x3000, 0x5000);
    let left: Vec<_> = all.iter().map(|m| (m.first, m.end, m.offset)).collect();
    assert_eq!(left, [(0x1000, 0x3000, 0), (0xa000, 0xb000, 0), (0x5000, 0x9000, 0x4000)]);
}
