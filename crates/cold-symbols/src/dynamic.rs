//! What the dynamic loader is told, by the program headers as the loader itself finds it. See elf(5).

use std::fs::File;
use std::path::Path;

use object::elf::{self, DynamicTag, FileHeader32, FileHeader64};
use object::read::elf::{Dyn as _, FileHeader, ProgramHeader as _};
use object::{Endianness, ReadRef as _};

use crate::elf::{Image, Object, Reader};

/// Longest dynamic table; the largest programs have below 300 entries.
const MAX_TABLE: u64 = 1 << 20;
/// Longest table of strings that is read; libxul's is below 1 MiB, LLVM's 3 MiB.
const MAX_STRINGS: u64 = 16 << 20;
/// Most needed libraries or run paths that are listed, and most bytes of one.
const MAX_NAMES: usize = 4096;

/// What an ELF file asks the dynamic loader for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The dynamic loader; `None` for a library or a static program.
    pub interpreter: Option<String>,
    /// Names of needed libraries.
    pub needed: Vec<String>,
    /// `DT_RUNPATH` and `DT_RPATH`, split; may contain `$ORIGIN`.
    pub search: Vec<String>,
    /// An ELF file of 64 bits (`ELFCLASS64`); false: of 32 bits.
    pub wide: bool,
}

/// What a file asks the loader for; `None` when it is no ELF file, or a damaged one.
///
/// Reads the headers and what the loader is told, no more: the rest would fill the page cache with the very pages
/// that a measurement wants absent.
pub fn needs(file: &File) -> Option<Needs> {
    let image = Image::of(file.try_clone().ok()?, file.metadata().ok()?, Path::new("")).ok()?;
    let data = image.reader();
    match FileHeader64::parse(data) {
        Ok(header) => needs_of::<FileHeader64<Endianness>>(header, data),
        Err(_) => needs_of::<FileHeader32<Endianness>>(FileHeader32::parse(data).ok()?, data),
    }
}

fn needs_of<H: FileHeader<Endian = Endianness>>(header: &H, data: Reader<'_>) -> Option<Needs> {
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, data).ok()?;
    let named = segments.iter().find(|s| s.p_type(endian) == elf::PT_INTERP);
    let interpreter = match named {
        Some(s) => text(data.read_bytes_at(s.p_offset(endian).into(), s.p_filesz(endian).into()).ok()?),
        None => None,
    };
    let table = Table::of(header, data)?;
    Some(Needs {
        interpreter,
        needed: table.texts(elf::DT_NEEDED).collect(),
        search: table.run_path(),
        wide: header.is_type_64(),
    })
}

/// The dynamic section.
#[derive(Default)]
pub(crate) struct Table<'a> {
    entries: Vec<(DynamicTag, u64)>,
    strings: &'a [u8],
}

impl<'a> Table<'a> {
    /// That of a parsed file; empty where it has none, or it is damaged.
    pub(crate) fn of_object(object: &Object<'a>) -> Self {
        let table = match object {
            object::File::Elf32(f) => Self::of(f.elf_header(), f.data()),
            object::File::Elf64(f) => Self::of(f.elf_header(), f.data()),
            _ => None,
        };
        table.unwrap_or_default()
    }

    /// `None` when it is damaged.
    pub(crate) fn of<H: FileHeader<Endian = Endianness>>(header: &H, data: Reader<'a>) -> Option<Self> {
        let endian = header.endian().ok()?;
        let segments = header.program_headers(endian, data).ok()?;
        let Some(dynamic) = segments.iter().find(|s| s.p_type(endian) == elf::PT_DYNAMIC) else {
            return Some(Self::default());
        };
        let each = size_of::<H::Dyn>() as u64;
        let count = dynamic.p_filesz(endian).into().min(MAX_TABLE) / each;
        let entries = data.read_slice_at::<H::Dyn>(dynamic.p_offset(endian).into(), count as usize).ok()?;
        let entries = entries.iter().map(|e| (e.d_tag(endian), e.d_val(endian).into()));
        let entries: Vec<_> = entries.take_while(|(tag, _)| *tag != elf::DT_NULL).collect();
        let mut table = Self { entries, strings: &[] };
        let place = table.values(elf::DT_STRTAB).next().zip(table.values(elf::DT_STRSZ).next());
        if let Some((address, bytes)) = place {
            let mut loaded = segments.iter().filter(|s| s.p_type(endian) == elf::PT_LOAD);
            let offset = loaded.find_map(|s| {
                let inside = address.checked_sub(s.p_vaddr(endian).into())?;
                (inside < s.p_filesz(endian).into()).then(|| inside.checked_add(s.p_offset(endian).into()))?
            })?;
            table.strings = data.read_bytes_at(offset, bytes.min(MAX_STRINGS)).ok()?;
        }
        Some(table)
    }

