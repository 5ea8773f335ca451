//! Turns the bytes of a log into clean lines: encodings, escapes, line breaks.

mod encoding;
mod escaped_lines;
mod escapes;
mod gbk;
mod lines;
mod markup;
mod prefixes;
mod typography;

use std::borrow::Cow;

use encoding::Decoder;
use lines::Lines;

pub use escaped_lines::escaped_lines;
use escapes::without_escapes;
use markup::without_markup;
pub use prefixes::{Writer, without_prefixes};

/// Splits a stream of bytes into lines without terminal escapes, in bounded memory.
#[derive(Debug, Default)]
pub struct Cleaner {
    decoder: Decoder,
    lines: Lines,
}

impl Cleaner {
    /// `sink` gets each line's number and its bytes, in an ASCII-compatible encoding.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(u64, &[u8])) {
        let lines = &mut self.lines;
        self.decoder.push(bytes, &mut |bytes| {
            lines.push(bytes, &mut |number, line| {
                sink(number, &without_escapes(line))
            });
        });
    }

    pub fn finish(&mut self, sink: &mut dyn FnMut(u64, &[u8])) {
        let lines = &mut self.lines;
        let mut clean = |number, line: &[u8]| sink(number, &without_escapes(line));
        self.decoder
            .finish(&mut |bytes| lines.push(bytes, &mut clean));
        lines.finish(&mut clean);
    }
}

/// A line as text, UTF-8 or else GBK, without what editors and web pages add to it.
pub fn text_of(line: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(line) {
        Ok(text) => plain(text),
        Err(_) => {
            let mut text = String::with_capacity(line.len());
            gbk::decode(line, &mut text);
            Cow::Owned(plain(&text).into_owned())
        }
    }
}

fn plain(text: &str) -> Cow<'_, str> {
    match typography::in_ascii(text) {
        Cow::Borrowed(same) => without_markup(same),
        Cow::Owned(changed) => Cow::Owned(without_markup(&changed).into_owned()),
    }
}
