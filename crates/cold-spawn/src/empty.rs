//! Two programs that do nothing, as ELF images: what creating a process costs with no program in it.
//!
//! Made here byte by byte (ELF-64, System V ABI), because no compiler can be expected where `cold` runs.
//! The static one is one page that calls `exit_group(0)`; the dynamic one names the C library's loader as
//! its interpreter and `libc.so.6` as needed, so the loader maps, relocates and initialises the C library
//! before the same call.

use std::path::Path;

/// Address of the only segment.
const BASE: u64 = 0x40_0000;
const EHDR: u64 = 64;
const PHDR: u64 = 56;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const PT_GNU_STACK: u32 = 0x6474_e551;
const READ: u32 = 4;
const WRITE: u32 = 2;
const EXEC: u32 = 1;

/// What differs between processors.
struct Machine {
    /// `e_machine`.
    number: u16,
    /// `exit_group(0)`.
    exit: &'static [u8],
    /// Path of glibc's dynamic loader, which the interpreter of a dynamic program names.
    loader: &'static str,
}

#[cfg(target_arch = "x86_64")]
const MACHINE: Option<Machine> = Some(Machine {
    number: 62,
    // mov eax, 231; xor edi, edi; syscall
    exit: &[0xb8, 0xe7, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05],
    loader: "/lib64/ld-linux-x86-64.so.2",
});
#[cfg(target_arch = "aarch64")]
const MACHINE: Option<Machine> = Some(Machine {
    number: 183,
    // mov x8, #94; mov x0, #0; svc #0
    exit: &[0xc8, 0x0b, 0x80, 0xd2, 0, 0, 0x80, 0xd2, 0x01, 0, 0, 0xd4],
    loader: "/lib/ld-linux-aarch64.so.1",
});
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINE: Option<Machine> = None;

/// A static program that exits at once; none on a processor it was not written for.
pub fn static_image() -> Option<Vec<u8>> {
    let machine = MACHINE?;
    let code = EHDR + 2 * PHDR;
    let size = code + machine.exit.len() as u64;
    let mut image = header(&machine, BASE + code, 2);
    segment(&mut image, PT_LOAD, READ | EXEC, 0, size);
    segment(&mut image, PT_GNU_STACK, READ | WRITE, 0, 0);
    image.extend_from_slice(machine.exit);
    Some(image)
}

/// A program that needs the C library and exits at once; none where glibc's loader is not at its place.
pub fn dynamic_image() -> Option<Vec<u8>> {
    let machine = MACHINE?;
    if !Path::new(machine.loader).exists() {
        return None;
    }
    let code = EHDR + 4 * PHDR;
    let interpreter = code + 16;
    let interpreter_len = machine.loader.len() as u64 + 1;
    let strings = (interpreter + interpreter_len).next_multiple_of(8);
    let names = b"\0libc.so.6\0";
    let symbols = (strings + names.len() as u64).next_multiple_of(8);
    let hash = symbols + 24;
    let dynamic = (hash + 16).next_multiple_of(16);
    let entries: [(u64, u64); 7] = [
        (1, 1),                   // DT_NEEDED: offset of the name in the string table
        (4, BASE + hash),         // DT_HASH
        (5, BASE + strings),      // DT_STRTAB
        (6, BASE + symbols),      // DT_SYMTAB
        (10, names.len() as u64), // DT_STRSZ
        (11, 24),                 // DT_SYMENT
        (0, 0),                   // DT_NULL
    ];
    let size = dynamic + 16 * entries.len() as u64;
    let mut image = header(&machine, BASE + code, 4);
    segment(&mut image, PT_INTERP, READ, interpreter, interpreter_len);
    // Writable: the loader stores addresses in the dynamic section.
    segment(&mut image, PT_LOAD, READ | WRITE | EXEC, 0, size);
    segment(&mut image, PT_DYNAMIC, READ | WRITE, dynamic, 16 * entries.len() as u64);
    segment(&mut image, PT_GNU_STACK, READ | WRITE, 0, 0);
    let mut put = |at: u64, bytes: &[u8]| {
        image.resize(at as usize, 0);
        image.extend_from_slice(bytes);
    };
    put(code, machine.exit);
    put(interpreter, machine.loader.as_bytes());
    put(strings, names);
    // One null symbol; a hash table of one empty bucket and one chain.
    put(hash, &[1_u32, 1, 0, 0].map(u32::to_le_bytes).concat());
    put(dynamic, &entries.map(|(tag, value)| [tag.to_le_bytes(), value.to_le_bytes()].concat()).concat());
    Some(image)
}

fn header(machine: &Machine, entry: u64, segments: u16) -> Vec<u8> {
    let mut h = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    h.extend(2_u16.to_le_bytes()); // ET_EXEC
    h.extend(machine.number.to_le_bytes());
    h.extend(1_u32.to_le_bytes());
    h.extend(entry.to_le_bytes());
    h.extend(EHDR.to_le_bytes()); // program headers
    h.extend(0_u64.to_le_bytes()); // no sections
    h.extend(0_u32.to_le_bytes());
    for half in [EHDR as u16, PHDR as u16, segments, 64, 0, 0] {
        h.extend(half.to_le_bytes());
    }
    h
}

fn segment(image: &mut Vec<u8>, kind: u32, flags: u32, offset: u64, size: u64) {
    image.extend(kind.to_le_bytes());
    image.extend(flags.to_le_bytes());
    for word in [offset, BASE + offset, BASE + offset, size, size, if kind == PT_LOAD { 0x1000 } else { 16 }]
    {
        image.extend(word.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    use std::process::Command;

    use super::*;

    fn run(image: &[u8], name: &str) -> std::process::Output {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join(name);
        let mut file =
            std::fs::OpenOptions::new().create_new(true).write(true).mode(0o755).open(&path).expect("create");
        file.write_all(image).expect("write");
        drop(file);
        Command::new(&path).env("LD_DEBUG", "files").output().expect("the kernel runs it")
    }

    #[test]
    fn the_static_program_exits_with_0_and_is_below_a_page() {
        let image = static_image().expect("this processor");
        assert!(image.len() < 4096);
        let out = run(&image, "static");
        assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
    }

    #[test]
    fn the_dynamic_program_loads_the_c_library() {
        let image = dynamic_image().expect("glibc");
        let out = run(&image, "dynamic");
        assert!(out.status.success(), "{out:?}");
        let told = String::from_utf8_lossy(&out.stderr);
        assert!(told.contains("calling init") && told.contains("libc.so.6"), "{told}");
    }

    #[test]
    fn only_one_of_them_and_no_script_has_a_loader() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let is_dynamic = |content: &[u8]| {
            let path = dir.path().join("program");
            std::fs::write(&path, content).expect("write");
            crate::report::is_dynamic(&path)
        };
        assert!(is_dynamic(&dynamic_image().expect("glibc")));
        assert!(!is_dynamic(&static_image().expect("this processor")));
        assert!(!is_dynamic(b"#!/bin/sh\n"));
    }
}
