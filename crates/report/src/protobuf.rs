//! Protocol buffers on the wire: fields with numbers, no schema.
//!
//! Two formats together need a dozen small messages. Their fields are written by number in the code that fills them,
//! which is simpler than generated types and a build step.

use std::io::{self, Write};

const VARINT: u64 = 0;
const LENGTH_DELIMITED: u64 = 2;

/// A message being built. Fields with the value 0 are written only if their presence matters.
#[derive(Debug, Default)]
pub(crate) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// An unsigned number, a flag or an enumeration's value.
    pub(crate) fn number(&mut self, field: u32, value: u64) -> &mut Self {
        self.key(field, VARINT);
        push_varint(&mut self.bytes, value);
        self
    }

    /// A number of the type `int64`: two's complement, not zigzag.
    pub(crate) fn signed(&mut self, field: u32, value: i64) -> &mut Self {
        self.number(field, value as u64)
    }

    pub(crate) fn text(&mut self, field: u32, text: &str) -> &mut Self {
        self.delimited(field, text.as_bytes())
    }

    /// A message inside this one.
    pub(crate) fn message(&mut self, field: u32, inner: &Message) -> &mut Self {
        self.delimited(field, &inner.bytes)
    }

    /// A message inside this one, filled by a function.
    pub(crate) fn nested(&mut self, field: u32, fill: impl FnOnce(&mut Message)) -> &mut Self {
        let mut inner = Message::default();
        fill(&mut inner);
        self.message(field, &inner)
    }

    /// Numbers of a repeated field, packed.
    pub(crate) fn packed(
        &mut self,
        field: u32,
        values: impl IntoIterator<Item = u64>,
    ) -> &mut Self {
        let mut packed = Vec::new();
        for value in values {
            push_varint(&mut packed, value);
        }
        self.delimited(field, &packed)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Writes this as a field of the outermost message, which is never in memory as a whole.
    pub(crate) fn write_as_field(&self, field: u32, out: &mut impl Write) -> io::Result<()> {
        write_delimited(field, &self.bytes, out)
    }

    fn delimited(&mut self, field: u32, bytes: &[u8]) -> &mut Self {
        self.key(field, LENGTH_DELIMITED);
        push_varint(&mut self.bytes, bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
        self
    }

    fn key(&mut self, field: u32, wire_type: u64) {
        push_varint(&mut self.bytes, u64::from(field) << 3 | wire_type);
    }
}

/// Writes a text as a field of the outermost message.
pub(crate) fn write_text(field: u32, text: &str, out: &mut impl Write) -> io::Result<()> {
    write_delimited(field, text.as_bytes(), out)
}

/// Writes a number as a field of the outermost message.
pub(crate) fn write_number(field: u32, value: u64, out: &mut impl Write) -> io::Result<()> {
    let mut message = Message::default();
    message.number(field, value);
    out.write_all(&message.bytes)
}

fn write_delimited(field: u32, bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
    let mut head = Vec::with_capacity(16);
    push_varint(&mut head, u64::from(field) << 3 | LENGTH_DELIMITED);
    push_varint(&mut head, bytes.len() as u64);
    out.write_all(&head)?;
    out.write_all(bytes)
}

fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_the_specification_shows() {
        // The examples of protobuf.dev/programming-guides/encoding.
        let mut number = Message::default();
        number.number(1, 150);
        assert_eq!(number.bytes, [0x08, 0x96, 0x01]);

        let mut text = Message::default();
        text.text(2, "testing");
        assert_eq!(text.bytes, b"\x12\x07testing");

        let mut outer = Message::default();
        outer.message(3, &number);
        assert_eq!(outer.bytes, [0x1a, 0x03, 0x08, 0x96, 0x01]);

        let mut packed = Message::default();
        packed.packed(6, [3, 270, 86942]);
        assert_eq!(
            packed.bytes,
            [0x32, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05]
        );
    }

    #[test]
    fn a_negative_number_takes_ten_bytes() {
        let mut message = Message::default();
        message.signed(1, -2);
        assert_eq!(
            message.bytes,
            [
                0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01
            ]
        );
    }
}
