//! The encoding of a log, detected once at its start; UTF-16 is converted to UTF-8.

/// How many bytes decide the encoding.
const SAMPLE: usize = 4096;

/// Converts bytes to an ASCII-compatible encoding.
#[derive(Debug, Default)]
pub struct Decoder {
    state: State,
    /// The start of the log until the encoding is known; then half a UTF-16 code unit.
    held: Vec<u8>,
    /// The first half of a surrogate pair.
    high: Option<u16>,
    decoded: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Undecided,
    /// UTF-8, GBK or any other ASCII-compatible encoding.
    Bytes,
    Utf16 {
        is_little_endian: bool,
    },
}

impl Decoder {
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(&[u8])) {
        match self.state {
            State::Bytes => sink(bytes),
            State::Utf16 { is_little_endian } => self.utf16(bytes, is_little_endian, sink),
            State::Undecided => {
                // The same bytes decide, however the log is chunked.
                let missing = SAMPLE - self.held.len();
                let (sample, rest) = bytes.split_at(missing.min(bytes.len()));
                self.held.extend_from_slice(sample);
                if self.held.len() == SAMPLE {
                    self.decide(sink);
                    self.push(rest, sink);
                }
            }
        }
    }

    pub fn finish(&mut self, sink: &mut dyn FnMut(&[u8])) {
        if self.state == State::Undecided {
            self.decide(sink);
        }
        if self.high.take().is_some() || !self.held.is_empty() {
            sink("\u{FFFD}".as_bytes());
        }
        self.held.clear();
    }

    fn decide(&mut self, sink: &mut dyn FnMut(&[u8])) {
        let held = std::mem::take(&mut self.held);
        let (state, mark) = detect(&held);
        self.state = state;
        self.push(&held[mark..], sink);
    }

    fn utf16(&mut self, bytes: &[u8], is_little_endian: bool, sink: &mut dyn FnMut(&[u8])) {
        self.decoded.clear();
        let mut bytes = bytes.iter().copied();
        loop {
            while self.held.len() < 2 {
                let Some(byte) = bytes.next() else {
                    if !self.decoded.is_empty() {
                        sink(&self.decoded);
                    }
                    return;
                };
                self.held.push(byte);
            }
            let pair = [self.held[0], self.held[1]];
            self.held.clear();
            let unit = match is_little_endian {
                true => u16::from_le_bytes(pair),
                false => u16::from_be_bytes(pair),
            };
            let before = self.high.take();
            let units: Vec<u16> = match (0xD800..0xDC00).contains(&unit) {
                // The other half may be in the next chunk.
                true => {
                    self.high = Some(unit);
                    before.into_iter().collect()
                }
                false => before.into_iter().chain([unit]).collect(),
            };
            for character in char::decode_utf16(units) {
                let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
                let mut buffer = [0; 4];
                let encoded = character.encode_utf8(&mut buffer);
                self.decoded.extend_from_slice(encoded.as_bytes());
            }
        }
    }
}

/// The encoding, and the length of its byte order mark.
fn detect(sample: &[u8]) -> (State, usize) {
    let little = State::Utf16 {
        is_little_endian: true,
    };
    let big = State::Utf16 {
        is_little_endian: false,
    };
    match sample {
        [0xFF, 0xFE, ..] => return (little, 2),
        [0xFE, 0xFF, ..] => return (big, 2),
        [0xEF, 0xBB, 0xBF, ..] => return (State::Bytes, 3),
        _ => {}
    }
    // Without a byte order mark: English in UTF-16 has a zero in every other byte, and only there.
    let zeros = |offset: usize| {
        let bytes = sample.iter().skip(offset).step_by(2);
        bytes.filter(|byte| **byte == 0).count()
    };
    let (even, odd) = (zeros(0), zeros(1));
    let units = sample.len() / 2;
    if units >= 4 && odd * 10 > units * 7 && even * 20 < units {
        return (little, 0);
    }
    if units >= 4 && even * 10 > units * 7 && odd * 20 < units {
        return (big, 0);
    }
    (State::Bytes, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8], chunk: usize) -> String {
        let mut decoder = Decoder::default();
        let mut found = Vec::new();
        for chunk in bytes.chunks(chunk) {
            decoder.push(chunk, &mut |bytes| found.extend_from_slice(bytes));
        }
        decoder.finish(&mut |bytes| found.extend_from_slice(bytes));
        String::from_utf8_lossy(&found).into_owned()
    }

    #[test]
    fn utf_16_is_found_with_and_without_its_mark() {
        let text = "CUDA out of memory 显存 🦀\r\n".repeat(300);
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for chunk in [1, 3, 4096, usize::MAX] {
            assert_eq!(decoded(&little, chunk), text);
            assert_eq!(decoded(&big, chunk), text);
            assert_eq!(decoded(&[&[0xFF, 0xFE], &little[..]].concat(), chunk), text);
            assert_eq!(decoded(&[&[0xFE, 0xFF], &big[..]].concat(), chunk), text);
        }
    }

    #[test]
    fn other_bytes_pass_untouched() {
        assert_eq!(decoded("\u{FEFF}Killed".as_bytes(), 2), "Killed");
        assert_eq!(decoded(b"ab\0\0\0c", 1), "ab\0\0\0c");
        assert_eq!(decoded(b"", 1), "");
    }

    #[test]
    fn half_a_character_at_the_end_is_not_a_failure() {
        assert_eq!(decoded(b"\xFF\xFEa\0b", 1), "a\u{FFFD}");
        assert_eq!(decoded(b"\xFF\xFE\x00\xD8", 1), "\u{FFFD}");
        assert_eq!(
            decoded(b"\xFF\xFE\x00\xD8\x00\xD8a\0", 1),
            "\u{FFFD}\u{FFFD}a"
        );
    }
}
