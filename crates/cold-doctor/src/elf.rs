//! The few facts of an ELF file that tell what a start maps: interpreter, needed libraries, search path.
//!
//! Reads only the headers and the dynamic section with pread, because mapping or reading the whole
//! file would fill the page cache with the very pages that a measurement wants absent. Files are
//! untrusted: every count is bounded by the file's size. See elf(5), and ld.so.cache in glibc's
//! sysdeps/generic/dl-cache.h.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Longest dynamic string table read; libxul's is below 1 MiB, LLVM's 3 MiB.
const MAX_STRINGS: u64 = 16 << 20;
/// Longest header or dynamic table read.
const MAX_TABLE: u64 = 1 << 20;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_STRSZ: u64 = 10;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;

/// What an ELF file asks the dynamic loader for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// The dynamic loader; `None` for a library or a static program.
    pub(crate) interpreter: Option<String>,
    /// Names of needed libraries.
    pub(crate) needed: Vec<String>,
    /// `DT_RUNPATH` or `DT_RPATH`, split; may contain `$ORIGIN`.
    pub(crate) search: Vec<String>,
    /// 64-bit.
    pub(crate) wide: bool,
}

struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

/// Reads the needs of a little-endian ELF file; `None` when it is none or is damaged.
pub(crate) fn needs(file: &File) -> Option<Needs> {
    let len = file.metadata().ok()?.len();
    let head = read(file, 0, 64.min(len))?;
    let wide = match head.get(..6)? {
        [0x7f, b'E', b'L', b'F', 2, 1] => true,
        [0x7f, b'E', b'L', b'F', 1, 1] => false,
        _ => return None,
    };
    let segments = segments(file, &head, wide)?;
    let mut found = Needs { wide, ..Needs::default() };
    if let Some(s) = segments.iter().find(|s| s.kind == PT_INTERP) {
        found.interpreter = string_at(&read(file, s.offset, s.size.min(4096))?, 0);
    }
    let Some(dynamic) = segments.iter().find(|s| s.kind == PT_DYNAMIC) else { return Some(found) };
    let table = read(file, dynamic.offset, dynamic.size.min(MAX_TABLE))?;
    let step = if wide { 8 } else { 4 };
    let entries: Vec<(u64, u64)> = table
        .chunks_exact(2 * step)
        .map_while(|e| Some((number(e, 0, step)?, number(e, step, step)?)))
        .take_while(|(tag, _)| *tag != 0)
        .collect();
    let value = |tag: u64| entries.iter().find(|e| e.0 == tag).map(|e| e.1);
    let (Some(address), Some(size)) = (value(DT_STRTAB), value(DT_STRSZ)) else { return Some(found) };
    let load = segments.iter().find(|s| {
        s.kind == PT_LOAD && address.checked_sub(s.address).is_some_and(|inside| inside < s.size)
    })?;
    let offset = load.offset.checked_add(address - load.address)?;
    let strings = read(file, offset, size.min(MAX_STRINGS))?;
    for (tag, at) in entries {
        let text = || string_at(&strings, usize::try_from(at).ok()?);
        match tag {
            DT_NEEDED => found.needed.extend(text()),
            DT_RPATH | DT_RUNPATH => {
                found.search.extend(text().unwrap_or_default().split(':').map(str::to_owned));
            }
            _ => {}
        }
    }
    Some(found)
}

fn segments(file: &File, head: &[u8], wide: bool) -> Option<Vec<Segment>> {
    let (table, entry_size, count) = if wide {
        (number(head, 32, 8)?, number(head, 54, 2)?, number(head, 56, 2)?)
    } else {
        (number(head, 28, 4)?, number(head, 42, 2)?, number(head, 44, 2)?)
    };
    let entry_len = usize::try_from(entry_size).ok().filter(|n| *n >= if wide { 56 } else { 32 })?;
    let bytes = read(file, table, entry_size.checked_mul(count)?.min(MAX_TABLE))?;
    let segment = |e: &[u8]| {
        let kind = number(e, 0, 4)? as u32;
        let field = |w: usize, n: usize| if wide { number(e, w, 8) } else { number(e, n, 4) };
        Some(Segment { kind, offset: field(8, 4)?, address: field(16, 8)?, size: field(32, 16)? })
    };
    bytes.chunks_exact(entry_len).map(segment).collect()
}

