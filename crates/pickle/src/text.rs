//! The texts inside a pickle: UTF-8 with surrogates, and the escapes of protocol 0.

/// Whether these bytes are what Python writes for a string: UTF-8 in which lone surrogates may be encoded as three
/// bytes each (`surrogatepass`).
pub(crate) fn is_python_text(mut bytes: &[u8]) -> bool {
    loop {
        let Err(error) = std::str::from_utf8(bytes) else {
            return true;
        };
        let rest = &bytes[error.valid_up_to()..];
        match rest {
            [0xed, 0xa0..=0xbf, 0x80..=0xbf, ..] => bytes = &rest[3..],
            _ => return false,
        }
    }
}

/// A line of the UNICODE instruction: Latin-1 with `\uXXXX` and `\UXXXXXXXX`.
pub(crate) fn from_raw_unicode_escape(line: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(line.len());
    let mut at = 0;
    while at < line.len() {
        let digits = match line[at..] {
            [b'\\', b'u', ..] => 4,
            [b'\\', b'U', ..] => 8,
            _ => {
                push_code_point(&mut text, u32::from(line[at]))?;
                at += 1;
                continue;
            }
        };
        let hex = std::str::from_utf8(line.get(at + 2..at + 2 + digits)?).ok()?;
        if !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        push_code_point(&mut text, u32::from_str_radix(hex, 16).ok()?)?;
        at += 2 + digits;
    }
    Some(text)
}

/// A line of the STRING instruction: an ASCII string in quotes, as Python 2 prints it.
pub(crate) fn from_quoted(line: &[u8]) -> Option<Vec<u8>> {
    let (&quote, rest) = line.split_first()?;
    if quote != b'\'' && quote != b'"' {
        return None;
    }
    let (&last, inside) = rest.split_last()?;
    if last != quote {
        return None;
    }
    let mut text = Vec::with_capacity(inside.len());
    let mut bytes = inside.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            text.push(byte);
            continue;
        }
        match bytes.next()? {
            b'n' => text.push(b'\n'),
            b't' => text.push(b'\t'),
            b'r' => text.push(b'\r'),
            b'x' => {
                let high = (bytes.next()? as char).to_digit(16)?;
                let low = (bytes.next()? as char).to_digit(16)?;
                text.push((high * 16 + low) as u8);
            }
            same @ (b'\\' | b'\'' | b'"') => text.push(same),
            _ => return None,
        }
    }
    text.is_ascii().then_some(text)
}

/// Writes a code point as UTF-8, surrogates included.
fn push_code_point(text: &mut Vec<u8>, code: u32) -> Option<()> {
    if let Some(character) = char::from_u32(code) {
        let mut buffer = [0; 4];
        text.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
        return Some(());
    }
    if (0xd800..0xe000).contains(&code) {
        let low = |shift: u32| 0x80 | ((code >> shift) & 0x3f) as u8;
        text.extend_from_slice(&[0xe0 | (code >> 12) as u8, low(6), low(0)]);
        return Some(());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_surrogate_is_text_and_a_stray_byte_is_not() {
        assert!(is_python_text("größe".as_bytes()));
        assert!(is_python_text(b"a\xed\xb3\xbfb"));
        assert!(!is_python_text(b"a\xff"));
        assert!(!is_python_text(b"\xed\xa0"));
    }

    #[test]
    fn escapes_of_protocol_0_are_undone() {
        assert_eq!(
            from_raw_unicode_escape(b"a\\u00e9\xe9").unwrap(),
            "aéé".as_bytes()
        );
        assert_eq!(
            from_raw_unicode_escape(b"\\ud800").unwrap(),
            b"\xed\xa0\x80"
        );
        assert_eq!(from_raw_unicode_escape(b"\\u12"), None);
        assert_eq!(from_quoted(b"'a\\n\\'\\x41'").unwrap(), b"a\n'A");
        assert_eq!(from_quoted(b"'a"), None);
        assert_eq!(from_quoted(b"'\\xff'"), None);
    }
}
