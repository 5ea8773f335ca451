//! A section that is being read: numbers and texts, decompressed on demand.

use std::io::{BufRead, Read, Take};

use flate2::bufread::ZlibDecoder;

use super::error::FileError;

/// How many bytes are decompressed at once.
const CHUNK_BYTES: usize = 1 << 16;

/// How much memory reading may still take.
#[derive(Debug)]
pub(super) struct Budget {
    pub(super) limit_bytes: u64,
    pub(super) left_bytes: u64,
}

/// Gives the values of one section.
pub(super) struct Unpacked<'a, R: BufRead> {
    decoder: ZlibDecoder<Take<&'a mut R>>,
    buffer: Vec<u8>,
    next: usize,
    /// Where the section begins in the file.
    pub(super) offset: u64,
    packed_bytes: u64,
    /// Decompressed bytes before those in the buffer.
    inside_before: u64,
    budget: &'a mut Budget,
}

impl<'a, R: BufRead> Unpacked<'a, R> {
    pub(super) fn new(
        input: Take<&'a mut R>,
        offset: u64,
        packed_bytes: u64,
        budget: &'a mut Budget,
    ) -> Self {
        Self {
            decoder: ZlibDecoder::new(input),
            buffer: Vec::with_capacity(CHUNK_BYTES),
            next: 0,
            offset,
            packed_bytes,
            inside_before: 0,
            budget,
        }
    }

    /// An error at the value that was read last.
    pub(super) fn wrong(&self, what: impl Into<String>) -> FileError {
        FileError::Damaged {
            offset: self.offset,
            inside: self.inside_before + self.next as u64,
            what: what.into(),
        }
    }

    /// Counts memory that is about to be used.
    pub(super) fn charge(&mut self, bytes: usize) -> Result<(), FileError> {
        let left = self.budget.left_bytes.checked_sub(bytes as u64);
        self.budget.left_bytes = left.ok_or(FileError::TooLarge {
            offset: self.offset,
            limit_bytes: self.budget.limit_bytes,
        })?;
        Ok(())
    }

    pub(super) fn byte(&mut self) -> Result<u8, FileError> {
        if self.next == self.buffer.len() && !self.refill()? {
            return Err(self.wrong("the section ends too early"));
        }
        let byte = self.buffer[self.next];
        self.next += 1;
        Ok(byte)
    }

    pub(super) fn number(&mut self) -> Result<u64, FileError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has one bit left.
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.wrong("a number is longer than 64 bits"))
    }

    /// A number of 32 bits.
    pub(super) fn short(&mut self) -> Result<u32, FileError> {
        let value = self.number()?;
        u32::try_from(value).map_err(|_| self.wrong(format!("{value} is longer than 32 bits")))
    }

    /// A number that is stored as the difference from another.
    pub(super) fn difference(&mut self, before: u64) -> Result<u64, FileError> {
        let zigzag = self.number()?;
        let difference = (zigzag >> 1) ^ (zigzag & 1).wrapping_neg();
        Ok(before.wrapping_add(difference))
    }

    /// A 32-bit number that is stored as the difference from another.
    pub(super) fn short_difference(&mut self, before: u32) -> Result<u32, FileError> {
        let value = self.difference(before.into())?;
        u32::try_from(value).map_err(|_| self.wrong(format!("{value} is longer than 32 bits")))
    }

    pub(super) fn text(&mut self) -> Result<String, FileError> {
        let mut left = self.number()?;
        let mut bytes = Vec::new();
        while left > 0 {
            if self.next == self.buffer.len() && !self.refill()? {
                return Err(self.wrong("a text ends too early"));
            }
            let there = &self.buffer[self.next..];
            let taken = there.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            bytes.extend_from_slice(&there[..taken]);
            self.charge(taken)?;
            self.next += taken;
            left -= taken as u64;
        }
        String::from_utf8(bytes).map_err(|_| self.wrong("a text is not UTF-8"))
    }

    /// The values of a list, which is preceded by its length.
    pub(super) fn list<T>(
        &mut self,
        mut value: impl FnMut(&mut Self) -> Result<T, FileError>,
    ) -> Result<Vec<T>, FileError> {
        let count = self.number()?;
        let mut list = Vec::new();
        for _ in 0..count {
            self.charge(size_of::<T>())?;
            list.push(value(self)?);
        }
        Ok(list)
    }

    /// Makes sure that nothing is left.
    pub(super) fn finish(mut self) -> Result<(), FileError> {
        if self.next < self.buffer.len() || self.refill()? {
            return Err(self.wrong("the section has more than it should"));
        }
        if self.decoder.get_ref().limit() > 0 {
            return Err(self.wrong("something follows what is packed"));
        }
        Ok(())
    }

    fn refill(&mut self) -> Result<bool, FileError> {
        self.inside_before += self.buffer.len() as u64;
        self.next = 0;
        self.buffer.resize(CHUNK_BYTES, 0);
        let read = self.decoder.read(&mut self.buffer);
        let count = *read.as_ref().unwrap_or(&0);
        self.buffer.truncate(count);
        match read {
            Ok(count) => Ok(count > 0),
            Err(error) => Err(self.cannot_unpack(error)),
        }
    }

    fn cannot_unpack(&mut self, error: std::io::Error) -> FileError {
        use std::io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
        if !matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof) {
            return error.into();
        }
        let limit = self.decoder.get_ref().limit();
        let is_at_end = self.decoder.get_mut().get_mut().fill_buf();
        let is_at_end = is_at_end.is_ok_and(<[u8]>::is_empty);
        if limit > 0 && is_at_end {
            let taken = self.packed_bytes - limit;
            return FileError::Truncated {
                offset: self.offset + super::read::SECTION_HEAD_BYTES + taken,
            };
        }
        self.wrong(format!("cannot be unpacked: {error}"))
    }
}
