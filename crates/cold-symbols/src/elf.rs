//! Opening an ELF file and reading parts of it, with bounds.

use std::cell::Cell;
use std::cmp::Reverse;
use std::fs::{File, Metadata};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use cold_model::layout::Section;
use object::read::elf::{ElfFile, FileHeader, Sym};
use object::{Endianness, Object as _, ObjectSection, ReadCache, ReadRef, elf};

use crate::Error;

/// Largest file that is looked at. Chromium with full debug information has 3 GiB.
const MAX_FILE: u64 = 4 << 30;
/// Longest part that is read at once: a symbol table, a section of debug information.
pub(crate) const MAX_PART: u64 = 512 << 20;

/// An ELF file, opened; [`Image::parse`] gives access to its parts.
pub(crate) struct Image {
    pub(crate) path: PathBuf,
    pub(crate) meta: Metadata,
    cache: ReadCache<File>,
    left: Cell<u64>,
}

/// Reads through the cache of an [`Image`], as much as its budget allows.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    cache: &'a ReadCache<File>,
    left: &'a Cell<u64>,
}

/// A parsed ELF file.
pub(crate) type Object<'a> = object::File<'a, Reader<'a>>;

impl Image {
    /// Opens a regular file that begins like an ELF file.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let (file, meta) = cold_sys::open::regular(path, true)?;
        Self::of(file, meta, path)
    }

    /// The same for a file that is open.
    pub(crate) fn of(file: File, meta: Metadata, path: &Path) -> Result<Self, Error> {
        let path = path.to_owned();
        let mut magic = [0; 4];
        if file.read_exact_at(&mut magic, 0).is_err() || magic != elf::ELFMAG {
            return Err(Error::NotElf { path });
        }
        if meta.len() > MAX_FILE {
            return Err(Error::Damaged { path, why: format!("{} bytes are too many", meta.len()) });
        }
        // Sections of a sound file do not overlap; twice its size is enough, and little files may be read
        // in small pieces.
        let left = Cell::new(2 * meta.len() + (16 << 20));
        Ok(Self { path, meta, cache: ReadCache::new(file), left })
    }

    /// Its bytes. All readers share the cache and the number of bytes that may still be read.
    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader { cache: &self.cache, left: &self.left }
    }

    /// Parses the headers.
    pub(crate) fn parse(&self) -> Result<Object<'_>, Error> {
        let reader = self.reader();
        let damaged = |why: String| Error::Damaged { path: self.path.clone(), why };
        let parsed = object::File::parse(reader).map_err(|e| damaged(e.to_string()))?;
        match parsed {
            object::File::Elf32(_) | object::File::Elf64(_) => Ok(parsed),
            _ => Err(Error::NotElf { path: self.path.clone() }),
        }
    }
}

impl<'a> ReadRef<'a> for Reader<'a> {
    fn len(self) -> Result<u64, ()> {
        self.cache.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        let left = self.left.get().checked_sub(size).ok_or(())?;
        if size > MAX_PART {
            return Err(());
        }
        self.left.set(left);
        self.cache.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        let text = self.cache.read_bytes_at_until(range, delimiter)?;
        self.left.set(self.left.get().checked_sub(text.len() as u64).ok_or(())?);
        Ok(text)
    }
}

/// The GNU build-id of the ELF file at `path` in hexadecimal; `None` when it has none.
pub fn build_id(path: &Path) -> Result<Option<String>, Error> {
    Ok(build_id_of(&Image::open(path)?.parse()?))
}

/// Sections of the ELF file at `path` that have bytes in it, by offset.
pub fn sections(path: &Path) -> Result<Vec<Section>, Error> {
    Ok(crate::layout::sections(&Image::open(path)?.parse()?))
}

/// The build-id of a parsed file.
pub(crate) fn build_id_of(object: &Object<'_>) -> Option<String> {
    // The linkers write 8 to 32 bytes; object takes the note's word for its length.
    let id = object.build_id().ok().flatten().filter(|id| (1..=64).contains(&id.len()))?;
    Some(cold_model::hash::hexadecimal(id))
}