/// Exactly `len` bytes at `offset`, or `None` when the file ends before.
fn read(file: &File, offset: u64, len: u64) -> Option<Vec<u8>> {
    let size = file.metadata().ok()?.len();
    if offset.checked_add(len)? > size {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(len).ok()?];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}

/// A little-endian number of `len` bytes.
fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let part = bytes.get(at..at.checked_add(len)?)?;
    Some(part.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
}

fn string_at(bytes: &[u8], at: usize) -> Option<String> {
    let tail = bytes.get(at..)?;
    let end = tail.iter().position(|b| *b == 0).unwrap_or(tail.len());
    (end > 0).then(|| String::from_utf8_lossy(&tail[..end]).into_owned())
}

const CACHE_MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
/// Header of the new format: magic, two counts, flags, offset of extensions, three unused words.
const CACHE_HEADER: usize = 48;
const CACHE_ENTRY: usize = 24;

/// The paths that `ld.so.cache` lists for a library name, in its order of preference; more than one
/// where it serves several architectures.
pub(crate) fn cached_paths(cache: &[u8], name: &str) -> Vec<String> {
    // The old format may stand in front; offsets then count from the new format's magic.
    let Some(start) = cache.windows(CACHE_MAGIC.len()).position(|w| w == CACHE_MAGIC) else {
        return Vec::new();
    };
    let cache = &cache[start..];
    let count = number(cache, 20, 4).unwrap_or(0);
    let entries = cache.get(CACHE_HEADER..).unwrap_or_default().chunks_exact(CACHE_ENTRY);
    entries
        .take(usize::try_from(count).unwrap_or(0))
        .filter_map(|e| {
            let text = |at: usize| string_at(cache, usize::try_from(number(e, at, 4)?).ok()?);
            (text(4)? == name).then(|| text(8)).flatten()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_program_itself_and_a_damaged_copy() {
        let own = std::fs::read("/proc/self/exe").expect("reads itself");
        let file = File::open("/proc/self/exe").expect("opens itself");
        assert!(needs(&file).expect("is ELF").wide == cfg!(target_pointer_width = "64"));
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("cut");
        for keep in [0, 3, 16, 63, 64, 100, 200] {
            std::fs::write(&path, &own[..keep]).expect("writes");
            assert_eq!(needs(&File::open(&path).expect("opens")), None, "cut after {keep} bytes");
        }
    }

    #[test]
    fn every_byte_of_the_headers_may_be_wrong_without_a_panic() {
        let own = std::fs::read("/proc/self/exe").expect("reads itself");
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("damaged");
        for at in 0..256 {
            let mut bytes = own[..4096.min(own.len())].to_vec();
            bytes[at] ^= 0xff;
            std::fs::write(&path, &bytes).expect("writes");
            let _ = needs(&File::open(&path).expect("opens"));
        }
    }

    #[test]
    fn a_library_is_found_in_the_loader_cache() {
        let (names, at) = (b"libx.so.1\0/lib/libx.so.1\0", (CACHE_HEADER + CACHE_ENTRY) as u32);
        let mut cache = CACHE_MAGIC.to_vec();
        cache.extend(1u32.to_le_bytes());
        cache.extend((names.len() as u32).to_le_bytes());
        cache.resize(CACHE_HEADER, 0);
        cache.extend(3u32.to_le_bytes());
        cache.extend(at.to_le_bytes());
        cache.extend((at + 10).to_le_bytes());
        cache.resize(CACHE_HEADER + CACHE_ENTRY, 0);
        cache.extend(names);
        assert_eq!(cached_paths(&cache, "libx.so.1"), ["/lib/libx.so.1"]);
        assert!(cached_paths(&cache, "liby.so").is_empty());
        for end in 0..cache.len() {
            let _ = cached_paths(&cache[..end], "libx.so.1");
        }
    }
}
