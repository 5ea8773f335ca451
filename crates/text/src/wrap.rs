//! Text broken into lines of a given width.

/// Breaks at spaces; a word longer than the width gets a line of its own, and a number keeps its unit.
///
/// Line breaks in the text are kept, runs of spaces are not.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in with_units(paragraph) {
            let length_with_word = line.chars().count() + 1 + word.chars().count();
            if !line.is_empty() && length_with_word > width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word);
        }
        if !line.is_empty() {
            lines.push(line);
        }
    }
    lines
}

/// Words, of which a number and the unit behind it are one.
fn with_units(text: &str) -> Vec<String> {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "bytes", "%"];
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_unit = UNITS.contains(&word.trim_end_matches([',', '.', ';', ':', ')']));
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

/// A text that is too long without its middle, of which so many characters at the beginning stay.
pub fn shortened(text: &str, width: usize, at_the_beginning: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
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
