//! Where the functions of an ELF file begin, how long they are, what they are called, and who says so.
//!
//! Four sources are merged by address: `.symtab`, the symbols of a separate debug file, the FDEs of `.eh_frame`,
//! `.dynsym`. Any of them may be missing. What is kept as a beginning is the beginning of an instruction, because a
//! breakpoint is put there:
//! - symbols of type `FUNC` and `GNU_IFUNC` (whose value is the resolver). A `NOTYPE` symbol may be data that an
//!   assembler put into the text; it only lends its name to a beginning that another source knows.
//! - FDEs, but for those of signal trampolines, which begin a byte before the trampoline so that unwinding finds
//!   them, and those of the PLT, whose entries are no functions.
//! - nothing outside executable bytes of the file: FDEs of discarded sections begin at address 0.
//!
//! Go's linker writes no FDEs: a stripped Go program has no functions here ([`Functions::is_go`]).

mod frames;
mod merge;
mod symbols;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::path::Path;

use cold_model::order::{self, Linked, Text, TracedFile};
use object::read::elf::{Dyn as _, ElfFile, FileHeader, ProgramHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, ReadRef, elf};

use crate::Error;

/// Who knows a function: a set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sources(u8);

impl Sources {
    /// The file's own `.symtab`.
    pub const SYMTAB: Self = Self(1);
    /// `.symtab` of its separate debug file.
    pub const DEBUG_FILE: Self = Self(2);
    /// An FDE of `.eh_frame`.
    pub const FRAME: Self = Self(4);
    /// `.dynsym`.
    pub const DYNSYM: Self = Self(8);

    const NAMES: [(Self, &'static str); 4] = [
        (Self::SYMTAB, "symtab"),
        (Self::DEBUG_FILE, "debug_file"),
        (Self::FRAME, "eh_frame"),
        (Self::DYNSYM, "dynsym"),
    ];

    /// Whether all of `other` is in it.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// What either of the two knows.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Their names, in the order of preference.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(source, _)| self.has(*source)).map(|(_, name)| name)
    }
}

/// A name of a function, as the symbol table has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// Mangled; at most 32 KiB.
    pub text: String,
    /// Known in one object file only, so other functions of the program may be called the same.
    pub local: bool,
}

/// A function of a file: where it begins, how long it is, what it is called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Function {
    /// Address of its first instruction, as the file states it.
    pub address: u64,
    /// Bytes, from the symbol's size, else the FDE's length, else to where the next one begins; 0 when even that is
    /// not known.
    pub bytes: u64,
    /// All names of this address, the best first: global before local, then fewest leading underscores. Empty in a
    /// stripped file.
    pub names: Vec<Name>,
    /// Who knows it.
    pub sources: Sources,
}

/// The functions of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Functions {
    /// How it is linked.
    pub linked: Linked,
    /// Its processor, `e_machine` of the header (62: x86-64, 183: aarch64).
    pub machine: u16,
    /// Build-id in hexadecimal.
    pub build_id: Option<String>,
    /// A program of Go's own linker, which writes no FDEs.
    pub is_go: bool,
    /// Executable segments, by address.
    pub texts: Vec<Text>,
    /// Addresses of the sections that hold code, but for the PLT's; the segments where the file has no sections.
    pub code: Vec<Range<u64>>,
    /// Symbols that a loader has to find in a library, else the program does not start; weak ones are none.
    pub undefined: Vec<String>,
    /// By address, each address once.
    pub functions: Vec<Function>,
}

impl Functions {
    /// Bytes of its code.
    pub fn code_bytes(&self) -> u64 {
        self.code.iter().fold(0, |sum, c| sum.saturating_add(c.end.saturating_sub(c.start)))
    }

    /// The function that begins at `address`.
    pub fn at(&self, address: u64) -> Option<&Function> {
        let n = self.functions.binary_search_by_key(&address, |f| f.address).ok()?;
        self.functions.get(n)
    }
}

/// What a trace keeps of a file called `path`.
pub fn traced(read: Functions, path: &Path) -> TracedFile {
    let function = |f: Function| order::Function {
        address: f.address,
        bytes: f.bytes,
        names: f.names.into_iter().map(|n| n.text).collect(),
        sources: f.sources.names().map(str::to_owned).collect(),
    };
    TracedFile {
        path: path.to_owned(),
        build_id: read.build_id,
        linked: read.linked,
        is_go: read.is_go,
        texts: read.texts,
        functions: read.functions.into_iter().map(function).collect(),
    }
}

/// Most sections that are looked at; linked programs have below 100.
const MAX_SECTIONS: usize = 10_000;
/// Most executable segments; a linked program has one or two.
const MAX_TEXTS: usize = 64;
/// Longest build-id that is believed, in bytes; linkers write 8 to 32.
const MAX_BUILD_ID: usize = 64;

/// Reads the functions of the ELF file in `bytes`; `debug` is its separate debug file.
///
/// # Errors
/// The headers of `bytes` are none of an ELF file. A damaged table is as good as none.
pub fn of_bytes(bytes: &[u8], debug: Option<&[u8]>) -> Result<Functions, Error> {
    let parse = |bytes| object::File::parse(bytes).map_err(|e| Error::NotElf(e.to_string()));
    let debug = debug.and_then(|bytes| parse(bytes).ok());
    of_object(&parse(bytes)?, debug.as_ref())
}

