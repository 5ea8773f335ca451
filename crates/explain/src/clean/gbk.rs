//! Chinese text in GBK, the encoding of many Windows consoles.

use std::sync::OnceLock;

/// The characters of every pair of bytes: one line for each first byte from 0x81 to 0xFE, one
/// character for each second byte from 0x40 to 0xFE without 0x7F.
const TABLE: &str = include_str!("gbk.txt");

const FIRST_LEAD: u8 = 0x81;
const TRAILS: usize = 190;

/// Decodes bytes; invalid GBK becomes U+FFFD, ASCII stays as it is.
pub fn decode(bytes: &[u8], text: &mut String) {
    let mut rest = bytes.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if byte.is_ascii() {
            text.push(char::from(byte));
            continue;
        }
        let found = rest.peek().and_then(|trail| lookup(byte, *trail));
        if found.is_some() {
            rest.next();
        }
        text.push(found.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
}

fn lookup(lead: u8, trail: u8) -> Option<char> {
    static CHARACTERS: OnceLock<Vec<char>> = OnceLock::new();
    let characters = CHARACTERS.get_or_init(|| TABLE.lines().flat_map(str::chars).collect());
    let row = usize::from(lead.checked_sub(FIRST_LEAD)?);
    let column = match trail {
        0x40..=0x7E => usize::from(trail - 0x40),
        0x80..=0xFE => usize::from(trail - 0x41),
        _ => return None,
    };
    let found = *characters.get(row * TRAILS + column)?;
    (found != char::REPLACEMENT_CHARACTER).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> String {
        let mut text = String::new();
        decode(bytes, &mut text);
        text
    }

    #[test]
    fn chinese_is_read_and_ascii_stays() {
        // "D:\项目\train.py 显存不足"
        let bytes = b"D:\\\xCF\xEE\xC4\xBF\\train.py \xCF\xD4\xB4\xE6\xB2\xBB\xD7\xE3";
        assert_eq!(decoded(bytes), "D:\\项目\\train.py 显存不足");
    }

    #[test]
    fn broken_pairs_do_not_take_what_follows() {
        assert_eq!(decoded(b"a\xFFb"), "a\u{FFFD}b");
        assert_eq!(decoded(b"\x81"), "\u{FFFD}");
        assert_eq!(decoded(b"\x81\nx"), "\u{FFFD}\nx");
    }
}
