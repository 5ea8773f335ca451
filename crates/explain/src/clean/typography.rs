//! Characters that editors, web pages and input methods put in place of ASCII ones.

use std::borrow::Cow;

use memchr::{memchr3, memmem};

/// The line with full-width punctuation, typographic quotes and special spaces as plain ASCII.
pub fn in_ascii(text: &str) -> Cow<'_, str> {
    if !has_special(text.as_bytes()) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter_map(plain).collect())
}

/// Whether any of the characters below may occur. Progress bars and Chinese text have none of these bytes
/// in most lines.
fn has_special(line: &[u8]) -> bool {
    memchr3(0xC2, 0xE3, 0xEF, line).is_some() || memmem::find(line, &[0xE2, 0x80]).is_some()
}

fn plain(character: char) -> Option<char> {
    Some(match character {
        // Zero-width characters and soft hyphens, which mark where a web page may break a word.
        '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{2060}' | '\u{FEFF}' => return None,
        '\u{A0}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{3000}' => ' ',
        '\u{2018}' | '\u{2019}' => '\'',
        '\u{201C}' | '\u{201D}' => '"',
        '\u{2010}'..='\u{2012}' => '-',
        // Full-width forms of ASCII, in the same order.
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(character as u32 - 0xFEE0).unwrap_or(character),
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_width_punctuation_and_special_spaces_become_ascii() {
        for (text, expected) in [
            (
                "memory．Tried（GPU 0；1.00 GiB）",
                "memory.Tried(GPU 0;1.00 GiB)",
            ),
            (
                "CUDA\u{A0}out\u{3000}of mem\u{200B}ory",
                "CUDA out of memory",
            ),
            ("“quoted” ‘once’", "\"quoted\" 'once'"),
            ("12%|███   | 1/8", "12%|███   | 1/8"),
            (
                "页面文件太小，无法完成操作。",
                "页面文件太小,无法完成操作。",
            ),
        ] {
            assert_eq!(in_ascii(text), expected);
        }
    }
}
