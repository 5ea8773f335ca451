//! Unpacking zstd: every frame of a file, one after the other, as the `zstd` program does.
//!
//! The decoder is `ruzstd`, which is Rust without the C library, so that a hostile file does not reach
//! memory-unsafe code. It is about half as fast, but reading the pickle takes longer than either. It
//! unpacks only what is requested, but keeps a window of earlier bytes, as large as the file says. So
//! the window size is checked first.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Frames with these numbers (and the fifteen after the first) hold no data for us.
const SKIPPABLE: u32 = 0x184d_2a50;

/// What the `zstd` program unpacks without being told to (`--long` beyond 27 has to be allowed).
const MAX_WINDOW_BYTES: u64 = 128 << 20;

pub(crate) struct ZstdReader<R> {
    source: R,
    /// The decoder of the frame that is being read.
    decoder: Option<FrameDecoder>,
}

impl<R: BufRead> ZstdReader<R> {
    pub(crate) fn new(source: R) -> Self {
        Self {
            source,
            decoder: None,
        }
    }

    /// The decoder of the next frame, or none at the end of the file.
    fn next_frame(&mut self) -> io::Result<Option<FrameDecoder>> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(None);
            }
            let magic = self.take::<4>()?;
            if u32::from_le_bytes(magic) & !0xf == SKIPPABLE {
                let length = u64::from(u32::from_le_bytes(self.take()?));
                let passed = io::copy(&mut self.source.by_ref().take(length), &mut io::sink())?;
                if passed < length {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                continue;
            }
            let mut header = magic.to_vec();
            self.read_header(&mut header)?;
            let mut decoder = FrameDecoder::new();
            decoder
                .init(header.chain(&mut self.source))
                .map_err(io::Error::other)?;
            return Ok(Some(decoder));
        }
    }

    /// Reads a frame's header after its magic number, and refuses a window that would need too much
    /// memory (RFC 8878, 3.1.1.1).
    fn read_header(&mut self, header: &mut Vec<u8>) -> io::Result<()> {
        let [descriptor] = self.take()?;
        header.push(descriptor);
        let is_single_segment = descriptor & 0x20 != 0;
        let mut window_bytes = 0;
        if !is_single_segment {
            let [window] = self.take()?;
            header.push(window);
            let base = 1u64 << (10 + (window >> 3));
            window_bytes = base + base / 8 * u64::from(window & 7);
        }
        let dictionary_id_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
        for _ in 0..dictionary_id_bytes {
            header.extend(self.take::<1>()?);
        }
        let content_size_bytes = match descriptor >> 6 {
            0 => usize::from(is_single_segment),
            power => 1 << power,
        };
        let mut content_size = [0; 8];
        self.source
            .read_exact(&mut content_size[..content_size_bytes])?;
        header.extend(&content_size[..content_size_bytes]);
        if is_single_segment {
            // The whole content is the window.
            window_bytes = u64::from_le_bytes(content_size);
        }
        if window_bytes > MAX_WINDOW_BYTES {
            let message =
                format!("its window of {window_bytes} bytes is larger than {MAX_WINDOW_BYTES}");
            return Err(io::Error::other(message));
        }
        Ok(())
    }

    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.source.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

impl<R: BufRead> Read for ZstdReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let decoder = match &mut self.decoder {
                Some(decoder) => decoder,
                None => match self.next_frame()? {
                    Some(decoder) => self.decoder.insert(decoder),
                    None => return Ok(0),
                },
            };
            while decoder.can_collect() == 0 && !decoder.is_finished() {
                let wanted = BlockDecodingStrategy::UptoBytes(buffer.len());
                decoder
                    .decode_blocks(&mut self.source, wanted)
                    .map_err(io::Error::other)?;
            }
            let count = decoder.read(buffer)?;
            if count > 0 {
                return Ok(count);
            }
            self.decoder = None;
        }
    }
}
