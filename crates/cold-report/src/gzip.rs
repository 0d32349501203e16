//! One gzip member (RFC 1952) around deflated bytes: profiler.firefox.com opens compressed profiles.

/// ID, method deflate, no flags, no time, no extra flags, system unknown.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// `bytes`, compressed.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = HEADER.to_vec();
    // Level 6 is gzip's own default.
    out.extend(miniz_oxide::deflate::compress_to_vec(bytes, 6));
    out.extend(crc32fast::hash(bytes).to_le_bytes());
    // The format keeps the length modulo 2^32.
    out.extend((bytes.len() as u32).to_le_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_comes_back() {
        let text = b"markers ".repeat(1000);
        let packed = gzip(&text);
        assert!(packed.len() < 200 && packed.starts_with(&[0x1f, 0x8b, 8]));
        let (body, trailer) = packed[10..].split_at(packed.len() - 18);
        assert_eq!(miniz_oxide::inflate::decompress_to_vec(body).unwrap(), text);
        assert_eq!(u32::from_le_bytes(trailer[..4].try_into().unwrap()), crc32fast::hash(&text));
        assert_eq!(u32::from_le_bytes(trailer[4..].try_into().unwrap()), 8000);
    }
}
