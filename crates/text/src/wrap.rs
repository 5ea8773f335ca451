//! Text broken into lines of a given width.

/// Breaks at spaces; a word longer than the width gets a line of its own.
///
/// Line breaks in the text are kept, runs of spaces are not.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let length_with_word = line.chars().count() + 1 + word.chars().count();
            if !line.is_empty() && length_with_word > width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        if !line.is_empty() {
            lines.push(line);
        }
    }
    lines
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
    fn a_long_word_is_not_broken() {
        assert_eq!(wrap("a extraordinary b", 5), ["a", "extraordinary", "b"]);
    }
}
