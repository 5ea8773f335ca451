//! The file as a sliding window: at most one buffer of it is in memory.

use std::io::{self, Read};

use crate::error::Error;

const BUFFER_BYTES: usize = 256 * 1024;

/// More than the longest instruction with operands of a fixed length.
const LOOKAHEAD_BYTES: usize = 16;

/// Longest line of the text instructions (protocol 0). A line is one number or one string.
const MAX_LINE_BYTES: usize = 64 << 20;

pub(crate) struct Input<R> {
    source: R,
    /// The window, followed by as many zeros as an instruction may look ahead.
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// File offset of `buffer[0]`.
    base: u64,
    at_end: bool,
}

impl<R: Read> Input<R> {
    pub(crate) fn new(source: R) -> Self {
        Self {
            source,
            buffer: vec![0; BUFFER_BYTES + LOOKAHEAD_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            base: 0,
            at_end: false,
        }
    }

    /// Offset of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Whether the buffer has to be refilled before the next instruction, or has ended.
    #[inline]
    pub(crate) fn is_low(&self) -> bool {
        self.start + LOOKAHEAD_BYTES > self.end
    }

    /// Fills the buffer if there is more, and returns whether there is a next instruction.
    #[cold]
    pub(crate) fn refill(&mut self) -> Result<(), Error> {
        if !self.at_end && self.start <= self.end {
            self.fill()?;
        }
        if self.start >= self.end {
            Err(self.truncated())
        } else {
            Ok(())
        }
    }

    /// Moves the rest to the front, then reads until the buffer is full or the file ends.
    pub(crate) fn fill(&mut self) -> Result<(), Error> {
        self.start = self.start.min(self.end);
        self.buffer.copy_within(self.start..self.end, 0);
        self.base += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        while self.end < BUFFER_BYTES && !self.at_end {
            match self.source.read(&mut self.buffer[self.end..BUFFER_BYTES]) {
                Ok(0) => self.at_end = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::Io(error)),
            }
        }
        self.buffer[self.end..self.end + LOOKAHEAD_BYTES].fill(0);
        Ok(())
    }

    /// The next instruction and the eight bytes after it, little-endian; zeros beyond the end of the file.
    #[inline]
    pub(crate) fn head(&self) -> (u8, u64) {
        let head = self
            .buffer
            .get(self.start..)
            .and_then(|rest| rest.first_chunk::<9>());
        match head {
            Some([opcode, operand @ ..]) => (*opcode, u64::from_le_bytes(*operand)),
            None => (0, 0),
        }
    }

    /// The eight bytes after the instruction and one more byte; zeros beyond the end of the file.
    #[inline]
    pub(crate) fn after_length(&self) -> i64 {
        let bytes = self
            .buffer
            .get(self.start + 2..)
            .and_then(|rest| rest.first_chunk::<8>());
        bytes.map_or(0, |bytes| i64::from_le_bytes(*bytes))
    }

    /// Skips bytes that [`Input::head`] or [`Input::ahead`] returned. [`Input::has_overrun`] says whether some of
    /// them lay beyond the end of the file.
    #[inline]
    pub(crate) fn skip(&mut self, count: usize) {
        self.start += count;
    }

    /// Whether the last instruction needed bytes that are not there.
    #[inline]
    pub(crate) fn has_overrun(&self) -> bool {
        self.start > self.end
    }

    /// The rest of the buffer after the last instruction.
    #[inline]
    pub(crate) fn ahead(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or(&[])
    }

    /// Calls `use_bytes` with the next `length` bytes.
    ///
    /// Data longer than the buffer is collected as it arrives: the length in the file is not trusted, so memory is
    /// allocated only for bytes that are there.
    #[inline]
    pub(crate) fn bytes<T>(
        &mut self,
        length: u64,
        limit_bytes: u64,
        use_bytes: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, Error> {
        if self.has_overrun() {
            return Err(self.truncated());
        }
        if length > (self.end - self.start) as u64 {
            if length > BUFFER_BYTES as u64 {
                return self.long_bytes(length, limit_bytes, use_bytes);
            }
            self.fill()?;
        }
        let range = self.start..self.start + length as usize;
        match self.buffer[..self.end].get(range) {
            Some(bytes) => {
                self.start += length as usize;
                Ok(use_bytes(bytes))
            }
            None => {
                self.start = self.end;
                Err(self.truncated())
            }
        }
    }

    #[cold]
    fn long_bytes<T>(
        &mut self,
        length: u64,
        limit_bytes: u64,
        use_bytes: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, Error> {
        let offset = self.offset();
        let mut collected = Vec::new();
        while (collected.len() as u64) < length {
            if self.start == self.end {
                self.fill()?;
                if self.start == self.end {
                    return Err(self.truncated());
                }
            }
            if collected.len() as u64 > limit_bytes {
                return Err(Error::TooMuchMemory {
                    offset,
                    limit_bytes,
                });
            }
            let wanted = length - collected.len() as u64;
            let count = wanted.min((self.end - self.start) as u64) as usize;
            collected.extend_from_slice(&self.buffer[self.start..self.start + count]);
            self.start += count;
        }
        Ok(use_bytes(&collected))
    }

    /// The next line, without its line feed.
    pub(crate) fn line(&mut self) -> Result<Vec<u8>, Error> {
        let mut line = Vec::new();
        self.start = self.start.min(self.end);
        loop {
            let rest = &self.buffer[self.start..self.end];
            if let Some(length) = rest.iter().position(|byte| *byte == b'\n') {
                line.extend_from_slice(&rest[..length]);
                self.start += length + 1;
                return Ok(line);
            }
            line.extend_from_slice(rest);
            self.start = self.end;
            if line.len() > MAX_LINE_BYTES {
                return Err(Error::Malformed {
                    offset: self.offset(),
                    what: "a line without an end",
                });
            }
            self.fill()?;
            if self.start == self.end {
                return Err(self.truncated());
            }
        }
    }

    /// Whether no byte is left.
    pub(crate) fn is_at_end(&mut self) -> Result<bool, Error> {
        if self.start >= self.end {
            self.fill()?;
        }
        Ok(self.start >= self.end)
    }

    #[cold]
    pub(crate) fn truncated(&self) -> Error {
        let offset = self.base + self.end as u64;
        Error::Truncated {
            offset,
            instruction_offset: offset,
        }
    }
}
