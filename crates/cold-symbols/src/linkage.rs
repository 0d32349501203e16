//! How a program was linked, as far as it costs a start: relocations, segments, symbols looked up at once.
//!
//! Formats: the System V ABI (gABI), chapters on object files and on dynamic linking; RELR: gABI, "Relative Relocation
//! Table".

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use cold_model::linkage::Linkage;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader as _, Rela as _};
use object::{Endianness, ReadRef as _};

use crate::dynamic::Table;
use crate::elf::Image;

/// Most relocations that are looked at: libxul has 0.6 million, and a table of them all may be large.
const MAX_RELOCATIONS: u64 = 16 << 20;
/// Bytes of a page: what writing one relocation copies.
const PAGE: u64 = 4096;
/// Addresses behind a base that one bitmap of RELR covers.
const PER_BITMAP: u64 = 63;

/// How a file was linked; `None` when it is no ELF file of 64 bits, or a damaged one.
pub fn linkage(file: &File) -> Option<Linkage> {
    let image = Image::of(file.try_clone().ok()?, file.metadata().ok()?, Path::new("")).ok()?;
    let data = image.reader();
    let header = FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, data).ok()?;
    let loaded: Vec<_> = segments.iter().filter(|s| s.p_type(endian) == elf::PT_LOAD).collect();
    let table = Table::of(header, data)?;
    let value = |tag| table.values(tag).next();
    let part = |address: Option<u64>, bytes: Option<u64>| -> Option<&[u8]> {
        let (address, bytes) = address.zip(bytes)?;
        let inside = |s: &&&elf::ProgramHeader64<Endianness>| {
            (s.p_vaddr(endian)..s.p_vaddr(endian).saturating_add(s.p_filesz(endian))).contains(&address)
        };
        let segment = loaded.iter().find(inside)?;
        let offset = (address - segment.p_vaddr(endian)).checked_add(segment.p_offset(endian))?;
        data.read_bytes_at(offset, bytes).ok()
    };
    let flags = value(elf::DT_FLAGS).unwrap_or(0);
    let flags_1 = value(elf::DT_FLAGS_1).unwrap_or(0);
    let mut found = Linkage {
        bind_now: flags & elf::DF_BIND_NOW.0 != 0 || flags_1 & elf::DF_1_NOW.0 != 0,
        position_independent: header.e_type(endian) == elf::ET_DYN,
        gnu_hash: value(elf::DT_GNU_HASH).is_some(),
        constant_segments: loaded
            .iter()
            .filter(|s| s.p_flags(endian).0 & elf::PF_W.0 == 0)
            .map(|s| s.p_offset(endian)..s.p_offset(endian).saturating_add(s.p_filesz(endian)))
            .collect(),
        dynamic: segments.iter().any(|s| s.p_type(endian) == elf::PT_DYNAMIC),
        ..Linkage::default()
    };
    let kinds = Kinds::of(header.e_machine(endian))?;
    let mut written = BTreeSet::new();
    let (mut relative, mut others) = (Vec::new(), BTreeSet::new());
    for (address, bytes) in
        [(value(elf::DT_RELA), value(elf::DT_RELASZ)), (value(elf::DT_JMPREL), value(elf::DT_PLTRELSZ))]
    {
        let Some(bytes) = part(address, bytes) else { continue };
        found.table_bytes = found.table_bytes.saturating_add(bytes.len() as u64);
        let count = (bytes.len() / size_of::<elf::Rela64<Endianness>>()).min(MAX_RELOCATIONS as usize);
        let (all, _) = object::pod::slice_from_bytes::<elf::Rela64<Endianness>>(bytes, count).ok()?;
        for r in all {
            let (kind, place) = (r.r_type(endian, false), r.r_offset(endian));
            if kind == kinds.relative {
                found.relative += 1;
                relative.push(place);
            } else {
                others.insert(place / PAGE);
                match kind {
                    kind if kind == kinds.jump_slot => found.jump_slots += 1,
                    kind if kind == kinds.by_function => found.by_function += 1,
                    elf::RelocationType(0) => {}
                    _ => found.symbolic += 1,
                }
            }
            // Also what binds lazily: the base is added to its slot.
            written.insert(place / PAGE);
        }
    }
    if let Some(bytes) = part(value(elf::DT_RELR), value(elf::DT_RELRSZ)) {
        found.table_bytes = found.table_bytes.saturating_add(bytes.len() as u64);
        let places = relr(bytes, |word| match endian {
            Endianness::Little => u64::from_le_bytes(word),
            Endianness::Big => u64::from_be_bytes(word),
        });
        found.packed = places.len() as u64;
        found.relative = found.relative.saturating_add(found.packed);
        written.extend(places.iter().map(|p| p / PAGE));
    }
    found.as_relr_bytes = relr_bytes(relative);
    found.written_pages = written.len() as u64;
    let relro = segments.iter().filter(|s| s.p_type(endian) == elf::PT_GNU_RELRO);
    let relro: Vec<_> = relro
        .map(|s| s.p_vaddr(endian) / PAGE..s.p_vaddr(endian).saturating_add(s.p_memsz(endian)).div_ceil(PAGE))
        .collect();
    found.constant_after = written.iter().filter(|p| relro.iter().any(|r| r.contains(p))).count() as u64;
    found.written_by_relative = written.difference(&others).count() as u64;
    Some(found)
}

