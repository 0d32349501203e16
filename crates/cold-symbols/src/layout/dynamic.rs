//! What the dynamic loader is told: needed libraries, run paths, relocations. See elf(5).

use cold_model::layout::FileLayout;
use object::{Object as _, ObjectSection as _, elf};

use crate::dynamic::Table;
use crate::elf::{Object, section_bytes};

/// Longest table of relocations that is read (libxul's: 14 MiB).
const MAX_BYTES: u64 = 256 << 20;

/// Fills the facts of the dynamic section in.
pub(super) fn read(object: &Object<'_>, layout: &mut FileLayout) {
    let table = Table::of_object(object);
    let width = if object.is_64() { 8 } else { 4 };
    layout.needed = table.texts(elf::DT_NEEDED).collect();
    layout.run_path = table.run_path();
    layout.relr = table.values(elf::DT_RELR).next().is_some();
    let stated = table.values(elf::DT_RELACOUNT).chain(table.values(elf::DT_RELCOUNT)).next();
    layout.relative_relocations =
        stated.map_or_else(|| counted(object, width), |count| count.min(room(object, width)));
}

fn number(bytes: &[u8], little: bool) -> u64 {
    let join = |n: u64, byte: &u8| n << 8 | u64::from(*byte);
    if little { bytes.iter().rev().fold(0, join) } else { bytes.iter().fold(0, join) }
}

/// The section of dynamic relocations and the bytes of one.
fn relocations(object: &Object<'_>, width: usize) -> Option<(&'static str, usize)> {
    [(".rela.dyn", 3 * width), (".rel.dyn", 2 * width)]
        .into_iter()
        .find(|(name, _)| object.section_by_name(name).is_some())
}

/// As many as the section has room for: the stated count is the file's word only.
fn room(object: &Object<'_>, width: usize) -> u64 {
    let Some((name, each)) = relocations(object, width) else { return 0 };
    object.section_by_name(name).map_or(0, |s| s.size() / each as u64)
}

/// Counts them where the linker did not (`-z nocombreloc`, old gold).
fn counted(object: &Object<'_>, width: usize) -> u64 {
    let (Some(relative), Some((name, each))) = (relative_kind(object), relocations(object, width)) else {
        return 0;
    };
    let table = section_bytes(object, name, MAX_BYTES).unwrap_or_default();
    let mask = if width == 8 { 0xffff_ffff } else { 0xff };
    let kind =
        |entry: &[u8]| entry.get(width..2 * width).map(|info| number(info, object.is_little_endian()) & mask);
    table.chunks_exact(each).filter(|entry| kind(entry) == Some(relative)).count() as u64
}

/// `R_*_RELATIVE` of the machine, from its psABI.
fn relative_kind(object: &Object<'_>) -> Option<u64> {
    use object::Architecture as A;
    Some(match object.architecture() {
        A::X86_64 | A::X86_64_X32 | A::I386 => 8,
        A::Aarch64 => 1027,
        A::Arm => 23,
        A::Riscv32 | A::Riscv64 | A::LoongArch64 => 3,
        A::PowerPc64 => 22,
        A::S390x => 12,
        _ => return None,
    })
}
