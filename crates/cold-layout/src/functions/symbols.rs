//! Functions of a symbol table.

use object::read::elf::{ElfFile, FileHeader, Sym as _};
use object::{Endianness, Object as _, ObjectSection as _, ReadRef, elf};

use super::Sources;
use super::merge::{Found, Symbol};

/// Adds what `.symtab` (or `.dynsym`, where `dynamic`) says. Nothing from a damaged table.
pub(super) fn read<'d, R: ReadRef<'d>>(
    file: &object::File<'d, R>,
    dynamic: bool,
    source: Sources,
    found: &mut Found<'d>,
) {
    match file {
        object::File::Elf32(f) => table(f, dynamic, source, found),
        object::File::Elf64(f) => table(f, dynamic, source, found),
        _ => {}
    }
}

fn table<'d, R: ReadRef<'d>, H: FileHeader<Endian = Endianness>>(
    file: &ElfFile<'d, H, R>,
    dynamic: bool,
    source: Sources,
    found: &mut Found<'d>,
) {
    let table = if dynamic { file.elf_dynamic_symbol_table() } else { file.elf_symbol_table() };
    // In one piece: names one by one would each be read from the file.
    let Ok(strings) = file.section_by_index(table.string_section()).and_then(|s| s.data()) else { return };
    let endian = file.endian();
    for symbol in table.iter() {
        let kind = symbol.st_type();
        let is_function = kind == elf::STT_FUNC || kind == elf::STT_GNU_IFUNC;
        let index = symbol.st_shndx(endian);
        let defined = index != elf::SHN_UNDEF && index != elf::SHN_ABS && index != elf::SHN_COMMON;
        if !defined || !(is_function || kind == elf::STT_NOTYPE) {
            continue;
        }
        let name = name(strings, symbol.st_name(endian));
        // Marks of the ARM assemblers for code and data.
        if name.starts_with(b"$") {
            continue;
        }
        let (address, bytes) = (symbol.st_value(endian).into(), symbol.st_size(endian).into());
        let local = symbol.st_bind() == elf::STB_LOCAL;
        found.symbol(&Symbol { address, bytes, name, local, is_function }, source);
    }
}

/// The text at `at` of a table of strings.
fn name(strings: &[u8], at: u32) -> &[u8] {
    let tail = strings.get(at as usize..).unwrap_or_default();
    let end = tail.iter().position(|b| *b == 0).unwrap_or_default();
    tail.get(..end).unwrap_or_default()
}

/// Names that `.dynsym` leaves to other files, without weak ones. None of a damaged table.
pub(super) fn undefined<'d, R: ReadRef<'d>, H: FileHeader<Endian = Endianness>>(
    file: &ElfFile<'d, H, R>,
) -> Vec<String> {
    let table = file.elf_dynamic_symbol_table();
    let strings = file.section_by_index(table.string_section()).and_then(|s| s.data()).unwrap_or_default();
    let endian = file.endian();
    let wanted =
        table.iter().filter(|s| s.st_shndx(endian) == elf::SHN_UNDEF && s.st_bind() == elf::STB_GLOBAL);
    let names = wanted.map(|s| String::from_utf8_lossy(name(strings, s.st_name(endian))).into_owned());
    names.filter(|name| !name.is_empty()).collect()
}
