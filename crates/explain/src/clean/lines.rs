//! Splits lines at line feeds, carriage returns (progress bars), or both.

use memchr::memchr2;

/// A longer line is passed on in pieces, as if wrapped.
pub const LONGEST: usize = 16 << 10;

/// Splits a stream of bytes into lines. Holds at most [`LONGEST`] bytes.
#[derive(Debug, Default)]
pub struct Lines {
    held: Vec<u8>,
    /// Line feeds so far.
    feeds: u64,
}

impl Lines {
    /// `sink` gets the line's number, from 1, and its bytes; empty lines are skipped.
    pub fn push(&mut self, mut bytes: &[u8], sink: &mut dyn FnMut(u64, &[u8])) {
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            let number = self.feeds + 1;
            if self.held.is_empty() {
                pieces(&bytes[..end], &mut |piece| sink(number, piece));
            } else {
                self.hold(&bytes[..end], sink);
                let held = std::mem::take(&mut self.held);
                pieces(&held, &mut |piece| sink(number, piece));
                self.held = held;
                self.held.clear();
            }
            self.feeds += u64::from(bytes[end] == b'\n');
            bytes = &bytes[end + 1..];
        }
        self.hold(bytes, sink);
    }

    pub fn finish(&mut self, sink: &mut dyn FnMut(u64, &[u8])) {
        let number = self.feeds + 1;
        pieces(&self.held, &mut |piece| sink(number, piece));
        self.held.clear();
    }

    /// Keeps an unfinished line, and passes on whole pieces of it.
    fn hold(&mut self, mut bytes: &[u8], sink: &mut dyn FnMut(u64, &[u8])) {
        let number = self.feeds + 1;
        while self.held.len() + bytes.len() > LONGEST {
            let missing = LONGEST + 1 - self.held.len();
            self.held.extend_from_slice(&bytes[..missing]);
            bytes = &bytes[missing..];
            let end = piece_end(&self.held);
            sink(number, &self.held[..end]);
            self.held.drain(..end);
        }
        self.held.extend_from_slice(bytes);
    }
}

fn pieces(mut line: &[u8], sink: &mut dyn FnMut(&[u8])) {
    while line.len() > LONGEST {
        let end = piece_end(line);
        sink(&line[..end]);
        line = &line[end..];
    }
    if !line.is_empty() {
        sink(line);
    }
}

/// Where the first piece of a line longer than [`LONGEST`] ends: on a UTF-8 character boundary.
fn piece_end(line: &[u8]) -> usize {
    let is_inside = |index: &usize| line[*index] & 0b1100_0000 == 0b1000_0000;
    (LONGEST - 3..=LONGEST)
        .rev()
        .find(|index| !is_inside(index))
        .unwrap_or(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8], chunk: usize) -> Vec<(u64, String)> {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        let mut sink = |number, line: &[u8]| {
            found.push((number, String::from_utf8_lossy(line).into_owned()));
        };
        for chunk in bytes.chunks(chunk) {
            lines.push(chunk, &mut sink);
        }
        lines.finish(&mut sink);
        found
    }

    #[test]
    fn every_line_end_ends_a_line_and_line_feeds_are_counted() {
        for chunk in 1..20 {
            let found = lines(b"one\r\n 10%\r 20%\rtwo\n\nthree", chunk);
            let expected = [
                (1, "one"),
                (2, " 10%"),
                (2, " 20%"),
                (2, "two"),
                (4, "three"),
            ];
            let expected: Vec<(u64, String)> = expected
                .map(|(number, text)| (number, text.to_owned()))
                .into();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_line_without_end_comes_in_the_same_pieces_however_it_arrives() {
        let text = "ä".repeat(LONGEST * 2) + "x\nend";
        let whole = lines(text.as_bytes(), usize::MAX);
        for chunk in [1, 7, 4096, LONGEST, LONGEST + 1, 100_000] {
            assert_eq!(lines(text.as_bytes(), chunk), whole, "{chunk}");
        }
        assert!(whole.iter().all(|(_, line)| line.len() <= LONGEST));
        assert!(!whole.iter().any(|(_, line)| line.contains('\u{FFFD}')));
    }
}