/// The same of a parsed file.
///
/// # Errors
/// It is no ELF file.
pub fn of_object<'d, R: ReadRef<'d>>(
    file: &object::File<'d, R>,
    debug: Option<&object::File<'d, R>>,
) -> Result<Functions, Error> {
    match file {
        object::File::Elf32(f) => Ok(of_elf(f, file, debug)),
        object::File::Elf64(f) => Ok(of_elf(f, file, debug)),
        _ => Err(Error::NotElf("another format".to_owned())),
    }
}

fn of_elf<'d, R: ReadRef<'d>, H: FileHeader<Endian = Endianness>>(
    elf: &ElfFile<'d, H, R>,
    file: &object::File<'d, R>,
    debug: Option<&object::File<'d, R>>,
) -> Functions {
    let texts = texts(elf);
    let code = code(file, &texts);
    let mut found = merge::Found::new(code.clone());
    symbols::read(file, false, Sources::SYMTAB, &mut found);
    if let Some(debug) = debug {
        symbols::read(debug, false, Sources::DEBUG_FILE, &mut found);
    }
    frames::read(file, &mut found);
    symbols::read(file, true, Sources::DYNSYM, &mut found);
    Functions {
        linked: linked(elf),
        machine: elf.elf_header().e_machine(elf.endian()).0,
        build_id: build_id(file),
        is_go: [".gopclntab", ".note.go.buildid", ".go.buildinfo"]
            .iter()
            .any(|name| file.section_by_name(name).is_some()),
        texts,
        code,
        undefined: symbols::undefined(elf),
        functions: found.merged(),
    }
}

fn build_id<'d, R: ReadRef<'d>>(file: &object::File<'d, R>) -> Option<String> {
    let id = file.build_id().ok().flatten().filter(|id| (1..=MAX_BUILD_ID).contains(&id.len()))?;
    let digit = |n: u8| char::from_digit(u32::from(n), 16).unwrap_or_default();
    Some(id.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]).collect())
}

fn texts<'d, R: ReadRef<'d>, H: FileHeader<Endian = Endianness>>(file: &ElfFile<'d, H, R>) -> Vec<Text> {
    let endian = file.endian();
    let mut texts: Vec<Text> = file
        .elf_program_headers()
        .iter()
        .filter(|s| s.p_type(endian) == elf::PT_LOAD && s.p_flags(endian).0 & elf::PF_X.0 != 0)
        .map(|s| Text {
            offset: s.p_offset(endian).into(),
            bytes: s.p_filesz(endian).into(),
            address: s.p_vaddr(endian).into(),
        })
        .take(MAX_TEXTS)
        .collect();
    texts.sort_by_key(|t| (t.address, t.offset));
    texts
}

/// Ranges of addresses that hold functions: executable sections but for the PLT's, cut to what the segments have;
/// the segments where the file has no sections.
fn code<'d, R: ReadRef<'d>>(file: &object::File<'d, R>, texts: &[Text]) -> Vec<Range<u64>> {
    let executable = |flags| match flags {
        object::SectionFlags::Elf { sh_flags, .. } => elf::SHF_EXECINSTR.0 & sh_flags.0 != 0,
        _ => false,
    };
    let is_plt = |name: &[u8]| name.starts_with(b".plt") || name.starts_with(b".iplt");
    let sections = file.sections().take(MAX_SECTIONS).filter(|s| executable(s.flags()));
    let named: Vec<_> =
        sections.filter_map(|s| Some((s.address(), s.size(), s.name_bytes().ok()?))).collect();
    let segments = texts.iter().map(|t| t.address..t.address.saturating_add(t.bytes));
    if named.is_empty() {
        return segments.collect();
    }
    let within = |(address, bytes, _): &(u64, u64, &[u8])| {
        let end = address.saturating_add(*bytes);
        segments
            .clone()
            .filter_map(move |s| {
                let (first, end) = (s.start.max(*address), s.end.min(end));
                (first < end).then_some(first..end)
            })
            .collect::<Vec<_>>()
    };
    named.iter().filter(|(_, _, name)| !is_plt(name)).flat_map(within).collect()
}

fn linked<'d, R: ReadRef<'d>, H: FileHeader<Endian = Endianness>>(file: &ElfFile<'d, H, R>) -> Linked {
    /// `DF_1_PIE` of elf.h: what tells a program from a library that can be executed, as the C library can.
    const PIE: u64 = 0x0800_0000;
    let (endian, data) = (file.endian(), file.data());
    let segments = file.elf_program_headers();
    let has_loader = segments.iter().any(|s| s.p_type(endian) == elf::PT_INTERP);
    if file.elf_header().e_type(endian) == elf::ET_EXEC {
        return if has_loader { Linked::Fixed } else { Linked::Static };
    }
    let dynamic = segments.iter().find_map(|s| s.dynamic(endian, data).ok().flatten()).unwrap_or_default();
    let tag = |wanted| dynamic.iter().find(|d| d.d_tag(endian) == wanted).map(|d| d.d_val(endian).into());
    let is_pie = tag(elf::DT_FLAGS_1).is_some_and(|flags: u64| flags & PIE != 0);
    match (has_loader, is_pie) {
        (true, true) => Linked::Pie,
        (false, true) => Linked::StaticPie,
        // Linkers before binutils 2.27 set no such flag.
        (true, false) if tag(elf::DT_SONAME).is_none() => Linked::Pie,
        _ => Linked::Library,
    }
}