/// The numbers that a processor gives to kinds of relocations.
struct Kinds {
    relative: elf::RelocationType,
    jump_slot: elf::RelocationType,
    by_function: elf::RelocationType,
}

impl Kinds {
    fn of(machine: elf::Machine) -> Option<Self> {
        let (relative, jump_slot, by_function) = match machine {
            elf::EM_X86_64 => (elf::R_X86_64_RELATIVE, elf::R_X86_64_JUMP_SLOT, elf::R_X86_64_IRELATIVE),
            elf::EM_AARCH64 => (elf::R_AARCH64_RELATIVE, elf::R_AARCH64_JUMP_SLOT, elf::R_AARCH64_IRELATIVE),
            _ => return None,
        };
        Some(Self { relative, jump_slot, by_function })
    }
}

/// The places that a RELR table names: an even word is an address, an odd one a bitmap of the 63 words behind.
fn relr(bytes: &[u8], word: impl Fn([u8; 8]) -> u64) -> Vec<u64> {
    let mut places = Vec::new();
    let mut next = 0_u64;
    for entry in bytes.as_chunks().0.iter().map(|w| word(*w)) {
        if places.len() as u64 >= MAX_RELOCATIONS {
            break;
        }
        if entry & 1 == 0 {
            places.push(entry);
            next = entry.wrapping_add(8);
            continue;
        }
        let set = (0..PER_BITMAP).filter(|bit| entry >> (bit + 1) & 1 == 1);
        places.extend(set.map(|bit| next.wrapping_add(8 * bit)));
        next = next.wrapping_add(8 * PER_BITMAP);
    }
    places
}

/// Bytes of the RELR table for these places; odd ones cannot be packed and count as they are now.
fn relr_bytes(mut places: Vec<u64>) -> u64 {
    places.sort_unstable();
    places.dedup();
    let (packable, others): (Vec<u64>, Vec<u64>) = places.into_iter().partition(|p| p % 8 == 0);
    let mut words = 0_u64;
    let mut rest = packable.as_slice();
    while let Some((base, behind)) = rest.split_first() {
        words += 1;
        rest = behind;
        let mut from = base.saturating_add(8);
        loop {
            let end = from.saturating_add(8 * PER_BITMAP);
            let covered = rest.partition_point(|p| *p < end);
            if covered == 0 {
                break;
            }
            words += 1;
            rest = rest.get(covered..).unwrap_or_default();
            from = end;
        }
    }
    words * 8 + others.len() as u64 * size_of::<elf::Rela64<Endianness>>() as u64
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_table_of_places_is_packed_and_unpacked() {
        let le = |words: &[u64]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
        // An address; the second and third word behind it; then the first word behind these 63.
        let table = le(&[0x1000, 0b1101, 0b11]);
        let places = relr(&table, u64::from_le_bytes);
        assert_eq!(places, [0x1000, 0x1010, 0x1018, 0x1008 + 63 * 8]);
        assert_eq!(relr_bytes(places), table.len() as u64);
        assert_eq!(relr_bytes(vec![]), 0);
        assert_eq!(relr_bytes(vec![8, 9]), 8 + 24, "an odd place stays as it is");
        let far: Vec<u64> = (0..10).map(|n| n << 20).collect();
        assert_eq!(relr_bytes(far), 80);
        assert!(relr(&[0xff; 4096], u64::from_le_bytes).len() == 512 * 63);
    }

    /// `readelf` counts the same.
    #[test]
    fn real_programs_are_linked_as_readelf_says() {
        let mut compared = 0;
        for path in ["/bin/bash", "/usr/bin/git", "/usr/bin/python3", "/usr/lib/x86_64-linux-gnu/libc.so.6"] {
            let Ok(file) = File::open(path) else { continue };
            let Ok(out) = Command::new("readelf").args(["-rW", path]).output() else { continue };
            let Some(found) = linkage(&file) else { continue };
            let text = String::from_utf8_lossy(&out.stdout).into_owned();
            let count = |kind: &str| text.lines().filter(|l| l.contains(kind)).count() as u64;
            let relative = count("_RELATIV");
            assert_eq!(found.relative - found.packed, relative, "{path}");
            assert_eq!(found.jump_slots, count("_JUMP_SLO"), "{path}");
            assert_eq!(found.by_function, count("_IRELATIV"), "{path}");
            assert!(
                found.constant_segments.len() >= 2
                    && found.dynamic
                    && found.written_by_relative <= found.written_pages
                    && (1..=found.written_pages).contains(&found.constant_after),
                "{path}: {found:?}"
            );
            compared += 1;
        }
        assert!(cold_testbed::need(compared > 0, "readelf and a program of Debian"), "nothing was compared");
    }
}
