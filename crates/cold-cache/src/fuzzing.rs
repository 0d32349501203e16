//! The snapshot reader for arbitrary bytes.

use crate::snapshot::{Snapshot, seal};

/// Decodes `bytes` as they are, and with a checksum that fits, so that what lies behind it is reached.
/// What decodes must encode to something that decodes to the same.
///
/// # Panics
/// Where it does not.
pub fn snapshot(bytes: &[u8]) {
    let sealed = seal(bytes);
    for bytes in [bytes, &sealed] {
        if let Ok(snapshot) = Snapshot::decode(bytes) {
            assert_eq!(Snapshot::decode(&snapshot.encode()).as_ref(), Ok(&snapshot));
        }
    }
}
