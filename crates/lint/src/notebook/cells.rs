//! Finds the code of every cell in the JSON of a notebook.
//!
//! The JSON was parsed before and is known to be well-formed; anything unexpected still ends the search.

use std::ops::Range;

/// One string of the JSON that holds code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The string in the JSON, with its quotes.
    pub raw: Range<usize>,
    /// Its contents, in bytes of the cell's code.
    pub code: Range<usize>,
}

/// The code of one cell: one string, or a list of them (one for each line, as a rule).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Code {
    Text(Piece),
    Lines {
        /// The list in the JSON, with its brackets.
        raw: Range<usize>,
        pieces: Vec<Piece>,
    },
}

impl Code {
    pub fn pieces(&self) -> &[Piece] {
        match self {
            Self::Text(piece) => std::slice::from_ref(piece),
            Self::Lines { pieces, .. } => pieces,
        }
    }

    /// Bytes of code.
    pub fn len(&self) -> usize {
        self.pieces().last().map_or(0, |piece| piece.code.end)
    }

    /// The byte of the JSON that a byte of the code was read from.
    pub fn byte_in_json(&self, json: &str, byte: usize) -> usize {
        let pieces = self.pieces();
        let after = pieces.partition_point(|piece| piece.code.start <= byte);
        match after.checked_sub(1).map(|index| &pieces[index]) {
            Some(piece) => raw_byte(json, piece, byte - piece.code.start),
            None => match self {
                Self::Text(piece) => piece.raw.start,
                Self::Lines { raw, .. } => raw.start,
            },
        }
    }
}

/// The byte of the JSON after `bytes` bytes of a piece.
pub fn raw_byte(json: &str, piece: &Piece, byte: usize) -> usize {
    let mut raw = piece.raw.start + 1;
    let mut read = 0;
    while read < byte && raw + 1 < piece.raw.end {
        let (raw_length, length) = letter(&json[raw..]);
        raw += raw_length;
        read += length;
    }
    raw
}

/// The length of a character in the JSON, and in the text it encodes.
fn letter(json: &str) -> (usize, usize) {
    let Some(escape) = json.strip_prefix('\\') else {
        let length = json.chars().next().map_or(1, char::len_utf8);
        return (length, length);
    };
    if !escape.starts_with('u') {
        return (2, 1);
    }
    let unit = |at: usize| {
        let digits = json.get(at + 2..at + 6)?;
        u32::from_str_radix(digits, 16).ok()
    };
    match unit(0) {
        // The first half of a surrogate pair.
        Some(0xd800..0xdc00) => (12, 4),
        Some(code) => (6, char::from_u32(code).map_or(1, char::len_utf8)),
        None => (2, 1),
    }
}

/// The code of all cells by index; `None` for a cell without code.
pub fn code_of_cells(json: &str) -> Option<Vec<Option<Code>>> {
    let mut cursor = Cursor { json, at: 0 };
    let mut cells = Vec::new();
    cursor.object(&mut |key, cursor| match key {
        "cells" => cursor.array(&mut |cursor| {
            let mut code = None;
            cursor.object(&mut |key, cursor| match key {
                "source" => {
                    code = Some(cursor.code()?);
                    Some(())
                }
                _ => cursor.skip(),
            })?;
            cells.push(code);
            Some(())
        }),
        _ => cursor.skip(),
    })?;
    Some(cells)
}

/// A place in the JSON.
struct Cursor<'a> {
    json: &'a str,
    at: usize,
}

impl Cursor<'_> {
    /// The next byte that is not whitespace.
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.json.as_bytes()[self.at..];
        self.at += rest.iter().position(|byte| !b" \t\r\n".contains(byte))?;
        Some(self.json.as_bytes()[self.at])
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Walks an object; `entry` walks the value of each key.
    fn object(&mut self, entry: &mut dyn FnMut(&str, &mut Self) -> Option<()>) -> Option<()> {
        self.take(b'{')?;
        if self.peek()? == b'}' {
            return self.take(b'}');
        }
        loop {
            let key = self.string()?;
            let key: String = serde_json::from_str(&self.json[key]).ok()?;
            self.take(b':')?;
            self.peek()?;
            entry(&key, self)?;
            match self.peek()? {
                b',' => self.take(b',')?,
                _ => return self.take(b'}'),
            }
            self.peek()?;
        }
    }

    /// Walks a list; `item` walks each of its items.
    fn array(&mut self, item: &mut dyn FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.take(b'[')?;
        if self.peek()? == b']' {
            return self.take(b']');
        }
        loop {
            self.peek()?;
            item(self)?;
            match self.peek()? {
                b',' => self.take(b',')?,
                _ => return self.take(b']'),
            }
        }
    }

    /// The bytes of a string with its quotes.
    fn string(&mut self) -> Option<Range<usize>> {
        self.peek()?;
        let start = self.at;
        self.take(b'"')?;
        let bytes = self.json.as_bytes();
        loop {
            match bytes.get(self.at)? {
                b'"' => {
                    self.at += 1;
                    return Some(start..self.at);
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }

    fn code(&mut self) -> Option<Code> {
        let mut length = 0;
        if self.peek()? == b'"' {
            return self.piece(&mut length).map(Code::Text);
        }
        let start = self.at;
        let mut pieces = Vec::new();
        self.array(&mut |cursor| {
            pieces.push(cursor.piece(&mut length)?);
            Some(())
        })?;
        Some(Code::Lines {
            raw: start..self.at,
            pieces,
        })
    }

    fn piece(&mut self, length: &mut usize) -> Option<Piece> {
        let raw = self.string()?;
        let text: String = serde_json::from_str(&self.json[raw.clone()]).ok()?;
        let start = *length;
        *length += text.len();
        Some(Piece {
            raw,
            code: start..*length,
        })
    }

    /// Walks a value of any kind, without a stack: the file decides how deep it is.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            match self.peek()? {
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b'"' => {
                    self.string()?;
                }
                b',' | b':' => self.at += 1,
                _ => {
                    let rest = &self.json.as_bytes()[self.at..];
                    let is_end = |byte: &u8| b" \t\r\n,:{}[]\"".contains(byte);
                    self.at += rest.iter().position(is_end).unwrap_or(rest.len());
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}
