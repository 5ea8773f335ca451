//! A part of the page's data: a JSON document and columns of numbers, compressed for `DecompressionStream`.
//!
//! Layout before compression: the length of the JSON document (4 bytes, little-endian), the document, the columns. The
//! document's key `columns` gives the offset of each column after the document, and its length. Numbers are LEB128; a
//! `delta` column has zigzag-encoded differences, which are small if neighbours are similar. `web/data.js` reads it.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::base64;

/// The text of one element: shorter than the longest string of a browser (V8: 512 Mi characters), and small enough to
/// be decoded piece by piece. Divisible by 4, so that each piece can be decoded on its own.
const PIECE_CHARACTERS: usize = 4 << 20;

/// How the numbers of a column are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Plain,
    Delta,
}

/// A part that is being built.
#[derive(Default)]
pub(super) struct Section {
    document: Map<String, Value>,
    columns: Map<String, Value>,
    bytes: Vec<u8>,
}

impl Section {
    pub fn say(&mut self, key: &str, value: impl Serialize) -> Result<(), serde_json::Error> {
        self.document
            .insert(key.to_owned(), serde_json::to_value(value)?);
        Ok(())
    }

    pub fn column(&mut self, name: &str, coding: Coding, numbers: impl IntoIterator<Item = u64>) {
        let offset = self.bytes.len();
        let mut count = 0_usize;
        let mut previous = 0;
        for number in numbers {
            count += 1;
            match coding {
                Coding::Plain => self.number(number),
                Coding::Delta => {
                    let difference = number.wrapping_sub(previous) as i64;
                    previous = number;
                    self.number(((difference << 1) ^ (difference >> 63)) as u64);
                }
            }
        }
        let delta = coding == Coding::Delta;
        self.columns.insert(
            name.to_owned(),
            json!({"offset": offset, "count": count, "delta": delta}),
        );
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// Writes it as elements with this class, one per piece.
    pub fn write(mut self, class: &str, out: &mut impl Write) -> io::Result<()> {
        self.document
            .insert("columns".to_owned(), Value::Object(self.columns));
        let document = serde_json::to_vec(&self.document)?;
        let length = u32::try_from(document.len())
            .map_err(|_| io::Error::other("the names of a recording take more than 4 GiB"))?;
        let mut packer = ZlibEncoder::new(Vec::new(), Compression::default());
        packer.write_all(&length.to_le_bytes())?;
        packer.write_all(&document)?;
        packer.write_all(&self.bytes)?;
        let packed = packer.finish()?;
        for piece in packed.chunks(PIECE_CHARACTERS / 4 * 3) {
            write!(out, "<script type=\"text/plain\" class=\"{class}\">")?;
            out.write_all(base64::encode(piece).as_bytes())?;
            out.write_all(b"</script>\n")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_take_a_byte_each() {
        let mut section = Section::default();
        section.column("plain", Coding::Plain, [0, 1, 127]);
        assert_eq!(section.bytes, [0, 1, 127]);
        section.column("delta", Coding::Delta, [1 << 40, (1 << 40) + 1, 1 << 40]);
        assert_eq!(section.columns["delta"]["offset"], 3);
        assert_eq!(section.bytes[3 + 6..], [2, 1]);
    }

    #[test]
    fn what_is_written_has_only_base64_between_its_tags() {
        let mut section = Section::default();
        section.say("evil", "</script><script>alert(1)").unwrap();
        let mut out = Vec::new();
        section.write("names", &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let inner = text
            .trim_end()
            .strip_prefix("<script type=\"text/plain\" class=\"names\">")
            .and_then(|rest| rest.strip_suffix("</script>"))
            .unwrap();
        assert!(
            inner
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
        );
    }
}
