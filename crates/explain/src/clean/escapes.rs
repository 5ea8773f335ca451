//! Removes terminal escapes and backspaces from a line.

use std::borrow::Cow;

use memchr::{memchr2, memchr3, memmem};

const ESCAPE: u8 = 0x1B;
const BACKSPACE: u8 = 0x08;
const BELL: u8 = 0x07;

/// The line as a terminal would show it.
pub fn without_escapes(line: &[u8]) -> Cow<'_, [u8]> {
    let has_spelled = || memmem::find(line, b"^[[").is_some();
    if memchr2(ESCAPE, BACKSPACE, line).is_none() && !has_spelled() {
        return Cow::Borrowed(line);
    }
    let mut clean = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = memchr3(ESCAPE, BACKSPACE, b'^', rest) {
        clean.extend_from_slice(&rest[..at]);
        let tail = &rest[at + 1..];
        rest = match (rest[at], tail) {
            (ESCAPE, _) => after_sequence(tail),
            // As `cat -v` and pasted logs show it.
            (b'^', [b'[', b'[', ..]) => after_sequence(&tail[1..]),
            (BACKSPACE, _) => {
                remove_last_character(&mut clean);
                tail
            }
            (other, _) => {
                clean.push(other);
                tail
            }
        };
    }
    clean.extend_from_slice(rest);
    Cow::Owned(clean)
}

/// What follows the escape sequence.
fn after_sequence(rest: &[u8]) -> &[u8] {
    match rest {
        // Colours, cursor movements.
        [b'[', parameters @ ..] => {
            let end = parameters
                .iter()
                .position(|byte| !matches!(byte, 0x20..=0x3F));
            match end {
                Some(end) if matches!(parameters[end], 0x40..=0x7E) => &parameters[end + 1..],
                // Truncated: the rest is text.
                Some(end) => &parameters[end..],
                None => &[],
            }
        }
        // Titles and links, up to BEL or `ESC \`.
        [b']', title @ ..] => {
            let end = title.iter().position(|byte| matches!(*byte, BELL | ESCAPE));
            match end {
                Some(end) if title[end] == BELL => &title[end + 1..],
                Some(end) => title[end + 1..]
                    .strip_prefix(b"\\")
                    .unwrap_or(&title[end + 1..]),
                None => &[],
            }
        }
        // Character set selections have one more byte.
        [b'(' | b')', _, tail @ ..] => tail,
        [0x20..=0x7E, tail @ ..] => tail,
        _ => rest,
    }
}

fn remove_last_character(text: &mut Vec<u8>) {
    while let Some(byte) = text.pop() {
        if byte & 0b1100_0000 != 0b1000_0000 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str) {
        let clean = without_escapes(line.as_bytes());
        assert_eq!(String::from_utf8_lossy(&clean), expected);
    }

    #[test]
    fn colours_links_and_titles_go_and_the_text_stays() {
        check(
            "\x1b[31mCUDA out of \x1b[1;4mmemory\x1b[0m.",
            "CUDA out of memory.",
        );
        check("\x1b]8;;file:///a.py\x1b\\a.py\x1b]8;;\x1b\\:3", "a.py:3");
        check("\x1b]0;title\x07text", "text");
        check("\x1b[2K\x1b[1A\x1b(B50%", "50%");
        check("^[[36m(pid=3)^[[0m Killed", "(pid=3) Killed");
        check("plain", "plain");
    }

    #[test]
    fn a_backspace_takes_a_character_back() {
        check("1%\x08\x0820%", "20%");
        check("ä\x08o", "o");
        check("\x08x", "x");
    }

    #[test]
    fn sequences_that_break_off_do_not_take_text_along() {
        check("\x1b[31", "");
        check("\x1b", "");
        check("\x1b[3\u{FC}x", "\u{FC}x");
        check("\x1b]no end", "");
    }
}