/// A symbol as the table has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawSymbol {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    /// Where its name begins in the table of strings.
    name: u32,
    /// How good a name it is for its address; higher is better.
    pub(crate) rank: u8,
}

/// The defined functions and objects of a symbol table, and the strings of their names.
#[derive(Default)]
pub(crate) struct RawSymbols<'a> {
    pub(crate) symbols: Vec<RawSymbol>,
    strings: &'a [u8],
}

impl<'a> RawSymbols<'a> {
    /// The name as it stands in the table.
    pub(crate) fn name(&self, symbol: &RawSymbol) -> &'a [u8] {
        let tail = self.strings.get(symbol.name as usize..).unwrap_or_default();
        let end = tail.iter().position(|b| *b == 0).unwrap_or(tail.len());
        tail.get(..end).unwrap_or_default()
    }

    /// Which of two symbols with one address tells more about it, the better one less: aliases such as `__libc_malloc`
    /// and `malloc` rank equal but for the underscores.
    pub(crate) fn preference(&self, a: &RawSymbol, b: &RawSymbol) -> std::cmp::Ordering {
        let plain = |s: &RawSymbol| Reverse(self.name(s).iter().take_while(|b| **b == b'_').count());
        let key = |s: &RawSymbol| Reverse((s.rank, plain(s), s.bytes));
        key(a).cmp(&key(b)).then_with(|| self.name(a).cmp(self.name(b)))
    }
}

/// `.symtab`, or `.dynsym` where `dynamic`.
///
/// Reads the strings in one piece: object's own names would be two system calls each.
pub(crate) fn raw_symbols<'a>(object: &Object<'a>, dynamic: bool) -> RawSymbols<'a> {
    match object {
        object::File::Elf32(f) => raw_table(f, dynamic),
        object::File::Elf64(f) => raw_table(f, dynamic),
        _ => RawSymbols::default(),
    }
}

fn raw_table<'a, H: FileHeader<Endian = Endianness>>(
    file: &ElfFile<'a, H, Reader<'a>>,
    dynamic: bool,
) -> RawSymbols<'a> {
    let table = if dynamic { file.elf_dynamic_symbol_table() } else { file.elf_symbol_table() };
    let strings =
        file.section_by_index(table.string_section()).and_then(|section| section.data()).unwrap_or_default();
    let endian = file.endian();
    let symbols = table
        .iter()
        .filter_map(|s| {
            let kind = s.st_type();
            let wanted =
                matches!(kind, elf::STT_FUNC | elf::STT_OBJECT | elf::STT_GNU_IFUNC | elf::STT_NOTYPE);
            let shndx = s.st_shndx(endian);
            if !wanted || shndx == elf::SHN_UNDEF || shndx == elf::SHN_ABS || shndx == elf::SHN_COMMON {
                return None;
            }
            let bind = match s.st_bind() {
                elf::STB_GLOBAL | elf::STB_GNU_UNIQUE => 2,
                elf::STB_WEAK => 1,
                _ => 0,
            };
            let typed = u8::from(kind != elf::STT_NOTYPE);
            let name = s.st_name(endian);
            (name != 0).then(|| RawSymbol {
                address: s.st_value(endian).into(),
                bytes: s.st_size(endian).into(),
                name,
                rank: typed * 3 + bind,
            })
        })
        .collect();
    RawSymbols { symbols, strings }
}

/// Reads a section of at most `limit` bytes, unpacked when it is compressed with zlib.
pub(crate) fn section_bytes<'a>(
    object: &Object<'a>,
    name: &str,
    limit: u64,
) -> Option<std::borrow::Cow<'a, [u8]>> {
    let section = object.section_by_name(name)?;
    let range = section.compressed_file_range().ok()?;
    if range.uncompressed_size > limit || range.compressed_size > limit {
        return None;
    }
    let data = section.compressed_data().ok()?;
    match data.format {
        object::CompressionFormat::None => Some(data.data.into()),
        object::CompressionFormat::Zlib => {
            let size = usize::try_from(data.uncompressed_size).ok()?;
            miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(data.data, size).ok().map(Into::into)
        }
        _ => None,
    }
}
