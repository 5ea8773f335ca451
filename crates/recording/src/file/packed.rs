//! A section that is being written: numbers and texts, compressed as they come.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// How many bytes are compressed at once.
const CHUNK_BYTES: usize = 1 << 16;

/// Takes the values of one section.
pub(super) struct Packed {
    buffer: Vec<u8>,
    encoder: ZlibEncoder<Vec<u8>>,
}

impl Packed {
    pub(super) fn new() -> Self {
        Self {
            buffer: Vec::with_capacity(CHUNK_BYTES + 16),
            encoder: ZlibEncoder::new(Vec::new(), Compression::fast()),
        }
    }

    pub(super) fn byte(&mut self, byte: u8) -> io::Result<()> {
        self.buffer.push(byte);
        self.pack_if_full()
    }

    pub(super) fn number(&mut self, mut value: u64) -> io::Result<()> {
        while value >= 0x80 {
            self.buffer.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.buffer.push(value as u8);
        self.pack_if_full()
    }

    /// The difference of two numbers, which may be negative.
    pub(super) fn difference(&mut self, value: u64, before: u64) -> io::Result<()> {
        let difference = value.wrapping_sub(before) as i64;
        // Zigzag encoding: small differences are short, whatever their sign.
        self.number(((difference << 1) ^ (difference >> 63)) as u64)
    }

    pub(super) fn text(&mut self, text: &str) -> io::Result<()> {
        self.number(text.len() as u64)?;
        self.buffer.extend_from_slice(text.as_bytes());
        self.pack_if_full()
    }

    fn pack_if_full(&mut self) -> io::Result<()> {
        if self.buffer.len() >= CHUNK_BYTES {
            self.encoder.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> io::Result<Vec<u8>> {
        self.encoder.write_all(&self.buffer)?;
        self.encoder.finish()
    }
}
