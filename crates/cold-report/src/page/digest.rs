//! SHA-256 of a script or style for the page's Content-Security-Policy (FIPS 180-4).
//!
//! Own because nothing else in the program needs a cryptographic digest.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The policy's source expression for inline text (`'sha256-…'`).
pub(super) fn source(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(sha256(text.as_bytes())))
}

/// The first 32 bits of the fractional parts of the `root`-th roots of the first primes.
fn constants<const N: usize>(root: impl Fn(u128) -> u128) -> [u32; N] {
    let mut out = [0; N];
    let primes = (2_u128..).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0));
    for (slot, prime) in out.iter_mut().zip(primes) {
        *slot = root(prime) as u32;
    }
    out
}

/// Largest `r` with `power(r) <= target`.
fn largest(target: u128, power: impl Fn(u128) -> u128) -> u128 {
    let (mut low, mut high) = (0_u128, 1 << 40);
    while high - low > 1 {
        let middle = u128::midpoint(low, high);
        if power(middle) <= target { low = middle } else { high = middle }
    }
    low
}

fn sha256(text: &[u8]) -> [u8; 32] {
    // floor(root × 2^32), of which only the fraction fits into 32 bits.
    let rounds: [u32; 64] = constants(|p| largest(p << 96, |r| r * r * r));
    let mut hash: [u32; 8] = constants(|p| largest(p << 64, |r| r * r));
    let mut padded = text.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((text.len() as u64 * 8).to_be_bytes());
    for block in padded.as_chunks::<64>().0 {
        compress(&mut hash, block, &rounds);
    }
    let mut out = [0; 32];
    for (bytes, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(hash) {
        *bytes = word.to_be_bytes();
    }
    out
}

fn compress(hash: &mut [u32; 8], block: &[u8; 64], rounds: &[u32; 64]) {
    let mut w = [0_u32; 64];
    for (word, bytes) in w.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    for i in 16..64 {
        let s0 = w[i - 15].rotate_right(7) ^ w[i - 15].rotate_right(18) ^ (w[i - 15] >> 3);
        let s1 = w[i - 2].rotate_right(17) ^ w[i - 2].rotate_right(19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16].wrapping_add(s0).wrapping_add(w[i - 7]).wrapping_add(s1);
    }
    // The standard's names: a to h.
    let mut v = *hash;
    for (k, w) in rounds.iter().zip(w) {
        let s1 = v[4].rotate_right(6) ^ v[4].rotate_right(11) ^ v[4].rotate_right(25);
        let choice = (v[4] & v[5]) ^ (!v[4] & v[6]);
        let t1 = v[7].wrapping_add(s1).wrapping_add(choice).wrapping_add(*k).wrapping_add(w);
        let s0 = v[0].rotate_right(2) ^ v[0].rotate_right(13) ^ v[0].rotate_right(22);
        let majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        v = [
            t1.wrapping_add(s0.wrapping_add(majority)),
            v[0],
            v[1],
            v[2],
            v[3].wrapping_add(t1),
            v[4],
            v[5],
            v[6],
        ];
    }
    for (h, v) in hash.iter_mut().zip(v) {
        *h = h.wrapping_add(v);
    }
}

#[cfg(test)]
mod tests {
    use super::sha256;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().flat_map(|b| [b >> 4, b & 15]).filter_map(|n| char::from_digit(n.into(), 16)).collect()
    }

    /// The standard's own examples, and one of more than a block.
    #[test]
    fn digests_are_those_of_the_standard() {
        assert_eq!(hex(&sha256(b"abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(hex(&sha256(b"")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(
            hex(&sha256(&[b'a'; 1000])),
            "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3"
        );
    }
}
