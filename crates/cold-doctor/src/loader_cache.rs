//! The loader's cache of libraries, `ld.so.cache`: untrusted, see glibc's sysdeps/generic/dl-cache.h.

const CACHE_MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
/// Header of the new format: magic, two counts, flags, offset of extensions, three unused words.
const CACHE_HEADER: usize = 48;
const CACHE_ENTRY: usize = 24;

/// The paths that `ld.so.cache` lists for a library name, in its order of preference; more than one
/// where it serves several architectures.
pub(crate) fn paths(cache: &[u8], name: &str) -> Vec<String> {
    // The old format may stand in front; offsets then count from the new format's magic.
    let Some(start) = cache.windows(CACHE_MAGIC.len()).position(|w| w == CACHE_MAGIC) else {
        return Vec::new();
    };
    let cache = &cache[start..];
    let count = number(cache, 20).unwrap_or(0);
    let entries = cache.get(CACHE_HEADER..).unwrap_or_default().chunks_exact(CACHE_ENTRY);
    entries
        .take(usize::try_from(count).unwrap_or(0))
        .filter_map(|e| {
            let text = |at: usize| string_at(cache, usize::try_from(number(e, at)?).ok()?);
            (text(4)? == name).then(|| text(8)).flatten()
        })
        .collect()
}

/// A little-endian number of four bytes.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

fn string_at(bytes: &[u8], at: usize) -> Option<String> {
    let tail = bytes.get(at..)?;
    let end = tail.iter().position(|b| *b == 0).unwrap_or(tail.len());
    (end > 0).then(|| String::from_utf8_lossy(&tail[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(paths(&cache, "libx.so.1"), ["/lib/libx.so.1"]);
        assert!(paths(&cache, "liby.so").is_empty());
        for end in 0..cache.len() {
            let _ = paths(&cache[..end], "libx.so.1");
        }
    }
}