    /// The values of the entries with this tag.
    pub(crate) fn values(&self, wanted: DynamicTag) -> impl Iterator<Item = u64> {
        self.entries.iter().filter(move |(tag, _)| *tag == wanted).map(|(_, value)| *value)
    }

    /// The texts that these entries name.
    pub(crate) fn texts(&self, wanted: DynamicTag) -> impl Iterator<Item = String> {
        let named = |at: u64| text(self.strings.get(usize::try_from(at).ok()?..)?);
        self.values(wanted).filter_map(named).take(MAX_NAMES)
    }

    /// The directories that are searched for needed libraries.
    pub(crate) fn run_path(&self) -> Vec<String> {
        let paths: Vec<String> = self.texts(elf::DT_RUNPATH).chain(self.texts(elf::DT_RPATH)).collect();
        paths.iter().flat_map(|p| p.split(':')).take(MAX_NAMES).map(str::to_owned).collect()
    }
}

/// The text up to its NUL; `None` without one, or for nothing.
fn text(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().take(MAX_NAMES).position(|b| *b == 0)?;
    (end > 0).then(|| String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn in_memory(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    /// A header, program headers and what they name, of 64 bits little-endian or 32 bits big-endian, as a linker
    /// leaves them without sections.
    fn image(wide: bool) -> Vec<u8> {
        let names = b"\0libx.so.1\0$ORIGIN/a:/b\0/c\0";
        let word = |n: u64| if wide { n.to_le_bytes().to_vec() } else { (n as u32).to_be_bytes().to_vec() };
        let quad = |n: u32| if wide { n.to_le_bytes() } else { n.to_be_bytes() };
        let half = |n: u16| if wide { n.to_le_bytes() } else { n.to_be_bytes() };
        let (header, each, entry) = if wide { (64, 56, 16) } else { (52, 32, 8) };
        let interpreter = header + 3 * each;
        let strings = interpreter + 8;
        let dynamic = strings + names.len() as u64;
        let base = 0x1_0000;
        let entries =
            [(1, 1), (15, 24), (29, 11), (5, base + strings), (10, names.len() as u64), (0, 0), (1, 1)];
        let end = dynamic + entry * entries.len() as u64;
        let mut out = vec![0x7f, b'E', b'L', b'F', 1 + u8::from(wide), 2 - u8::from(wide), 1];
        out.resize(16, 0);
        out.extend([half(2), half(62)].concat());
        out.extend(quad(1));
        out.extend([word(0), word(header), word(0)].concat());
        out.extend(quad(0));
        out.extend([half(header as u16), half(each as u16), half(3), half(0), half(0), half(0)].concat());
        for (kind, offset, bytes) in [(1, 0, end), (3, interpreter, 8), (2, dynamic, end - dynamic)] {
            let (place, size) = ([word(offset), word(base + offset), word(0)], [word(bytes), word(bytes)]);
            out.extend(quad(kind));
            if wide {
                out.extend(quad(4));
            }
            out.extend(place.concat());
            out.extend(size.concat());
            if !wide {
                out.extend(quad(4));
            }
            out.extend(word(1));
        }
        out.extend(b"/lib/ld\0");
        out.extend(names);
        out.extend(entries.iter().flat_map(|(tag, value)| [word(*tag), word(*value)].concat()));
        assert_eq!(out.len() as u64, end);
        out
    }

    #[test]
    fn what_a_file_without_sections_needs_is_read_whatever_its_form() {
        for wide in [true, false] {
            let expected = Needs {
                interpreter: Some("/lib/ld".to_owned()),
                needed: vec!["libx.so.1".to_owned()],
                search: ["$ORIGIN/a", "/b", "/c"].map(str::to_owned).to_vec(),
                wide,
            };
            assert_eq!(needs(&in_memory(&image(wide))), Some(expected), "64 bits: {wide}");
        }
    }

    #[test]
    fn a_file_cut_anywhere_or_with_any_byte_wrong_is_no_reason_to_panic() {
        for whole in [image(true), image(false)] {
            for at in 0..whole.len() {
                assert_eq!(needs(&in_memory(&whole[..at])), None, "cut after {at} bytes");
                let mut wrong = whole.clone();
                wrong[at] ^= 0xff;
                let _ = needs(&in_memory(&wrong));
            }
        }
    }

    #[test]
    fn the_program_itself_and_what_is_none() {
        let own = File::open("/proc/self/exe").unwrap();
        assert_eq!(needs(&own).unwrap().wide, cfg!(target_pointer_width = "64"));
        assert_eq!(needs(&in_memory(b"#!/bin/sh\n")), None);
        assert_eq!(needs(&in_memory(b"")), None);
    }
}
