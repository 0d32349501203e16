//! Protobuf's wire format, as far as a trace needs it.
//!
//! See protobuf.dev/programming-guides/encoding. A generated library for Perfetto's messages takes a
//! minute to compile and 0.7 GB of disk; a trace of this kind needs ten of its messages.

use cold_model::varint;

/// A message under construction.
#[derive(Debug, Default, Clone)]
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Empties it and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// uint32, uint64, enum, bool.
    pub(super) fn uint(&mut self, field: u32, value: u64) -> &mut Self {
        varint::put(&mut self.0, u64::from(field) << 3);
        varint::put(&mut self.0, value);
        self
    }

    /// int32, int64: negative numbers take ten bytes.
    pub(super) fn int(&mut self, field: u32, value: i64) -> &mut Self {
        self.uint(field, value.cast_unsigned())
    }

    pub(super) fn fixed64(&mut self, field: u32, value: u64) -> &mut Self {
        varint::put(&mut self.0, u64::from(field) << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn bytes(&mut self, field: u32, value: &[u8]) -> &mut Self {
        varint::put(&mut self.0, u64::from(field) << 3 | 2);
        varint::put(&mut self.0, value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    pub(super) fn string(&mut self, field: u32, value: &str) -> &mut Self {
        self.bytes(field, value.as_bytes())
    }

    /// A message within this one.
    pub(super) fn message(&mut self, field: u32, value: &Message) -> &mut Self {
        self.bytes(field, &value.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of protobuf's own documentation.
    #[test]
    fn numbers_strings_and_messages_are_encoded_as_documented() {
        let mut one = Message::new();
        one.uint(1, 150);
        assert_eq!(one.as_bytes(), [0x08, 0x96, 0x01]);
        let mut two = Message::new();
        two.string(2, "testing");
        assert_eq!(two.as_bytes(), b"\x12\x07testing");
        let mut three = Message::new();
        three.message(3, &one);
        assert_eq!(three.as_bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let mut negative = Message::new();
        negative.int(1, -2);
        assert_eq!(negative.as_bytes(), [8, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
        let mut fixed = Message::new();
        fixed.fixed64(47, 1);
        assert_eq!(fixed.as_bytes(), [0xf9, 0x02, 1, 0, 0, 0, 0, 0, 0, 0]);
    }
}
