//! Text broken into lines of a given width.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How many columns of a terminal a text takes: Chinese characters take two.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// Breaks at spaces, and between Chinese characters; a word longer than the width gets a line of its own, and
/// a number keeps its unit.
///
/// Line breaks in the text are kept, runs of spaces are not.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in with_units(paragraph) {
            for (index, piece) in pieces(&word).into_iter().enumerate() {
                let blank = if index == 0 && !line.is_empty() {
                    " "
                } else {
                    ""
                };
                if !line.is_empty() && columns(&line) + blank.len() + columns(piece) > width {
                    lines.push(std::mem::take(&mut line));
                } else {
                    line.push_str(blank);
                }
                line.push_str(piece);
            }
        }
        if !line.is_empty() {
            lines.push(line);
        }
    }
    lines
}

/// A word in the pieces between which a line may end: at wide characters, but not before closing punctuation
/// nor after opening punctuation.
fn pieces(word: &str) -> Vec<&str> {
    const CLOSING: &str = "，。；：、）！？”’》";
    const OPENING: &str = "（“‘《";
    let is_wide = |character: char| character.width() == Some(2);
    let mut found = Vec::new();
    let mut start = 0;
    let mut before: Option<char> = None;
    for (index, character) in word.char_indices() {
        let may_break = before.is_some_and(|before| {
            (is_wide(character) || is_wide(before))
                && !CLOSING.contains(character)
                && !OPENING.contains(before)
        });
        if may_break {
            found.push(&word[start..index]);
            start = index;
        }
        before = Some(character);
    }
    found.push(&word[start..]);
    found
}

/// Splits text into words; a number and the unit after it are one word.
fn with_units(text: &str) -> Vec<String> {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "bytes", "%"];
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_unit = UNITS.iter().any(|unit| {
            let rest = word.strip_prefix(unit);
            rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_alphanumeric()))
        });
        let is_number = |before: &String| before.ends_with(|end: char| end.is_ascii_digit());
        match words
            .last_mut()
            .filter(|before| is_unit && is_number(before))
        {
            Some(before) => {
                before.push(' ');
                before.push_str(word);
            }
            None => words.push(word.to_owned()),
        }
    }
    words
}

/// Cuts the middle out of a text that is too long, and keeps this many characters at its beginning.
pub fn shortened(text: &str, width: usize, at_the_beginning: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let length = text.chars().count();
    // Wide characters take two columns, so fewer of them fit.
    let width = (width * length / columns(text).max(1)).min(width);
    let at_the_beginning = at_the_beginning.min(width.saturating_sub(1));
    let left_out = length + 1 - width.max(1);
    let beginning: String = text.chars().take(at_the_beginning).collect();
    let end: String = text.chars().skip(at_the_beginning + left_out).collect();
    format!("{beginning}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_full_as_the_width_allows() {
        assert_eq!(wrap("one two  three four", 9), ["one two", "three", "four"]);
        assert_eq!(wrap("a\n\nb", 9), ["a", "b"]);
        assert_eq!(wrap("", 9), Vec::<String>::new());
    }

    #[test]
    fn chinese_text_breaks_between_characters_and_counts_two_columns_each() {
        assert_eq!(
            wrap("显存不足，请减小 batch", 10),
            ["显存不足，", "请减小", "batch"]
        );
        assert_eq!(
            wrap("申请 1.50 GiB（显存）", 14),
            ["申请 1.50 GiB", "（显存）"]
        );
        assert_eq!(
            wrap("空闲 1.50 GiB，不够", 13),
            ["空闲", "1.50 GiB，不", "够"]
        );
        assert_eq!(columns("显存 GiB"), 8);
        assert!(columns(&shortened("显存不足显存不足显存不足", 9, 9)) <= 9);
    }

    #[test]
    fn a_number_keeps_its_unit() {
        assert_eq!(
            wrap("needs 1.50 GiB, or 3 bytes", 9),
            ["needs", "1.50 GiB,", "or", "3 bytes"]
        );
        assert_eq!(wrap("some bytes", 6), ["some", "bytes"]);
    }

    #[test]
    fn a_long_word_is_not_broken() {
        assert_eq!(wrap("a extraordinary b", 5), ["a", "extraordinary", "b"]);
    }

    #[test]
    fn a_shortened_text_keeps_its_end_and_as_much_of_its_beginning_as_is_asked_for() {
        assert_eq!(shortened("/a/b/train.py:5", 20, 0), "/a/b/train.py:5");
        assert_eq!(shortened("/a/b/train.py:5", 11, 0), "…train.py:5");
        assert_eq!(shortened("aten::mm in layer.0", 14, 8), "aten::mm…yer.0");
        assert_eq!(shortened("abcdef", 4, 9), "abc…");
        assert_eq!(shortened("abcdef", 0, 0), "…");
    }
}
